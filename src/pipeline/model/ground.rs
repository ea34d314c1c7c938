//! The store underneath: what outlives a process.

use std::sync::Arc;

use super::history::Marks;
use crate::key::header;
use crate::store::{MemoryStore, Owner, Store};

/// Which store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    #[cfg(feature = "sled")]
    Sled,
}

/// Owns what is on the disk, and opens it.
pub(super) struct Ground {
    kind: Kind,
    #[cfg(feature = "sled")]
    directory: tempfile::TempDir,
    store: Option<Arc<dyn Store>>,
}

pub(super) fn owner() -> Owner {
    Owner {
        group: super::history::GROUP.to_owned(),
        recipe: header(super::cluster::HEADER).name(),
        scope: "topic".to_owned(),
    }
}

/// What a store that is bound knows.
pub(super) fn marks(store: Arc<dyn Store>) -> Marks {
    let hash_key = store.bind(&owner()).unwrap();
    Marks::new(store, &hash_key)
}

/// In memory where there is such a place: thousands of leases and releases are synced here, and
/// what a power cut leaves is tested elsewhere.
#[cfg(feature = "sled")]
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

impl Ground {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            #[cfg(feature = "sled")]
            directory: directory(),
            store: None,
        }
    }

    /// The store as a new process finds it. Nobody may have the one before any more.
    pub(super) fn open(&mut self) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = match (self.kind, self.store.take()) {
            (Kind::Memory, Some(store)) => store,
            (Kind::Memory, None) => Arc::new(MemoryStore::new()),
            #[cfg(feature = "sled")]
            (Kind::Sled, before) => {
                drop(before);
                // A process that dies is played here: what was acknowledged is in the file.
                let options = crate::store::SledOptions::default()
                    .durability(crate::store::Durability::None)
                    .cache_bytes(1 << 20);
                Arc::new(options.open(self.directory.path().join("store")).unwrap())
            }
        };
        self.store = Some(Arc::clone(&store));
        store
    }

    /// What the store knows that was opened last.
    pub(super) fn marks(&mut self) -> Marks {
        let store = self.store.clone();
        marks(store.unwrap_or_else(|| self.open()))
    }

    /// Starts over with a new store.
    pub(super) fn renew(&mut self) {
        *self = Self::new(self.kind);
    }
}
