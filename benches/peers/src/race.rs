//! A contender that consumes in a process of its own, watched from outside.
//!
//! It prints [`BEGUN`] when it has handled the records that are there to warm it up, goes on until
//! its standard input ends, and stops then.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::footprint::{bytes_on_disk, peak_memory_kib};
use crate::topic::Watch;

/// The line by which a contender tells that the clock may start.
pub const BEGUN: &str = "begun";
/// For the way to [`BEGUN`], and for that from there to the end.
const RUN_LIMIT: Duration = Duration::from_mins(5);
/// For a stop in order.
const STOP_LIMIT: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a run came to.
pub struct Finish {
    pub took: Duration,
    pub peak_memory_kib: u64,
    pub disk_bytes: u64,
}

/// Runs `command` from its [`BEGUN`] until its group has committed `end`.
///
/// # Errors
///
/// It ends early, or takes too long.
pub fn race(command: &mut Command, watch: &Watch, end: u64, store: &Path) -> Outcome<Finish> {
    let mut runner = Runner::start(command)?;
    runner.wait_begun()?;
    let begun = Instant::now();
    watch.wait_for(end, RUN_LIMIT, || runner.alive())?;
    let took = begun.elapsed();
    let peak_memory_kib = peak_memory_kib(runner.child.id())?;
    runner.stop()?;
    let disk_bytes = bytes_on_disk(store)?;
    Ok(Finish {
        took,
        peak_memory_kib,
        disk_bytes,
    })
}

/// A contender's process. It does not outlive this value.
pub struct Runner {
    child: Child,
    lines: Receiver<String>,
}

impl Runner {
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let (said, lines) = channel();
        // On a thread, since a read has no deadline. It ends with the process.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// # Errors
    ///
    /// It ends before, or takes too long.
    pub fn wait_begun(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + RUN_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line == BEGUN => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err("has not begun in time".into()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("ended before it began: {}", self.child.wait()?).into());
                }
            }
        }
    }

    /// # Errors
    ///
    /// It has ended.
    pub fn alive(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            Some(status) => Err(format!("ended before its work was done: {status}").into()),
            None => Ok(()),
        }
    }

    /// As a crash does it (SIGKILL).
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets it stop in order.
    ///
    /// # Errors
    ///
    /// It fails, or takes too long.
    pub fn stop(mut self) -> Outcome<()> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + STOP_LIMIT;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("stopped with {status}").into()),
                None if Instant::now() > deadline => return Err("did not stop".into()),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A contender's side: tells that the clock may start.
pub fn tell_begun() {
    let mut output = std::io::stdout();
    // Whoever started this is gone when it cannot be told; the end of the input says so too.
    let _ = writeln!(output, "{BEGUN}").and_then(|()| output.flush());
}

/// A contender's side: returns when it is to stop.
pub fn wait_stop() {
    let mut input = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut input);
}
