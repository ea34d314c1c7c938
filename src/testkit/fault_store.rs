//! A store whose Nth operation fails, or is the last one before its process dies.

mod store;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{Store, StoreError};

/// An operation of a [`Store`], as [`FaultStore`] counts it.
///
/// What cannot fail ([`claims`](Store::claims), [`gaps`](Store::gaps), [`heads`](Store::heads),
/// [`summary`](Store::summary)) is not counted, nor what only looks at what might expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`Store::bind`].
    Bind,
    /// [`Store::bind_cluster`].
    BindCluster,
    /// [`Store::lease`].
    Lease,
    /// [`Store::release`].
    Release,
    /// [`Store::lookup`].
    Lookup,
    /// [`Store::unit_behind`].
    UnitBehind,
    /// [`Store::result`].
    Result,
    /// [`Store::commit`].
    Commit,
    /// [`Retaining::expire`](crate::store::Retaining::expire).
    Expire,
}

impl Operation {
    /// Its place in the counts.
    const fn index(self) -> usize {
        self as usize
    }

    /// How many there are.
    const COUNT: usize = Self::Expire.index() + 1;

    /// The name of the method.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::BindCluster => "bind_cluster",
            Self::Lease => "lease",
            Self::Release => "release",
            Self::Lookup => "lookup",
            Self::UnitBehind => "unit_behind",
            Self::Result => "result",
            Self::Commit => "commit",
            Self::Expire => "expire",
        }
    }
}

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails with [`StoreError::Io`] and is not carried out; the next one succeeds. After a
    /// failed commit every later one is refused with [`StoreError::Poisoned`], as the contract of
    /// [`Store`] demands. Releases are let through all the same: whoever ends a lease in order
    /// after a failed commit is found out by it.
    Error,
    /// The process dies before it is carried out: this call and every later one fails.
    CrashBefore,
    /// The process dies after it was carried out and before its answer: this call and every later
    /// one fails.
    CrashAfter,
}

/// A fault that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fired {
    /// What it hit.
    pub operation: Operation,
    /// The number of that operation, from 0.
    pub number: u64,
    /// What it was.
    pub fault: Fault,
}

/// A [`Store`] around another that counts its operations and fails one of them on command.
///
/// For tests of handlers and of stores: run a scenario with a fault at operation 0, then at 1, and
/// so on until a run ends without the fault having [fired](FaultStore::fired). After each run open
/// what is underneath again and look whether all of it holds. Keep an [`Arc`](std::sync::Arc) of
/// it, which is a store too, to look on while a consumer has it.
///
/// ```
/// use std::sync::Arc;
/// use idempotent_consumer::store::{MemoryStore, Owner, Store};
/// use idempotent_consumer::testkit::{Fault, FaultStore, Operation};
/// use idempotent_consumer::TopicPartition;
///
/// let disk = Arc::new(MemoryStore::new());
/// let store = FaultStore::new(Arc::clone(&disk));
/// store.plan(1, Fault::CrashAfter);
/// let owner = Owner { group: "shop".into(), recipe: "line".into(), scope: "topic".into() };
/// store.bind(&owner)?;
/// let orders = TopicPartition::new("orders", 0);
/// assert!(store.lease(&orders).is_err(), "the process died before it heard of its lease");
/// assert_eq!(store.fired().map(|fired| fired.operation), Some(Operation::Lease));
/// // What the next process finds:
/// assert!(disk.lease(&orders)?.in_doubt);
/// # Ok::<(), idempotent_consumer::store::StoreError>(())
/// ```
pub struct FaultStore<S> {
    inner: S,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counts: [u64; Operation::COUNT],
    plan: Option<(u64, Fault)>,
    fired: Option<Fired>,
    /// What died, and where: from here on nothing is carried out.
    crashed: Option<String>,
    /// What failed: from here on nothing is committed.
    poison: Option<String>,
}

impl State {
    fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl<S: Store> FaultStore<S> {
    /// Wraps a store. Nothing fails until it is [planned](FaultStore::plan).
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// Has operation `number` fail, counted from 0 since the store was wrapped. One fault at a
    /// time: a second plan takes the place of the first.
    pub fn plan(&self, number: u64, fault: Fault) {
        self.state().plan = Some((number, fault));
    }

    /// Has the process die now, between two operations.
    pub fn crash(&self) {
        let mut state = self.state();
        let number = state.operations();
        state
            .crashed
            .get_or_insert_with(|| format!("the process died before operation {number}"));
    }

    /// How many operations were asked for, refused ones among them.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations()
    }

    /// How many there were of one kind.
    #[must_use]
    pub fn operations_of(&self, operation: Operation) -> u64 {
        self.state().counts[operation.index()]
    }

    /// The fault that is still to come.
    #[must_use]
    pub fn planned(&self) -> Option<(u64, Fault)> {
        self.state().plan
    }

    /// The planned fault, once it has happened.
    #[must_use]
    pub fn fired(&self) -> Option<Fired> {
        self.state().fired
    }

    /// Whether the process counts as dead. Effects that a test lets happen from here on would be a
    /// dead process's.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.state().crashed.is_some()
    }

    /// The store underneath: what is found after the crash.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn perform<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(&S) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // Not held in the call: operations of several threads overlap, as without this store.
        let fault = self.begin(operation)?;
        match fault {
            None => return call(&self.inner),
            Some(Fault::CrashAfter) => drop(call(&self.inner)),
            Some(Fault::Error | Fault::CrashBefore) => {}
        }
        let state = self.state();
        let why = state.crashed.as_ref().or(state.poison.as_ref());
        Err(failed(
            operation,
            why.map_or("told to fail", String::as_str),
        ))
    }

    /// Counts an operation and says whether it is the one.
    fn begin(&self, operation: Operation) -> Result<Option<Fault>, StoreError> {
        let mut state = self.state();
        let number = state.operations();
        state.counts[operation.index()] += 1;
        if let Some(why) = &state.crashed {
            return Err(failed(operation, why));
        }
        let writes = [Operation::Commit, Operation::Expire].contains(&operation);
        if let (true, Some(cause)) = (writes, &state.poison) {
            return Err(StoreError::Poisoned {
                place: self.inner.summary().place,
                cause: cause.clone(),
            });
        }
        let Some((_, fault)) = state.plan.take_if(|(at, _)| *at == number) else {
            return Ok(None);
        };
        state.fired = Some(Fired {
            operation,
            number,
            fault,
        });
        let name = operation.name();
        match fault {
            Fault::Error if writes => {
                state.poison = Some(format!("operation {number}, {name}, was told to fail"));
            }
            Fault::Error => {}
            Fault::CrashBefore => {
                state.crashed = Some(format!(
                    "the process died before operation {number}, {name}"
                ));
            }
            Fault::CrashAfter => {
                state.crashed = Some(format!("the process died after operation {number}, {name}"));
            }
        }
        Ok(Some(fault))
    }
}

fn failed(operation: Operation, why: &str) -> StoreError {
    StoreError::Io {
        path: PathBuf::from("the fault store"),
        operation: operation.name(),
        message: why.to_owned(),
    }
}
