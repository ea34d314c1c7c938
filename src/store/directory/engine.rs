//! What a log is kept in, as little of it as a store needs.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::store::StoreError;

/// What keeps the log of a [`DirectoryStore`](super::DirectoryStore): sled or redb. It is for this
/// crate to implement, and has nothing to call.
pub trait Engine: Log {}

/// A key and its value.
pub(crate) type Record<B> = (B, B);

/// Records in the order of their keys. Errors name the path; a panic of the engine is one of them.
pub trait Log: Sized + Send + Sync + 'static {
    /// In stamps and messages.
    const NAME: &'static str;
    /// Where it lies in the store's directory.
    const PLACE: &'static str;
    /// The file in it without which there is no log: empty where the place is one.
    const DATA: &'static str;

    /// Keys and values as the engine hands them out.
    type Bytes: AsRef<[u8]>;

    /// Calls `each` with every record at or behind `from`, in the order of their keys, until it
    /// breaks off. What `each` inserts need not be seen.
    fn scan_from(
        &self,
        from: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError>;

    /// Calls `each` with every record.
    fn scan(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.scan_from(&[], |key, value| {
            each(key, value).map(ControlFlow::Continue)
        })
    }

    /// The first record at or behind `from`, of those that were hardened.
    fn first_from(&self, from: &[u8]) -> Result<Option<Record<Self::Bytes>>, StoreError>;

    /// Adds a record or replaces it, each as a whole.
    fn insert(&self, key: &[u8], value: Vec<u8>) -> Result<(), StoreError>;

    /// Takes a record out, if it is there. As durable as an insertion, and no earlier.
    fn remove(&self, key: &[u8]) -> Result<(), StoreError>;

    /// Makes everything inserted so far as durable as this log promises.
    fn harden(&self) -> Result<(), StoreError>;

    /// Hardens as under `Power`, whatever the durability.
    fn sync(&self) -> Result<(), StoreError>;
}

/// An engine's refusal.
#[derive(Debug)]
pub(in crate::store) enum Failure<E> {
    Engine(&'static str, E),
    Panic {
        engine: &'static str,
        operation: &'static str,
        message: String,
    },
}

impl<E: std::fmt::Display> std::fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(engine, error) => write!(f, "{engine} says: {error}"),
            Self::Panic {
                engine,
                operation,
                message,
            } => write!(f, "{engine} panicked while {operation}: {message}"),
        }
    }
}

/// Runs a call into an engine and turns a panic into an answer: one in a consumer's thread would
/// end it without a word. After one the handle is not used again: the store is poisoned or was
/// never handed out.
pub(in crate::store) fn guarded<T, E>(
    engine: &'static str,
    operation: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, Failure<E>> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| Failure::Engine(engine, error)),
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            Err(Failure::Panic {
                engine,
                operation,
                message,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_engine_is_an_answer() {
        let call = || -> Result<(), String> { panic!("page {} is gone", 7) };
        let Err(failure) = guarded("sled", "opening the log", call) else {
            panic!("no failure");
        };
        let text = failure.to_string();
        assert_eq!(text, "sled panicked while opening the log: page 7 is gone");
    }
}
