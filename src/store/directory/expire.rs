//! Expiry: the oldest records go, in steps that no commit waits long for.

use std::sync::Arc;

use super::state::State;
use super::{DirectoryStore, Durability, Engine, Paths, format};
use crate::clock::Clock;
use crate::store::front::{self, Aged, Fore, Step};
use crate::store::{Expired, Expiry, PartitionId, Place, Retained, Retaining, StoreError, Usage};

impl<E: Engine> State<E> {
    fn fore_behind(
        &self,
        paths: &Paths,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<Fore>, StoreError> {
        let found = self.behind(paths, id, place)?;
        Ok(found.map(|(logged, bytes)| Fore {
            place: logged.place,
            aged: Aged {
                tail: logged.tail,
                max_timestamp_ms: logged.unit.max_timestamp_ms,
            },
            bytes,
            unit: logged.unit,
        }))
    }

    /// How old the unit at a partition's front is. Read once, until that unit goes.
    fn oldest(&mut self, paths: &Paths, id: PartitionId) -> Result<Option<Aged>, StoreError> {
        if let Some(aged) = self.oldest.get(&id) {
            return Ok(Some(*aged));
        }
        let fore = self.fore_behind(paths, id, Place::default())?;
        Ok(fore.map(|fore| *self.oldest.entry(id).or_insert(fore.aged)))
    }

    fn choose(&self, paths: &Paths, expiry: &Expiry) -> Result<Option<Step>, StoreError> {
        match self.partitions.get(expiry.id) {
            Some(one) => front::choose(expiry, one, |at| self.fore_behind(paths, expiry.id, at)),
            None => Ok(None),
        }
    }

    /// Says that the partition begins further up from now on.
    fn raise_floor(
        &mut self,
        paths: &Paths,
        id: PartitionId,
        durability: Durability,
        step: &Step,
    ) -> Result<(), StoreError> {
        // The floor is on the device at once: it must not outrun a log that is not there yet.
        if durability != Durability::Power {
            self.log.sync()?;
        }
        self.mark_mut(id)?.floor = Some(step.front);
        self.partitions.expire(id, step.front, step.total)?;
        self.oldest.remove(&id);
        // IMPORTANT: on the device before the first record goes. The other way round a crash would
        // leave a log that begins behind its floor: records are missing, and nobody knows why.
        self.write_mark(paths, id, true)
    }

    fn take_out(&mut self, id: PartitionId, step: &Step) -> Result<(), StoreError> {
        for fore in &step.fores {
            self.log.remove(format::log_key(id, fore.place).as_ref())?;
        }
        self.log.harden()
    }
}

impl<E: Engine> Retaining for DirectoryStore<E> {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.state().clock)
    }

    fn usage(&self) -> Usage {
        self.state().partitions.usage()
    }

    fn retained(&self) -> Result<Vec<Retained>, StoreError> {
        let partitions = self.state().partitions.len();
        let ids = (0..).map(PartitionId).take(partitions);
        let mut list = Vec::with_capacity(partitions);
        for id in ids {
            // One by one: a commit need not wait for all of them.
            let mut state = self.state();
            let Some(oldest) = state.oldest(&self.paths, id)? else {
                continue;
            };
            let one = state.partitions.get(id);
            list.extend(one.and_then(|one| one.retained(id, oldest)));
        }
        Ok(list)
    }

    fn would_expire(&self, expiry: &Expiry) -> Result<u64, StoreError> {
        let state = self.state();
        let behind = |at| state.fore_behind(&self.paths, expiry.id, at);
        match state.partitions.get(expiry.id) {
            Some(one) => front::count(expiry, one, behind),
            None => Ok(0),
        }
    }

    fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        let mut state = self.state();
        let step = self.write(&mut state, |state| {
            let step = state.choose(&self.paths, expiry)?;
            if let Some(step) = &step {
                state.raise_floor(&self.paths, expiry.id, self.durability, step)?;
            }
            Ok(step)
        })?;
        // Whoever waits to commit goes first: the floor alone is a whole step.
        drop(state);
        let Some(step) = step else {
            return Ok(Expired::default());
        };
        let dropped = step.fores.iter().map(|fore| &fore.unit);
        let told = self.index.expire(expiry.id, step.front, dropped);
        let mut state = self.state();
        self.write(&mut state, |state| {
            // An index that does not know of the floor knows what has expired: that is no state to
            // go on from.
            told?;
            state.take_out(expiry.id, &step)
        })?;
        Ok(step.expired())
    }
}
