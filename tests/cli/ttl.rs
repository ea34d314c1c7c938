//! `--ttl`: keys that are forgotten by the time in front of their marks.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, symlink},
    process::Stdio,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::support::{Finished, Lab, cannot_run, read, run};

const HEADER: &str = "# seen file of dedup, keys: line with times\n";

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn feed(lab: &Lab, ttl: &str, input: &str) -> Finished {
    run(lab.dedup().args(["--ttl", ttl]), input)
}

#[track_caller]
fn well(finished: &Finished) {
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
}

/// The keys that are marked, with how many seconds ago; the header must be there.
fn marks(lab: &Lab) -> Vec<(u64, String)> {
    let seen = String::from_utf8(read(lab.seen())).unwrap();
    let marks = seen.strip_prefix(HEADER).unwrap().lines();
    let mark = |mark: &str| {
        let (time, key) = mark.split_once(' ').unwrap();
        (now() - time.parse::<u64>().unwrap(), key.to_owned())
    };
    marks.map(mark).collect()
}

/// A seen file with marks of such ages in seconds.
fn aged(lab: &Lab, marks: &[(u64, &str)]) {
    let mark = |(age, key): &(u64, &str)| format!("{} {key}\n", now() - age);
    let marks: String = marks.iter().map(mark).collect();
    fs::write(lab.seen(), [HEADER, &marks].concat()).unwrap();
}

#[test]
fn a_key_is_known_for_as_long_as_was_said_and_then_comes_again() {
    let lab = Lab::new();
    for _ in 0..2 {
        well(&feed(&lab, "1d", "a\nb c\n\na\n"));
        assert_eq!(read(lab.out()), b"a\nb c\n\n");
    }
    let (ages, keys): (Vec<_>, Vec<_>) = marks(&lab).into_iter().unzip();
    assert_eq!(keys, ["a", "b c", ""]);
    assert!(ages.iter().all(|age| *age < 3600), "{ages:?}");
    // Three are young, two are old, and a copy does not make young again.
    let marks = [
        (90, "a"),
        (3_500, "b"),
        (3_700, "c"),
        (90_000, "d"),
        (20, "e"),
    ];
    for (ttl, expected) in [
        ("1h", "c\nd\n"),
        ("60m", "c\nd\n"),
        ("1d", "d\n"),
        ("2d", ""),
        ("80s", "a\nb\nc\nd\n"),
    ] {
        let lab = Lab::new();
        aged(&lab, &marks);
        well(&feed(&lab, ttl, "a\nb\nc\nd\ne\n"));
        assert_eq!(read(lab.out()), expected.as_bytes(), "{ttl}");
    }
}

#[test]
fn where_most_marks_are_too_old_they_leave_the_file_and_it_stays_bounded() {
    let lab = Lab::new();
    aged(&lab, &[(9_000, "a"), (9_000, "b"), (50, "c"), (9_000, "d")]);
    fs::rename(lab.seen(), lab.path("elsewhere")).unwrap();
    symlink("elsewhere", lab.seen()).unwrap();
    // What a stop in the middle of this left.
    lab.write("elsewhere.compacting", "half");
    let before = fs::metadata(lab.path("elsewhere")).unwrap();
    well(&feed(&lab, "1h", "c\nnew\na\n"));
    let keys: Vec<_> = marks(&lab).into_iter().map(|(_, key)| key).collect();
    assert_eq!(keys, ["c", "new", "a"]);
    assert_eq!(read(lab.out()), b"new\na\n");
    assert!(lab.seen().is_symlink() && !lab.path("elsewhere.compacting").exists());
    let after = fs::metadata(lab.path("elsewhere")).unwrap();
    assert_ne!(after.ino(), before.ino());
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    for _ in 0..20 {
        let old: Vec<_> = marks(&lab)
            .into_iter()
            .map(|(age, key)| (age + 9_000, key))
            .collect();
        let old: Vec<_> = old.iter().map(|(age, key)| (*age, &**key)).collect();
        aged(&lab, &old);
        well(&feed(&lab, "1h", "c\nnew\na\n"));
        assert_eq!(marks(&lab).len(), 3);
    }
}

#[test]
fn a_file_that_cannot_be_replaced_is_used_as_it_is_and_that_is_said() {
    let lab = Lab::new();
    aged(&lab, &[(9_000, "a"), (9_000, "b"), (50, "c")]);
    fs::hard_link(lab.seen(), lab.path("another")).unwrap();
    let finished = feed(&lab, "1h", "c\na\n");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stderr.contains("2 marks that are too old stay"),
        "{finished:?}"
    );
    assert_eq!((read(lab.out()), marks(&lab).len()), (b"a\n".to_vec(), 4));
    assert_eq!(read(lab.path("another")), read(lab.seen()));
    assert!(!lab.path("seen.txt.compacting").exists());
}

#[test]
fn what_replaces_the_file_is_locked_and_on_disk_before_it_has_the_name() {
    let lab = Lab::new();
    aged(&lab, &[(9_000, "a"), (9_000, "b"), (50, "c")]);
    lab.write("input", "c\n");
    let mut command = lab.command("strace");
    command.args([
        "-f",
        "-y",
        "-o",
        "trace",
        "-e",
        "trace=/flock|fsync|rename.*|fdatasync",
    ]);
    command.args([crate::support::DEDUP, "--ttl=1h"]);
    command.stdin(File::open(lab.path("input")).unwrap());
    let Ok(child) = command.stderr(Stdio::piped()).spawn() else {
        return cannot_run("the order of system calls cannot be watched (needs 'strace')");
    };
    let finished = crate::support::finish(child);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let trace = String::from_utf8(read(lab.path("trace"))).unwrap();
    let at = |what: &[&str]| {
        let says = |line: &str| what.iter().all(|part| line.contains(part));
        trace
            .lines()
            .position(says)
            .unwrap_or_else(|| panic!("no {what:?} in {trace}"))
    };
    let steps = [
        at(&["flock(", ".compacting"]),
        at(&["fsync(", ".compacting"]),
        at(&["rename", ".compacting"]),
    ];
    assert!(steps.is_sorted(), "{trace}");
    // And its name after that.
    let rest = trace.lines().skip(steps[2] + 1);
    assert!(
        rest.filter(|line| line.contains("fsync(")).count() >= 1,
        "{trace}"
    );
}

#[test]
fn half_a_mark_is_cut_off_and_a_mark_without_a_time_stays_for_ever() {
    let lab = Lab::new();
    aged(&lab, &[(50, "a")]);
    let begun = [&read(lab.seen())[..], b"by hand\n17000"].concat();
    fs::write(lab.seen(), begun).unwrap();
    fs::write(lab.out(), "a\nb\n").unwrap();
    let finished = feed(&lab, "1h", "by hand\nb\na\n");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stderr.contains("('17000'); it was cut off"),
        "{finished:?}"
    );
    assert_eq!(read(lab.out()), b"a\nb\nb\n");
    well(&feed(&lab, "1h", "by hand\nb\na\n"));
}

#[test]
fn a_file_with_times_and_one_without_are_told_apart() {
    let lab = Lab::new();
    well(&feed(&lab, "1h", "a\n"));
    let refused = run(&mut lab.dedup(), "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("line with times"), "{refused:?}");
    let keyed = run(lab.dedup().args(["--ttl=1h", "--key=field:1"]), "");
    assert_eq!(keyed.code, Some(1), "{keyed:?}");
    // How long is no part of it.
    well(&feed(&lab, "2h", "a\n"));
    let lab = Lab::new();
    lab.feed("a\n");
    let refused = feed(&lab, "1h", "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    lab.expect_both("a\n");
}
