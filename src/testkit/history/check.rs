//! Whether a history keeps the promise.

use std::collections::{BTreeMap, HashMap};

use super::log::{Event, History, Interruption, Run};
use super::message::Effect;
use super::violation::{Summary, Violation, Violations};

/// What a check allows and demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// How many effects of one partition a crash may leave without marks: the latest ones of the
    /// run. 1,000 by default, as
    /// [`uncommitted_records_max`](crate::Builder::uncommitted_records_max); where several records
    /// are handled at once, as many more.
    pub in_flight_max: usize,
    /// Whether each run goes forward in each of its partitions. True by default; false where the
    /// order is given up.
    pub in_order: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            in_flight_max: 1_000,
            in_order: true,
        }
    }
}

impl Rules {
    /// The same with another limit.
    #[must_use]
    pub fn in_flight_max(self, effects: usize) -> Self {
        Self {
            in_flight_max: effects,
            ..self
        }
    }

    /// The same, with or without the order of each partition.
    #[must_use]
    pub fn in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }
}

/// An effect that happened.
#[derive(Clone, Copy)]
struct Applied<'a> {
    run: Run,
    effect: &'a Effect,
    at: usize,
    /// Its number among the effects of its run in its partition, from 1.
    nth: usize,
}

/// What has been read of the history so far.
struct Reading<'a> {
    history: &'a History,
    rules: Rules,
    /// Begun and not ended, by run and number.
    open: HashMap<(Run, u64), &'a Effect>,
    /// How many of these are of one key.
    open_keys: HashMap<(Run, &'a str), usize>,
    /// The run of each member that last began a key without giving it up.
    begun: HashMap<(&'a str, &'a str), Run>,
    tokens: HashMap<&'a str, &'a str>,
    owners: HashMap<&'a str, &'a str>,
    /// How many effects of a partition, and the offset of the latest.
    progress: HashMap<(Run, i32), (usize, i64)>,
    applied: BTreeMap<&'a str, Vec<Applied<'a>>>,
    summary: Summary,
    violations: Vec<Violation>,
}

impl History {
    /// Looks for breaches of the promise. `sent` are the keys that must have taken effect by now.
    ///
    /// # Errors
    /// All breaches.
    pub fn check<K: AsRef<str>>(
        &self,
        sent: impl IntoIterator<Item = K>,
        rules: &Rules,
    ) -> Result<Summary, Violations> {
        let mut reading = Reading::new(self, *rules);
        for (at, event) in self.events.iter().enumerate() {
            reading.read(at, event);
        }
        let mut keys = 0;
        for key in sent {
            keys += 1;
            reading.take(key.as_ref());
        }
        reading.finish(keys)
    }

    pub(super) fn member(&self, run: Run) -> &str {
        self.lives.get(run.0).map_or("", |life| &life.member)
    }

    fn has_crashed(&self, run: Run) -> bool {
        self.lives.get(run.0).is_some_and(|life| life.crashed)
    }
}

impl<'a> Reading<'a> {
    fn new(history: &'a History, rules: Rules) -> Self {
        let crashes = history.lives.iter().filter(|life| life.crashed).count();
        Self {
            history,
            rules,
            open: HashMap::new(),
            open_keys: HashMap::new(),
            begun: HashMap::new(),
            tokens: HashMap::new(),
            owners: HashMap::new(),
            progress: HashMap::new(),
            applied: BTreeMap::new(),
            summary: Summary {
                runs: history.lives.len(),
                crashes,
                ..Summary::default()
            },
            violations: Vec::new(),
        }
    }

    fn read(&mut self, at: usize, event: &'a Event) {
        match event {
            Event::Began(run, number, effect) => self.begin(*run, *number, effect),
            Event::Applied(run, number) => {
                if let Some(effect) = self.end(*run, *number) {
                    self.apply(*run, at, effect);
                }
            }
            Event::Failed(run, number) => {
                if let Some(effect) = self.end(*run, *number) {
                    self.summary.failed += 1;
                    self.begun
                        .remove(&(self.history.member(*run), effect.key.as_str()));
                }
            }
        }
    }

    fn begin(&mut self, run: Run, number: u64, effect: &'a Effect) {
        let (member, key) = (self.history.member(run), effect.key.as_str());
        self.open.insert((run, number), effect);
        let open = self.open_keys.entry((run, key)).or_default();
        *open += 1;
        if *open > 1 {
            self.violations.push(Violation::Overlapping {
                member: member.to_owned(),
                effect: effect.clone(),
            });
        }
        // What was begun may have happened, whether or not its end was reported.
        let before = self.begun.insert((member, key), run);
        let in_flight =
            before.is_some_and(|before| before != run && self.crashed_with(before, key));
        if in_flight && !effect.in_doubt {
            self.violations.push(Violation::Unannounced {
                member: member.to_owned(),
                effect: effect.clone(),
            });
        }
        self.compare_token(key, &effect.token);
    }

    /// Whether a run that began the key crashed. What it had begun long before and ended is a
    /// breach of another kind, if it comes again.
    fn crashed_with(&self, run: Run, key: &str) -> bool {
        let ended = |applied: &&Applied<'_>| applied.run == run;
        let latest = self
            .applied
            .get(key)
            .and_then(|list| list.iter().rfind(ended));
        self.history.has_crashed(run) && latest.is_none_or(|applied| self.is_recent(applied))
    }

    fn compare_token(&mut self, key: &'a str, token: &'a str) {
        let known = *self.tokens.entry(key).or_insert(token);
        if known != token {
            self.violations.push(Violation::TokenChanged {
                key: key.to_owned(),
                tokens: [known.to_owned(), token.to_owned()],
            });
        }
        let owner = *self.owners.entry(token).or_insert(key);
        if owner != key {
            self.violations.push(Violation::TokenShared {
                keys: [owner.to_owned(), key.to_owned()],
                token: token.to_owned(),
            });
        }
    }

    fn end(&mut self, run: Run, number: u64) -> Option<&'a Effect> {
        let Some(effect) = self.open.remove(&(run, number)) else {
            self.violations.push(Violation::Unknown {
                member: self.history.member(run).to_owned(),
                number,
            });
            return None;
        };
        if let Some(open) = self.open_keys.get_mut(&(run, effect.key.as_str())) {
            *open -= 1;
        }
        Some(effect)
    }

    fn apply(&mut self, run: Run, at: usize, effect: &'a Effect) {
        self.summary.applied += 1;
        let (nth, latest) = self
            .progress
            .entry((run, effect.partition))
            .or_insert((0, i64::MIN));
        *nth += 1;
        if self.rules.in_order && effect.offset <= *latest {
            self.violations.push(Violation::OutOfOrder {
                member: self.history.member(run).to_owned(),
                effect: effect.clone(),
                after: *latest,
            });
        }
        *latest = effect.offset;
        let nth = *nth;
        let list = self.applied.entry(&effect.key).or_default();
        list.push(Applied {
            run,
            effect,
            at,
            nth,
        });
    }

    /// Whether it is one of the latest effects of its run in its partition.
    fn is_recent(&self, applied: &Applied<'_>) -> bool {
        let place = (applied.run, applied.effect.partition);
        let all = self.progress.get(&place).map_or(0, |(count, _)| *count);
        all - applied.nth < self.rules.in_flight_max
    }

    /// What happened to one key that was sent.
    fn take(&mut self, key: &str) {
        let Some(list) = self.applied.remove(key) else {
            self.violations.push(Violation::Lost {
                key: key.to_owned(),
            });
            return;
        };
        for pair in list.windows(2) {
            self.compare(&pair[0], &pair[1]);
        }
    }

    fn compare(&mut self, before: &Applied<'a>, again: &Applied<'a>) {
        let history = self.history;
        let own = history.member(before.run) == history.member(again.run);
        if own && self.may_repeat(before, again) {
            self.summary.repeats_own += 1;
        } else if !own && may_repeat_elsewhere(history, before, again) {
            self.summary.repeats_elsewhere += 1;
        } else {
            self.violations.push(Violation::Repeated {
                first: history.member(before.run).to_owned(),
                before: before.effect.clone(),
                second: history.member(again.run).to_owned(),
                again: again.effect.clone(),
            });
        }
    }

    fn may_repeat(&self, before: &Applied<'_>, again: &Applied<'_>) -> bool {
        before.run != again.run && self.history.has_crashed(before.run) && self.is_recent(before)
    }

    fn finish(mut self, keys: usize) -> Result<Summary, Violations> {
        for key in self.applied.keys() {
            self.violations.push(Violation::NeverSent {
                key: (*key).to_owned(),
            });
        }
        self.summary.keys = keys;
        self.summary.cut_off = self.open.len();
        if self.violations.is_empty() {
            Ok(self.summary)
        } else {
            Err(Violations(self.violations))
        }
    }
}

/// Another store knows of an effect what the group does: the committed offsets.
fn may_repeat_elsewhere(history: &History, before: &Applied<'_>, again: &Applied<'_>) -> bool {
    let above = |interruption: &Interruption, applied: &Applied<'_>| {
        let position = interruption.positions.get(&applied.effect.partition);
        interruption.run == applied.run
            && interruption.to.is_none_or(|to| applied.at < to)
            && applied.effect.offset >= *position.unwrap_or(&0)
    };
    history.interruptions.iter().any(|interruption| {
        let late = above(interruption, again) && interruption.from <= again.at;
        above(interruption, before) || late
    })
}
