//! What the store asks again, what it bounds, and what it sees to on each connection.

use idempotent_consumer::store::{Lease, PostgresStore, Store as _};
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
