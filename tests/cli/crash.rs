//! Killed at random moments and run again with the same input.
//!
//! `DEDUP_KILL_ROUNDS` sets the number of kills of each test (default 30).

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    io::{Read, Write},
    process::Stdio,
};

use crate::support::{Lab, Random, eventually, finish, read};

pub(crate) fn rounds() -> usize {
    env::var("DEDUP_KILL_ROUNDS").map_or(30, |rounds| rounds.parse().unwrap())
}

/// Lines of many lengths; some are the beginning of others, and every third is a copy.
fn input(random: &mut Random, count: usize) -> Vec<u8> {
    let mut input = Vec::new();
    for number in 0..count {
        let number = if number % 3 == 2 {
            random.below(number)
        } else {
            number
        };
        let filling = "x".repeat(number % 61);
        input.extend_from_slice(format!("order-{number}{filling}\n").as_bytes());
    }
    input
}

/// The lines, and half a line at the end if there is one.
fn lines(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    let lines = bytes[..whole]
        .split_inclusive(|byte| *byte == b'\n')
        .collect();
    (lines, &bytes[whole..])
}

/// What must be true at any moment, also right after a kill.
#[track_caller]
fn marked_is_written(seen: &[u8], out: &[u8]) {
    let (marked, half_mark) = lines(seen);
    let written: HashSet<&[u8]> = lines(out).0.into_iter().collect();
    let lost: Vec<_> = marked
        .into_iter()
        .filter(|line| !written.contains(line))
        .collect();
    assert!(
        lost.is_empty(),
        "marked and written nowhere: {} lines, {:?}",
        lost.len(),
        lost[0]
    );
    assert!(
        half_mark.is_empty() || written.iter().any(|line| line.starts_with(half_mark)),
        "half a mark of a line that was not written"
    );
}

/// What must be true after a run that came to its end.
#[track_caller]
fn complete(lab: &Lab, input: &[u8]) {
    let (seen, out) = (read(lab.seen()), read(lab.out()));
    marked_is_written(&seen, &out);
    let fed: HashSet<&[u8]> = lines(input).0.into_iter().collect();
    let (marked, written) = (lines(&seen), lines(&out));
    assert_eq!((marked.1, written.1), (&b""[..], &b""[..]));
    let marked: HashSet<&[u8]> = marked.0.into_iter().collect();
    assert!(
        fed.is_subset(&marked),
        "{} lines are not marked",
        fed.difference(&marked).count()
    );
    // A half line may have been ended and left; nothing else may appear.
    for line in written.0 {
        let half = || {
            fed.iter()
                .any(|fed| fed.starts_with(&line[..line.len() - 1]))
        };
        assert!(
            fed.contains(line) || half(),
            "nobody fed {:?}",
            String::from_utf8_lossy(line)
        );
    }
    lab.feed(input);
    assert_eq!(
        (read(lab.seen()), read(lab.out())),
        (seen, out),
        "fed again"
    );
}

#[test]
fn fed_by_a_pipe_and_killed_nothing_is_lost() {
    let lab = Lab::new();
    let mut random = Random(1);
    let input = input(&mut random, 30_000);
    for _ in 0..rounds() {
        let mut child = lab
            .dedup()
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut rest = &input[..random.below(input.len())];
        while !rest.is_empty() {
            let (burst, later) = rest.split_at(rest.len().min(1 + random.below(20_000)));
            stdin.write_all(burst).unwrap();
            rest = later;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        marked_is_written(&read(lab.seen()), &read(lab.out()));
    }
    lab.write("input", &input);
    let child = lab
        .dedup()
        .stdin(File::open(lab.path("input")).unwrap())
        .spawn()
        .unwrap();
    assert_eq!(finish(child).code, Some(0));
    complete(&lab, &input);
}

#[test]
fn fed_by_a_file_and_killed_while_it_writes_nothing_is_lost() {
    let mut random = Random(2);
    let input = input(&mut random, 90_000);
    let lab = Lab::new();
    let path = lab.write("input", &input);
    let start = || {
        lab.dedup()
            .stdin(File::open(&path).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let length = |path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    for round in 0..rounds() {
        // A new start now and then: the kills soon reach the end of the input.
        if round % 3 == 0 {
            let _ = (fs::remove_file(lab.seen()), fs::remove_file(lab.out()));
        }
        let mut child = start();
        let (grown, watched) = (
            random.below(4_500_000) as u64,
            if random.below(2) == 0 {
                lab.out()
            } else {
                lab.seen()
            },
        );
        let target = length(watched.clone()) + grown;
        eventually("the file has grown, or all is done", || {
            length(watched.clone()) >= target || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        marked_is_written(&read(lab.seen()), &read(lab.out()));
    }
    assert_eq!(finish(start()).code, Some(0));
    complete(&lab, &input);
}

#[test]
fn writing_into_a_pipe_and_killed_only_lines_that_arrived_are_marked() {
    let mut random = Random(3);
    let input = input(&mut random, 60_000);
    let lab = Lab::new();
    let path = lab.write("input", &input);
    let mut received = Vec::new();
    for _ in 0..rounds() {
        let mut child = lab
            .dedup()
            .env("DEDUP_OUT", "/dev/stdout")
            .stdin(File::open(&path).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let some = random.below(300_000) as u64;
        pipe.by_ref().take(some).read_to_end(&mut received).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let before = lines(&read(lab.seen())).0.len();
        pipe.read_to_end(&mut received).unwrap();
        marked_is_written(&read(lab.seen()), &received);
        // What a kill may repeat into a pipe: what it holds, and one line.
        let arrived = lines(&received).0.into_iter().collect::<HashSet<_>>().len();
        let repeated = arrived - before;
        assert!(
            repeated <= 64 * 1024 / 9,
            "{repeated} lines arrived and are not marked"
        );
        // The half line at the end of what arrived is the reader's to drop.
        let whole = received.len() - lines(&received).1.len();
        received.truncate(whole);
    }
}
