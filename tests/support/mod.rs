//! What several test binaries share.

pub(crate) mod kafka;
pub(crate) mod skip;
