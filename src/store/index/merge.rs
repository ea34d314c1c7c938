//! Several runs become one, so that a look-up asks few filters.

use std::ops::Range;

use super::known::Known;
use super::run::{Cursor, Run};
use super::sealer::{Goes, Sealer};
use super::tiers::Tiers;
use crate::store::StoreError;

/// So many neighbours of one size are merged. With 4, a hundred million keys lie in 4 to 13 runs
/// and are written four times.
const MERGED_AT_ONCE: usize = 4;
/// Keys between two looks at what else is to be done.
const KEYS_AT_ONCE: u64 = 4096;

/// Which runs are to be merged next: neighbours, since of two marks of a key the older stands.
pub(super) fn due(runs: &[Run], active_keys: usize) -> Option<Range<usize>> {
    let keys = runs.iter().map(|run| run.keys);
    due_of(&keys.collect::<Vec<_>>(), active_keys as u64)
}

fn due_of(keys: &[u64], active_keys: u64) -> Option<Range<usize>> {
    let mut size = 0;
    // From the newest back. An old one that is smaller than its successors counts as large as they
    // are, so that it is merged with them and the number of runs stays bounded.
    let sizes = keys.iter().rev().map(|keys| {
        size = size_of(*keys, active_keys).max(size);
        size
    });
    let sizes: Vec<_> = sizes.collect();
    let mut to = keys.len();
    for neighbours in sizes.chunk_by(|one, other| one == other) {
        let from = to - neighbours.len();
        if neighbours.len() >= MERGED_AT_ONCE {
            return Some(from..to);
        }
        to = from;
    }
    None
}

/// 0 for what is sealed at once, one more for every merge. The half is for what falls away.
fn size_of(keys: u64, active_keys: u64) -> u32 {
    let tables = keys.saturating_mul(2) / active_keys.max(1);
    tables.max(1).ilog(MERGED_AT_ONCE as u64)
}

/// Merges runs, and has look-ups ask the new one for what it has already: what is in memory of the
/// old ones is let go of bit by bit.
pub(super) fn merge(sealer: &Sealer, runs: Range<usize>) -> Result<Goes, StoreError> {
    let tiers = sealer.current.get();
    let inputs = tiers.runs.get(runs).unwrap_or_default();
    let merged: Vec<_> = inputs.iter().map(|run| run.file.number).collect();
    let keys = inputs.iter().map(|run| run.keys).sum();
    let mut cursors: Vec<_> = inputs.iter().map(Run::cursor).collect();
    // The filters are let go of through the current state: none is to be held here.
    let counts = tiers.without_runs();
    drop(tiers);
    let Some(mut writer) = sealer.begin_run(keys)? else {
        return Ok(Goes::Out);
    };
    for cursor in &mut cursors {
        cursor.advance()?;
    }
    let mut taken: u64 = 0;
    let mut stands = None;
    while next(&mut cursors, &counts, &mut stands)? {
        let finished = match &stands {
            Some(known) => writer.push(known)?,
            None => false,
        };
        if finished {
            let so_far = (writer.so_far(), writer.finished_shards());
            sealer.current.change(|tiers| put(tiers, &merged, so_far));
        }
        taken += 1;
        if taken % KEYS_AT_ONCE == 0 && sealer.seal_pending()? == Goes::Out {
            writer.abandon();
            return Ok(Goes::Out);
        }
    }
    sealer.replace(&merged, writer.finish()?)
}

/// Takes the lowest key, and puts into `stands` which of its entries does: `None` where none counts
/// any more. `false` behind the last key.
///
/// What does not count is passed over before ranks are compared: it would win over a later mark of
/// its key, and take that with it.
fn next(
    cursors: &mut [Cursor],
    counts: &Tiers,
    stands: &mut Option<Known>,
) -> Result<bool, StoreError> {
    *stands = None;
    let entries = cursors.iter().filter_map(Cursor::entry);
    let Some(least) = entries.map(|entry| entry.fingerprint).min() else {
        return Ok(false);
    };
    for cursor in cursors {
        let Some(entry) = cursor.entry().filter(|entry| entry.fingerprint == least) else {
            continue;
        };
        if counts.counts(entry) && stands.is_none_or(|best| best.rank() < entry.rank()) {
            *stands = Some(*entry);
        }
        cursor.advance()?;
    }
    Ok(true)
}

/// Puts a run, as far as it is, before those that it is merged from, and lets go of their shards
/// that it has all keys of. Before: where one of two old shards is gone already, the other must not
/// answer with a mark that has given way.
fn put(tiers: &mut Tiers, merged: &[u64], (run, finished): (Run, usize)) {
    for old in &mut tiers.runs {
        if !merged.contains(&old.file.number) {
            continue;
        }
        // Where the new one has more shards, some of its own make one of the old. It may have fewer,
        // since an old one was made for keys that fell away: then that keeps its own for longer.
        let shift = run.shard_bits.saturating_sub(old.shard_bits);
        let done = finished >> shift;
        if old.shards.iter().take(done).any(Option::is_some) {
            for shard in old.shards.iter_mut().take(done) {
                *shard = None;
            }
        }
    }
    let number = run.file.number;
    if let Some(place) = tiers.runs.iter_mut().find(|one| one.file.number == number) {
        *place = run;
        return;
    }
    let first = tiers
        .runs
        .iter()
        .position(|one| merged.contains(&one.file.number));
    tiers.runs.insert(first.unwrap_or(tiers.runs.len()), run);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1 << 20;

    /// The runs after so many tables were sealed, each of `MILLION` keys.
    fn sealed(tables: usize) -> Vec<u64> {
        let mut runs = Vec::new();
        for _ in 0..tables {
            runs.extend([MILLION]);
            while let Some(due) = due_of(&runs, MILLION) {
                let keys = runs[due.clone()].iter().sum();
                runs.splice(due, [keys]);
            }
        }
        runs
    }

    #[test]
    fn neighbours_of_one_size_are_merged_and_few_runs_are_left() {
        assert_eq!(sealed(3), [MILLION; 3]);
        assert_eq!(sealed(4), [4 * MILLION]);
        assert_eq!(sealed(23), [16, 4, 1, 1, 1].map(|tables| tables * MILLION));
        for tables in 1..300 {
            let runs = sealed(tables);
            assert!(runs.len() <= 3 * 5, "{tables}: {runs:?}");
            assert_eq!(runs.iter().sum::<u64>(), tables as u64 * MILLION);
        }
    }

    #[test]
    fn an_old_run_that_is_small_does_not_keep_its_neighbours_apart() {
        let runs = [1, 20, 1, 20, 1, 20].map(|keys| keys * MILLION);
        assert_eq!(due_of(&runs, MILLION), Some(0..6));
    }
}
