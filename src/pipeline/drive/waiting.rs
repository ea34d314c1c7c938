//! Records that a lane has taken in and not seen through yet.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::key::{Fingerprint, Identity};
use crate::pipeline::work::{Context, Work};

/// What waits, and for what.
#[derive(Default)]
pub(super) struct Waiting {
    /// All that is under way, with its count: the first is the lowest.
    under_way: BTreeMap<i64, u64>,
    /// By record key, for an order by keys: those behind the one that is being handled.
    behind: HashMap<Fingerprint, VecDeque<Work>>,
    /// Those whose identity is in flight elsewhere, or is that of another one here.
    /// With the record key whose place they hold.
    pub(super) parked: VecDeque<(Option<Fingerprint>, Work)>,
    /// Those whose turn it is, as soon as so many others are not handled any more.
    pub(super) ready: VecDeque<(Option<Fingerprint>, Work)>,
}

/// What keeps a record's place among those with its record key.
pub(super) fn order_key(context: &Context, work: &Work) -> Option<Fingerprint> {
    let record = work.record()?;
    let key = Identity::Bytes(record.key?.into());
    Some(context.hasher.fingerprint(&key))
}

impl Waiting {
    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// How many records were taken in before the lowest of them.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.under_way.values().next().copied()
    }

    /// A record is under way from here on, until it is [over](Waiting::over).
    pub(super) fn begin(&mut self, work: &Work) {
        if work.is_held() {
            self.under_way.insert(work.candidate.offset, work.order);
        }
    }

    pub(super) fn over(&mut self, offset: i64) {
        self.under_way.remove(&offset);
    }

    /// Whether somebody holds the place of a key.
    pub(super) fn is_taken(&self, key: Option<&Fingerprint>) -> bool {
        key.is_some_and(|key| self.behind.contains_key(key))
    }

    /// Takes the place of a key: the record comes back where it is free.
    pub(super) fn enqueue(&mut self, key: Option<Fingerprint>, work: Work) -> Option<Work> {
        let Some(key) = key else { return Some(work) };
        if let Some(queue) = self.behind.get_mut(&key) {
            queue.push_back(work);
            return None;
        }
        self.behind.insert(key, VecDeque::new());
        Some(work)
    }

    /// The record with this key that was being handled is over: the next one.
    pub(super) fn next(&mut self, key: &Fingerprint) -> Option<Work> {
        let next = self.behind.get_mut(key)?.pop_front();
        if next.is_none() {
            self.behind.remove(key);
        }
        next
    }

    /// Nothing with this key is handled any more: what waits for it.
    pub(super) fn close(&mut self, key: &Fingerprint) -> Vec<Work> {
        let back: Vec<_> = self.behind.remove(key).into_iter().flatten().collect();
        self.all_over(&back);
        back
    }

    /// Takes out what is not being handled and lies behind `offset`.
    pub(super) fn give_back(&mut self, offset: i64) -> Vec<Work> {
        let mut back = Vec::new();
        for queue in self.behind.values_mut() {
            let keep = queue.partition_point(|work| work.candidate.offset <= offset);
            back.extend(queue.drain(keep..));
        }
        for list in [&mut self.parked, &mut self.ready] {
            for (key, work) in std::mem::take(list) {
                if work.candidate.offset <= offset {
                    list.push_back((key, work));
                } else {
                    back.push(work);
                }
            }
        }
        self.all_over(&back);
        back
    }

    fn all_over(&mut self, back: &[Work]) {
        for work in back {
            self.over(work.candidate.offset);
        }
    }
}
