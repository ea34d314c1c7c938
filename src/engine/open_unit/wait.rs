//! Waiting for what is settled to become durable.

use std::sync::PoisonError;
use std::time::Duration;

use super::{Inner, OpenUnit};

/// How waiting for a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Done,
    TimedOut,
    /// The lease is over: fenced, failed or given up.
    Closed,
}

impl OpenUnit {
    /// Waits until at most so many effects are at risk, and so many uncommitted, for at most
    /// `patience`.
    pub(in crate::engine) fn wait_safe(
        &self,
        at_risk: usize,
        uncommitted: usize,
        patience: Duration,
    ) -> Wait {
        let safe =
            |inner: &Inner| inner.kept.at_risk <= at_risk && inner.uncommitted <= uncommitted;
        self.wait(|inner| !inner.closed && !safe(inner), patience)
    }

    /// Waits until all that was settled is durable.
    pub(in crate::engine) fn wait_clean(&self, patience: Duration) -> Wait {
        let busy = |inner: &mut Inner| !inner.closed && (inner.writing || inner.moved);
        self.wait(busy, patience)
    }

    /// Effects that a death of the process would repeat, and all without durable marks.
    pub(in crate::engine) fn unmarked(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.kept.at_risk, inner.uncommitted)
    }

    /// Waits until something has become durable, or nothing will any more.
    pub(in crate::engine) async fn changed(&self) {
        self.told.notified().await;
    }

    fn wait(&self, mut busy: impl FnMut(&mut Inner) -> bool, patience: Duration) -> Wait {
        let (mut inner, timeout) = self
            .changed
            .wait_timeout_while(self.inner(), patience, &mut busy)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.closed {
            Wait::Closed
        } else if timeout.timed_out() && busy(&mut inner) {
            Wait::TimedOut
        } else {
            Wait::Done
        }
    }
}
