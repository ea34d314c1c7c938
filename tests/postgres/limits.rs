//! What the store asks again, what it bounds, and what it sees to on each connection.

use idempotent_consumer::store::{Lease, PostgresStore, Store as _, StoreError};
use idempotent_consumer::{NextOffset, TopicPartition};

use crate::database::Database;
use crate::member::{TOPIC, store};
use crate::shared;

fn leased(database: &Database) -> (PostgresStore, Lease) {
    let store = store(&database.config);
    let lease = store.lease(&TopicPartition::new(TOPIC, 0)).unwrap();
    (store, lease)
}

#[test]
fn what_another_member_has_expired_is_known_when_it_is_asked_for() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let (store, lease) = leased(&database);
    assert_eq!(store.retained_from(lease.id), NextOffset::ZERO);
    database.run("UPDATE idempotent_consumer.partitions SET retained_from = 7");
    assert_eq!(Some(store.retained_from(lease.id)), NextOffset::new(7));
}

#[test]
fn up_to_where_keys_are_restored_outlives_the_member_and_never_goes_back() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let (first, old) = leased(&database);
    let at = |offset| NextOffset::new(offset).unwrap();
    assert_eq!(first.restore_until(old.id), NextOffset::ZERO);
    first.restores(&old, at(40)).unwrap();
    first.restores(&old, at(30)).unwrap();
    assert_eq!(first.restore_until(old.id), at(40));
    let (second, new) = leased(&database);
    assert_eq!(second.restore_until(new.id), at(40));
    let refused = first.restores(&old, at(50));
    assert!(
        matches!(refused, Err(StoreError::Fenced { .. })),
        "{refused:?}"
    );
    assert_eq!(
        database.ask::<i64>("SELECT restore_until FROM idempotent_consumer.partitions"),
        [40]
    );
    second.restores(&new, at(50)).unwrap();
    assert_eq!(second.restore_until(new.id), at(50));
}
