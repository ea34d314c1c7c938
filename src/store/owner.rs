//! Whom a store belongs to.

use super::StoreError;

/// Whom a store belongs to. Written at its first use, compared ever after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The consumer group.
    pub group: String,
    /// The [name](crate::key::Recipe::name) of the key recipe.
    pub recipe: String,
    /// The [scope](crate::key::Scope) of a key: `topic` or `partition`.
    pub scope: String,
}

/// Whether a stamp's owner is the one that asks.
pub(super) fn owner_matches(place: &str, theirs: &Owner, ours: &Owner) -> Result<(), StoreError> {
    same(place, "group", &theirs.group, &ours.group)?;
    same(place, "key recipe", &theirs.recipe, &ours.recipe)?;
    same(place, "scope", &theirs.scope, &ours.scope)
}

pub(super) fn same(
    place: &str,
    what: &'static str,
    theirs: &str,
    ours: &str,
) -> Result<(), StoreError> {
    if theirs == ours {
        return Ok(());
    }
    Err(StoreError::Foreign {
        place: place.to_owned(),
        what,
        theirs: theirs.to_owned(),
        ours: ours.to_owned(),
    })
}
