//! Two members under one `group.instance.id`.

use idempotent_consumer::{Error, SourceError};

use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

// C042
#[test]
fn the_older_of_two_members_with_one_name_ends_with_an_error_and_does_nothing_more() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "one-name", 1),
        tempfile::tempdir().unwrap(),
    );
    let history = History::default();
    let start = |name| {
        let mut config = config(&kafka, &topic);
        config.set("group.instance.id", "the-only-one");
        Member::start(
            name,
            builder(config, &topic),
            sled(&dir.path().join(name)),
            &history,
        )
    };
    feed::produce(&kafka, &topic, 0, &["a", "b", "c"]);
    let older = start("older");
    older.wait(3);
    broker::wait_caught_up(&kafka, &topic, &topic);

    let younger = start("younger");
    let error = older.error();
    let is_named = matches!(&error, Error::Source(SourceError::InstanceFenced { .. }));
    assert!(is_named, "{error:?}");
    assert!(error.to_string().contains("group.instance.id"), "{error}");
    feed::produce(&kafka, &topic, 0, &["b", "d", "e"]);
    younger.wait(5);
    broker::wait_caught_up(&kafka, &topic, &topic);
    younger.stop();
    assert_eq!(history.keys(), ["a", "b", "c", "d", "e"]);
    assert_eq!(history.count_of("older"), 3);
}
