//! Looking at many records at once.

use super::{Candidate, Ledger, Look};
use crate::store::StoreError;

impl Ledger {
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
