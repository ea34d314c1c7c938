//! A process that stands still for longer than its session lasts, on a machine that is busy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::feed::Feed;
use crate::kills::{assert_history, bytes, rounds, wait_for_more};
use crate::{admin, broker, child};

const PARTITIONS: usize = 4;
const KEYS_A_ROUND: usize = 2_000;
/// The short session and a bit.
const FROZEN: Duration = Duration::from_millis(1_900);

/// Ends the busy loops also where the test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// A lane once stopped for good on the embedded broker, under load.
#[test]
fn a_member_that_was_frozen_past_its_session_reads_every_partition_to_its_end() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "frozen", i32::try_from(PARTITIONS).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let rounds = rounds(2);
    let keys = KEYS_A_ROUND * usize::try_from(rounds).unwrap();
    let feed = Feed::start(&kafka, &topic, PARTITIONS, keys, Duration::from_millis(50));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = SetAtEnd(&over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let mut process = child::start(&kafka, &topic, dir.path());
        for _ in 0..rounds {
            wait_for_more(&mut process, dir.path(), bytes(dir.path()));
            process.signal("STOP");
            // How long it is frozen; nothing is waited for.
            std::thread::sleep(FROZEN);
            process.signal("CONT");
        }
        let keys = feed.wait();
        broker::wait_caught_up(&kafka, &topic, &topic);
        process.stop();
        // A lone member with its own store: what it lost, it found again with its marks.
        assert_history(dir.path(), &keys, 0);
    });
}
