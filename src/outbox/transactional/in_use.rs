//! Which transactional ids this process works with: two producers of one id shut each other out.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::outbox::OutboxError;

static IDS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn ids() -> MutexGuard<'static, BTreeSet<String>> {
    IDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An id that is in use, until dropped.
pub(super) struct InUse(String);

impl InUse {
    pub(super) fn new(transactional_id: &str) -> Result<Self, OutboxError> {
        if ids().insert(transactional_id.to_owned()) {
            return Ok(Self(transactional_id.to_owned()));
        }
        Err(OutboxError::InUse {
            transactional_id: transactional_id.to_owned(),
        })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        ids().remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_producers_of_the_process_until_its_end() {
        let first = InUse::new("shop-in-use").unwrap();
        let second = InUse::new("shop-in-use");
        assert!(matches!(second, Err(OutboxError::InUse { .. })));
        let other = InUse::new("shop-of-its-own").unwrap();
        drop(first);
        InUse::new("shop-in-use").unwrap();
        drop(other);
    }
}
