//! Which records are the same: key recipes.
//!
//! A recipe says where a record carries its identity. It is always chosen, never a default: a
//! wrong guess either lets copies through or drops another's record. Identity is exact bytes;
//! an empty key is a key, an absent one is [missing](MissingKey).

mod cloud_events;
mod fingerprint;
mod header;
mod json;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub(crate) use fingerprint::Fingerprinter;
pub use fingerprint::{Fingerprint, HashKey};

use crate::error::BoxError;
use crate::record::Record;

/// The identity found in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    /// One run of bytes, of the record itself or made by the recipe.
    Bytes(Cow<'a, [u8]>),
    /// Two parts, kept apart when hashed: `("a", "bc")` is not `("ab", "c")`.
    Parts([Cow<'a, [u8]>; 2]),
    /// The record's place: partition and offset.
    Place(i32, i64),
}

type ExtractFn = dyn Fn(&Record<'_>) -> Result<Option<Vec<u8>>, BoxError> + Send + Sync;

#[derive(Clone)]
enum Kind {
    RecordKey,
    Value,
    Header(Arc<str>),
    JsonPointer(json::Pointer),
    CloudEvents,
    Coordinates,
    Closure(Arc<str>, Arc<ExtractFn>),
}

/// Where a record carries its identity.
///
/// The recipe's [name](Recipe::name) goes into the store's stamp: a store that was filled under
/// one recipe is refused under another, since the old keys would recognise nothing.
#[derive(Clone)]
pub struct Recipe(Kind);

/// The record key. A null key is missing.
#[must_use]
pub fn record_key() -> Recipe {
    Recipe(Kind::RecordKey)
}

/// The whole record value. A null value (a tombstone) is missing.
///
/// Two different events with equal values become one: right for lines of a file, rarely for
/// events.
#[must_use]
pub fn value() -> Recipe {
    Recipe(Kind::Value)
}

/// The value of the header `name`, compared as bytes.
///
/// Absent or null is missing. Several headers of that name are one identity only if their values
/// are equal; otherwise the record's identity is ambiguous, which is treated as missing.
#[must_use]
pub fn header(name: impl Into<Arc<str>>) -> Recipe {
    Recipe(Kind::Header(name.into()))
}

/// The part of a JSON value at an RFC 6901 pointer, such as `/order/id`.
///
/// Strings count by their content, numbers and booleans by their text as written: `1`, `1.0` and
/// `"1"` are three identities, and an integer of any length keeps all its digits. A path that
/// leads nowhere or to `null` is missing; so is a value that is no JSON, an object or array at the
/// end of the path, and a name on the path that occurs again with another value, each with its own
/// reason.
///
/// # Errors
/// A pointer that is neither empty nor starts with `/`, or with a `~` not followed by 0 or 1.
pub fn json_pointer(pointer: &str) -> Result<Recipe, InvalidPointer> {
    Ok(Recipe(Kind::JsonPointer(json::Pointer::parse(pointer)?)))
}

/// The pair of `source` and `id` of a CloudEvents 1.0 event, as its specification demands.
///
/// Read from the headers `ce_source` and `ce_id` (binary mode), or where there are none from the
/// JSON value's `source` and `id` (structured mode). Neither may be empty: where one is, the
/// identity is missing.
#[must_use]
pub fn cloud_events() -> Recipe {
    Recipe(Kind::CloudEvents)
}

/// Partition and offset: recognises redelivery alone, not a record that was sent again.
///
/// A re-created topic uses its offsets again for other records; prefer a business key.
#[must_use]
pub fn coordinates() -> Recipe {
    Recipe(Kind::Coordinates)
}

/// A function of the record. `name` stands for it in the store's stamp: change the name whenever
/// the function's answers change.
///
/// `Ok(None)` is a missing key, an error likewise with its reason.
pub fn with<F>(name: impl Into<Arc<str>>, extract: F) -> Recipe
where
    F: Fn(&Record<'_>) -> Result<Option<Vec<u8>>, BoxError> + Send + Sync + 'static,
{
    Recipe(Kind::Closure(name.into(), Arc::new(extract)))
}

impl Recipe {
    /// The recipe in words, as it stands in a store's stamp: `header:payment-id`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.0 {
            Kind::RecordKey => "record-key".to_owned(),
            Kind::Value => "value".to_owned(),
            Kind::Header(name) => format!("header:{name}"),
            Kind::JsonPointer(pointer) => format!("json-pointer:{pointer}"),
            Kind::CloudEvents => "cloud-events".to_owned(),
            Kind::Coordinates => "coordinates".to_owned(),
            Kind::Closure(name, _) => format!("closure:{name}"),
        }
    }

    /// The identity in a value that no record is around, for tools that compare what lies in
    /// files: one byte for its kind and the identity's own bytes. For [`json_pointer`] the byte is
    /// `s` before a string's content and `v` before any other text as written.
    ///
    /// `None` where there is none; also for a recipe that looks elsewhere than into the value.
    ///
    /// # Errors
    /// The reason that a record with this value would be refused for as one without a key.
    pub fn identity_in_value(&self, value: &[u8]) -> Result<Option<Vec<u8>>, NoIdentity> {
        match &self.0 {
            Kind::JsonPointer(pointer) => pointer.find(value),
            Kind::Value => Ok(Some([b"b", value].concat())),
            _ => Ok(None),
        }
    }

    /// Finds the record's identity. `Ok(None)` where it has none.
    pub(crate) fn identify<'a>(
        &self,
        record: &Record<'a>,
    ) -> Result<Option<Identity<'a>>, NoIdentity> {
        let borrowed = |bytes| Identity::Bytes(Cow::Borrowed(bytes));
        let owned = |bytes| Identity::Bytes(Cow::Owned(bytes));
        Ok(match &self.0 {
            Kind::RecordKey => record.key.map(borrowed),
            Kind::Value => record.value.map(borrowed),
            Kind::Header(name) => header::find(record, name.as_bytes())?.map(borrowed),
            Kind::JsonPointer(pointer) => match record.value {
                Some(value) => pointer.find(value)?.map(owned),
                None => None,
            },
            Kind::CloudEvents => cloud_events::find(record)?,
            Kind::Coordinates => Some(Identity::Place(record.partition, record.offset)),
            Kind::Closure(_, extract) => extract(record).map_err(NoIdentity::Closure)?.map(owned),
        })
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recipe").field(&self.name()).finish()
    }
}

/// What to do with a record that carries no identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// Write it to the [dead letters](crate::DeadLetter); where there are none, stop with an error
    /// that names the record, and its offset does not move. The default: a record that cannot be
    /// protected is not handled unprotected in silence.
    #[default]
    Reject,
    /// Hand it to the handler, counted as [`MissingKey`](crate::Decision::MissingKey). A copy of
    /// it is handled again.
    PassThrough,
}

/// How far a key reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The consumer group and the topic: a copy is recognised in whichever partition it lands.
    /// The default.
    #[default]
    Topic,
    /// The consumer group, the topic and the partition: a copy in another partition is new. For
    /// fleets without a shared store, where no instance sees all partitions.
    Partition,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Partition => "partition",
        }
    }
}

/// Why a record has no usable identity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoIdentity {
    /// The recipe's place in the record is empty.
    #[error("it carries none")]
    Missing,
    /// The header occurs more than once, with different values.
    #[error("header {0:?} occurs more than once with different values")]
    AmbiguousHeader(String),
    /// The value is not JSON as far as the pointer had to read it.
    #[error("its value is no JSON: {0}")]
    NotJson(String),
    /// The value is JSON but no event, or names an attribute twice.
    #[error("its value is no CloudEvent: {0}")]
    NotAnEvent(String),
    /// A name on the pointer's path occurs more than once, with different values.
    #[error("the JSON pointer {0:?} leads to more than one value")]
    AmbiguousJson(String),
    /// The pointer leads to an object or an array.
    #[error("the JSON pointer {0:?} leads to an object or an array")]
    NotScalar(String),
    /// The user's function failed.
    #[error("the key function failed: {0}")]
    Closure(#[source] BoxError),
}

/// A JSON pointer that RFC 6901 does not allow.
#[derive(Debug, thiserror::Error)]
#[error("{pointer:?} is no JSON pointer: {reason}")]
pub struct InvalidPointer {
    pub(crate) pointer: String,
    pub(crate) reason: &'static str,
}

#[cfg(test)]
mod tests;
