//! How long a unit may grow.

/// A unit that has grown to this many bytes is committed at once. With the largest result and two
/// thousand gaps on top it stays below the store's bound (see `store::sled::log`).
const UNIT_BYTES_MAX: usize = 40 << 10;
/// The same for what it sends.
const OUTBOX_BYTES_MAX: usize = 1 << 20;
/// Where nobody but the caller commits, a unit is committed before it grows beyond this: below the
/// store's bound, and above the 108 KiB of a caller that counts by itself.
pub(super) const OWN_UNIT_BYTES_MAX: usize = 112 << 10;
/// What one gap may cost in it.
pub(super) const GAP_BYTES: usize = 12;
/// What one key costs in a unit, without its result.
const ENTRY_BYTES: usize = 26;

/// What the unit holds after a record was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) uncommitted: usize,
    /// Effects in the open unit, of those.
    pub(crate) open: usize,
    pub(crate) bytes: usize,
    /// Of what it sends.
    pub(crate) outbox_bytes: usize,
    /// The first of its kind in the unit: its deadline begins now.
    pub(crate) first: bool,
}

impl Fill {
    /// Whether the unit is to be committed at once.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= UNIT_BYTES_MAX || self.outbox_bytes >= OUTBOX_BYTES_MAX
    }
}

/// What an entry with such a result takes.
pub(in crate::engine) fn entry_bytes(result: Option<&[u8]>) -> usize {
    ENTRY_BYTES + result.map_or(0, |result| result.len() + 8)
}
