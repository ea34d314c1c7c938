//! What a store gives its handlers.

use std::sync::Arc;

use crate::handler::Effects;
use crate::outbox::{Outbox, Outlet, Transactional};
use crate::pipeline::Collect;
#[cfg(feature = "postgres")]
use crate::store::transaction::Transactions;
use crate::store::{MemoryStore, Store};

/// A store, with what its handlers get as `effects`: so that no handler can claim an atomicity that
/// its store does not give.
///
/// | store | `effects` |
/// | --- | --- |
/// | in memory, sled, redb | [`Effects`]: a result, written with the mark |
/// | PostgreSQL | [`SqlEffects`](crate::store::SqlEffects): the open SQL transaction, with the mark in it |
/// | [`Transactional`](crate::Transactional) around one of these | [`Outbox`]: records, sent in a Kafka transaction with the offset |
///
/// A store of your own that keeps results writes `type Effects = Effects` and gives
/// [`Access::recorded`].
pub trait EffectStore: Store + Sized {
    /// What a handler gets beside its record.
    type Effects: 'static;

    /// How a consumer comes by it.
    fn access(self: Arc<Self>) -> Access<Self::Effects>;
}

/// How a consumer comes by the effects of one record, and what becomes of them.
pub struct Access<E> {
    pub(crate) effects: Effecting<E>,
    pub(crate) outlet: Option<Arc<dyn Outlet>>,
}

/// What a handler writes with.
pub(crate) enum Effecting<E> {
    /// Something that collects what is committed afterwards.
    Collected(Collect<E>),
    /// The store's open transaction.
    #[cfg(feature = "postgres")]
    Transactions(Arc<dyn Transactions<E>>),
}

impl<E> Access<E> {
    pub(super) fn transacts(&self) -> bool {
        !matches!(self.effects, Effecting::Collected(_))
    }

    /// What handlers write is committed with their marks.
    #[cfg(feature = "postgres")]
    pub(crate) fn transactions(store: Arc<dyn Transactions<E>>) -> Self {
        Self {
            effects: Effecting::Transactions(store),
            outlet: None,
        }
    }
}

impl Access<Effects> {
    /// Results are kept by the store, as [`Entry::result`](crate::store::Entry::result).
    #[must_use]
    pub fn recorded() -> Self {
        Self {
            effects: Effecting::Collected(Collect::recorded()),
            outlet: None,
        }
    }
}

impl Access<Outbox> {
    /// What is sent goes to the store as [`CommitUnit::outbox`](crate::store::CommitUnit::outbox).
    pub(crate) fn sent(outlet: Arc<dyn Outlet>) -> Self {
        Self {
            effects: Effecting::Collected(Collect::sent()),
            outlet: Some(outlet),
        }
    }
}

impl EffectStore for MemoryStore {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}

#[cfg(feature = "sled")]
impl EffectStore for crate::store::SledStore {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}

#[cfg(feature = "redb")]
impl EffectStore for crate::store::RedbStore {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}

#[cfg(feature = "postgres")]
impl EffectStore for crate::store::PostgresStore {
    type Effects = crate::store::SqlEffects;

    fn access(self: Arc<Self>) -> Access<Self::Effects> {
        Access::transactions(self)
    }
}

impl<S: EffectStore<Effects = Effects>> EffectStore for Transactional<S> {
    type Effects = Outbox;

    fn access(self: Arc<Self>) -> Access<Outbox> {
        Access::sent(self)
    }
}

impl<S: EffectStore> EffectStore for Arc<S> {
    type Effects = S::Effects;

    fn access(self: Arc<Self>) -> Access<S::Effects> {
        Arc::clone(&*self).access()
    }
}

#[cfg(feature = "testkit")]
impl<S: EffectStore> EffectStore for crate::testkit::FaultStore<S> {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}
