#[cfg(feature = "redb")]
use crate::store::redb::raw as other;
#[cfg(feature = "redb")]
use crate::store::sled::raw::copy_from;
use crate::store::sled::raw::{DURABILITIES, Kept, Raw, header, open, open_small, pages};

#[path = "suite/mod.rs"]
#[allow(clippy::duplicate_mod, reason = "that is what it is for")]
mod suite;
