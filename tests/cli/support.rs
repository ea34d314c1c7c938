//! A directory, the binaries, and waiting with a deadline.

use std::{
    ffi::OsStr,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub(crate) use crate::skip::cannot_run;

/// Far beyond what any step takes, so that only a hang reaches it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

pub(crate) const DEDUP: &str = env!("CARGO_BIN_EXE_dedup");
pub(crate) const SHIP_PROCESS: &str = env!("CARGO_BIN_EXE_ship-process");

/// One test's files.
pub(crate) struct Lab {
    dir: TempDir,
}

/// How a program ended and what it said. The code of a program killed by a signal is `None`.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn seen(&self) -> PathBuf {
        self.path("seen.txt")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.path("processed-dedup.txt")
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A program that is told this lab's paths.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("DEDUP_SEEN", self.seen())
            .env("DEDUP_OUT", self.out())
            .current_dir(self.dir.path());
        command
    }

    pub(crate) fn dedup(&self) -> Command {
        self.command(DEDUP)
    }

    /// Feeds `input` to `dedup`, which must end well and silently.
    pub(crate) fn feed(&self, input: impl AsRef<[u8]>) {
        let finished = run(&mut self.dedup(), input);
        assert_eq!(
            (finished.code, &*finished.stderr, &*finished.stdout),
            (Some(0), "", &b""[..])
        );
    }

    /// Both files must hold exactly this.
    #[track_caller]
    pub(crate) fn expect_both(&self, expected: impl AsRef<[u8]>) {
        assert_bytes(&read(self.out()), expected.as_ref(), "the out file");
        assert_bytes(&read(self.seen()), expected.as_ref(), "the seen file");
    }
}

/// What the file holds; a missing one holds nothing.
pub(crate) fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(path).unwrap_or_default()
}

/// Equality that does not print megabytes when it fails.
#[track_caller]
pub(crate) fn assert_bytes(actual: &[u8], expected: &[u8], what: &str) {
    if actual == expected {
        return;
    }
    let at = actual
        .iter()
        .zip(expected)
        .take_while(|(left, right)| left == right)
        .count();
    let show = |bytes: &[u8]| {
        let near = &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)];
        format!(
            "{} bytes, near the difference: {:?}",
            bytes.len(),
            String::from_utf8_lossy(near)
        )
    };
    panic!(
        "{what} differs at byte {at}\n  is:        {}\n  should be: {}",
        show(actual),
        show(expected)
    );
}

/// Runs a program to its end with `input` on standard input.
pub(crate) fn run(command: &mut Command, input: impl AsRef<[u8]>) -> Finished {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    // A program that refuses does not read its input, so this may well fail.
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let finished = finish(child);
    feeder.join().unwrap();
    finished
}

/// Starts a program with a file on standard input; what it says on standard error is collected.
pub(crate) fn start(command: &mut Command, input: impl AsRef<Path>) -> Child {
    let input = fs::File::open(input).unwrap();
    command.stdin(input).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a program and collects what it said on the pipes that are left.
pub(crate) fn finish(mut child: Child) -> Finished {
    let collect = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut bytes).unwrap();
            }
            bytes
        })
    };
    let stdout = collect(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = collect(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("still running after {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(1));
    };
    Finished {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: String::from_utf8(stderr.join().unwrap()).unwrap(),
    }
}

/// The writing end of a pipe that nobody will ever read.
pub(crate) fn pipe_without_reader() -> ChildStdin {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    // A child that another thread is just starting has a copy of the other end until it runs its
    // own program.
    eventually("nobody can read", || pipe.write_all(b"x").is_err());
    pipe
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < DEADLINE,
            "did not happen within {DEADLINE:?}: {what}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// A small generator with a seed, so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % limit
    }
}
