//! Members that write dead letters, where a real broker is needed for it: groups that are set back,
//! topics that are deleted, letters that are refused or do not arrive.

use std::path::Path;

use idempotent_consumer::testkit::{ApiKey, FaultProxy};
use idempotent_consumer::{
    Builder, DeadLetter, DeadLetterError, Delivery, Error, HandlerError, HandlerResult, Ordering,
};
use rdkafka::Message as _;

use crate::broker::{self, SharedBroker, wait_for};
use crate::history::History;
use crate::letters::{header_list, is_there, now_ms, read, settings};
use crate::member::{Member, builder, config, sled};
use crate::{admin, feed, rewinds};

const ORDERINGS: [Ordering; 3] = [Ordering::Partition, Ordering::Key, Ordering::Unordered];

/// A topic, its letters' topic, and who writes them.
struct Stage<'a> {
    kafka: &'a SharedBroker,
    topic: String,
    letters: String,
    dir: tempfile::TempDir,
    history: History,
}

impl<'a> Stage<'a> {
    fn new(kafka: &'a SharedBroker, idea: &str, letters: &[(&str, &str)]) -> Self {
        Self {
            kafka,
            topic: admin::topic(kafka, idea, 2),
            letters: admin::topic_with(kafka, &format!("{idea}-letters"), letters),
            dir: tempfile::tempdir().unwrap(),
            history: History::default(),
        }
    }

    fn store(&self) -> &Path {
        self.dir.path()
    }

    fn builder(&self, producer: &[(&str, &str)]) -> Builder {
        let dead_letter = DeadLetter::to_topic(&self.letters).config(settings(producer));
        builder(config(self.kafka, &self.topic), &self.topic).dead_letter(dead_letter)
    }

    /// Starts a member that rejects what is `bad`, until it is mended.
    fn start(&self, builder: Builder, mended: bool) -> Member {
        let judge = move |delivery: &Delivery<'_>| -> HandlerResult {
            let is_bad = delivery.key().is_some_and(|key| key.starts_with(b"bad"));
            if is_bad && !mended {
                return Err(HandlerError::reject("no such account"));
            }
            Ok(())
        };
        Member::judging("a", builder, sled(self.store()), &self.history, judge)
    }

    fn produce(&self, partition: i32, keys: &[&str]) {
        feed::produce(self.kafka, &self.topic, partition, keys);
    }

    fn committed(&self) -> i64 {
        let committed = broker::committed(self.kafka, &self.topic, &self.topic);
        committed[0].unwrap_or(0)
    }

    fn written(&self) -> i64 {
        self.kafka.end_offsets(&self.letters)[0]
    }

    fn sorted(&self) -> Vec<String> {
        let mut keys = self.history.keys();
        keys.sort();
        keys
    }

    /// Mended, it handles the bad record and whatever else is left.
    fn finish(&self) {
        let running = self.start(self.builder(&[]), true);
        broker::wait_caught_up(self.kafka, &self.topic, &self.topic);
        running.stop();
    }
}

#[test]
fn a_group_that_is_set_back_passes_dead_letters_over_and_writes_no_second_one() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    for ordering in ORDERINGS {
        let stage = Stage::new(&kafka, &format!("buried-{ordering:?}"), &[]);
        let before_ms = now_ms();
        stage.produce(0, &["good-1", "bad-1", "good-2", "bad-2"]);
        let running = stage.start(stage.builder(&[]).ordering(ordering), false);
        broker::wait_caught_up(&kafka, &stage.topic, &stage.topic);
        assert_eq!(running.stop().counts.dead_lettered, 2);
        for letter in read(&kafka, &stage.letters, 2) {
            let written_ms = letter.timestamp().to_millis().unwrap();
            assert!((before_ms..=now_ms()).contains(&written_ms));
            let attempts = ("kafka_deliveryAttempt".to_owned(), Some(vec![0, 0, 0, 1]));
            assert!(header_list(&letter).contains(&attempts));
        }
        let rewound = rewinds::reset(&kafka, &stage.topic, &stage.topic);
        assert!(rewound.status.success(), "{rewound:?}");
        // Nothing would be wrong with them now, but they are dealt with.
        stage.produce(0, &["last"]);
        let running = stage.start(stage.builder(&[]).ordering(ordering), true);
        running.wait(3);
        broker::wait_caught_up(&kafka, &stage.topic, &stage.topic);
        let counts = running.stop().counts;
        assert_eq!(stage.sorted(), ["good-1", "good-2", "last"], "{ordering:?}");
        assert_eq!((counts.redelivery, counts.dead_lettered), (4, 0));
        assert_eq!(stage.written(), 2);
        // A copy elsewhere is tried.
        stage.produce(1, &["bad-1", "bad-1"]);
        stage.finish();
        assert_eq!(stage.sorted(), ["bad-1", "good-1", "good-2", "last"]);
    }
}

/// A member stops over the letter of the second record, and nothing has moved.
fn assert_stops(stage: &Stage<'_>, running: Member) -> String {
    let error = running.error();
    let Error::DeadLetter(DeadLetterError::Letter { at, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(at.to_string(), format!("{}[0]@1", stage.topic));
    assert_eq!(stage.committed(), 1, "{error}");
    error.to_string()
}

// C005, C006
#[test]
fn a_letter_that_the_broker_refuses_stops_the_consumer_and_the_record_is_handled_again() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    // The record would fit: it is the added headers that do not.
    let stage = Stage::new(&kafka, "refused", &[("max.message.bytes", "200")]);
    stage.produce(0, &["good-1", "bad-1", "good-2"]);
    let said = assert_stops(&stage, stage.start(stage.builder(&[]), false));
    assert!(said.contains("max.message.bytes"), "{said}");
    assert_eq!(
        (stage.written(), stage.sorted()),
        (0, vec!["good-1".into()])
    );
    stage.finish();
    assert_eq!(stage.sorted(), ["bad-1", "good-1", "good-2"]);
}

// C006
#[test]
fn a_dead_letter_topic_that_is_deleted_under_a_member_stops_it_and_loses_nothing() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let stage = Stage::new(&kafka, "deleted-under", &[]);
    stage.produce(0, &["good-1"]);
    let running = stage.start(stage.builder(&[("delivery.timeout.ms", "3000")]), false);
    running.wait(1);
    broker::wait_caught_up(&kafka, &stage.topic, &stage.topic);
    admin::delete(&kafka, &stage.letters);
    wait_for("the deletion", || !is_there(&kafka, &stage.letters));
    stage.produce(0, &["bad-1", "good-2"]);
    assert_stops(&stage, running);
    assert!(!is_there(&kafka, &stage.letters), "it was made again");
    // Nor does the next start begin without it.
    let error = stage.start(stage.builder(&[]), false).error();
    let missing = matches!(error, Error::DeadLetter(DeadLetterError::Topic { .. }));
    assert!(
        missing && error.to_string().contains(&stage.letters),
        "{error}"
    );
    let group = broker::group_state(&kafka, &stage.topic);
    assert!(group.is_none_or(|(_, members)| members == 0), "it joined");
    kafka.create_topic(&stage.letters, 1);
    let running = stage.start(stage.builder(&[]), false);
    broker::wait_caught_up(&kafka, &stage.topic, &stage.topic);
    running.stop();
    assert_eq!(
        (stage.written(), stage.sorted()),
        (1, vec!["good-1".into(), "good-2".into()])
    );
}

/// A member whose letters, and nothing else, go through a proxy.
fn through_a_proxy(
    idea: &str,
    producer: &[(&str, &str)],
    harm: impl FnOnce(&Stage<'_>, &FaultProxy, Member),
) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let stage = Stage::new(&kafka, idea, &[]);
    let at = proxy.local_addr().to_string();
    let mut all = vec![("bootstrap.servers", at.as_str())];
    all.extend(producer);
    stage.produce(0, &["good-1"]);
    let running = stage.start(stage.builder(&all), false);
    running.wait(1);
    broker::wait_caught_up(&kafka, &stage.topic, &stage.topic);
    harm(&stage, &proxy, running);
}

#[test]
fn nothing_moves_while_a_letter_is_on_its_way() {
    through_a_proxy("letter-under-way", &[], |stage, proxy, running| {
        proxy.stall();
        stage.produce(0, &["bad-1", "good-2"]);
        // The other partition goes on, and so do offsets.
        for count in 1..=3 {
            stage.produce(1, &[&format!("other-{count}")]);
            wait_for("the other partition", || {
                broker::committed(stage.kafka, &stage.topic, &stage.topic)[1] == Some(count)
            });
            assert_eq!((stage.committed(), stage.written()), (1, 0));
        }
        proxy.resume();
        broker::wait_caught_up(stage.kafka, &stage.topic, &stage.topic);
        assert_eq!(stage.written(), 1);
        assert_eq!(running.stop().counts.dead_lettered, 1);
    });
}

// C005, C006
#[test]
fn a_letter_that_does_not_arrive_stops_the_consumer_in_time_and_the_record_is_handled_again() {
    let soon = [("delivery.timeout.ms", "2000")];
    through_a_proxy("letter-cut", &soon, |stage, proxy, running| {
        proxy.cut();
        stage.produce(0, &["bad-1", "good-2"]);
        let said = assert_stops(stage, running);
        assert!(said.contains("delivery.timeout.ms=2000"), "{said}");
        assert_eq!(stage.sorted(), ["good-1"]);
        stage.finish();
        assert_eq!(stage.sorted(), ["bad-1", "good-1", "good-2"]);
    });
}

#[test]
fn a_letter_whose_confirmation_is_lost_is_written_once_and_its_record_counts_as_dealt_with() {
    through_a_proxy("letter-lost-answer", &[], |stage, proxy, running| {
        proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
        stage.produce(0, &["bad-1", "good-2"]);
        broker::wait_caught_up(stage.kafka, &stage.topic, &stage.topic);
        assert_eq!(running.stop().counts.dead_lettered, 1);
        assert_eq!((stage.written(), stage.sorted().len()), (1, 2));
    });
}
