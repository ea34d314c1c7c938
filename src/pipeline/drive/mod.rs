//! Works through a lane: one record after the other, or many at once.

mod many;
mod one;
#[cfg(feature = "postgres")]
mod together;
mod waiting;
mod worker;

use tokio::runtime::Handle;

#[cfg(feature = "postgres")]
pub(crate) use self::together::Together;
pub(crate) use self::worker::{Attempt, Worker};
use super::lane::Lane;
use super::session::Driver;
use super::settings::Ordering;
use crate::error::Error;

/// Drives lanes with a worker, on the runtime that its futures want.
pub(crate) struct Driving<W> {
    pub(crate) worker: W,
    pub(crate) runtime: Handle,
}

impl<W: Worker> Driver for Driving<W> {
    fn shows_copies(&self) -> bool {
        self.worker.shows_copies()
    }

    fn drive(&self, lane: &mut Lane) -> Result<(), Error> {
        let _runtime = self.runtime.enter();
        match lane.context().settings.ordering {
            Ordering::Partition => one::drive(&self.worker, &self.runtime, lane),
            Ordering::Key | Ordering::Unordered => many::drive(&self.worker, &self.runtime, lane),
        }
    }
}
