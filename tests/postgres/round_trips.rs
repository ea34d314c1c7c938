//! What a record costs.

use idempotent_consumer::testkit::EmbeddedBroker;

use crate::database::Database;
use crate::member::{Member, broker, builder, numbered, produce};
use crate::shared;
use crate::wire::Wire;

/// Has a member read all that is there, and one key more; gives the round trips to the server.
fn read_up_to(last: &str, broker: &EmbeddedBroker, database: &Database) -> u64 {
    produce(broker, 0, &[last]);
    let wire = Wire::before(&database.config);
    let through = wire.config(&database.config);
    let member = Member::start(builder(broker.bootstrap_servers()), &through);
    let query = format!("SELECT count(*) FROM effects WHERE key = '{last}'");
    member.wait_for(last, || database.ask_one::<i64>(&query) > 0);
    member.stop();
    wire.round_trips()
}

#[test]
fn a_batch_of_copies_costs_one_round_trip() {
    const KEYS: usize = 2_000;
    /// So many keys are looked up at once.
    const BATCH: usize = 256;
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let keys = numbered(0..KEYS);
    produce(&broker, 0, &keys);
    let new = read_up_to("first", &broker, &database);
    let nothing = read_up_to("second", &broker, &database);
    produce(&broker, 0, &keys);
    let copies = read_up_to("third", &broker, &database);
    println!("round trips: {KEYS} new {new}, none {nothing}, {KEYS} copies {copies}");
    // A look-up for each batch, and a commit of the position now and then.
    let batches = u64::try_from(KEYS.div_ceil(BATCH)).unwrap();
    assert!(
        copies <= nothing + 4 * batches,
        "{copies} round trips for {KEYS} copies, {nothing} for none"
    );
    // A savepoint, the handler's own statement and its end; the batch's own are few.
    let new_each = (new - nothing).div_ceil(u64::try_from(KEYS).unwrap());
    assert!(new_each <= 3, "{new} round trips for {KEYS} new records");
}
