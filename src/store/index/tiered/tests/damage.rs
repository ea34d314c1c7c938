//! Files that are not what was written.

use super::*;

/// Opens what may be damaged and asks for every key: answered rightly, at once or after one refusal.
fn right_or_refused_once(directory: &Path, log: &[CommitUnit]) -> bool {
    let pair = Pair::open(directory, log.to_vec());
    let (expected, found) = pair.answers();
    let refused = match found {
        Ok(found) => {
            assert_eq!(found, expected);
            false
        }
        Err(error) => {
            assert!(matches!(error, StoreError::IndexDamaged { .. }), "{error}");
            assert!(error.to_string().contains(".run"), "{error}");
            assert!(pair.index.check().is_err(), "it goes on");
            true
        }
    };
    let pair = pair.reopened(true);
    pair.compare();
    refused
}

#[test]
fn a_damaged_byte_is_never_an_unknown_key() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let damaged = parent.path().join("damaged");
    let log = log(60);
    let pair = Pair::open(&directory, log.clone());
    pair.settle();
    drop(pair.reopened(true).index);
    let (mut refused, mut trials) = (0, 0);
    for name in numbers(&directory) {
        let content = fs::read(directory.join(&name)).unwrap();
        for at in (0..content.len()).step_by(content.len() / 23 + 1) {
            for cut in [false, true] {
                let _ = fs::remove_dir_all(&damaged);
                fs::create_dir_all(&damaged).unwrap();
                for other in numbers(&directory) {
                    fs::copy(directory.join(&other), damaged.join(&other)).unwrap();
                }
                let mut content = content.clone();
                if cut {
                    content.truncate(at);
                } else {
                    content[at] ^= 0x10;
                }
                fs::write(damaged.join(&name), content).unwrap();
                refused += usize::from(right_or_refused_once(&damaged, &log));
                trials += 1;
            }
        }
    }
    assert!(refused > 0 && refused < trials, "{refused} of {trials}");
}

#[test]
fn without_its_runs_or_its_manifest_an_index_is_made_anew() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    for gone in 0..2 {
        let pair = Pair::open(&directory, log(60)).reopened(true);
        drop(pair.index);
        let names = numbers(&directory);
        let name = if gone == 0 {
            &names[0]
        } else {
            names.last().unwrap()
        };
        fs::remove_file(directory.join(name)).unwrap();
        let (index, covered) = Index::open(&directory, STORE, SMALL).unwrap();
        assert!(covered.is_empty(), "without {name}");
        assert_eq!(numbers(&directory), Vec::<String>::new());
        drop(index);
        Pair::open(&directory, log(60)).compare();
    }
}

#[test]
fn another_stores_index_is_not_believed() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    drop(Pair::open(&directory, log(60)).reopened(true).index);
    let (_, covered) = Index::open(&directory, "another store", SMALL).unwrap();
    assert!(covered.is_empty());
}

#[test]
fn an_index_that_counts_no_more_names_nothing_any_more() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let pair = Pair::open(&directory, log(60));
    pair.settle();
    pair.index.invalidate().unwrap();
    for unit in log(60) {
        pair.put(&unit);
    }
    pair.index.close(pair.log.last().map(covered));
    let (_, covered) = Index::open(&directory, STORE, SMALL).unwrap();
    assert!(covered.is_empty());
}

#[test]
fn damage_that_a_merge_meets_is_healed_by_the_next_opening() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let mut pair = Pair::open(&directory, Vec::new());
    let keys = |at: u64| {
        (0..20)
            .map(|number| (at * 20 + number, 0))
            .collect::<Vec<_>>()
    };
    for at in 0..3 {
        pair.commit(&keys(at));
        pair.settle();
    }
    // Under the open index, which has read of it what it keeps in memory.
    let file = directory.join(numbers(&directory).remove(0));
    let mut content = fs::read(&file).unwrap();
    content[100] ^= 0x10;
    fs::write(&file, content).unwrap();
    pair.commit(&keys(3));
    let gives_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while pair.index.check().is_ok() {
        assert!(std::time::Instant::now() < gives_up, "nothing was merged");
        std::thread::yield_now();
    }
    let pair = pair.reopened(true);
    pair.settle();
    pair.compare();
}

#[test]
fn a_block_that_the_device_does_not_give_back_is_damage_of_the_index() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    drop(Pair::open(&directory, log(60)).reopened(true).index);
    let path = directory.join(numbers(&directory).remove(0));
    let mut run = Run::open(1, &path).unwrap();
    // Every read of this one fails.
    let unread = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let file = crate::store::index::run::RunFile {
        number: 1,
        path: path.clone(),
        file: unread,
    };
    run.file = Arc::new(file);
    let error = run.cursor().advance().unwrap_err();
    assert!(matches!(error, StoreError::IndexDamaged { .. }), "{error}");
}
