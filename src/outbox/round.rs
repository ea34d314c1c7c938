//! One transaction, and what becomes of it when a step fails. Knows no client: the steps are a
//! [`Wire`]'s.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::patience::Patience;
use super::{OutboxError, Outgoing};
use crate::record::{NextOffset, TopicPartition};
use crate::source::kafka::Standing;

const UNCLEAR_PAUSE: Duration = Duration::from_millis(10);
/// How long the group may leave it open what it has taken away: as long as the polling thread may
/// need to be told.
pub(super) const UNCLEAR_MAX: Duration = Duration::from_secs(5);

/// Why a step failed, by what is to be done about it.
#[derive(Debug)]
pub(super) enum Fault {
    /// It goes on by itself: the same step again.
    Again(String),
    /// The transaction is void, and may be tried anew.
    Abort(String),
    /// The group is in another generation, which this member is told of soon.
    Stale(String),
    /// The group does not know this member any more: whatever it held may be others'.
    Expelled(String),
    /// It would fail the same way for ever.
    Never(OutboxError),
    /// Another producer has taken the transactional id, or the coordinator has ended the transaction
    /// because it took too long.
    Fenced(String),
    /// The client is of no use any more.
    Fatal(String),
}

/// The steps of a transaction, and who takes them.
pub(super) trait Wire {
    /// The membership, as of one moment.
    type Member;

    /// `None` where there is none any more.
    fn member(&self) -> Option<Self::Member>;
    fn standing(&self, partition: &TopicPartition) -> Standing;

    fn begin(&self) -> Result<(), Fault>;
    /// Hands a record over; its confirmation comes later.
    fn send(&self, record: &Outgoing, patience: &Patience<'_>) -> Result<(), Fault>;
    fn send_offsets(
        &self,
        positions: &[(TopicPartition, NextOffset)],
        member: &Self::Member,
    ) -> Result<(), Fault>;
    /// Waits until every record was confirmed.
    fn confirmed(&self, patience: &Patience<'_>) -> Result<(), Fault>;
    /// Waits a while; [`Fault::Again`] where the outcome is still open.
    fn commit(&self) -> Result<(), Fault>;
    fn abort(&self) -> Result<(), Fault>;
}

/// What one transaction carries.
pub(super) struct Load<'a> {
    pub(super) records: Vec<&'a Outgoing>,
    /// One for each partition that something of it was done in.
    pub(super) positions: Vec<(TopicPartition, NextOffset)>,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Ended {
    Committed,
    /// Nothing was sent: the partition at this place is not this member's any more.
    NotOurs(usize),
}

/// Why it could not be committed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Time is up, or the end is near; nothing of it was committed.
    Patience(String),
    /// Nobody has said whether it was committed.
    Unknown(String),
    Never(OutboxError),
    Fenced {
        message: String,
        /// How long the transaction was open: the brokers fence whoever takes too long.
        after: Duration,
        /// A commit was asked for, and may have been carried out.
        asked: bool,
    },
    Fatal(String),
    /// The consumer is gone.
    Gone,
}

/// How far a transaction has come.
struct Progress {
    begun: Instant,
    /// A commit was asked for. It may have been carried out, whatever was answered, unless an abort
    /// succeeds.
    asked: bool,
}

impl Progress {
    fn fenced(&self, message: String) -> Failure {
        Failure::Fenced {
            message,
            after: self.begun.elapsed(),
            asked: self.asked,
        }
    }

    fn fatal(&self, message: String) -> Failure {
        if self.asked {
            Failure::Unknown(message)
        } else {
            Failure::Fatal(message)
        }
    }

    fn impatient(&self, message: String) -> Failure {
        if self.asked {
            Failure::Unknown(message)
        } else {
            Failure::Patience(message)
        }
    }
}

/// Sends and commits, again where that may help, until it is committed or must not be.
pub(super) fn commit<W: Wire>(
    wire: &W,
    load: &Load<'_>,
    patience: &mut Patience<'_>,
) -> Result<Ended, Failure> {
    let mut unclear = Duration::ZERO;
    loop {
        // The member first: see `Group::metadata`.
        let member = wire.member().ok_or(Failure::Gone)?;
        let standings = load.positions.iter().map(|(name, _)| wire.standing(name));
        let standings: Vec<_> = standings.collect();
        let worst = |wanted| standings.iter().position(|standing| *standing == wanted);
        if let Some(gone) = worst(Standing::Gone) {
            return Ok(Ended::NotOurs(gone));
        }
        if let Some(lost) = worst(Standing::Unclear) {
            if unclear >= UNCLEAR_MAX {
                return Ok(Ended::NotOurs(lost));
            }
            unclear += UNCLEAR_PAUSE;
            if !patience.wait(UNCLEAR_PAUSE) {
                return Err(Failure::Patience("the group's word is waited for".into()));
            }
            continue;
        }
        let mut progress = Progress {
            begun: Instant::now(),
            asked: false,
        };
        let fault = match attempt(wire, load, &member, patience) {
            Ok(()) => {
                progress.asked = true;
                match finish(wire, patience, &progress)? {
                    None => return Ok(Ended::Committed),
                    Some(fault) => fault,
                }
            }
            Err(fault) => fault,
        };
        let expelled = matches!(fault, Fault::Expelled(_));
        let (message, never) = match fault {
            Fault::Fenced(message) => return Err(progress.fenced(message)),
            Fault::Fatal(message) => return Err(progress.fatal(message)),
            Fault::Never(error) => (error.to_string(), Some(error)),
            Fault::Again(message)
            | Fault::Abort(message)
            | Fault::Stale(message)
            | Fault::Expelled(message) => (message, None),
        };
        tracing::warn!("a transaction is aborted: {message}");
        abort(wire, patience, &progress)?;
        if let Some(error) = never {
            return Err(Failure::Never(error));
        }
        if expelled && !load.positions.is_empty() {
            // The client need not know it yet, and in a rebalance it is not told before its end.
            return Ok(Ended::NotOurs(0));
        }
        if !patience.pause() {
            return Err(Failure::Patience(message));
        }
    }
}

/// Everything before the commit: until then nothing is decided.
fn attempt<W: Wire>(
    wire: &W,
    load: &Load<'_>,
    member: &W::Member,
    patience: &Patience<'_>,
) -> Result<(), Fault> {
    wire.begin()?;
    for record in &load.records {
        wire.send(record, patience)?;
    }
    wire.send_offsets(&load.positions, member)?;
    wire.confirmed(patience)
}

/// Commits. `Some` where the transaction is void instead.
fn finish<W: Wire>(
    wire: &W,
    patience: &Patience<'_>,
    progress: &Progress,
) -> Result<Option<Fault>, Failure> {
    loop {
        match wire.commit() {
            Ok(()) => return Ok(None),
            // Not aborted: it may have been committed, and the answer lost. The call picks up where
            // it was.
            Err(Fault::Again(message)) => {
                if patience.left().is_zero() {
                    return Err(progress.impatient(message));
                }
            }
            Err(Fault::Fatal(message)) => return Err(progress.fatal(message)),
            Err(Fault::Fenced(message)) => return Err(progress.fenced(message)),
            Err(fault) => return Ok(Some(fault)),
        }
    }
}

fn abort<W: Wire>(
    wire: &W,
    patience: &mut Patience<'_>,
    progress: &Progress,
) -> Result<(), Failure> {
    loop {
        match wire.abort() {
            Ok(()) => return Ok(()),
            Err(Fault::Fenced(message)) => return Err(progress.fenced(message)),
            Err(Fault::Fatal(message)) => return Err(progress.fatal(message)),
            Err(Fault::Never(error)) => return Err(Failure::Never(error)),
            Err(
                Fault::Again(message)
                | Fault::Abort(message)
                | Fault::Stale(message)
                | Fault::Expelled(message),
            ) => {
                if !patience.pause() {
                    return Err(progress.impatient(message));
                }
            }
        }
    }
}
