//! The end of a lease.

use super::OpenUnit;
use crate::key::Fingerprint;

impl OpenUnit {
    /// Ends the lease and gives back the keys that will not be committed.
    pub(in crate::engine) fn close(&self) -> Vec<Fingerprint> {
        let mut inner = self.inner();
        inner.closed = true;
        // Nothing is due any more: a committer that waits for it would not wait at all.
        inner.effect_at = None;
        inner.moved_at = None;
        let settled = std::mem::take(&mut inner.entries);
        drop(inner);
        self.changed.notify_all();
        self.told.notify_one();
        settled.into_iter().map(|entry| entry.fingerprint).collect()
    }

    /// The keys of what is still held at the end. Not at a [close](OpenUnit::close), which may come
    /// from a newer lease while their handlers run.
    pub(in crate::engine) fn let_go(&self) -> Vec<(i64, Fingerprint)> {
        let held = std::mem::take(&mut self.inner().held).into_iter();
        held.filter_map(|(offset, held)| Some((offset, held.key?)))
            .collect()
    }
}
