//! What the proxy has seen, counted so that a test can wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::Problem;
use super::frame::{ApiKey, Frame};

/// Problems kept until they are taken; above it the oldest is dropped.
const PROBLEMS_MAX: usize = 64;

/// Numbers since the proxy started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections taken from clients, those refused left out.
    pub connections: u64,
    /// Connections that are open now. One whose client has gone counts until its last held-back
    /// request was forwarded and the broker has closed.
    pub open: u64,
    /// Connections closed as soon as they were made: while cut, or above the limit.
    pub refused: u64,
    /// Whole requests that arrived, by kind.
    pub requests: BTreeMap<ApiKey, u64>,
    /// Whole requests that arrived and are too short to name their kind.
    pub unnamed_requests: u64,
    /// Requests that were written to the broker.
    pub forwarded: u64,
    /// Requests that were held back by a delay, or are being held back.
    pub delayed: u64,
    /// Whole replies that the broker sent, those lost or still held back included.
    pub replies: u64,
    /// Replies that were lost on request.
    pub dropped: u64,
    /// Problems so far, those no longer kept included.
    pub problems: u64,
}

impl Stats {
    /// Whole requests of one kind that arrived.
    #[must_use]
    pub fn requests_of(&self, api_key: ApiKey) -> u64 {
        self.requests.get(&api_key).copied().unwrap_or_default()
    }

    pub(super) fn count_request(&mut self, frame: &Frame) {
        match frame.request_header() {
            Some(header) => *self.requests.entry(header.api_key).or_default() += 1,
            None => self.unnamed_requests += 1,
        }
    }
}

/// The numbers and the kept problems, shared between the proxy's thread and its handle.
#[derive(Debug, Default)]
pub(super) struct Board {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    stats: Stats,
    problems: VecDeque<Problem>,
}

impl Board {
    pub(super) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.lock().stats);
        self.changed.notify_all();
    }

    pub(super) fn report(&self, problem: Problem) {
        tracing::warn!("{problem}");
        let mut inner = self.lock();
        inner.stats.problems += 1;
        if inner.problems.len() == PROBLEMS_MAX {
            inner.problems.pop_front();
        }
        inner.problems.push_back(problem);
        drop(inner);
        self.changed.notify_all();
    }

    pub(super) fn stats(&self) -> Stats {
        self.lock().stats.clone()
    }

    pub(super) fn take_problems(&self) -> Vec<Problem> {
        self.lock().problems.drain(..).collect()
    }

    /// Waits until the numbers are as wanted; the error holds them as they were at the deadline.
    pub(super) fn wait_for(
        &self,
        timeout: Duration,
        mut reached: impl FnMut(&Stats) -> bool,
    ) -> Result<Stats, Box<Stats>> {
        let (inner, waited) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |inner| !reached(&inner.stats))
            .unwrap_or_else(PoisonError::into_inner);
        let stats = inner.stats.clone();
        if waited.timed_out() {
            Err(Box::new(stats))
        } else {
            Ok(stats)
        }
    }

    /// Numbers are whole whenever the lock is free, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
