//! Full disks, limits, and the order in which things reach the disk.

use std::{fs, process::Command};

use super::{dedup, feed, input, refused};
use crate::{
    faults::watched,
    support::{DEDUP, Lab, SHIP_PROCESS, assert_bytes, cannot_run, read, run},
};

// C101
#[test]
fn into_a_stream_a_line_that_was_not_written_is_not_recorded() {
    let lab = Lab::new();
    let finished = run(dedup(&lab).env("DEDUP_OUT", "/dev/full"), "a\n");
    refused(&finished, &["/dev/full"]);
    feed(&lab, "a\n");
    assert_eq!(read(lab.out()), b"a\n");
}

#[test]
fn the_lines_are_on_disk_in_the_store_before_they_are_written_into_the_file() {
    let cases = [
        (DEDUP, "--store=sled --seen=state", "/processed-dedup.txt"),
        (SHIP_PROCESS, "--state=state", "/processed.txt"),
    ];
    for (program, args, file) in cases {
        let args: Vec<_> = args.split(' ').collect();
        let Some(calls) = watched(&Lab::new(), program, &args) else {
            return;
        };
        let call = |call: &str, name: &str| {
            let wanted = format!("{call} {name}");
            calls.iter().rposition(|call| *call == wanted).unwrap()
        };
        let first_write = format!("write {file}");
        let written = calls.iter().position(|call| *call == first_write).unwrap();
        let before = &calls[..written];
        let synced = before
            .iter()
            .rposition(|call| call == "fdatasync /state/log/db");
        let logged = before
            .iter()
            .rposition(|call| call == "pwrite64 /state/log/db");
        assert!(logged.is_some() && logged < synced, "{calls:?}");
        assert!(call("fdatasync", file) > written, "{calls:?}");
    }
}

#[test]
fn a_full_disk_under_the_out_file_loses_and_repeats_nothing() {
    let private = ["--mount", "--propagation", "private"];
    let possible = Command::new("unshare").args(private).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return cannot_run("a small file system cannot be mounted (needs root and 'unshare')");
    }
    let (lab, input) = (Lab::new(), input());
    lab.write("input", &input);
    let text = Lab::new();
    text.feed(&input);
    fs::create_dir(lab.path("disk")).unwrap();
    let program = DEDUP;
    let script = format!(
        "mount -t tmpfs -o size=200k none disk || exit 99
         '{program}' --store sled < input; code=$?
         cp disk/out first
         mount -o remount,size=64m none disk
         '{program}' --store sled < input || exit 98
         cp disk/out out; exit $code"
    );
    let mut command = lab.command("unshare");
    command
        .args(private)
        .args(["bash", "-c", &script])
        .env("DEDUP_OUT", "disk/out")
        .env("DEDUP_SEEN", "store");
    refused(&run(&mut command, ""), &["disk/out", "next start"]);
    let (first, whole) = (read(lab.path("first")), read(text.out()));
    assert!(first.len() < whole.len() && whole.starts_with(&first));
    assert_bytes(&read(lab.path("out")), &whole, "the out file");
}

#[test]
fn a_limit_that_stops_the_store_loses_and_repeats_nothing() {
    let (lab, input, text) = (Lab::new(), input(), Lab::new());
    text.feed(&input);
    let program = DEDUP;
    for kib in [1, 200, 600] {
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec '{program}' --store sled");
        let mut command = lab.command("bash");
        command.env("DEDUP_SEEN", lab.path("seen.store"));
        let finished = run(command.args(["-c", &script]), &input);
        assert!(
            finished.code == Some(1) && finished.stderr.contains("seen.store"),
            "{finished:?}"
        );
        let out = read(lab.out());
        assert!(read(text.out()).starts_with(&out), "{} bytes", out.len());
    }
    feed(&lab, &input);
    assert_bytes(&read(lab.out()), &read(text.out()), "the out file");
}
