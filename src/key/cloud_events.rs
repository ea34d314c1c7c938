//! Identity of a CloudEvents 1.0 event: `source` and `id` together, neither alone.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Identity, NoIdentity, header, json};
use crate::record::Record;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Structured {
    source: Option<String>,
    id: Option<String>,
}

pub(super) fn find<'a>(record: &Record<'a>) -> Result<Option<Identity<'a>>, NoIdentity> {
    match (
        header::find(record, b"ce_source")?,
        header::find(record, b"ce_id")?,
    ) {
        (Some(source), Some(id)) => Ok(identity([Cow::Borrowed(source), Cow::Borrowed(id)])),
        (None, None) => structured(record),
        _ => Ok(None),
    }
}

fn structured<'a>(record: &Record<'a>) -> Result<Option<Identity<'a>>, NoIdentity> {
    let Some(value) = record.value else {
        return Ok(None);
    };
    let event: Structured = serde_json::from_slice(value).map_err(|error| {
        if error.is_data() {
            NoIdentity::NotAnEvent(json::said(&error))
        } else {
            NoIdentity::NotJson(json::said(&error))
        }
    })?;
    let (Some(source), Some(id)) = (event.source, event.id) else {
        return Ok(None);
    };
    // The same two parts as in binary mode: an event is one in whichever mode it travels.
    Ok(identity(
        [source, id].map(|part| Cow::Owned(part.into_bytes())),
    ))
}

/// The specification allows no empty attribute; what fills one in anyway would make one event of
/// all that it sends.
fn identity(parts: [Cow<'_, [u8]>; 2]) -> Option<Identity<'_>> {
    let whole = parts.iter().all(|part| !part.is_empty());
    whole.then_some(Identity::Parts(parts))
}
