//! Writes down what is forgotten.

use super::state::State;
use super::{DirectoryStore, Engine, HashKey, Paths, StoreError, files, format};
use crate::store::forget::{Forget, Forgotten, Plan};

impl<E: Engine> DirectoryStore<E> {
    /// What [`forget`](DirectoryStore::forget) would do. Nothing is written.
    ///
    /// # Errors
    /// As [`forget`](DirectoryStore::forget).
    pub fn plan_forget(&self, forget: &Forget) -> Result<Forgotten, StoreError> {
        Ok(self.plan(forget)?.forgotten())
    }

    /// Forgets what was done, so that it is done once more at the next start. It takes the store:
    /// nobody may be at work on it.
    ///
    /// The whole log is read, and every record of it that holds something to be forgotten is
    /// written anew. When it returns, all of that is on the device, whatever the
    /// [durability](crate::store::Durability). A crash in the middle may leave a part of the keys
    /// known: no record is lost by that, and forgetting again completes it.
    ///
    /// # Errors
    /// [`StoreError::NotForgotten`] where there is nothing of it, where the store's keys cannot be
    /// named in this way, and where more than 1,000 single ranges of a partition would be open;
    /// nothing is written then. Else where the store cannot be read or written.
    pub fn forget(self, forget: &Forget) -> Result<Forgotten, StoreError> {
        let plan = self.plan(forget)?;
        self.carry_out(&plan)?;
        let forgotten = plan.forgotten();
        for one in &forgotten.partitions {
            tracing::warn!(
                path = %self.paths.directory.display(), partition = %one.partition, keys = one.keys,
                from = %one.position, "forgotten on purpose: handled once more at the next start",
            );
        }
        Ok(forgotten)
    }

    pub(super) fn carry_out(&self, plan: &Plan) -> Result<(), StoreError> {
        let mut state = self.state();
        self.write(&mut state, |state| {
            self.open_gaps(state, plan)?;
            // IMPORTANT: gaps before marks. The other way round a crash would leave keys that are
            // not known, at offsets that are never handled again.
            state.log.sync()?;
            // And before marks too: sealed keys would stay known.
            self.index.invalidate()?;
            mark(state, &self.paths, plan)?;
            state.log.sync()
        })
    }

    pub(super) fn plan(&self, forget: &Forget) -> Result<Plan, StoreError> {
        let state = self.state();
        let owner = match state.stamp.owner() {
            Some(owner) => Some((owner, HashKey(state.stamp.hash_key(&self.paths.stamp)?))),
            None => None,
        };
        let floor = |id: crate::store::PartitionId| state.marks.get(id.0 as usize)?.floor;
        let mut plan = Plan::new(self.place(), forget, owner, &state.partitions, floor)?;
        state.scan(|key, value| {
            let logged =
                format::decode(key, value).map_err(|what| files::damaged(&self.paths.log, what))?;
            plan.see(&logged.unit)
        })?;
        plan.checked()
    }

    pub(super) fn open_gaps(&self, state: &mut State<E>, plan: &Plan) -> Result<(), StoreError> {
        let units = plan.units();
        state.partitions.check_all(&units)?;
        state.append(&self.paths, self.durability, &units)
    }
}

/// Writes the units that hold something to be forgotten anew, each in its own place. None grows:
/// a bit for each of its keys is less than was left free for it.
fn mark<E: Engine>(state: &State<E>, paths: &Paths, plan: &Plan) -> Result<(), StoreError> {
    state.scan(|key, value| {
        let mut logged =
            format::decode(key, value).map_err(|what| files::damaged(&paths.log, what))?;
        if plan.mark(&mut logged.unit) {
            state.log.insert(key, format::encode(&logged))?;
        }
        Ok(())
    })
}
