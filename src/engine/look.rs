//! What is known of a record, and claiming its key where nothing is: one or many at once.

use super::{Candidate, Ledger, Look, Moment};
use crate::claim::{answers_for, decide};
use crate::key::Fingerprint;
use crate::store::{Claim, Mark, StoreError};

impl Ledger {
    /// Looks up many keys at once; the answer is as of the returned moment.
    pub(crate) fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<Moment, StoreError> {
        // Before the look-up: a commit in between makes the answer old, never too new.
        let moment = Moment(self.engine.shared.claims().commits());
        self.engine.store().lookup(keys, found)?;
        Ok(moment)
    }

    /// Looks one candidate up and claims its key if it is new. A candidate without a key is new.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn look(&self, candidate: &Candidate) -> Result<Look, StoreError> {
        self.claim(candidate, None)
    }

    /// As [`look`](Ledger::look), for a key that was unknown at `unknown_at`.
    pub(crate) fn claim(
        &self,
        candidate: &Candidate,
        unknown_at: Option<Moment>,
    ) -> Result<Look, StoreError> {
        let Some(key) = candidate.fingerprint else {
            return Ok(Look::New);
        };
        let shared = &*self.engine.shared;
        let mark = Mark::first_seen(self.lease.id, candidate.offset, candidate.value_digest);
        match shared.claims().take(key, self.open.holder(), mark) {
            Claim::Own(mark) if mark.dead_lettered || self.open.is_held(mark.offset) => {
                Ok(Look::Busy)
            }
            Claim::Own(mark) => Ok(self.known(candidate, mark, false)),
            Claim::Elsewhere => Ok(Look::Busy),
            Claim::Taken => {
                // Claim first, look second: whoever let go of the key a moment ago has its mark
                // in the index by now.
                let now = Moment(shared.claims().commits());
                if unknown_at == Some(now) {
                    return Ok(Look::New);
                }
                let mut found = Vec::with_capacity(1);
                let looked = shared.store.lookup(&[key], &mut found);
                let answers = |mark: &Mark| {
                    !(candidate.over_restored && mark.restored)
                        && answers_for(mark, self.lease.id, candidate.offset)
                };
                match (looked, found.first()) {
                    (Ok(()), Some(None)) => Ok(Look::New),
                    (Ok(()), Some(Some(mark))) if !answers(mark) => Ok(Look::New),
                    (Ok(()), Some(Some(mark))) => {
                        shared.claims().release(&key, self.open.holder());
                        Ok(self.known(candidate, *mark, true))
                    }
                    (looked, _) => {
                        shared.claims().release(&key, self.open.holder());
                        looked.and(Err(StoreError::Misused("a store answered no look-up")))
                    }
                }
            }
        }
    }

    pub(crate) fn known(&self, candidate: &Candidate, mark: Mark, durable: bool) -> Look {
        let decision = decide(
            &mark,
            self.lease.id,
            candidate.offset,
            candidate.value_digest,
        );
        Look::Known {
            decision,
            mark,
            durable,
        }
    }

    /// Looks candidates up and claims the new ones, as [`look`](Ledger::look) does one after the
    /// other: a second candidate with the key of a new one is known. `looks` is cleared and gets
    /// one answer for each, in order.
    ///
    /// With millions of keys each single look-up waits for memory; the waits of many overlap.
    ///
    /// # Errors
    /// Where the store cannot be read. Candidates that were claimed until then stay claimed.
    pub fn look_all(
        &self,
        candidates: &[Candidate],
        looks: &mut Vec<Look>,
    ) -> Result<(), StoreError> {
        looks.clear();
        let keys = candidates.iter().filter_map(|one| one.fingerprint);
        let mut marks = Vec::with_capacity(candidates.len());
        let moment = self.lookup(&keys.collect::<Vec<_>>(), &mut marks)?;
        let mut marks = marks.into_iter();
        for candidate in candidates {
            let mark = candidate.fingerprint.and_then(|_| marks.next().flatten());
            let mark = mark.filter(|mark| answers_for(mark, self.lease().id, candidate.offset));
            looks.push(match mark {
                Some(mark) => self.known(candidate, mark, true),
                None => self.claim(candidate, Some(moment))?,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::TopicPartition;
    use crate::engine::Engine;
    use crate::key::Scope;
    use crate::store::{MemoryStore, Owner};

    #[test]
    fn many_looked_at_together_are_what_they_are_one_by_one() {
        let owner = Owner {
            group: "group".into(),
            recipe: "line".into(),
            scope: "topic".into(),
        };
        let engine = Engine::new(Arc::new(MemoryStore::new()), &owner, Scope::Topic).unwrap();
        let mut ledger = engine.lease(&TopicPartition::new("lines", 0)).unwrap();
        let old = ledger.candidate(0, b"old", None);
        assert_eq!(ledger.look(&old).unwrap(), Look::New);
        ledger.done(&old, None).unwrap();
        engine.commit().unwrap();
        let keys = [b"new", b"old", b"new"];
        let candidates: Vec<_> = (1..)
            .zip(keys)
            .map(|(offset, key)| ledger.candidate(offset, key, None))
            .chain([Candidate {
                fingerprint: None,
                ..ledger.candidate(4, b"", None)
            }])
            .collect();
        let mut looks = vec![Look::Busy];
        ledger.look_all(&candidates, &mut looks).unwrap();
        let durable: Vec<_> = looks
            .iter()
            .map(|look| match look {
                Look::Known { durable, .. } => Some(*durable),
                _ => None,
            })
            .collect();
        assert_eq!(durable, [None, Some(true), Some(false), None]);
        assert_eq!((looks[0], looks[3]), (Look::New, Look::New));
        let other = engine.lease(&TopicPartition::new("lines", 1)).unwrap();
        other.look_all(&candidates[..2], &mut looks).unwrap();
        assert!(matches!(looks[..], [Look::Busy, Look::Known { .. }]));
    }
}
