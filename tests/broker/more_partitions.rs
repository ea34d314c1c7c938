//! A topic that grows under its consumer.

use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

// C053, C054
#[test]
fn what_was_sent_to_new_partitions_before_they_were_noticed_is_handled() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "grows", 1),
        tempfile::tempdir().unwrap(),
    );
    feed::produce(&kafka, &topic, 0, &["first"]);
    let mut config = config(&kafka, &topic);
    config.set("topic.metadata.refresh.interval.ms", "500");
    let history = History::default();
    let running = Member::start("a", builder(config, &topic), sled(dir.path()), &history);
    running.wait(1);

    admin::grow(&kafka, &topic, 4);
    broker::wait_for("four partitions", || {
        std::panic::catch_unwind(|| kafka.end_offsets(&topic).len() == 4).unwrap_or(false)
    });
    let mut keys = vec!["first".to_owned()];
    for partition in 1..4 {
        let new: Vec<_> = (0..5).map(|n| format!("{partition}-{n}")).collect();
        feed::produce(&kafka, &topic, partition, &new);
        keys.extend(new);
    }
    // A copy lands where the producer's hash now puts it.
    feed::produce(&kafka, &topic, 3, &["first"]);
    running.wait(16);
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    history.assert_each_once(&keys);
}
