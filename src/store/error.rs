//! What can go wrong with a store, and what to do then.

use std::io;
use std::path::PathBuf;

use crate::outbox::OutboxError;
use crate::record::{NextOffset, TopicPartition};

/// A store's refusal or failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory cannot be used at all.
    #[error(
        "cannot use {path} as a store: {source}. A store needs a directory of its own that this \
         process may write: an empty one, a new one, or one that it made"
    )]
    Unusable {
        /// The directory, or the file in it.
        path: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
    /// Another process, or another handle in this one, has the store open.
    #[error(
        "the store at {path} is in use{by}; one process may have it open: stop the other, or give \
         this one a directory of its own"
    )]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as far as is known: ` by process 4711`.
        by: String,
    },
    /// The store belongs to another group, recipe, scope or cluster.
    #[error(
        "{place} was filled for {what} {theirs:?}, and this is {ours:?}: what it knows would be \
         wrong here. Use a store of its own for each, or go back to {theirs:?}"
    )]
    Foreign {
        /// The store.
        place: String,
        /// `group`, `key recipe`, `scope` or `cluster`.
        what: &'static str,
        /// What the stamp says.
        theirs: String,
        /// What was asked for.
        ours: String,
    },
    /// The store's log is kept in another engine.
    #[error(
        "the store at {path} is one of {theirs}, and was to be opened as one of {ours}: open it as \
         what it is, or copy it into a new one: dedup store copy --from {theirs}:{path} --to \
         {ours}:PATH"
    )]
    OtherEngine {
        /// The directory.
        path: PathBuf,
        /// What the stamp says: `sled` or `redb`.
        theirs: String,
        /// What was asked for.
        ours: &'static str,
    },
    /// A copy is not what was copied.
    #[error(
        "the copy at {path} is not what was copied: {what}. It has no stamp, so that nobody opens \
         it: find out what is wrong with the disk, remove it, and copy again"
    )]
    CopyDiffers {
        /// The copy's directory.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The store was written in a format that this version does not know.
    #[error(
        "the store at {path} has format {found}, and this version reads formats up to {known}: open \
         it with the version that wrote it"
    )]
    UnknownFormat {
        /// The directory.
        path: PathBuf,
        /// The number in the stamp.
        found: u32,
        /// The number that this version writes, and the highest that it reads.
        known: u32,
    },
    /// What is kept beside the log, so that not all of it need be in memory, is damaged. The log is
    /// not, as far as is known.
    #[error(
        "the index at {path} is damaged: {what}. The store goes no further: close it and open it \
         again, which makes the index anew from the log"
    )]
    IndexDamaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The data is damaged, cut short, or not all there.
    #[error(
        "the store at {path} is damaged: {what}. It is not used. Put a copy of the directory back, \
         or move it away and start with a new one: then what the group has committed is \
         read again from the topic before anything is handled"
    )]
    Damaged {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// Reading or writing failed.
    #[error("{operation} failed in the store at {path}: {message}")]
    Io {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// The cause in words.
        message: String,
    },
    /// A database refused, failed, or could not be reached.
    #[error("{operation} failed in {place}: {message}")]
    Database {
        /// Server, database and schema; never a password.
        place: String,
        /// What was being done.
        operation: &'static str,
        /// The server's word with its SQLSTATE, or why it was not reached, and what to do.
        message: String,
    },
    /// An earlier write failed, so nothing is written any more.
    #[error(
        "an earlier write failed in {place} ({cause}), so that its state is unknown: nothing is \
         written or committed any more. Mend the cause, then start again"
    )]
    Poisoned {
        /// The store.
        place: String,
        /// The first failure.
        cause: String,
    },
    /// Somebody else has taken the partition since.
    #[error("{partition} was taken again under epoch {newest}; work under epoch {ours} is late")]
    Fenced {
        /// The partition.
        partition: TopicPartition,
        /// The epoch of the late work.
        ours: u32,
        /// The newest epoch.
        newest: u32,
    },
    /// Somebody else has taken the partition since, and what the late work was to send was sent
    /// before that was found.
    #[error(
        "{partition} was taken again under epoch {newest}; what was done under epoch {ours} was \
         sent and is not marked"
    )]
    FencedUnmarked {
        /// The partition.
        partition: TopicPartition,
        /// The epoch of the late work.
        ours: u32,
        /// The newest epoch.
        newest: u32,
    },
    /// A unit does not follow the head.
    #[error(
        "a commit for {partition} goes from {previous} to {next}, but the store stands at {head}"
    )]
    NotContiguous {
        /// The partition.
        partition: TopicPartition,
        /// Where the unit begins.
        previous: NextOffset,
        /// Where it ends.
        next: NextOffset,
        /// Where the store stands.
        head: NextOffset,
    },
    /// What is to be forgotten cannot be, or is not there. Nothing was changed.
    #[error("nothing was forgotten in {place}: {reason}")]
    NotForgotten {
        /// The store.
        place: String,
        /// Why, and what to do.
        reason: String,
    },
    /// What handlers sent could not be sent, and so nothing is marked.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A call came in an order that the contract forbids.
    #[error("{0}")]
    Misused(&'static str),
}
