//! Joins the stages. The only place that knows them all.

mod doubt;
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

pub(crate) use self::pull::PullDriver;
pub use self::pull::{Claimed, Pull};
pub use self::report::{Counts, Report};
pub(crate) use self::run::HandlerDriver;
pub(crate) use self::session::{Driver, Session, drive};
pub(crate) use self::settings::{CopyHook, Settings, UNCOMMITTED_RECORDS_MAX};
pub use self::settings::{Mismatch, Restore};
