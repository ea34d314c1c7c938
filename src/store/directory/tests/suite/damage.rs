//! Damaged files: a refusal, or an opening with all that was acknowledged.

use std::os::unix::fs::FileExt as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

const PAGE: u64 = 4096;
/// sled has been seen to wait for ever; a caller must not.
const DEADLINE: Duration = Duration::from_secs(60);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut(u64),
    ZeroedPage(u64),
    FlippedBit(u64),
    Zeroed,
    OtherByte(u64),
}

impl Damage {
    fn apply(self, path: &Path) {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let len = file.metadata().unwrap().len();
        match self {
            Self::Cut(at) => file.set_len(at).unwrap(),
            Self::ZeroedPage(at) => {
                let page = vec![0; usize::try_from(PAGE.min(len - at)).unwrap()];
                file.write_all_at(&page, at).unwrap();
            }
            Self::FlippedBit(at) => exchange(&file, at, 4),
            Self::OtherByte(at) => exchange(&file, at, 0xff),
            Self::Zeroed => {
                file.set_len(0).unwrap();
                file.set_len(len).unwrap();
            }
        }
    }

    /// 35 kinds of damage to a file of `len` bytes.
    fn list(len: u64, random: &mut Random) -> Vec<Self> {
        let page = |at: u64| at / PAGE * PAGE;
        let mut list = vec![Self::Zeroed, Self::Cut(0), Self::Cut(len - 1)];
        list.extend((0..10).map(|n| Self::Cut(page(len).saturating_sub(n * PAGE))));
        list.extend((0..6).map(|_| Self::Cut(random.below(len))));
        list.extend((0..4).map(|n| Self::ZeroedPage(page(len - 1).saturating_sub(n * PAGE))));
        list.extend((0..8).map(|_| Self::ZeroedPage(page(random.below(len)))));
        list.extend((0..4).map(|_| Self::FlippedBit(random.below(len))));
        list
    }
}

fn exchange(file: &fs::File, at: u64, bits: u8) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ bits], at).unwrap();
}

/// The end of an opening: what is missing, or the refusal.
fn outcome(path: &Path, acknowledged: &Acknowledged) -> Result<Result<(), String>, StoreError> {
    let (path, (tell, told)) = (path.to_owned(), mpsc::channel());
    // On a thread of its own, so that one that hangs is a failure of the test and not its end.
    let opener = thread::spawn(move || {
        // Nobody listens any more after the deadline.
        let _ = tell.send(open(&path, Durability::Power));
    });
    let answer = told.recv_timeout(DEADLINE);
    let answer = answer.expect("an opening panicked, or hung for a minute");
    opener.join().unwrap();
    answer.map(|store| acknowledged.missing_in(&store))
}

/// The engine's files in a store: of sled its data, its settings, and its snapshot where there is
/// one.
fn files_of(store: &Path) -> Vec<PathBuf> {
    let log = Kept::paths(store).log;
    let files = snapshot(store).into_keys();
    let files = files.filter(|path| path.is_file() && path.starts_with(&log));
    files
        .map(|path| path.strip_prefix(store).unwrap().to_owned())
        .collect()
}

/// Damages each of the engine's files in copies of a good store. Twice opened, since engines change
/// their files in a first opening: what was refused must not pass at the second try.
fn trials(good: &Path, acknowledged: &Acknowledged, seed: u64) {
    let random = &mut Random(seed);
    let list = |len| Damage::list(len, random);
    let (whole, refused) = damaged(good, acknowledged, list);
    println!("seed {seed}: {whole} openings whole, {refused} refused");
}

fn damaged(
    good: &Path,
    acknowledged: &Acknowledged,
    mut list: impl FnMut(u64) -> Vec<Damage>,
) -> (u32, u32) {
    let parent = tempfile::tempdir().unwrap();
    let trials = files_of(good).into_iter().flat_map(|file| {
        let len = fs::metadata(good.join(&file)).unwrap().len();
        list(len)
            .into_iter()
            .map(move |damage| (file.clone(), damage))
    });
    let (mut whole, mut refused) = (0, 0);
    for (number, (file, damage)) in trials.enumerate() {
        let bad = parent.path().join(number.to_string());
        copy(good, &bad);
        damage.apply(&bad.join(&file));
        for opening in 1..=2 {
            match outcome(&bad, acknowledged) {
                Ok(Ok(())) => whole += 1,
                Ok(Err(missing)) => panic!("{file:?} {damage:?}, opening {opening}: {missing}"),
                Err(StoreError::Damaged { path, .. } | StoreError::Unusable { path, .. })
                    if path.starts_with(&bad) =>
                {
                    refused += 1;
                }
                // sled panicked at the first try and still holds its lock: this process cannot
                // open the store again, and says so.
                Err(StoreError::Locked { .. }) if opening == 2 => {}
                Err(error) => panic!("{file:?} {damage:?}, opening {opening}: {error}"),
            }
        }
        fs::remove_dir_all(&bad).unwrap();
    }
    (whole, refused)
}

/// A copy of a store in use, as a death of its process leaves it.
fn killed(path: &Path, good: &Path) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let store = open(path, Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    for at in (0..20).map(|round| round * 300) {
        acknowledged.commit(&store, vec![unit(&lease, at, at + 300)]);
    }
    copy(path, good);
    acknowledged
}

#[test]
fn nor_does_one_whose_process_died() {
    let parent = tempfile::tempdir().unwrap();
    let good = parent.path().join("good");
    let acknowledged = killed(&parent.path().join("live"), &good);
    trials(&good, &acknowledged, 3);
}

#[test]
fn nor_does_one_with_any_byte_of_its_header_changed() {
    let header = |_| header().map(Damage::OtherByte).collect();
    let parent = tempfile::tempdir().unwrap();
    let [live, dead] = ["live", "dead"].map(|name| parent.path().join(name));
    let acknowledged = killed(&live, &dead);
    for good in [live, dead] {
        let (whole, refused) = damaged(&good, &acknowledged, header);
        println!("{whole} openings whole, {refused} refused");
    }
}

#[test]
fn a_damaged_log_never_opens_with_less_than_was_acknowledged() {
    let parent = tempfile::tempdir().unwrap();
    let good = parent.path().join("good");
    let acknowledged = fill(&good, Durability::Power, (3, 100, 1000), false);
    trials(&good, &acknowledged, 1);
}

/// After reopenings there is a snapshot, which sled believes more than its log.
#[test]
fn nor_does_one_that_had_been_reopened() {
    let parent = tempfile::tempdir().unwrap();
    let good = parent.path().join("good");
    let mut acknowledged = fill(&good, Durability::Power, (2, 60, 1000), true);
    for _ in 0..2 {
        let store = open(&good, Durability::Power).unwrap();
        let lease = store.lease(&orders(0)).unwrap();
        for _ in 0..20 {
            let lease = Lease {
                head: store.heads()[0].1,
                ..lease
            };
            let next = lease.head.unwrap().next.get();
            acknowledged.commit(&store, vec![unit(&lease, next, next + 700)]);
        }
    }
    trials(&good, &acknowledged, 2);
}

/// Damage may lie where no record does, such as in a list of free pages: a store that opens all the
/// same must not write over what it knows.
#[test]
fn what_opens_in_spite_of_damage_can_be_worked_on() {
    let parent = tempfile::tempdir().unwrap();
    let [good, bad, dead] = ["good", "bad", "dead"].map(|name| parent.path().join(name));
    let before = killed(&good, &dead);
    let log = Kept::paths(Path::new("")).log;
    let len = if good.join(&log).is_file() {
        fs::metadata(good.join(&log)).unwrap().len()
    } else {
        0
    };
    let (mut opened, mut tried) = (0, 0);
    for page in pages(len) {
        copy(&good, &bad);
        Damage::ZeroedPage(page).apply(&bad.join(&log));
        tried += 1;
        if let Ok(store) = open(&bad, Durability::Power) {
            opened += 1;
            let mut after = Acknowledged(before.0.clone());
            let lease = store.lease(&orders(0)).unwrap();
            let mut at = lease.head.unwrap().next.get();
            for _ in 0..20 {
                after.commit(&store, vec![unit(&lease, at, at + 300)]);
                at += 300;
            }
            drop(store);
            after
                .missing_in(&open(&bad, Durability::Power).unwrap())
                .unwrap();
        }
        fs::remove_dir_all(&bad).unwrap();
    }
    println!("{opened} of {tried} opened");
}

/// As after a restore of one file out of two.
#[test]
fn an_older_log_beside_a_newer_high_water_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (older, newer) = (parent.path().join("older"), parent.path().join("newer"));
    fill(&older, Durability::Power, (1, 10, 5), true);
    copy(&older, &newer);
    let store = open(&newer, Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let next = lease.head.unwrap().next.get();
    store.commit(&[unit(&lease, next, next + 5)]).unwrap();
    drop(store);
    let (older, newer) = (Kept::paths(&older), Kept::paths(&newer));
    remove(&newer.log);
    if older.log.is_dir() {
        copy(&older.log, &newer.log);
    } else {
        fs::copy(&older.log, &newer.log).unwrap();
    }
    let text = refusal(&newer.directory, Durability::Power).to_string();
    assert!(text.contains(&format!("ends at offset {next}")), "{text}");
    assert!(text.contains(&format!("up to {}", next + 5)), "{text}");
}
