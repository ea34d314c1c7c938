//! How far a long input has come, on a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use crate::stats::Counts;

/// What is over sooner needs no telling.
const FIRST_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER: Duration = Duration::from_millis(200);

pub(crate) struct Progress {
    /// `None` where nobody looks.
    next: Option<Instant>,
    shown: bool,
    started: Instant,
    /// How long the input is, where it is a file.
    total: Option<u64>,
}

impl Progress {
    pub(crate) fn new(wanted: bool, total: Option<u64>) -> Self {
        let started = Instant::now();
        let looks = wanted && io::stderr().is_terminal();
        Self {
            next: looks.then(|| started + FIRST_AFTER),
            shown: false,
            started,
            total: total.filter(|bytes| *bytes > 0),
        }
    }

    pub(crate) fn tick(&mut self, counts: &Counts) {
        let Some(next) = self.next else {
            return;
        };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + AGAIN_AFTER);
        self.shown = true;
        let line = line(counts, now - self.started, self.total);
        // To the beginning of the line, and what is left of a longer one behind it goes.
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }
}

/// Whatever is said next stands on a line of its own.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
fn line(counts: &Counts, passed: Duration, total: Option<u64>) -> String {
    let rate = counts.lines as f64 / passed.as_secs_f64().max(0.001);
    let share = total.map_or_else(String::new, |total| {
        let percent = u128::from(counts.bytes_read) * 100 / u128::from(total);
        format!("{}%, ", percent.min(100))
    });
    let (lines, new) = (counts.lines, counts.new);
    format!("dedup: {share}{lines} lines, {new} new, {rate:.0} lines/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_the_share_where_it_is_known_and_never_more_than_all() {
        let counts = Counts {
            lines: 3_000,
            new: 2_000,
            bytes_read: 50,
            ..Counts::default()
        };
        let said = |total| line(&counts, Duration::from_secs(2), total);
        assert_eq!(said(None), "dedup: 3000 lines, 2000 new, 1500 lines/s");
        assert_eq!(
            said(Some(200)),
            "dedup: 25%, 3000 lines, 2000 new, 1500 lines/s"
        );
        // A file that has grown since it was measured.
        assert!(said(Some(20)).starts_with("dedup: 100%, "));
    }
}
