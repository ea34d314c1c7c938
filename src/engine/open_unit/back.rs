//! Going back to a unit as it was, where the store did not take it.

use super::{Inner, OpenUnit};

/// A unit under way as it was at some time.
pub(in crate::engine) struct Before(Inner);

impl OpenUnit {
    /// As it is now, to be [put back](OpenUnit::put_back).
    pub(in crate::engine) fn before(&self) -> Before {
        Before(self.inner().clone())
    }

    /// Nothing has been settled or taken since.
    pub(in crate::engine) fn put_back(&self, before: Before) {
        let mut inner = self.inner();
        // A newer lease may have ended this one meanwhile.
        let closed = inner.closed;
        *inner = before.0;
        inner.closed |= closed;
    }
}
