//! What every store must do: the cases are those of the crate's own tests.

use std::cell::Cell;

use idempotent_consumer::key::Fingerprint;
use idempotent_consumer::store::{
    Anchor, CommitUnit, Entry, Gap, Gaps, Head, Lease, Mark, Owner, PartitionId, Place,
    PostgresStore, Store, StoreError,
};
use idempotent_consumer::{NextOffset, TopicPartition};

use crate::shared;

#[path = "../../src/store/contract/cases.rs"]
mod cases;
#[path = "../../src/store/contract/late.rs"]
mod late;

#[test]
fn the_contract_of_every_store_holds() {
    let Some(server) = shared::server() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = runtime.block_on(server.database());
    let count = Cell::new(0);
    cases::contract(|| {
        count.set(count.get() + 1);
        let options = PostgresStore::options().schema(format!("case {}", count.get()));
        options.connect(config.clone()).unwrap()
    });
}
