use crate::store::redb::raw::{
    DURABILITIES, Kept, Raw, copy_from, header, open, open_small, pages,
};
#[cfg(feature = "sled")]
use crate::store::sled::raw as other;

#[path = "suite/mod.rs"]
#[allow(clippy::duplicate_mod, reason = "that is what it is for")]
mod suite;
