#[cfg(feature = "redb")]
use crate::store::redb::raw as other;
use crate::store::sled::raw::{DURABILITIES, Kept, Raw, copy_from, header, open, pages};

#[path = "suite/mod.rs"]
#[allow(clippy::duplicate_mod, reason = "that is what it is for")]
mod suite;
