//! A database made of lists: rows of its users, and marks in a store in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::{NextOffset, TopicPartition};
use crate::store::transaction::{Answer, Claimed, Transaction, TransactionError, Transactions};
use crate::store::{CommitUnit, Entry, Gaps, Lease, MemoryStore, Store, StoreError};

/// What a handler writes.
#[derive(Default)]
pub(super) struct Rows(Vec<String>);

impl Rows {
    pub(super) fn insert(&mut self, row: String) {
        self.0.push(row);
    }
}

#[derive(Clone, Copy)]
pub(super) enum Fault {
    Aborted,
    Failed,
}

#[derive(Default)]
struct State {
    rows: Vec<String>,
    /// How many steps pass before one fails.
    fault: Option<(Fault, usize)>,
    failed: bool,
    commits: usize,
    elsewhere: bool,
}

#[derive(Default)]
pub(super) struct Bank {
    pub(super) store: Arc<MemoryStore>,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bank {
    /// The committed rows.
    pub(super) fn rows(&self) -> Vec<String> {
        lock(&self.state).rows.clone()
    }

    pub(super) fn commits(&self) -> usize {
        lock(&self.state).commits
    }

    /// Has one step fail, after so many.
    pub(super) fn fail(&self, fault: Fault, after: usize) {
        lock(&self.state).fault = Some((fault, after));
    }

    pub(super) fn has_failed(&self) -> bool {
        lock(&self.state).failed
    }

    /// Another owner does the second record of the next claim, right before it.
    pub(super) fn second_is_done_elsewhere(&self) {
        lock(&self.state).elsewhere = true;
    }
}

impl Transactions<Rows> for Bank {
    fn open(&self, _partition: &TopicPartition, _lease: &Lease) -> Box<dyn Transaction<Rows>> {
        Box::new(Open {
            store: Arc::clone(&self.store),
            state: Arc::clone(&self.state),
            kept: Vec::new(),
            rows: Rows::default(),
            begun: false,
        })
    }
}

struct Open {
    store: Arc<MemoryStore>,
    state: Arc<Mutex<State>>,
    /// Of the records before the one in hand.
    kept: Vec<String>,
    rows: Rows,
    begun: bool,
}

impl Open {
    /// One step towards a commit, which may be the one that fails.
    fn step(&mut self) -> Result<(), TransactionError> {
        let mut state = lock(&self.state);
        let error = StoreError::Misused("a step that was to fail");
        match state.fault {
            Some((fault, 0)) => {
                (state.fault, state.failed) = (None, true);
                drop(state);
                self.forget();
                Err(match fault {
                    Fault::Aborted => TransactionError::Aborted(error),
                    Fault::Failed => TransactionError::Failed(error),
                })
            }
            Some((fault, after)) => {
                state.fault = Some((fault, after - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn forget(&mut self) {
        self.begun = false;
        self.kept.clear();
        self.rows.0.clear();
    }

    /// Another owner's commit of a record in another partition.
    fn do_elsewhere(&self, key: &Claimed) {
        let lease = self.store.lease(&TopicPartition::new("orders", 7)).unwrap();
        let entry = Entry {
            fingerprint: key.fingerprint,
            offset: 0,
            value_digest: key.value_digest,
            result: None,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        };
        let unit = CommitUnit {
            id: lease.id,
            epoch: lease.epoch,
            previous: NextOffset::ZERO,
            next: NextOffset::after(0),
            max_timestamp_ms: -1,
            anchor: None,
            entries: vec![entry],
            gaps: Gaps::default(),
            outbox: Vec::new(),
        };
        self.store.commit(&[unit]).unwrap();
    }
}

fn ready<'a, T: 'a>(result: Result<T, TransactionError>) -> Answer<'a, T> {
    Box::pin(std::future::ready(result))
}

impl Transaction<Rows> for Open {
    fn begin<'a>(&'a mut self, keys: &'a [Claimed]) -> Answer<'a, Vec<bool>> {
        assert!(!self.begun, "a transaction in a transaction");
        self.begun = true;
        if std::mem::take(&mut lock(&self.state).elsewhere) {
            self.do_elsewhere(&keys[1]);
        }
        let fingerprints: Vec<_> = keys.iter().map(|key| key.fingerprint).collect();
        let mut found = Vec::new();
        self.store.lookup(&fingerprints, &mut found).unwrap();
        let claimed = found.iter().map(Option::is_none).collect();
        ready(self.step().map(|()| claimed))
    }

    fn save(&mut self) -> Answer<'_, ()> {
        assert!(self.begun && self.rows.0.is_empty());
        ready(self.step())
    }

    fn effects(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn keep(&mut self) -> Answer<'_, Option<Box<[u8]>>> {
        self.kept.append(&mut self.rows.0);
        ready(self.step().map(|()| None))
    }

    fn undo(&mut self) -> Answer<'_, ()> {
        self.rows.0.clear();
        ready(self.step())
    }

    fn commit<'a>(&'a mut self, unit: &'a CommitUnit) -> Answer<'a, ()> {
        assert!(self.begun, "a commit of nothing");
        if let Err(error) = self.step() {
            return ready(Err(error));
        }
        let mut state = lock(&self.state);
        self.store.commit(std::slice::from_ref(unit)).unwrap();
        state.rows.append(&mut self.kept);
        state.commits += 1;
        drop(state);
        self.forget();
        ready(Ok(()))
    }

    fn roll_back(&mut self) -> Answer<'_, ()> {
        self.forget();
        ready(Ok(()))
    }
}
