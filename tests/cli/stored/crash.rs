//! `dedup --store sled` killed at random moments and run again with the same input.
//!
//! `DEDUP_KILL_ROUNDS` sets the number of kills (default 30).

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    process::{Child, Stdio},
};

use super::{dedup, feed};
use crate::support::{Lab, Random, assert_bytes, eventually, read};

fn rounds() -> usize {
    env::var("DEDUP_KILL_ROUNDS").map_or(30, |rounds| rounds.parse().unwrap())
}

/// Lines of many lengths; some are the beginning of others, some are longer than a record of the
/// store, and every third is a copy.
fn input(random: &mut Random, count: usize) -> Vec<u8> {
    let mut input = Vec::new();
    for number in 0..count {
        let number = if number % 3 == 2 {
            random.below(number)
        } else {
            number
        };
        let length = if number % 5_000 == 7 {
            150_000
        } else {
            number % 61
        };
        input.extend_from_slice(format!("order-{number}{}\n", "x".repeat(length)).as_bytes());
    }
    input
}

/// Every distinct line once, in the order of its first appearance.
fn distinct(input: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let lines = input.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter(|line| seen.insert(*line))
        .flatten()
        .copied()
        .collect()
}

fn length(lab: &Lab) -> usize {
    fs::metadata(lab.out()).map_or(0, |metadata| usize::try_from(metadata.len()).unwrap())
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_at_any_moment_every_line_is_there_once_and_in_order() {
    let mut random = Random(11);
    let input = input(&mut random, 40_000);
    let expected = distinct(&input);
    let (mut lab, mut at_work) = (Lab::new(), 0);
    for round in 0.. {
        // How many are still at work when they are killed depends on the machine: a fast one is
        // often done before its kill, and then there are more of them, up to a bound.
        if round >= rounds() && (at_work * 2 >= rounds() || round >= 10 * rounds()) {
            break;
        }
        // A new start now and then: the kills soon reach the end of the input.
        if round % 4 == 0 {
            lab = Lab::new();
        }
        // At some rounds the file has lost its end too, as after a power cut.
        let before = length(&lab);
        if before > 0 && random.below(3) == 0 {
            let file = File::options().write(true).open(lab.out()).unwrap();
            file.set_len(random.below(before) as u64).unwrap();
        }
        let path = lab.write("input", &input);
        let mut child = dedup(&lab)
            .stdin(File::open(&path).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let target = length(&lab) + random.below(expected.len() / 2);
        // The store's file grows long before the out file does.
        let log = lab.path("seen.store/log/db");
        let by_log = random.below(2) == 0;
        eventually("something was written, or all is done", || {
            let begun = by_log && random.below(400) == 0 && log.exists();
            begun || length(&lab) > target || child.try_wait().unwrap().is_some()
        });
        at_work += usize::from(child.try_wait().unwrap().is_none());
        kill(child);
        let out = read(lab.out());
        assert_bytes(&out, &expected[..out.len().min(expected.len())], "out");
        if round % 4 == 3 {
            feed(&lab, &input);
            assert_bytes(&read(lab.out()), &expected, "the out file");
        }
    }
    assert!(
        at_work * 2 >= rounds(),
        "only {at_work} were killed at work"
    );
    feed(&lab, &input);
    assert_bytes(&read(lab.out()), &expected, "the out file");
    feed(&lab, &input);
    assert_bytes(&read(lab.out()), &expected, "the out file, fed again");
}
