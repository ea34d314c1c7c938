//! The switchboard between a proxy's handle and its connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::faults::{Faults, Loss, ReplyLosses};
use super::frame::ApiKey;
use super::stats::Board;

/// The faults in force, and how often connections were cut so far.
#[derive(Debug)]
pub(super) struct State {
    pub(super) faults: Faults,
    /// A connection ends when this is not what it was at its start. A flag alone would let a
    /// connection live that looks only after the cut has been taken back.
    pub(super) cuts: u64,
}

#[derive(Debug)]
pub(super) struct Control {
    state: watch::Sender<State>,
    losses: Mutex<ReplyLosses>,
    pub(super) board: Board,
}

impl Control {
    pub(super) fn new(faults: Faults) -> Self {
        Self {
            state: watch::Sender::new(State { faults, cuts: 0 }),
            losses: Mutex::default(),
            board: Board::default(),
        }
    }

    pub(super) fn faults(&self) -> Faults {
        self.state.borrow().faults.clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.state.send_modify(|state| {
            change(&mut state.faults);
            if state.faults.cut {
                state.cuts += 1;
            }
        });
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// What a new connection compares with later; `None` while new ones are refused.
    pub(super) fn admit(&self) -> Option<u64> {
        let state = self.state.borrow();
        (!state.faults.cut).then_some(state.cuts)
    }

    pub(super) fn lose_replies(&self, api_key: Option<ApiKey>, loss: Loss, count: u32) {
        self.losses().add(api_key, loss, count);
    }

    pub(super) fn lose_no_replies(&self) {
        self.losses().clear();
    }

    pub(super) fn loss_of_reply(&self, api_key: Option<ApiKey>) -> Option<Loss> {
        let loss = self.losses().take(api_key)?;
        self.board.count(|stats| stats.dropped += 1);
        Some(loss)
    }

    /// The rules are whole whenever the lock is free, so a panic elsewhere does not spoil them.
    fn losses(&self) -> MutexGuard<'_, ReplyLosses> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
