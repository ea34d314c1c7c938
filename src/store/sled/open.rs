//! Opening a store: everything is read and checked before anything is believed.

use std::time::{Duration, Instant};

use super::{
    HighWater, Index, Log, Mutex, NextOffset, Partitions, Path, Paths, SledOptions, SledStore,
    Stamp, State, StoreError, TopicPartition, files, format, fs, high_water, io,
};
use crate::store::CommitUnit;

/// How often a long opening says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(super) fn open(directory: &Path, options: &SledOptions) -> Result<SledStore, StoreError> {
    let paths = Paths::new(directory);
    fs::create_dir_all(directory).map_err(files::unusable(directory))?;
    let lock = files::Lock::take(directory, &paths.lock)?;
    let stamp = match Stamp::read(directory, &paths.stamp)? {
        Some(stamp) => stamp,
        None => create(&paths)?,
    };
    let (high_water, marks) = HighWater::open(&paths.high_water, stamp.partitions.len())?;
    let mut partitions = Partitions::default();
    for (name, mark) in stamp.partitions.iter().zip(&marks) {
        let name = TopicPartition::new(name.topic.as_str(), name.partition);
        let (id, new) = partitions.register(&name)?;
        if !new {
            return Err(files::damaged(
                &paths.stamp,
                format!("it names {name} twice"),
            ));
        }
        partitions.restore(id, mark.epoch, mark.open)?;
    }
    if !paths.log.exists() && marks.iter().any(|mark| mark.next.is_some()) {
        return Err(files::damaged(&paths.log, "the log is gone"));
    }
    let log = Log::open(&paths.log, options.durability, options.cache_bytes)?;
    let index = Index::default();
    let mut marks = marks;
    read_log(&log, &paths, &mut partitions, &mut marks, &index)?;
    Ok(SledStore {
        state: Mutex::new(State {
            log,
            stamp,
            high_water,
            marks,
            partitions,
            poison: None,
        }),
        index,
        paths,
        durability: options.durability,
        _lock: lock,
    })
}

/// Starts a store in an empty directory. Anything else in it means that the stamp was lost, or
/// that the directory is somebody else's.
fn create(paths: &Paths) -> Result<Stamp, StoreError> {
    let directory = &paths.directory;
    for entry in fs::read_dir(directory).map_err(files::unusable(directory))? {
        let path = entry.map_err(files::unusable(directory))?.path();
        if path == paths.log || path == paths.high_water {
            return Err(files::damaged(directory, "its stamp is gone"));
        }
        // A stamp that a crash kept from its name is no stamp yet.
        if path != paths.lock && path != paths.stamp.with_extension("new") {
            let found = format!("no store, and not empty: it holds {}", path.display());
            return Err(files::unusable(directory)(io::Error::other(found)));
        }
    }
    let stamp = Stamp::new().map_err(files::unusable(directory))?;
    stamp.write(&paths.stamp)?;
    files::sync_parent(directory).map_err(files::failed(directory, "syncing a directory"))?;
    Ok(stamp)
}

/// Rebuilds heads and index, and checks that no stretch is missing: records must meet, begin where
/// the partition began, and reach at least as far as the high water says.
fn read_log(
    log: &Log,
    paths: &Paths,
    partitions: &mut Partitions,
    marks: &mut [high_water::Mark],
    index: &Index,
) -> Result<(), StoreError> {
    let damaged = |what: String| files::damaged(&paths.log, what);
    let (start, mut said) = (Instant::now(), Instant::now());
    log.scan(|key, value| {
        let unit = format::decode(key, value).map_err(|what| damaged(what.to_owned()))?;
        follow(partitions, marks, &unit).map_err(damaged)?;
        partitions.advance(&unit)?;
        index.insert(&unit);
        if said.elapsed() >= PROGRESS_EVERY {
            said = Instant::now();
            tracing::info!(path = %paths.directory.display(), keys = index.len(), "reading the store");
        }
        Ok(())
    })?;
    for ((id, partition), mark) in partitions.iter().zip(marks) {
        let reached = partition.head.map(|head| head.next);
        if reached < mark.next {
            return Err(damaged(format!(
                "the log of {} (number {}) ends at offset {}, but had been acknowledged up to {}",
                partition.name,
                id.0,
                reached.map_or(0, NextOffset::get),
                mark.next.map_or(0, NextOffset::get),
            )));
        }
    }
    if start.elapsed() >= PROGRESS_EVERY {
        let seconds = start.elapsed().as_secs_f32();
        tracing::info!(path = %paths.directory.display(), keys = index.len(), seconds, "store read");
    }
    Ok(())
}

/// Whether a record continues its partition's chain.
fn follow(
    partitions: &Partitions,
    marks: &mut [high_water::Mark],
    unit: &CommitUnit,
) -> Result<(), String> {
    let (Some(partition), Some(mark)) =
        (partitions.get(unit.id), marks.get_mut(unit.id.0 as usize))
    else {
        return Err(format!(
            "a record of partition number {}, which has no name",
            unit.id.0
        ));
    };
    let expected = partition.head.map(|head| head.next).or(mark.floor);
    if expected.is_some_and(|expected| expected != unit.previous) {
        return Err(format!(
            "the log of {} has a hole: the record up to offset {} begins at {} instead of {}",
            partition.name,
            unit.next,
            unit.previous,
            expected.map_or(0, NextOffset::get),
        ));
    }
    mark.floor = mark.floor.or(Some(unit.previous));
    Ok(())
}
