//! The handler itself.

use std::io::{self, Read};

#[cfg(feature = "sled")]
use crate::idempotent;
use crate::{args::Config, error::Error, processed::Processed};

/// Reads every order, then processes them in order.
///
/// # Errors
/// [`Error::Died`] at `order-2` with the bug in place; what comes before it is then durable.
pub(crate) fn run(config: &Config) -> Result<(), Error> {
    // Opened before anything is read: orders taken off a pipe for a file that cannot be written
    // would be lost without need.
    #[cfg(feature = "sled")]
    if let Some(state) = &config.state {
        let (processed, journal) = idempotent::open(&config.processed, state)?;
        return idempotent::process(&processed, journal, &read_orders()?, config.fixed);
    }
    let processed = Processed::open(&config.processed)?;
    let orders = read_orders()?;
    let (safe, died) = if config.fixed {
        (orders.len(), None)
    } else {
        until_death(&orders)
    };
    processed.append(&orders[..safe])?;
    died.map_or(Ok(()), |processed| Err(Error::Died { processed }))
}

/// All of standard input, the last line's newline added where it is missing.
fn read_orders() -> Result<Vec<u8>, Error> {
    let mut orders = Vec::new();
    io::stdin().read_to_end(&mut orders).map_err(Error::Input)?;
    if orders.last().is_some_and(|last| *last != b'\n') {
        orders.push(b'\n');
    }
    Ok(orders)
}

/// How many bytes come before the order that kills, and how many lines those are, if it is there.
pub(crate) fn until_death(orders: &[u8]) -> (usize, Option<usize>) {
    let mut safe = 0;
    for (processed, line) in orders.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line == b"order-2\n" {
            return (safe, Some(processed));
        }
        safe += line.len();
    }
    (safe, None)
}
