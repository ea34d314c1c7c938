//! What a fleet did to the world, seen from outside, and whether it was right.
//!
//! A test of crashes cannot ask the process that crashed. So every member of a group reports each
//! effect to a [`Collector`] in another process, over loopback TCP, and waits for its answer: what
//! was reported is kept by somebody whom no signal to the member harms, in one order for all
//! members, without a clock. It is what a payment provider would see. A file that members append
//! to would do as well until a disk is full or a size limit is hit, which is one of the faults to
//! be tried.
//!
//! Whoever starts and kills the members says when ([`Collector::crashed`] and the others), and
//! [`History::check`] says what was lost, what was applied twice that should not have been, and
//! what was applied again within the limits of the promise.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use idempotent_consumer::testkit::history::{Collector, Effect, Reporter, Rules};
//!
//! let collector = Collector::start()?;
//! // In the member's process, in its handler:
//! let reporter = Reporter::connect(collector.addr(), "member-a")?;
//! let effect = Effect {
//!     key: "payment-1".into(),
//!     partition: 0,
//!     offset: 0,
//!     token: "what Delivery::token gave".into(),
//!     in_doubt: false,
//!     attempt: 1,
//! };
//! let open = reporter.begin(&effect)?;
//! open.applied()?;
//! // In the test:
//! let summary = collector.history().check(["payment-1"], &Rules::default())?;
//! assert_eq!((summary.applied, summary.repeats()), (1, 0));
//! # Ok(())
//! # }
//! ```

mod check;
mod collector;
mod log;
mod message;
mod reporter;
#[cfg(test)]
mod tests;
mod violation;

pub use self::check::Rules;
pub use self::collector::Collector;
pub use self::log::{History, Positions, Run};
pub use self::message::Effect;
pub use self::reporter::{Open, Reporter};
pub use self::violation::{Summary, Violation, Violations};
