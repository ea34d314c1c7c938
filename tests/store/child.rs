//! Other processes: this test binary, run again in a role.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use idempotent_consumer::store::{Durability, Store as _};

use crate::model::{open, orders, owner};
use crate::{full_disk, kill, size};

const ROLE: &str = "IDEMPOTENT_CONSUMER_TEST_ROLE";
const DIRECTORY: &str = "IDEMPOTENT_CONSUMER_TEST_DIRECTORY";
/// Before each line that a child says, among what the test harness says.
const MARK: &str = "\u{1}";
const DEADLINE: Duration = Duration::from_secs(300);

/// What a child does. Does nothing in a normal run of the tests.
#[test]
fn role() {
    let (Ok(role), Some(directory)) = (env::var(ROLE), env::var_os(DIRECTORY)) else {
        return;
    };
    let directory = PathBuf::from(directory);
    match role.as_str() {
        "commit-power" => kill::commit(&directory, Durability::Power),
        "commit-process" => kill::commit(&directory, Durability::Process),
        "fill-disk" => full_disk::fill(&directory),
        "million" => size::fill(&directory),
        "open-million" => size::reopen(&directory),
        "hold" => {
            let _store = open(&directory, Durability::Power).unwrap();
            say("held");
            // Until the parent lets go.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "open" => match open(&directory, Durability::Power) {
            Ok(store) => {
                store.bind(&owner()).unwrap();
                store.lease(&orders(0)).unwrap();
                say("opened");
            }
            Err(error) => say(&format!("refused {error}")),
        },
        role => panic!("unknown role {role}"),
    }
    say("done");
}

/// One line to the parent, in one write, so that a kill leaves it whole or out.
pub(crate) fn say(line: &str) {
    let line = format!("\n{MARK}{line}\n");
    let mut out = std::io::stdout();
    if out
        .write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        // The parent has heard enough.
        std::process::exit(1);
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

/// Starts a child under `wrapper`, a command that ends in running its arguments; none for `[]`.
pub(crate) fn start(wrapper: &[&str], role: &str, directory: &Path) -> Running {
    let this = env::current_exe().unwrap();
    let mut words = wrapper.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>();
    words.push(this.as_os_str());
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .args(["--exact", "child::role", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = read(child.stdout.take().unwrap());
    Running { child, lines }
}

fn read(out: ChildStdout) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some((_, said)) = line.split_once(MARK) {
                if tell.send(said.to_owned()).is_err() {
                    return;
                }
            }
        }
    });
    told
}

impl Running {
    /// The next line, `None` when there will be no more.
    pub(crate) fn hear(&mut self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the child said nothing for {DEADLINE:?}")
            }
        }
    }

    /// All that it still says.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.hear()).collect()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
