//! `--key`: a part of a line makes it another's copy, and the whole line is written.

use std::{collections::HashSet, fs, process::Command};

use crate::support::{DEDUP, Finished, Lab, Random, assert_bytes, eventually, read, run, start};

const COMMA: [&str; 4] = ["--key", "field:2", "--delimiter", ","];
const ID: [&str; 2] = ["--key", "json:/id"];

/// Both ways to keep the state.
fn states() -> Vec<Vec<&'static str>> {
    vec![
        vec![],
        #[cfg(feature = "sled")]
        vec!["--store", "sled", "--seen", "store"],
    ]
}

fn feed(lab: &Lab, args: &[&[&str]], input: impl AsRef<[u8]>) -> Finished {
    run(lab.dedup().args(args.concat()), input)
}

#[track_caller]
fn well(finished: &Finished) {
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
}

#[test]
fn the_first_line_of_each_key_is_written_whole_and_no_other_also_later() {
    for state in states() {
        let lab = Lab::new();
        for input in ["a,1,x\nb,2\nc,1,y\n", "d,2\ne,3\r\n f,3\n", ""] {
            well(&feed(&lab, &[&state, &COMMA], input));
        }
        assert_eq!(read(lab.out()), b"a,1,x\nb,2\ne,3\r\n f,3\n", "{state:?}");
    }
}

#[test]
fn json_is_compared_by_what_it_says_at_the_pointer() {
    for state in states() {
        let lab = Lab::new();
        let first = "{\"id\":\"a\",\"n\":1}\n{\"id\":7}\n{\"id\":\"7\"}\n";
        let copies = "{\"n\":2,\"id\":\"\\u0061\"}\n{ \"id\" : 7 }\n";
        well(&feed(&lab, &[&state, &ID], [first, copies].concat()));
        well(&feed(&lab, &[&state, &ID], copies));
        assert_eq!(read(lab.out()), first.as_bytes(), "{state:?}");
    }
}

#[test]
fn the_seen_file_holds_keys_behind_a_line_that_names_them() {
    let lab = Lab::new();
    well(&feed(&lab, &[&COMMA], "a,1\nb,2\n"));
    let header = "# seen file of dedup, keys: field:2 delimiter:','\n";
    assert_eq!(read(lab.seen()), format!("{header}1\n2\n").as_bytes());
    // A key that looks like that line is a key like any other.
    let hostile = format!("x|{header}");
    let lab = Lab::new();
    let bar = ["--key=field:2", "--delimiter=|"];
    well(&feed(&lab, &[&bar], "a|1\n"));
    well(&feed(&lab, &[&bar], &hostile));
    let header = "x|# seen file of dedup, keys: field:2 delimiter:'|'\n";
    well(&feed(&lab, &[&bar], header));
    let expected = ["a|1\n", &hostile, header].concat();
    assert_bytes(&read(lab.out()), expected.as_bytes(), "the out file");
}

#[test]
fn a_line_without_a_key_ends_the_run_with_its_number_and_those_before_it_are_handled() {
    for state in states() {
        let lab = Lab::new();
        let finished = feed(&lab, &[&state, &COMMA], "a,1\nb,1\nc\nd,2\n");
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in ["line 3 has no key", "no field 2, only 1", "--no-key pass"] {
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
        assert_eq!(read(lab.out()), b"a,1\n");
        well(&feed(&lab, &[&state, &COMMA], "a,1\nb,1\nd,2\n"));
        assert_eq!(read(lab.out()), b"a,1\nd,2\n");
    }
    let cases = [
        (&COMMA[..], "a,,b"),
        (&COMMA, ""),
        (&ID, "{}"),
        (&ID, "{\"id\":null}"),
        (&ID, "{\"id\":\"\"}"),
        (&ID, "{\"id\":{}}"),
        (&ID, "no json"),
        (&ID, "{\"id\":1,\"id\":2}"),
    ];
    for (key, line) in cases {
        let finished = feed(&Lab::new(), &[key], format!("{line}\n"));
        let said = &finished.stderr;
        assert_eq!(finished.code, Some(1), "{line}: {finished:?}");
        assert!(said.contains("line 1 has no key"), "{line}: {said}");
    }
}

#[test]
fn a_line_without_a_key_that_is_to_pass_is_written_each_time_and_counted() {
    for state in states() {
        let lab = Lab::new();
        let pass = ["--no-key", "pass", "-v"];
        for _ in 0..2 {
            let finished = feed(&lab, &[&state, &COMMA, &pass], "x\nx\na,1\nb,1\n");
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let said = &finished.stderr;
            assert!(said.contains("2 of those written without a key"), "{said}");
        }
        assert_eq!(read(lab.out()), b"x\nx\na,1\nx\nx\n", "{state:?}");
        // A key that looks like the one which a store has for such a line.
        well(&feed(&lab, &[&state, &COMMA], "c,n\0\0\0\0\0\0\0\0\n"));
        assert!(read(lab.out()).ends_with(b"c,n\0\0\0\0\0\0\0\0\n"));
    }
}

#[test]
fn a_state_of_other_settings_is_refused_and_left_as_it_is() {
    let settings: [&[&str]; 6] = [
        &[],
        &["-z"],
        &COMMA,
        &["--key", "field:2"],
        &["--key", "field:1", "--delimiter", ","],
        &["-z", "--key", "json:/id"],
    ];
    for state in states() {
        for one in settings {
            let lab = Lab::new();
            let line: &[u8] = if one.contains(&"-z") {
                b"{\"id\":1}\0"
            } else {
                b"a,1\tb,2\n"
            };
            let first = run(lab.dedup().args([&state, one].concat()), line);
            well(&first);
            let before = (read(lab.seen()), read(lab.out()));
            for other in settings.into_iter().filter(|other| *other != one) {
                let finished = feed(&lab, &[&state, other], "");
                assert_eq!(finished.code, Some(1), "{one:?}, {other:?}: {finished:?}");
                assert_eq!((read(lab.seen()), read(lab.out())), before);
                // Nor is a new out file made beside it.
                let finished = feed(&lab, &[&state, other, &["--out", "new"]], "");
                assert_eq!(finished.code, Some(1), "{one:?}, {other:?}: {finished:?}");
                assert!(!lab.path("new").exists(), "{one:?}, {other:?}");
            }
        }
    }
}

#[test]
fn a_slip_of_the_key_that_marked_nothing_does_not_tie_the_state_to_it() {
    let lab = Lab::new();
    assert_eq!(feed(&lab, &[&["--key=field:9"]], "a,1\n").code, Some(1));
    assert_eq!(read(lab.seen()), b"");
    well(&feed(&lab, &[&COMMA], "a,1\nb,1\n"));
    assert_eq!(read(lab.out()), b"a,1\n");
}

#[test]
fn every_half_of_the_first_line_is_completed() {
    let header = b"# seen file of dedup, keys: field:2 delimiter:','\n";
    for length in 0..=header.len() {
        let lab = Lab::new();
        fs::write(lab.seen(), &header[..length]).unwrap();
        well(&feed(&lab, &[&COMMA], "a,1\nb,1\n"));
        assert_eq!(read(lab.seen()), [&header[..], b"1\n"].concat());
        assert_eq!(read(lab.out()), b"a,1\n");
    }
}

#[test]
fn half_a_mark_is_completed_from_the_key_of_the_line_that_was_written() {
    let lab = Lab::new();
    well(&feed(&lab, &[&COMMA], "a,9\n"));
    let header = read(lab.seen());
    fs::write(lab.seen(), [&header[..], b"order-1"].concat()).unwrap();
    fs::write(lab.out(), "a,9\nx\nb,order-12\n").unwrap();
    let finished = feed(&lab, &[&COMMA], "c,order-1\nd,order-12\n");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let seen = [&header[..], b"order-12\norder-1\n"].concat();
    assert_bytes(&read(lab.seen()), &seen, "the seen file");
    assert_eq!(read(lab.out()), b"a,9\nx\nb,order-12\nc,order-1\n");
}

#[test]
fn of_what_did_not_fit_only_the_keys_of_whole_lines_are_marked() {
    let lab = Lab::new();
    let line = |number: usize| format!("{number:095},{number}\n");
    let input: String = (0..3_000).map(line).collect();
    let script = format!("ulimit -f 101; trap '' XFSZ; exec '{DEDUP}' --key field:2 --delimiter ,");
    let mut command = Command::new("bash");
    command.args(["-c", &script]);
    command.env("DEDUP_SEEN", lab.seen());
    command.env("DEDUP_OUT", lab.out());
    let finished = run(&mut command, &input);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let out = read(lab.out());
    assert!(out.ends_with(b"\n") && input.as_bytes().starts_with(&out));
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count();
    assert_eq!(lines(&read(lab.seen())), 1 + lines(&out));
    well(&feed(&lab, &[&COMMA], &input));
    assert_bytes(&read(lab.out()), input.as_bytes(), "the out file");
}

#[test]
fn killed_while_it_writes_no_key_is_marked_whose_line_is_not_written() {
    let lab = Lab::new();
    let mut random = Random(21);
    let line = |number| format!("{number},{}\n", random.below(200_000)).into_bytes();
    let input: Vec<u8> = (0..300_000).flat_map(line).collect();
    let path = lab.write("input", &input);
    let length = |path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    for _ in 0..crate::crash::rounds() {
        let _ = (fs::remove_file(lab.seen()), fs::remove_file(lab.out()));
        let mut child = start(lab.dedup().args(COMMA), &path);
        let watched = if random.below(2) == 0 {
            lab.out()
        } else {
            lab.seen()
        };
        let target = random.below(2_500_000) as u64;
        eventually("the file has grown, or all is done", || {
            length(watched.clone()) >= target || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let (seen, out) = (read(lab.seen()), read(lab.out()));
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let whole = memchr(bytes);
            bytes[..whole]
                .split(|byte| *byte == b'\n')
                .map(Vec::from)
                .collect()
        };
        let key = |line: &Vec<u8>| line.split(|byte| *byte == b',').nth(1).map(Vec::from);
        let written: HashSet<_> = lines(&out).iter().filter_map(key).collect();
        let lost = |mark: &&Vec<u8>| !mark.is_empty() && !written.contains(*mark);
        let lost = lines(&seen).iter().skip(1).filter(lost).count();
        assert_eq!(lost, 0, "keys marked and written nowhere");
    }
    assert_eq!(feed(&lab, &[&COMMA], &input).code, Some(0));
    let out = read(lab.out());
    well(&feed(&lab, &[&COMMA], &input));
    assert_bytes(&read(lab.out()), &out, "the out file, fed again");
}

/// Where the last whole line ends.
fn memchr(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1)
}
