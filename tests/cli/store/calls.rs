//! Calls of `dedup store`, right and wrong, before any store is looked at.

use super::{refused, said, store};
use crate::support::{Lab, run};

const COPIES: [(&[&str], &str); 10] = [
    (&["copy"], "--from is missing"),
    (&["copy", "--from=seen"], "--to is missing"),
    (&["copy", "--from=seen", "--to=new"], "sled:DIR or redb:DIR"),
    (
        &["copy", "--from=seen", "--to=redis:new"],
        "sled:DIR or redb:DIR",
    ),
    (&["copy", "--from=seen", "--to=sled:"], "directory"),
    (&["copy", "--from=", "--to=sled:new"], "directory"),
    (&["copy", "seen", "--to=sled:new"], "nothing else"),
    (
        &["copy", "--from=a", "--to=sled:b", "--all"],
        "nothing else",
    ),
    (&["copy", "--from=a", "--from=b"], "--from is given twice"),
    (&["show", "seen", "--to=sled:b"], "for copy"),
];

#[test]
fn a_wrong_call_is_code_2_and_says_what_is_wrong() {
    let lab = Lab::new();
    let rows: [(&[&str], &str); 18] = [
        (&[], "show, forget or copy"),
        (&["list", "seen"], "show, forget or copy"),
        (&["show"], "directory"),
        (&["show", ""], "directory"),
        (&["show", "seen", "more"], "more"),
        (&["show", "seen", "--yes"], "nothing else"),
        (&["forget", "seen", "--all"], "--topic"),
        (&["forget", "seen", "--topic", ""], "--topic"),
        (&["forget", "seen", "--topic", "orders"], "--key-hex"),
        (
            &["forget", "seen", "--topic=o", "--all", "--key=a"],
            "twice",
        ),
        (
            &["forget", "seen", "--topic=o", "--all", "--topic=p"],
            "--topic is given twice",
        ),
        (
            &["forget", "seen", "--partition=0", "--partition=1"],
            "--partition is given twice",
        ),
        (
            &["forget", "seen", "--topic=o", "--offsets=1..2"],
            "--partition",
        ),
        (
            &[
                "forget",
                "seen",
                "--topic=o",
                "--partition=0",
                "--offsets=2..2",
            ],
            "'2..2'",
        ),
        (
            &[
                "forget",
                "seen",
                "--topic=o",
                "--partition=0",
                "--offsets=2",
            ],
            "'2'",
        ),
        (
            &["forget", "seen", "--topic=o", "--partition=-1", "--all"],
            "'-1'",
        ),
        (&["forget", "seen", "--topic=o", "--key-hex=+f"], "'+f'"),
        (&["forget", "seen", "--topic=o", "--force"], "--force"),
    ];
    for (args, named) in rows.into_iter().chain(COPIES) {
        let finished = run(&mut store(&lab, args), "");
        refused(&finished, 2, &[named]);
        assert!(
            finished.stderr.contains("dedup store --help"),
            "{finished:?}"
        );
    }
    let late = run(lab.dedup().args(["-v", "store", "show", "seen"]), "");
    refused(&late, 2, &["store"]);
}

#[test]
fn the_help_fits_a_terminal_and_input_is_never_taken_for_a_command() {
    let lab = Lab::new();
    let help = said(&run(&mut store(&lab, &["--help"]), ""));
    assert!(help.starts_with("Usage: dedup store"), "{help}");
    assert!(help.lines().all(|line| line.len() <= 80), "{help}");
    lab.feed("store\n--help\nstore show seen\n");
    lab.expect_both("store\n--help\nstore show seen\n");
}
