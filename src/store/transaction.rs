//! A store whose handlers write in its own transactions: the mark and what the handler writes are
//! there together, or not at all.

use std::future::Future;
use std::pin::Pin;

use super::{CommitUnit, Lease, StoreError};
use crate::key::Fingerprint;
use crate::record::TopicPartition;

/// Why a transaction did not happen.
#[derive(Debug)]
pub(crate) enum TransactionError {
    /// Nothing of it remains, and the same work may succeed in another one: a deadlock, a
    /// serialization failure, a lost connection.
    Aborted(StoreError),
    /// What the handler wrote cannot be kept: a statement of it failed, and it returned `Ok` all the
    /// same. The rest of the transaction stands: undo it, and take it for the handler's failure.
    Spoilt(StoreError),
    /// Another one would fail as well: the lease is over, the store is not what it was.
    Failed(StoreError),
}

/// An answer of the database, to be waited for.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, TransactionError>> + 'a>>;

/// Gives leases their transactions.
pub(crate) trait Transactions<E>: Send + Sync {
    /// The transactions of one lease, one after the other. Nothing is connected yet.
    fn open(&self, partition: &TopicPartition, lease: &Lease) -> Box<dyn Transaction<E>>;
}

/// A key that is about to be handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) offset: i64,
    pub(crate) value_digest: u64,
    /// Whether a [restored](crate::store::Mark::restored) mark gives way: a letter that came back.
    pub(crate) over_restored: bool,
}

/// The transactions of one lease. Dropped in the middle, nothing of the one under way remains.
pub(crate) trait Transaction<E> {
    /// Begins one and claims keys in it, in one statement: those that another owner has in an open
    /// transaction are waited for. Says for each whether it is claimed; one that is not has been
    /// done since it was looked up, or, where none is claimed, another has had one of them for
    /// longer than is waited at once: they are to be looked up again. A mark that keeps nobody from handling the key (a dead letter of
    /// another record, a forgotten one) is taken over, and stays if the claim is given back.
    fn begin<'a>(&'a mut self, keys: &'a [Claimed]) -> Answer<'a, Vec<bool>>;

    /// Before a handler writes: what comes behind can be undone by itself.
    fn save(&mut self) -> Answer<'_, ()>;

    /// What the handler writes with, between `save` and `keep` or `undo`.
    fn effects(&mut self) -> &mut E;

    /// What was written since `save` stays in the transaction. Gives the result that was recorded;
    /// [`TransactionError::Spoilt`] where only `undo` is left.
    fn keep(&mut self) -> Answer<'_, Option<Box<[u8]>>>;

    /// What was written since `save` is undone; the rest stays.
    fn undo(&mut self) -> Answer<'_, ()>;

    /// Writes the unit and commits. Claims of keys that are not among its entries are given back. A
    /// commit whose outcome is unknown is found out about before this answers.
    fn commit<'a>(&'a mut self, unit: &'a CommitUnit) -> Answer<'a, ()>;

    /// Gives up the one under way.
    fn roll_back(&mut self) -> Answer<'_, ()>;
}
