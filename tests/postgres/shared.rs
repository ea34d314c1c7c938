//! The one server of this binary, for the tests that leave it running.

use std::ops::Deref;
use std::sync::LazyLock;

use crate::postgres::Postgres;

static SERVER: LazyLock<Option<Postgres>> = LazyLock::new(Postgres::start);
/// How much of its log a test shows that fails.
const LINES_SHOWN: usize = 60;

/// The server, for as long as a test uses it. Each test has a database of its own in it.
pub(crate) struct Shared(&'static Postgres);

/// `None` (said on standard error) where there is no PostgreSQL.
pub(crate) fn server() -> Option<Shared> {
    SERVER.as_ref().map(Shared)
}

impl Deref for Shared {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The directory goes with the process, and with it the log.
        if std::thread::panicking() {
            let log = self.0.log();
            let lines: Vec<_> = log.lines().collect();
            let start = lines.len().saturating_sub(LINES_SHOWN);
            eprintln!("the server's log ends with:\n{}", lines[start..].join("\n"));
        }
    }
}
