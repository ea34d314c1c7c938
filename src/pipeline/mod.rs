//! Joins the stages. The only place that knows them all.

mod doubt;
mod drive;
mod expiry;
mod lane;
#[cfg(test)]
mod model;
mod pull;
mod report;
mod run;
mod session;
mod settings;
mod shared;
mod start;
mod stop;
mod taken;
mod work;

pub(crate) use self::drive::Driving;
#[cfg(feature = "postgres")]
pub(crate) use self::drive::Together;
pub(crate) use self::pull::PullWorker;
pub use self::pull::{Claimed, Pull};
pub use self::report::{Counts, Report};
pub(crate) use self::run::{Collect, HandlerWorker};
pub(crate) use self::session::{Driver, Session, drive};
pub(crate) use self::settings::{
    AssignmentHook, CONCURRENCY_DEFAULT, CopyHook, RestoreHook, Settings, UNCOMMITTED_RECORDS_MAX,
    UNSYNCED_RECORDS_MAX,
};
pub use self::settings::{Mismatch, Ordering, Restore, RestoreProgress};
