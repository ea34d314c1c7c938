//! What counts as a line, and which lines are the same: bytes, and nothing but bytes.

use crate::support::{DEDUP, Lab, assert_bytes, read, run};

/// Feeds the input twice: the second time must change nothing. However the lines are kept.
#[track_caller]
fn passes(input: &[u8], expected: &[u8]) {
    let lab = Lab::new();
    for _ in 0..2 {
        lab.feed(input);
        lab.expect_both(expected);
    }
    #[cfg(feature = "sled")]
    {
        let lab = Lab::new();
        for _ in 0..2 {
            assert_eq!(crate::stored::feed(&lab, input), "");
            assert_bytes(&read(lab.out()), expected, "the out file of a store");
        }
    }
}

// C095
#[test]
fn a_carriage_return_is_kept_and_makes_another_line() {
    passes(b"x\r\nx\n", b"x\r\nx\n");
}

// C096
#[test]
fn a_last_line_without_newline_counts_and_gets_one() {
    passes(b"a\nb", b"a\nb\n");
    passes(b"a\na", b"a\n");
}

// C097
#[test]
fn lines_that_look_like_options_and_blanks_at_the_ends_are_ordinary_lines() {
    let lines = b"-n\n-e\n--help\n--\n-\na\\b\n a\na \na\n\n";
    passes(lines, lines);
}

// C098
#[test]
fn nothing_is_trimmed_and_an_empty_line_is_a_line() {
    passes(b"\t\n\t\n   \n   \n\n\n", b"\t\n   \n\n");
    passes(b"\n", b"\n");
    passes(b"", b"");
}

#[test]
fn nul_and_bytes_that_are_no_text_are_kept_and_compared() {
    let lines = b"\0\na\0b\na\0c\na\n\xff\xfe\n\xc3\n\xc3\xa9\ne\xcc\x81\n";
    passes(&[&lines[..], lines].concat(), lines);
}

// C099
#[test]
fn the_locale_changes_nothing() {
    let text = "a.b\nab\na b\n-n\n☃\n★\nİ\ni\nI\nı\nß\nss\n가\n각\nx\r\nx\n\t\n \n\n";
    let lines = [text.as_bytes(), b"\xff\n\xfe\n"].concat();
    for locale in ["C", "C.UTF-8", "en_US.UTF-8", "tr_TR.UTF-8", "no_SUCH", ""] {
        let lab = Lab::new();
        for _ in 0..2 {
            let finished = run(
                lab.dedup().env("LC_ALL", locale).env("LANG", locale),
                &lines,
            );
            assert_eq!(finished.code, Some(0), "{locale}: {finished:?}");
            assert_bytes(&read(lab.out()), &lines, locale);
        }
    }
}

// C100
#[test]
fn a_line_of_eight_mebibytes_passes_whole() {
    let mut input = b"a\n".to_vec();
    input.resize(input.len() + (8 << 20), b'x');
    input.extend_from_slice(b"\nb\n");
    assert_eq!(input.len(), 8_388_613);
    passes(&input, &input);
}

// C087
#[test]
fn long_lines_that_differ_in_their_last_byte_only_are_two() {
    let line = |length: usize, last: &[u8]| [&vec![b'k'; length][..], last, b"\n"].concat();
    let mut lines = b"\n".to_vec();
    for length in [0, 254, 65_535, 899_999, (4 << 20) - 1, 4 << 20] {
        lines.extend(line(length, b"y"));
        lines.extend(line(length, b"z"));
    }
    passes(&[&lines[..], &lines].concat(), &lines);
}

// C063
#[test]
fn known_colliding_strings_are_all_distinct() {
    let lines = b"plumless\nbuckeroo\ncostarring\nliquid\n8yn0iYCKYHlIj4-BwPqk\n\
        GReLUrM4wMqfg9yzV3KQ\nhetairas\nmentioner\nAa\nBB\n";
    passes(lines, lines);
}

#[test]
fn memory_does_not_grow_with_the_input() {
    // 400 MB, most of it copies, in an address space of 64 MiB.
    let lab = Lab::new();
    let script = format!(
        "ulimit -v 65536
         {{ seq 100000; yes $(printf %0999d 1) | head -c 400000000; }} | exec '{DEDUP}'"
    );
    let finished = run(lab.command("bash").args(["-c", &script]), "");
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    assert_eq!(read(lab.out()).len(), 588_895 + 1_000);
}
