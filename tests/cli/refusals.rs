//! A start that is refused says what to do and leaves nothing behind.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, process::Command};

use crate::support::{DEDUP, Finished, Lab, SHIP_PROCESS, read, run};

/// The names in the lab's directory.
fn names(lab: &Lab) -> BTreeSet<String> {
    fs::read_dir(lab.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Runs a line of shell with the input `a`, in which `$DEDUP` and `$SHIP` are the programs.
fn shell(lab: &Lab, line: &str) -> Finished {
    let mut command = lab.command("bash");
    command
        .args(["-c", line])
        .env("DEDUP", DEDUP)
        .env("SHIP", SHIP_PROCESS)
        .env("SHIP_PROCESSED", lab.path("processed"))
        .env_remove("SHIP_FIXED");
    run(&mut command, "a\n")
}

/// A refusal that says all of `words` and makes nothing.
#[track_caller]
fn refused(lab: &Lab, command: &mut Command, words: &[&str]) {
    let before = names(lab);
    told(&run(command, "a\n"), words);
    assert_eq!(names(lab), before, "{command:?} left something behind");
}

#[track_caller]
fn told(finished: &Finished, words: &[&str]) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for words in words {
        let said = &finished.stderr;
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}

#[test]
fn a_closed_standard_output_is_refused_and_the_line_is_not_marked() {
    let lab = Lab::new();
    for line in [
        "\"$DEDUP\" --out /dev/stdout >&-",
        "\"$DEDUP\" --out /dev/fd/1 >&-",
        "\"$SHIP\" --processed /dev/stdout >&-",
        #[cfg(feature = "sled")]
        "\"$DEDUP\" --store sled --seen store --out /dev/stdout >&-",
    ] {
        told(&shell(&lab, line), &["standard output is closed"]);
        assert_eq!(names(&lab), BTreeSet::new(), "{line}");
    }
}

#[test]
fn a_null_device_that_was_asked_for_takes_the_lines() {
    for line in [
        "\"$DEDUP\" --out /dev/stdout >/dev/null",
        "\"$DEDUP\" --out /dev/null >&-",
        "\"$DEDUP\" >&-",
    ] {
        let lab = Lab::new();
        let finished = shell(&lab, line);
        assert_eq!((finished.code, &*finished.stderr), (Some(0), ""), "{line}");
        assert_eq!(read(lab.seen()), b"a\n", "{line}");
    }
    let finished = shell(&Lab::new(), "\"$SHIP\" --processed /dev/stdout >/dev/null");
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

// Closed, or the null device as many parents hand it down, open in both directions: nothing comes,
// and nothing is lost by that.
#[test]
fn an_input_without_a_line_is_no_error() {
    let lab = Lab::new();
    for input in ["</dev/null", "<>/dev/null", "<&-"] {
        for program in ["\"$DEDUP\"", "\"$SHIP\""] {
            let finished = shell(&lab, &format!("{program} {input}"));
            assert_eq!(
                (finished.code, &*finished.stderr),
                (Some(0), ""),
                "{program} {input}"
            );
        }
    }
}

#[test]
fn a_missing_directory_is_refused_with_the_way_out() {
    let lab = Lab::new();
    let create = "create the directory, or name another";
    for (flag, variable) in [("--seen", "DEDUP_SEEN"), ("--out", "DEDUP_OUT")] {
        let mut dedup = lab.dedup();
        refused(
            &lab,
            dedup.args([flag, "mising/file"]),
            &["mising/file", create, flag, variable],
        );
    }
    let mut ship = lab.command(SHIP_PROCESS);
    refused(
        &lab,
        ship.args(["--processed", "mising/file"]),
        &["mising/file", create, "--processed or SHIP_PROCESSED"],
    );
}

// C107
#[test]
fn a_link_into_a_missing_directory_is_refused_with_the_way_out() {
    let lab = Lab::new();
    symlink("mising/file", lab.path("end")).unwrap();
    symlink("end", lab.path("link")).unwrap();
    for link in ["end", "link"] {
        let words = [link, "mising is missing; create the directory"];
        refused(&lab, lab.dedup().args(["--seen", link]), &words);
        refused(&lab, lab.dedup().args(["--out", link]), &words);
        let mut ship = lab.command(SHIP_PROCESS);
        refused(&lab, ship.args(["--processed", link]), &words);
        #[cfg(feature = "sled")]
        refused(
            &lab,
            lab.dedup().args(["--store", "sled", "--seen", link]),
            &words,
        );
    }
}

#[test]
fn a_directory_for_a_file_is_refused_and_no_other_file_made() {
    let lab = Lab::new();
    fs::create_dir(lab.path("dir")).unwrap();
    for flag in ["--seen", "--out"] {
        refused(&lab, lab.dedup().args([flag, "dir"]), &["dir", flag]);
    }
    let mut ship = lab.command(SHIP_PROCESS);
    refused(&lab, ship.args(["--processed", "dir"]), &["dir"]);
}

#[cfg(feature = "sled")]
mod stored {
    use super::*;

    fn dedup(lab: &Lab, args: &[&str]) -> Command {
        let mut command = lab.dedup();
        command.args(["--store", "sled", "--seen", "store"]);
        command.args(args);
        command
    }

    fn ship(lab: &Lab, processed: &str, state: &str) -> Command {
        let mut command = lab.command(SHIP_PROCESS);
        command.args(["--processed", processed, "--state", state]);
        command
    }

    #[test]
    fn a_missing_parent_of_a_store_starts_no_empty_one() {
        let lab = Lab::new();
        let create = "create the directory, or name another store with";
        refused(
            &lab,
            &mut dedup(&lab, &["--seen", "mising/store"]),
            &["mising/store", create, "--seen or DEDUP_SEEN"],
        );
        refused(
            &lab,
            &mut ship(&lab, "p", "mising/store"),
            &["mising/store", create, "--state"],
        );
    }

    #[test]
    fn an_impossible_out_makes_no_store() {
        let lab = Lab::new();
        fs::create_dir(lab.path("dir")).unwrap();
        lab.write("theirs", "theirs\n");
        for out in ["dir", "mising/file", "theirs"] {
            refused(&lab, &mut dedup(&lab, &["--out", out]), &[out]);
            refused(&lab, &mut ship(&lab, out, "p.store"), &[out]);
        }
        refused(
            &lab,
            &mut ship(&lab, "/dev/null", "p.store"),
            &["/dev/null"],
        );
    }

    #[test]
    fn a_store_of_another_program_is_named_as_such_and_no_file_is_made() {
        let lab = Lab::new();
        assert_eq!(run(&mut dedup(&lab, &[]), "a\n").code, Some(0));
        let words = ["was filled by the program dedup"];
        refused(&lab, &mut ship(&lab, "mp", "store"), &words);
    }

    #[test]
    fn the_two_kinds_of_store_are_told_apart() {
        let lab = Lab::new();
        assert_eq!(run(&mut dedup(&lab, &[]), "a\n").code, Some(0));
        fs::remove_file(lab.out()).unwrap();
        let words = ["this is a store: use --store sled"];
        refused(&lab, lab.dedup().args(["--seen", "store"]), &words);
        lab.write("marks", "a\n");
        refused(
            &lab,
            &mut dedup(&lab, &["--seen", "marks"]),
            &["is a text file of marks: leave out --store"],
        );
    }
}
