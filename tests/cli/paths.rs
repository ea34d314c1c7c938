//! Which paths are taken, which are refused, and that a refusal comes before anything is written.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{PermissionsExt, symlink},
            net::UnixStream,
        },
    },
    path::Path,
    process::Command,
    thread,
};

use crate::support::{DEDUP, Finished, Lab, cannot_run, finish, read, run, start};

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A refusal: code 1, the path in the message, and the line neither written nor marked.
#[track_caller]
fn refused(lab: &Lab, command: &mut Command, named: &Path) -> Finished {
    let before = (read(lab.seen()), read(lab.out()));
    let finished = run(command, "new line\n");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains(named.to_str().unwrap()),
        "{}",
        finished.stderr
    );
    assert_eq!(
        (read(lab.seen()), read(lab.out())),
        before,
        "something was written"
    );
    finished
}

// C107
#[test]
fn an_impossible_seen_path_is_refused_before_the_out_file_is_touched() {
    let lab = Lab::new();
    fs::create_dir(lab.path("directory")).unwrap();
    make_fifo(&lab.path("fifo"));
    lab.write("file", "");
    for seen in [
        "directory",
        "missing/seen",
        "file/seen",
        "fifo",
        "/dev/null",
    ] {
        let seen = lab.path(seen);
        refused(&lab, lab.dedup().env("DEDUP_SEEN", &seen), &seen);
        assert!(!lab.out().exists(), "{} made an out file", seen.display());
    }
}

// C107
#[test]
fn an_impossible_out_path_is_refused_and_nothing_is_marked() {
    let lab = Lab::new();
    fs::create_dir(lab.path("directory")).unwrap();
    lab.write("file", "");
    for out in ["directory", "missing/out", "file/out"] {
        let out = lab.path(out);
        refused(&lab, lab.dedup().env("DEDUP_OUT", &out), &out);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let lab = Lab::new();
    // Root may read everything, so the program has to be somebody else, who has to get there.
    let program = lab.path("dedup");
    fs::copy(DEDUP, &program).unwrap();
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let possible = Command::new("setpriv").args(nobody).arg("true").status();
    if !possible.is_ok_and(|status| status.success()) {
        return cannot_run("setpriv cannot become another user (needs root)");
    }
    let dedup = || {
        let mut command = lab.command("setpriv");
        command.args(nobody).arg(&program);
        command
    };
    fs::write(lab.seen(), "seen\n").unwrap();
    fs::write(lab.out(), "out\n").unwrap();
    // Writable and not readable: the lines seen so far, or a torn end, would go unnoticed.
    for (closed, open) in [(lab.seen(), lab.out()), (lab.out(), lab.seen())] {
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o222)).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
        refused(&lab, &mut dedup(), &closed);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o444)).unwrap();
        refused(&lab, &mut dedup(), &closed);
    }
    fs::set_permissions(lab.out(), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(lab.seen(), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(run(&mut dedup(), "new line\n").code, Some(0));
}

#[test]
fn one_file_for_both_is_refused_under_every_name() {
    let lab = Lab::new();
    fs::write(lab.seen(), "a\n").unwrap();
    symlink(lab.seen(), lab.path("link")).unwrap();
    fs::hard_link(lab.seen(), lab.path("hard-link")).unwrap();
    for out in ["seen.txt", "link", "hard-link", "./seen.txt"] {
        let finished = refused(
            &lab,
            lab.dedup().env("DEDUP_OUT", lab.path(out)),
            &lab.path(out),
        );
        // And for what it is, not for the lock that both would want.
        assert!(finished.stderr.contains("same file"), "{}", finished.stderr);
    }
}

#[test]
fn the_out_file_as_standard_input_is_refused() {
    let lab = Lab::new();
    fs::write(lab.out(), "a\nb\n").unwrap();
    let child = start(&mut lab.dedup(), lab.out());
    let finished = finish(child);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains(lab.out().to_str().unwrap()),
        "{}",
        finished.stderr
    );
    assert_eq!(
        (read(lab.out()), read(lab.seen())),
        (b"a\nb\n".to_vec(), b"".to_vec())
    );
}

#[test]
fn links_are_followed_and_stay_links() {
    let lab = Lab::new();
    lab.write("real-out", "before\n");
    symlink("real-out", lab.out()).unwrap();
    // This one leads to a file that is not there yet.
    symlink("real-seen", lab.seen()).unwrap();
    lab.feed("a\na\n");
    assert_eq!(read(lab.path("real-out")), b"before\na\n");
    assert_eq!(read(lab.path("real-seen")), b"a\n");
    assert!(lab.out().is_symlink() && lab.seen().is_symlink());
}

#[test]
fn paths_need_not_be_text() {
    let lab = Lab::new();
    let seen = lab.path(OsStr::from_bytes(b"seen-\xff"));
    let out = lab.path(OsStr::from_bytes(b"out-\xfe"));
    assert_eq!(
        run(
            lab.dedup().env("DEDUP_SEEN", &seen).arg("--out").arg(&out),
            "a\n"
        )
        .code,
        Some(0)
    );
    assert_eq!((read(seen), read(out)), (b"a\n".to_vec(), b"a\n".to_vec()));
}

#[test]
fn a_fifo_is_waited_for_and_gets_the_lines() {
    let lab = Lab::new();
    make_fifo(&lab.out());
    let fifo = lab.out();
    let reader = thread::spawn(move || fs::read(fifo).unwrap());
    lab.feed("a\nb\na\n");
    assert_eq!(reader.join().unwrap(), b"a\nb\n");
    assert_eq!(read(lab.seen()), b"a\nb\n");
}

#[test]
fn standard_output_is_a_pipe_a_file_or_a_socket() {
    let input = "a\nb\na\n";
    let lab = Lab::new();
    let finished = run(lab.dedup().env("DEDUP_OUT", "/dev/stdout"), input);
    assert_eq!(
        (finished.code, &*finished.stdout),
        (Some(0), &b"a\nb\n"[..])
    );
    assert_eq!(read(lab.seen()), b"a\nb\n");

    let lab = Lab::new();
    lab.write("input", input);
    let script = format!("{{ echo header; '{DEDUP}' < input; echo footer; }} >> result");
    let mut command = lab.command("bash");
    let finished = run(
        command
            .args(["-c", &script])
            .env("DEDUP_OUT", "/dev/stdout"),
        "",
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(read(lab.path("result")), b"header\na\nb\nfooter\n");

    let lab = Lab::new();
    lab.write("input", input);
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let child = start(
        lab.dedup()
            .args(["--out", "/dev/stdout"])
            .stdout(OwnedFd::from(theirs)),
        lab.path("input"),
    );
    let finished = finish(child);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut received = Vec::new();
    ours.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"a\nb\n");
}
