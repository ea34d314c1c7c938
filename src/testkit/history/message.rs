//! What a member and a collector say to each other: a line of JSON, then a line in answer.

use serde::{Deserialize, Serialize};

/// The longest line; a key of a megabyte is no test's.
pub(super) const LINE_BYTES_MAX: u64 = 64 << 10;
/// The answer when a line is in the history. Any other is the reason why it is not.
pub(super) const NOTED: &str = "noted";

/// One record in the hands of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What the record is known by.
    pub key: String,
    /// Its partition. A history is of one topic.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// The idempotency token that the handler got with it.
    pub token: String,
    /// Whether the handler was told that the effect may have happened already.
    pub in_doubt: bool,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// A line from a member. Numbers are the member's own, one for each beginning.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// The first line of a connection.
    Started {
        member: String,
        process: u32,
    },
    Began {
        number: u64,
        effect: Effect,
    },
    Applied {
        number: u64,
    },
    Failed {
        number: u64,
    },
}
