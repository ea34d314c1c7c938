//! Files that end in the middle of a line: a writer died there, or a user made them by hand.

use std::fs;

use crate::support::{Lab, assert_bytes, read, run};

/// Starts with these files, feeds the input and expects these files.
#[track_caller]
fn mends(before: (&str, &str), input: &str, after: (&str, &str)) {
    let lab = Lab::new();
    fs::write(lab.seen(), before.0).unwrap();
    fs::write(lab.out(), before.1).unwrap();
    let finished = run(&mut lab.dedup(), input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_bytes(&read(lab.seen()), after.0.as_bytes(), "the seen file");
    assert_bytes(&read(lab.out()), after.1.as_bytes(), "the out file");
    for (path, before) in [(lab.seen(), before.0), (lab.out(), before.1)] {
        let torn = !before.is_empty() && !before.ends_with('\n');
        let told = finished.stderr.contains(path.to_str().unwrap());
        assert_eq!(told, torn, "{}: {}", path.display(), finished.stderr);
    }
    // Once is enough.
    lab.feed(input);
    assert_bytes(
        &read(lab.out()),
        after.1.as_bytes(),
        "the out file, fed again",
    );
}

// C103
#[test]
fn half_a_mark_costs_at_most_itself() {
    mends(
        ("order-1\norde", "order-1\n"),
        "order-1\norder-2\n",
        ("order-1\norde\norder-2\n", "order-1\norder-2\n"),
    );
}

#[test]
fn the_message_quotes_the_end_in_a_bounded_way_and_says_that_nothing_is_left_to_do() {
    let said = |seen: &[u8], out: &[u8]| {
        let lab = Lab::new();
        fs::write(lab.seen(), seen).unwrap();
        fs::write(lab.out(), out).unwrap();
        run(&mut lab.dedup(), "").stderr
    };
    let added = "('orde'); a newline was added, nothing else to do\n";
    assert!(said(b"a\norde", b"a\n").ends_with(added));
    assert!(said(b"", b"a\norde").ends_with(added));
    let completed = said(b"a\norde", b"a\norder-2\n");
    assert!(completed.contains("('orde'); it was completed from the out file"));
    let long = [&b"\xff\x1b"[..], &b"x".repeat(10_000)].concat();
    for said in [said(&long, b""), said(b"", &long)] {
        assert!(
            said.contains(&format!("('...{}')", "x".repeat(40))),
            "{said}"
        );
    }
    assert!(said(b"", b"\xff\x1b").contains("('\u{fffd}\\u{1b}')"));
}

#[test]
fn half_a_mark_does_not_pass_for_a_shorter_line() {
    // Killed while it marked order-12; order-1 has not been seen yet.
    mends(
        ("order-9\norder-1", "order-9\norder-12\norder-13\n"),
        "order-12\norder-13\norder-1\n",
        (
            "order-9\norder-12\norder-13\norder-1\n",
            "order-9\norder-12\norder-13\norder-13\norder-1\n",
        ),
    );
}

#[test]
fn half_a_mark_is_completed_from_lines_that_are_not_marked_only() {
    mends(
        ("order-12\norder-1", "order-12\n"),
        "order-1\norder-12\n",
        ("order-12\norder-1\n", "order-12\n"),
    );
    // Half a line in the out file is no line to complete from.
    mends(
        ("a\norder-1", "a\norder-12"),
        "order-1\n",
        ("a\norder-1\n", "a\norder-12\n"),
    );
}

#[test]
fn half_a_mark_is_cut_off_when_the_out_file_cannot_be_asked() {
    let lab = Lab::new();
    fs::write(lab.seen(), "order-9\norder-1").unwrap();
    let finished = run(
        lab.dedup().env("DEDUP_OUT", "/dev/stdout"),
        "order-12\norder-1\norder-9\n",
    );
    assert_eq!(
        (finished.code, &*finished.stdout),
        (Some(0), &b"order-12\norder-1\n"[..])
    );
    assert!(
        finished.stderr.contains(lab.seen().to_str().unwrap()),
        "{}",
        finished.stderr
    );
    assert_eq!(read(lab.seen()), b"order-9\norder-12\norder-1\n");
}

#[test]
fn a_mark_without_its_newline_is_a_mark_as_for_the_script() {
    mends(("a\nb", "a\nb\n"), "b\nc\n", ("a\nb\nc\n", "a\nb\nc\n"));
    mends(("b", ""), "b\n", ("b\n", ""));
}

// C103
#[test]
fn the_next_line_is_not_fused_to_half_a_line_in_the_out_file() {
    mends(
        ("order-1\n", "order-1\norde"),
        "order-1\norder-2\n",
        ("order-1\norder-2\n", "order-1\norde\norder-2\n"),
    );
}

#[test]
fn a_last_line_that_a_user_wrote_without_newline_stays() {
    mends(
        ("kept\n", "kept"),
        "kept\nnew\n",
        ("kept\nnew\n", "kept\nnew\n"),
    );
}

#[test]
fn existing_files_are_honoured() {
    mends(("a\nb\n", "a\n"), "c\nb\na\n", ("a\nb\nc\n", "a\nc\n"));
    // An emptied seen file is the way to have everything again.
    mends(("", "a\nb\n"), "a\nb\n", ("a\nb\n", "a\nb\na\nb\n"));
}
