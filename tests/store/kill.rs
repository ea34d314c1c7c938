//! A process that is killed at any moment loses nothing that it was told is done.

use std::env;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use idempotent_consumer::store::{Durability, Store as _};

use crate::child::{self, say};
use crate::model::{check, open, orders, owner, unit};

const PARTITIONS: usize = 4;
/// So many rounds pile up in one directory.
const ROUNDS_A_DIRECTORY: u64 = 10;

fn random(state: &mut u64, bound: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % bound
}

/// The child: commits for ever, and says what was acknowledged.
pub(crate) fn commit(directory: &Path, durability: Durability) {
    let store = open(directory, durability).unwrap();
    store.bind(&owner()).unwrap();
    let leases = [0, 1, 2, 3].map(|partition| store.lease(&orders(partition)).unwrap());
    let mut at = leases.map(|lease| lease.head.map_or(0, |head| head.next.get()));
    say(&format!(
        "doubt {}",
        leases.iter().all(|lease| lease.in_doubt)
    ));
    let mut state = u64::from(std::process::id()) | 1;
    loop {
        let some = 1 + usize::try_from(random(&mut state, 4)).unwrap();
        let mut units = Vec::new();
        for (lease, at) in leases.iter().zip(&mut at).take(some) {
            let next = *at + 1 + i64::try_from(random(&mut state, 60)).unwrap();
            units.push(unit(lease, *at, next));
            *at = next;
        }
        store.commit(&units).unwrap();
        let heads: Vec<_> = at.iter().map(ToString::to_string).collect();
        say(&format!("acknowledged {}", heads.join(" ")));
    }
}

fn acknowledged(line: &str) -> Option<[i64; PARTITIONS]> {
    let mut numbers = line.strip_prefix("acknowledged ")?.split(' ');
    Some([(); PARTITIONS].map(|()| numbers.next().unwrap().parse().unwrap()))
}

fn rounds() -> u64 {
    match env::var("IDEMPOTENT_CONSUMER_KILL_ROUNDS") {
        Ok(rounds) => rounds
            .parse()
            .expect("IDEMPOTENT_CONSUMER_KILL_ROUNDS is a number"),
        Err(_) => 50,
    }
}

fn kill_again_and_again(role: &str, durability: Durability) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = u64::from(now.subsec_nanos()) | 1;
    println!("seed {seed}");
    let mut state = seed;
    let mut parent = tempfile::tempdir().unwrap();
    let mut heads = [0; PARTITIONS];
    let mut leased = false;
    let (mut commits, mut keys) = (0, 0);
    for round in 0..rounds() {
        if round % ROUNDS_A_DIRECTORY == 0 {
            parent = tempfile::tempdir().unwrap();
            heads = [0; PARTITIONS];
            leased = false;
        }
        let mut child = child::start(&[], role, parent.path());
        for _ in 0..random(&mut state, 60) {
            let line = child.hear().expect("the child ended by itself");
            note(&line, &mut heads, &mut leased, &mut commits);
        }
        // A moment of its own, mostly within the next commit.
        let end = Instant::now() + Duration::from_micros(random(&mut state, 3000));
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        child.kill();
        for line in child.rest() {
            note(&line, &mut heads, &mut leased, &mut commits);
        }
        let store = open(parent.path(), durability)
            .unwrap_or_else(|error| panic!("round {round}, seed {seed}: {error}"));
        check(&store, &heads).unwrap_or_else(|lost| panic!("round {round}, seed {seed}: {lost}"));
        keys = keys.max(store.summary().keys);
    }
    println!(
        "{role}: {} kills, {commits} commits acknowledged, up to {keys} keys",
        rounds()
    );
}

fn note(line: &str, heads: &mut [i64; PARTITIONS], leased: &mut bool, commits: &mut u64) {
    if let Some(doubt) = line.strip_prefix("doubt ") {
        // Whoever said this had leased all partitions and was then killed.
        assert!(!*leased || doubt == "true", "no doubt after a kill");
        *leased = true;
    } else if let Some(acknowledged) = acknowledged(line) {
        *heads = acknowledged;
        *commits += 1;
    } else {
        panic!("the child said {line}");
    }
}

// C077
#[test]
fn a_killed_process_loses_no_acknowledged_key_under_power() {
    kill_again_and_again("commit-power", Durability::Power);
}

// C077
#[test]
fn a_killed_process_loses_no_acknowledged_key_under_process() {
    kill_again_and_again("commit-process", Durability::Process);
}
