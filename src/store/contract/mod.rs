//! What every store must do, run against every store that needs nothing but this machine. The
//! PostgreSQL store is among the tests that start a server: `tests/postgres/`.

mod cases;
pub(super) mod late;

use super::*;

use self::cases::contract;
pub(crate) use self::cases::unit;

#[test]
fn memory() {
    contract(MemoryStore::new);
}

#[cfg(any(feature = "sled", feature = "redb"))]
fn in_directories<S: Store>(open: impl Fn(&std::path::Path) -> Result<S, StoreError>) {
    let parent = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    contract(|| {
        count.set(count.get() + 1);
        open(&parent.path().join(count.get().to_string())).unwrap()
    });
}

#[cfg(feature = "sled")]
#[test]
fn sled() {
    for durability in [Durability::Power, Durability::Process, Durability::None] {
        in_directories(|path| SledStore::options().durability(durability).open(path));
    }
}

#[cfg(feature = "redb")]
#[test]
fn redb() {
    for durability in [Durability::Power, Durability::Process] {
        in_directories(|path| RedbStore::options().durability(durability).open(path));
    }
}
