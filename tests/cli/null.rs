//! `--null`: lines that end in NUL, and may hold newlines.

use std::fs;

use crate::support::{Lab, assert_bytes, read, run};

#[test]
fn what_ends_in_nul_may_hold_newlines_and_the_last_one_gets_its_nul() {
    let lab = Lab::new();
    for _ in 0..2 {
        let finished = run(lab.dedup().arg("-z"), b"a\nb\0\n\0\0a\nb\0a\0a\n");
        assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
        lab.expect_both(b"a\nb\0\n\0\0a\0a\n\0");
    }
    let finished = run(lab.dedup().arg("--null"), b"a\nb\0c\0");
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    lab.expect_both(b"a\nb\0\n\0\0a\0a\n\0c\0");
}

#[test]
#[cfg(feature = "sled")]
fn a_store_keeps_such_lines_too_and_writes_them_anew_where_they_are_missing() {
    let lab = Lab::new();
    let long = [&b"\n".repeat(200_000)[..], b"\0"].concat();
    let input = [&b"a\nb\0a\0"[..], &long].concat();
    for _ in 0..2 {
        let finished = run(crate::stored::dedup(&lab).arg("-z"), &input);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_bytes(&read(lab.out()), &input, "the out file");
        fs::remove_file(lab.out()).unwrap();
    }
}

#[test]
fn half_a_line_is_mended_with_a_nul() {
    let lab = Lab::new();
    fs::write(lab.seen(), b"order-9\0order-1").unwrap();
    fs::write(lab.out(), b"order-9\0order-1\n2\0half").unwrap();
    let finished = run(lab.dedup().arg("-z"), b"order-1\0");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("a NUL was added"));
    assert_eq!(read(lab.seen()), b"order-9\0order-1\n2\0order-1\0");
    assert_eq!(read(lab.out()), b"order-9\0order-1\n2\0half\0order-1\0");
}

#[test]
fn files_of_the_other_kind_are_refused_with_the_way_out_and_left_alone() {
    for (args, theirs, way_out) in [
        (&["-z"][..], &b"a\nb\n"[..], "leave out --null"),
        (&[], b"a\0b\0", "use --null"),
    ] {
        for name in ["seen.txt", "processed-dedup.txt"] {
            let lab = Lab::new();
            let path = lab.write(name, theirs);
            let finished = run(lab.dedup().args(args), "");
            assert_eq!(finished.code, Some(1), "{finished:?}");
            let said = &finished.stderr;
            assert!(said.contains(name) && said.contains(way_out), "{said}");
            assert_eq!(read(path), theirs);
        }
    }
}
