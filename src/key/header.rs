//! Identity from a header.

use super::NoIdentity;
use crate::record::Record;

/// The one value of the headers called `name`; null values count as absent.
pub(super) fn find<'a>(record: &Record<'a>, name: &[u8]) -> Result<Option<&'a [u8]>, NoIdentity> {
    let mut found = None;
    for (header, value) in record.headers.iter() {
        let (true, Some(value)) = (header == name, value) else {
            continue;
        };
        if found.is_some_and(|first| first != value) {
            return Err(NoIdentity::AmbiguousHeader(
                String::from_utf8_lossy(name).into_owned(),
            ));
        }
        found = Some(value);
    }
    Ok(found)
}
