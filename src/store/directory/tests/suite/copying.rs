//! A store copied into the other engine, and back.

use super::super::other;
use super::*;
use crate::store::Entry;
use crate::store::contract::late::late;
use crate::store::directory::copy;
use crate::store::{DirectoryStore, Engine, Forget, Inspection};

const CLUSTER: &str = "Some-Cluster-Id-of-22-";

/// A store with something of everything: results, gaps, a filler, a dead letter, what was only
/// read, what was forgotten; one partition given up in order, one not, one never committed to.
fn rich(path: &Path) -> Kept {
    fill(path, Durability::Power, (2, 6, 90), true);
    let store = open(path, Durability::Power).unwrap();
    store.bind_cluster(CLUSTER).unwrap();
    store.lease(&orders(3)).unwrap();
    let lease = store.lease(&orders(2)).unwrap();
    for mut unit in late(&lease) {
        let [first, .., last] = &mut unit.entries[..] else {
            store.commit(&[unit]).unwrap();
            continue;
        };
        (first.dead_lettered, last.restored) = (true, true);
        store.commit(&[unit]).unwrap();
    }
    store.forget(&Forget::offsets(&orders(0), 2..5)).unwrap();
    open(path, Durability::Power).unwrap()
}

/// Everything that is asked of a store while it works but for its engine, to be compared.
fn all<E: Engine>(store: &DirectoryStore<E>) -> (HashKey, Vec<String>) {
    let key = store.bind(&owner()).unwrap();
    let inspection = Inspection {
        engine: "",
        ..store.inspect()
    };
    let mut all = vec![format!("{inspection:?}")];
    for number in 0..4 {
        let id = PartitionId(number);
        let mut place = Place::default();
        while let Some((at, unit)) = store.unit_behind(id, place).unwrap() {
            place = at;
            let keys = unit.entries.iter().map(|entry| entry.fingerprint);
            let keys: Vec<_> = keys.collect();
            let mut found = Vec::new();
            store.lookup(&keys, &mut found).unwrap();
            let marks = keys.iter().zip(&found);
            let result = marks.map(|(key, mark)| store.result(key, &mark.unwrap()).unwrap());
            let results: Vec<_> = result.collect();
            all.push(format!("{at} {unit:?} {found:?} {results:?}"));
        }
    }
    (key, all)
}

fn leases<E: Engine>(store: &DirectoryStore<E>) -> [Lease; 4] {
    [0, 1, 2, 3].map(|partition| store.lease(&orders(partition)).unwrap())
}

/// The files that are no engine's, and what is in the engine.
fn content(path: &Path) -> (Vec<Vec<u8>>, Records) {
    let files = [Kept::paths(path).stamp, Kept::paths(path).high_water];
    let files = files.map(|path| fs::read(path).unwrap());
    let raw = Raw::open(path);
    let records = raw.records();
    raw.close();
    (files.into(), records)
}

#[test]
fn a_copy_knows_all_that_its_source_does_and_so_does_the_copy_of_the_copy() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second, third] = ["first", "second", "third"].map(|name| parent.path().join(name));
    drop(rich(&first));
    let before = content(&first);
    let source = open(&first, Durability::Power).unwrap();
    let expected = all(&source);
    assert!(expected.1.len() > 14, "{expected:#?}");
    let copied = other::copy_from(&source, &second).unwrap();
    let records = before.1.len() as u64;
    assert_eq!((copied.partitions, copied.records), (4, records));
    assert_eq!(copied.keys, source.summary().keys);
    assert_eq!(all(&source), expected);
    drop(source);
    assert_eq!(content(&first), before, "the source was changed");

    let second = other::open(&second, Durability::Power).unwrap();
    assert_eq!(all(&second), expected);
    assert!(second.bind_cluster("another").is_err());
    super::super::copy_from(&second, &third).unwrap();
    drop(second);
    // But for the high water, whose slots count how often they were written.
    let (files, records) = content(&third);
    assert_eq!(
        (&files[0], records),
        (&before.0[0], before.1),
        "there and back"
    );
    let [first, third] = [first, third].map(|path| open(&path, Durability::Power).unwrap());
    let leases = [leases(&first), leases(&third)];
    assert_eq!(leases[0], leases[1]);
    let doubt = leases[0].map(|lease| (lease.epoch, lease.in_doubt));
    assert_eq!(doubt, [(2, false), (2, false), (2, true), (2, true)]);
}

#[test]
fn a_copy_is_worked_on_like_any_store() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
    other::copy_from(&rich(&first), &second).unwrap();
    for more in [3, 6] {
        let store = other::open(&second, Durability::Power).unwrap();
        let lease = store.lease(&orders(3)).unwrap();
        store.commit(&[unit(&lease, more - 3, more)]).unwrap();
    }
    let store = other::open(&second, Durability::Power).unwrap();
    let heads = store.heads();
    let head = heads.iter().find(|(name, _)| *name == orders(3)).unwrap().1;
    assert_eq!(head.unwrap().next.get(), 6);
}

#[test]
fn nothing_is_copied_over_what_is_there() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
    let source = rich(&first);
    drop(other::open(&second, Durability::Power).unwrap());
    let taken = snapshot(&second);
    let error = other::copy_from(&source, &second).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&second.display().to_string()), "{text}");
    assert!(text.contains("nothing is copied over"), "{text}");
    assert_eq!(snapshot(&second), taken);
    let onto_itself = super::super::copy_from(&source, &first).unwrap_err();
    assert!(onto_itself.to_string().contains("nothing is copied over"));
    // A directory that is there and empty is a target, and so is one of a refused opening.
    let third = parent.path().join("third");
    fs::create_dir(&third).unwrap();
    fs::write(third.join("lock"), "4711\n").unwrap();
    other::copy_from(&source, &third).unwrap();
}

#[test]
fn a_copy_that_was_not_finished_is_no_store() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
    let source = rich(&first);
    other::copy_from(&source, &second).unwrap();
    // As before the last step.
    fs::rename(second.join("stamp"), second.join("unfinished-copy")).unwrap();
    let text = other::open(&second, Durability::Power).err().unwrap();
    assert!(text.to_string().contains("unfinished-copy"), "{text}");
    let again = other::copy_from(&source, &second).unwrap_err();
    assert!(matches!(again, StoreError::Unusable { .. }), "{again}");
}

#[test]
fn a_store_is_not_opened_in_the_other_engine() {
    let parent = tempfile::tempdir().unwrap();
    drop(rich(parent.path()));
    let before = content(parent.path());
    let error = other::open(parent.path(), Durability::Power).err().unwrap();
    assert!(matches!(error, StoreError::OtherEngine { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "sled",
        "redb",
        "dedup store copy",
        &parent.path().display().to_string(),
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(content(parent.path()), before);
}

/// A copy of `rich` that `change` was done to, compared with its source.
fn compared_after(change: impl Fn(&Path)) -> Result<(), StoreError> {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
    let source = rich(&first);
    other::copy_from(&source, &second).unwrap();
    change(&second);
    let copied = other::open(&second, Durability::Power).unwrap();
    copy::compare(&source, &copied)
}

type Change = fn(&other::Kept);

#[test]
fn whatever_differs_is_found() {
    compared_after(|_| ()).unwrap();
    let on_store: [Change; 4] = [
        |store| assert!(store.lease(&orders(0)).is_ok()),
        |store| store.release(&store.lease(&orders(3)).unwrap()).unwrap(),
        |store| assert!(store.lease(&orders(4)).is_ok()),
        |store| {
            let lease = store.lease(&orders(0)).unwrap();
            let next = lease.head.unwrap().next.get();
            store.commit(&[unit(&lease, next, next + 1)]).unwrap();
        },
    ];
    for change in on_store {
        let change = |path: &Path| change(&other::open(path, Durability::Power).unwrap());
        let error = compared_after(change).unwrap_err();
        assert!(matches!(error, StoreError::CopyDiffers { .. }), "{error}");
    }
    // A record that is as good as the one it replaces: another result, another forgotten key.
    let on_entry: [fn(&mut Entry); 2] = [
        |entry| entry.result = Some(b"another"[..].into()),
        |entry| entry.forgotten = true,
    ];
    for change in on_entry {
        let error = compared_after(|path| {
            let raw = other::Raw::open(path);
            let (key, value) = raw.records().swap_remove(3);
            let mut logged = format::decode(&key, &value).unwrap();
            change(&mut logged.unit.entries[0]);
            raw.insert(&key, &format::encode(&logged));
            raw.close();
        });
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("not what was copied: the record of"),
            "{text}"
        );
    }
}

#[test]
fn a_store_in_which_the_first_of_two_dead_letters_has_expired_is_copied() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
    let source = open(&first, Durability::Power).unwrap();
    source.bind(&owner()).unwrap();
    let lease = source.lease(&orders(0)).unwrap();
    let mut early = unit(&lease, 0, 10);
    early.entries[5].dead_lettered = true;
    let mut later = unit(&lease, 10, 20);
    later.entries[3] = super::again::again(&early.entries[5], 13);
    for unit in [early, later, unit(&lease, 20, 30)] {
        source.commit(&[unit]).unwrap();
    }
    super::again::expire_below(&source, 10);
    assert_eq!(source.retained_from(PartitionId(0)).get(), 10);
    other::copy_from(&source, &second).unwrap();
}
