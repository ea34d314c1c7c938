//! Contests: the same work done by several contenders, round by round.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// A contender and what it reached in each round.
pub(crate) struct Row {
    name: &'static str,
    /// Units a second.
    rates: Vec<f64>,
    /// Further columns, with a bar between two; empty where the contest has none.
    note: String,
}

/// Contenders that are compared with the first of them.
pub(crate) struct Contest {
    title: String,
    unit: &'static str,
    rows: Vec<Row>,
}

impl Contest {
    pub(crate) fn new(title: String, unit: &'static str, names: &[&'static str]) -> Self {
        let row = |name: &&'static str| Row {
            name,
            rates: Vec::new(),
            note: String::new(),
        };
        Self {
            title,
            unit,
            rows: names.iter().map(row).collect(),
        }
    }

    /// Lets every contender run once a round. Another one begins each time: what a round finds
    /// warm or busy, it finds for all of them in turn.
    pub(crate) fn run(
        &mut self,
        rounds: usize,
        mut contender: impl FnMut(usize) -> Outcome<(f64, String)>,
    ) -> Outcome<()> {
        for round in 0..rounds {
            for turn in 0..self.rows.len() {
                let index = (round + turn) % self.rows.len();
                // What the one before left to be written must not delay this one's syncs.
                rustix::fs::sync();
                let (rate, note) = contender(index)?;
                let row = &mut self.rows[index];
                eprintln!("round {}: {}: {rate:.0} {}", round + 1, row.name, self.unit);
                row.rates.push(rate);
                row.note = note;
            }
        }
        Ok(())
    }

    /// A Markdown table; `note` heads the further columns. A ratio is the median of the rounds'
    /// ratios: the machine may differ from round to round, hardly within one.
    pub(crate) fn table(&self, note: Option<&str>) -> String {
        let mut out = format!(
            "### {}\n\n| | {}, median | slowest to fastest | ratio, median | ratio, worst to best |",
            self.title, self.unit
        );
        let mut ruler = "\n| --- | ---: | ---: | ---: | ---: |".to_owned();
        if let Some(note) = note {
            out.extend([" ", note, " |"]);
            ruler.push_str(&" ---: |".repeat(note.split('|').count()));
        }
        out.push_str(&ruler);
        let base = self.rows.first().map_or(&[][..], |row| &row.rates);
        for row in &self.rows {
            let ratios = row.rates.iter().zip(base).map(|(rate, base)| rate / base);
            let (rates, ratios) = (Spread::of(row.rates.clone()), Spread::of(ratios.collect()));
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "\n| {} | {:.0} | {:.0} to {:.0} | {:.2} | {:.2} to {:.2} |",
                row.name,
                rates.median,
                rates.lowest,
                rates.highest,
                ratios.median,
                ratios.lowest,
                ratios.highest,
            );
            if note.is_some() {
                out.extend([" ", &row.note, " |"]);
            }
        }
        out.push('\n');
        out
    }
}

/// Of the rounds' figures.
pub(crate) struct Spread {
    lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self {
            lowest: at(0),
            // The middle one, or between the middle two.
            median: f64::midpoint(at(last / 2), at(last.div_ceil(2))),
            highest: at(last),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate has far fewer digits than 52 bits hold"
)]
pub(crate) fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// A number from the environment, or the default.
pub(crate) fn setting(name: &str, default: usize) -> Outcome<usize> {
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{name}={text}: expected a whole number from 1").into()),
        },
        Err(_) => Ok(default),
    }
}

/// A directory on the disk that holds the build: a temporary directory may be in memory, where a
/// sync costs nothing.
pub(crate) fn on_disk() -> Outcome<tempfile::TempDir> {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tempfile::tempdir_in(parent).map_err(|error| format!("{}: {error}", parent.display()).into())
}
