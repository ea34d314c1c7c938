//! What handlers did, over all members and runs, and whether it was right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// One call of a handler that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) member: &'static str,
    pub(crate) key: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) in_doubt: bool,
}

/// Effects in the order in which they happened.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Vec<Effect>>>);

impl History {
    fn effects(&self) -> MutexGuard<'_, Vec<Effect>> {
        self.0.lock().unwrap()
    }

    pub(crate) fn add(&self, effect: Effect) {
        self.effects().push(effect);
    }

    pub(crate) fn len(&self) -> usize {
        self.effects().len()
    }

    pub(crate) fn list(&self) -> Vec<Effect> {
        self.effects().clone()
    }

    /// The keys in the order of their effects.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.effects()
            .iter()
            .map(|effect| effect.key.clone())
            .collect()
    }

    pub(crate) fn count_of(&self, member: &str) -> usize {
        self.effects()
            .iter()
            .filter(|effect| effect.member == member)
            .count()
    }

    /// Every key took effect, and none twice.
    pub(crate) fn assert_each_once(&self, keys: &[String]) {
        let mut times: BTreeMap<&str, Vec<&Effect>> =
            keys.iter().map(|key| (key.as_str(), vec![])).collect();
        let effects = self.effects();
        for effect in effects.iter() {
            times.entry(&effect.key).or_default().push(effect);
        }
        let lost: Vec<_> = times.iter().filter(|(_, times)| times.is_empty()).collect();
        let twice: Vec<_> = times.iter().filter(|(_, times)| times.len() > 1).collect();
        assert!(
            lost.is_empty() && twice.is_empty() && times.len() == keys.len(),
            "{} lost, first {:?}; {} twice, first {:?}; {} known of {}",
            lost.len(),
            &lost[..lost.len().min(3)],
            twice.len(),
            &twice[..twice.len().min(3)],
            times.len(),
            keys.len(),
        );
    }
}
