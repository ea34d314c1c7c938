//! What the proxy does to the traffic, and which replies it loses.

use std::time::Duration;

use super::frame::ApiKey;

/// The longest delay; a longer one is taken as this.
pub const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// The faults that last until they are changed. The default is none: everything passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Delays large requests. With [`Faults::delay_all`] as well, the longer delay holds.
    pub delay_large: Option<DelayLarge>,
    /// Delays every request; zero is no delay.
    pub delay_all: Duration,
    /// All connections are closed and new ones are closed as soon as they are made.
    pub cut: bool,
    /// Nothing is forwarded in either direction, while connections stay open and new ones are
    /// taken. What was held back passes, in order, once this ends.
    pub stalled: bool,
}

impl Faults {
    /// How long a request of this many payload bytes is held back.
    pub(super) fn delay_of(&self, size_bytes: usize) -> Duration {
        let large = match self.delay_large {
            Some(large) if size_bytes > large.threshold_bytes => large.delay,
            _ => Duration::ZERO,
        };
        large.max(self.delay_all).min(DELAY_MAX)
    }
}

/// Holds back requests of more than a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayLarge {
    /// A request of this many payload bytes still passes at once; one more byte and it waits.
    pub threshold_bytes: usize,
    /// How long a request waits, from the moment its last byte arrived.
    pub delay: Duration,
}

impl Default for DelayLarge {
    /// More than 4,096 bytes, 600 ms: what the producer lab's `kafka-lab-slow on` does.
    fn default() -> Self {
        Self {
            threshold_bytes: 4_096,
            delay: Duration::from_millis(600),
        }
    }
}

/// What a client sees in place of a reply that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Silence,
    Disconnect,
}

/// The replies that are still to be lost.
#[derive(Debug, Default)]
pub(super) struct ReplyLosses {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    api_key: Option<ApiKey>,
    loss: Loss,
    left: u32,
}

impl ReplyLosses {
    /// Adds to the rule of the same kind, so that rules stay as few as there are kinds.
    pub(super) fn add(&mut self, api_key: Option<ApiKey>, loss: Loss, count: u32) {
        let same = |rule: &&mut Rule| rule.api_key == api_key && rule.loss == loss;
        match self.rules.iter_mut().find(same) {
            Some(rule) => rule.left = rule.left.saturating_add(count),
            None => self.rules.push(Rule {
                api_key,
                loss,
                left: count,
            }),
        }
        self.rules.retain(|rule| rule.left > 0);
    }

    /// Whether the reply to a request of this kind is lost, using up one of the number. A reply
    /// whose request is not known is lost only by a rule for any request.
    pub(super) fn take(&mut self, api_key: Option<ApiKey>) -> Option<Loss> {
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.api_key.is_none() || rule.api_key == api_key)?;
        rule.left -= 1;
        let loss = rule.loss;
        self.rules.retain(|rule| rule.left > 0);
        Some(loss)
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }
}
