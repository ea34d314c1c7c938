//! A process that is killed at any moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::child::{self, Process};
use crate::feed::Feed;
use crate::{admin, broker};

const KEYS: usize = 20_000;
/// Effects of a partition that a kill may leave without marks.
const IN_FLIGHT_MAX: usize = 1_000;
const PARTITIONS: usize = 2;

pub(crate) fn rounds(of_all: u64) -> u64 {
    match std::env::var("IDEMPOTENT_CONSUMER_BROKER_ROUNDS") {
        Ok(rounds) => rounds
            .parse()
            .expect("IDEMPOTENT_CONSUMER_BROKER_ROUNDS is a number"),
        Err(_) => of_all,
    }
}

/// Waits until there are more effects than `before`.
pub(crate) fn wait_for_more(process: &mut Process, directory: &Path, before: u64) {
    let size = || std::fs::metadata(directory.join("effects")).map_or(0, |file| file.len());
    broker::wait_for("an effect of the child", || {
        process.assert_running();
        size() > before
    });
}

pub(crate) fn bytes(directory: &Path) -> u64 {
    std::fs::metadata(directory.join("effects")).map_or(0, |file| file.len())
}

/// Every key took effect; those that did so again were announced as in doubt.
pub(crate) fn assert_history(directory: &Path, keys: &[String], repeats_max: usize) {
    let mut times: BTreeMap<_, usize> = keys.iter().map(|key| (key.clone(), 0)).collect();
    let (mut repeats, mut unannounced) = (0, vec![]);
    for line in child::history(directory) {
        let times = times.get_mut(&line.key).expect("a key that was sent");
        *times += 1;
        if *times > 1 {
            repeats += 1;
            if !line.in_doubt {
                unannounced.push(line.key);
            }
        }
    }
    let lost: Vec<_> = times.iter().filter(|(_, times)| **times == 0).collect();
    assert!(
        lost.is_empty(),
        "{} lost, first {:?}",
        lost.len(),
        lost.first()
    );
    assert!(
        unannounced.is_empty(),
        "{} repeated and not in doubt, first {:?}",
        unannounced.len(),
        unannounced.first()
    );
    assert!(
        repeats <= repeats_max,
        "{repeats} repeats, at most {repeats_max}"
    );
    println!("{repeats} repeats of {} effects", keys.len());
}

#[test]
fn a_kill_at_any_moment_loses_nothing_and_repeats_only_what_is_announced() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "killed", i32::try_from(PARTITIONS).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let keys = Feed::start(&kafka, &topic, PARTITIONS, KEYS, Duration::ZERO).wait();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut seed = u64::from(now.subsec_nanos());
    println!("seed {seed}");
    let rounds = rounds(10);
    for _ in 0..rounds {
        let before = bytes(dir.path());
        let mut process = child::start(&kafka, &topic, dir.path());
        wait_for_more(&mut process, dir.path(), before);
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The moment of the kill; nothing is waited for.
        std::thread::sleep(Duration::from_millis((seed >> 33) % 120));
        process.kill();
    }
    let mut process = child::start(&kafka, &topic, dir.path());
    broker::wait_caught_up(&kafka, &topic, &topic);
    process.assert_running();
    process.stop();
    let repeats_max = usize::try_from(rounds).unwrap() * PARTITIONS * IN_FLIGHT_MAX;
    assert_history(dir.path(), &keys, repeats_max);
}
