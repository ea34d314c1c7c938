//! This crate without Kafka: all that a consumer does for a record but read and handle it.

use std::path::Path;
use std::sync::Arc;

use idempotent_consumer::TopicPartition;
use idempotent_consumer::engine::{Engine, Ledger, Look};
use idempotent_consumer::key::Scope;
use idempotent_consumer::store::{Durability, Owner, RedbStore, SledStore, Store};
use peers::Outcome;

use crate::Decide;

pub(crate) struct Ours {
    engine: Engine,
    ledger: Ledger,
}

pub(crate) fn in_sled(directory: &Path) -> Outcome<Ours> {
    let options = SledStore::options().durability(Durability::Power);
    over(Arc::new(options.open(directory.join("store"))?))
}

pub(crate) fn in_redb(directory: &Path) -> Outcome<Ours> {
    let options = RedbStore::options().durability(Durability::Power);
    over(Arc::new(options.open(directory.join("store"))?))
}

fn over(store: Arc<dyn Store>) -> Outcome<Ours> {
    let owner = Owner {
        group: "bench".to_owned(),
        recipe: "record key".to_owned(),
        scope: "topic".to_owned(),
    };
    let engine = Engine::new(store, &owner, Scope::Topic)?;
    let ledger = engine.lease(&TopicPartition::new("bench", 0))?;
    Ok(Ours { engine, ledger })
}

impl Decide for Ours {
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool> {
        let offset = i64::try_from(number)?;
        let candidate = self.ledger.candidate(offset, key, Some(b"value"));
        if self.ledger.look(&candidate)? == Look::New {
            self.ledger.done(&candidate, None)?;
            return Ok(true);
        }
        self.ledger.skip(&candidate)?;
        Ok(false)
    }

    fn commit(&mut self) -> Outcome<()> {
        self.engine.commit()?;
        Ok(())
    }
}
