//! The handler: its effects go into the history.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use super::cluster::Identity;
use super::history::Handled;
use super::op::Attempt;
use super::stage::{Stage, World};
use crate::handler::{Delivery, Effects, Handler, HandlerError, HandlerResult};
use crate::record::Record;

pub(super) struct Shop(pub(super) Arc<Stage>);

fn number<T: std::str::FromStr>(text: &[u8], prefix: &str) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_prefix(prefix)?.parse().ok()
}

fn identity(record: &Record<'_>) -> Identity {
    let mut headers = record.headers().iter();
    let key = headers.find_map(|(_, value)| number(value?, "key-"));
    let keyless = || record.value().and_then(|value| number(value, "keyless "));
    key.map(Identity::Key)
        .or_else(|| keyless().map(Identity::Keyless))
        .unwrap()
}

/// What a handler records for a key.
fn receipt(identity: Identity) -> Vec<u8> {
    format!("receipt for {identity:?}").into_bytes()
}

/// Counts a handler that runs.
struct InHand<'a>(&'a Stage);

impl<'a> InHand<'a> {
    fn new(stage: &'a Stage) -> Self {
        let mut world = stage.world();
        world.in_hand += 1;
        let (in_hand, max) = (world.in_hand, world.pace.concurrency_max);
        if max.is_some_and(|max| in_hand > max) {
            world.violated(format!("{in_hand} records in hand, of {max:?}"));
        }
        drop(world);
        Self(stage)
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.world().in_hand -= 1;
        self.0.tell();
    }
}

impl Shop {
    fn attempt(&self, handled: &Handled) -> Option<Attempt> {
        let mut world = self.0.world();
        world.log.push(format!("{handled:?}"));
        let attempts = world.attempts.get_mut(&handled.identity);
        let attempt = attempts.and_then(std::collections::VecDeque::pop_front);
        if attempt.is_some_and(|attempt| attempt != Attempt::Slow) {
            world.failures += 1;
        }
        if attempt == Some(Attempt::Panic) {
            // A panic does not say what happened before it.
            world.history.disorder.insert(handled.partition);
        }
        attempt
    }

    fn effect(&self, handled: &Handled) {
        let mut world = self.0.world();
        let World {
            cluster,
            history,
            marks: Some(marks),
            given,
            ..
        } = &mut *world
        else {
            return;
        };
        let verdict = history.effect(handled, cluster, given, marks);
        if let Err(why) = verdict {
            world.violated(why);
        }
        world.in_order(handled);
    }
}

impl Handler for Shop {
    async fn handle(&self, delivery: &Delivery<'_>, effects: &mut Effects) -> HandlerResult {
        let _hand = InHand::new(&self.0);
        let partition = usize::try_from(delivery.partition()).unwrap();
        let handled = Handled {
            identity: identity(&delivery.record()),
            partition,
            read_at: self.0.world().read_at[&(partition, delivery.offset())],
            offset: delivery.offset(),
            in_doubt: delivery.in_doubt(),
            token: delivery.token(),
            record_key: delivery.key().unwrap_or_default().to_vec(),
        };
        match self.attempt(&handled) {
            None => {}
            Some(Attempt::Slow) => tokio::time::sleep(Duration::from_millis(1)).await,
            Some(Attempt::Retry) => return Err("told to fail".into()),
            Some(Attempt::Reject) => return Err(HandlerError::reject("told to be rejected")),
            // Past the hook, which would print thousands of them.
            Some(Attempt::Panic) => resume_unwind(Box::new("told to panic")),
        }
        if self.0.world().is_dead() {
            return Err(HandlerError::reject("the process is dead"));
        }
        effects.record_bytes(receipt(handled.identity))?;
        self.effect(&handled);
        Ok(())
    }
}

/// Looks at a copy and at the result that it is answered with.
pub(super) fn show_copy(stage: &Stage, delivery: &Delivery<'_>, result: Option<&[u8]>) {
    let identity = identity(&delivery.record());
    // What was restored from the topic has none.
    if result.is_some_and(|result| result != receipt(identity)) {
        let text = String::from_utf8_lossy(result.unwrap_or_default());
        stage
            .world()
            .violated(format!("a copy of {identity:?} was answered with {text}"));
    }
}
