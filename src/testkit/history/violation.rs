//! What a check finds.

use std::fmt;

use super::message::Effect;

/// How many violations an error's text lists.
const LISTED_MAX: usize = 20;

/// One breach of the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A key that was sent never took effect.
    Lost {
        /// The key.
        key: String,
    },
    /// A key took effect that nobody sent.
    NeverSent {
        /// The key.
        key: String,
    },
    /// A key took effect again, and the time before was not in flight at a crash.
    Repeated {
        /// The member that was first.
        first: String,
        /// What it did.
        before: Effect,
        /// The member that did it again.
        second: String,
        /// What that did.
        again: Effect,
    },
    /// A key that was begun when its member crashed came to a handler of the same store again, and
    /// the handler was not told that it is in doubt.
    Unannounced {
        /// The member.
        member: String,
        /// What its handler was given.
        effect: Effect,
    },
    /// One key came with two tokens.
    TokenChanged {
        /// The key.
        key: String,
        /// The tokens.
        tokens: [String; 2],
    },
    /// Two keys came with one token.
    TokenShared {
        /// The keys.
        keys: [String; 2],
        /// Their token.
        token: String,
    },
    /// One run handled a key twice at the same time.
    Overlapping {
        /// The member.
        member: String,
        /// What began while the same key was still being handled.
        effect: Effect,
    },
    /// One run went back within a partition.
    OutOfOrder {
        /// The member.
        member: String,
        /// What took effect after something behind it had.
        effect: Effect,
        /// The offset of that.
        after: i64,
    },
    /// Something ended that had not begun: the reports themselves are at fault.
    Unknown {
        /// The member.
        member: String,
        /// The number that it gave.
        number: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { key } => write!(f, "{key}: sent, and never took effect"),
            Self::NeverSent { key } => write!(f, "{key}: took effect, and was never sent"),
            Self::Repeated {
                first,
                before,
                second,
                again,
            } => write!(
                f,
                "{}: took effect at {first} ({}) and again at {second} ({}), and was not in flight at a crash",
                before.key,
                Place(before),
                Place(again)
            ),
            Self::Unannounced { member, effect } => write!(
                f,
                "{}: in flight when {member} crashed, and not in doubt when it came again ({})",
                effect.key,
                Place(effect)
            ),
            Self::TokenChanged { key, tokens } => {
                write!(f, "{key}: has the tokens {} and {}", tokens[0], tokens[1])
            }
            Self::TokenShared { keys, token } => {
                write!(
                    f,
                    "{} and {}: have the same token {token}",
                    keys[0], keys[1]
                )
            }
            Self::Overlapping { member, effect } => write!(
                f,
                "{}: begun at {member} ({}) while it was still being handled there",
                effect.key,
                Place(effect)
            ),
            Self::OutOfOrder {
                member,
                effect,
                after,
            } => write!(
                f,
                "{}: took effect at {member} ({}) after offset {after}",
                effect.key,
                Place(effect)
            ),
            Self::Unknown { member, number } => {
                write!(f, "{member}: number {number} ended and had not begun")
            }
        }
    }
}

/// Where a record lies, and what its handler was told.
struct Place<'a>(&'a Effect);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effect {
            partition,
            offset,
            in_doubt,
            attempt,
            ..
        } = self.0;
        write!(
            f,
            "partition {partition}, offset {offset}, attempt {attempt}"
        )?;
        f.write_str(if *in_doubt { ", in doubt" } else { "" })
    }
}

/// All breaches of a history, as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} violations", self.0.len())?;
        for violation in self.0.iter().take(LISTED_MAX) {
            write!(f, "\n  {violation}")?;
        }
        match self.0.len().saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for Violations {}

/// The numbers of a history without a breach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Keys that were sent.
    pub keys: usize,
    /// Effects that happened, repeats included.
    pub applied: usize,
    /// Handlers that gave up, by themselves.
    pub failed: usize,
    /// Handlers that a crash ended before they had reported an end.
    pub cut_off: usize,
    /// Repeats by the store that had the effect before: in flight at a crash.
    pub repeats_own: usize,
    /// Repeats by another store: above what the group had committed at an interruption.
    pub repeats_elsewhere: usize,
    /// Lives of members.
    pub runs: usize,
    /// Lives that ended without order.
    pub crashes: usize,
}

impl Summary {
    /// Repeats of both kinds.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.repeats_own + self.repeats_elsewhere
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} keys, {} effects, {} repeated by their own store and {} elsewhere, {} handlers failed \
             and {} were cut off, {} lives, {} crashes",
            self.keys,
            self.applied,
            self.repeats_own,
            self.repeats_elsewhere,
            self.failed,
            self.cut_off,
            self.runs,
            self.crashes
        )
    }
}
