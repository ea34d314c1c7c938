use crate::store::sled::raw::{DURABILITIES, HEADER, Kept, Raw, open};

#[path = "suite/mod.rs"]
#[allow(clippy::duplicate_mod, reason = "that is what it is for")]
mod suite;
