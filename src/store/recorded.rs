//! Results, found by walking the log from their record's place.

use super::{Entry, Mark, Place, Store, StoreError};
use crate::key::Fingerprint;
use crate::record::NextOffset;

/// The result recorded with a mark, `None` where there is none.
pub(super) fn find<S: Store + ?Sized>(
    store: &S,
    key: &Fingerprint,
    mark: &Mark,
) -> Result<Option<Vec<u8>>, StoreError> {
    if !mark.has_result {
        return Ok(None);
    }
    // `None` would answer a copy as if its original had recorded nothing.
    let gone = StoreError::Misused("a mark whose result is in no record of this store");
    let Some(position) = NextOffset::new(mark.offset) else {
        return Err(gone);
    };
    let mut place = Place::from(position);
    // What was done late, in a gap, is in a later unit than its neighbours.
    while let Some((at, unit)) = store.unit_behind(mark.id, place)? {
        // What was forgotten at the same place has none any more.
        let of = |entry: &Entry| {
            entry.fingerprint == *key && entry.offset == mark.offset && !entry.forgotten
        };
        if let Some(entry) = unit.entries.into_iter().find(of) {
            return entry.result.map(|result| Some(result.into())).ok_or(gone);
        }
        place = at;
    }
    // It has expired since it was found: there is nothing to answer with any more.
    if mark.offset < store.retained_from(mark.id).get() {
        return Ok(None);
    }
    Err(gone)
}
