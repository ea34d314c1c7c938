//! Opening a store: what stands beside the log is checked against it before anything is believed.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;

use super::read::{self, Reading};
use super::{
    Bounds, Covered, DirectoryStore, Durability, Engine, HighWater, Index, Journal, Log, Mutex,
    Partitions, Path, Paths, Stamp, State, StoreError, files, high_water, journal, stamp,
};
use crate::clock::SystemClock;
use crate::record::TopicPartition;
use crate::store::{Claims, PartitionId};

/// Opens the store at `directory`, or makes one where there is nothing and `create` says so. `log`
/// opens the log at a path, or makes it.
pub(in crate::store) fn open<E: Engine>(
    directory: &Path,
    durability: Durability,
    create: bool,
    bounds: Bounds,
    log: impl FnOnce(&Path) -> Result<E, StoreError>,
) -> Result<DirectoryStore<E>, StoreError> {
    if cfg!(panic = "abort") {
        tracing::warn!(
            "built with panic = \"abort\": a damaged store may end the process instead of being \
             refused, and so does a handler's panic"
        );
    }
    let paths = Paths::new::<E>(directory);
    if directory.as_os_str().is_empty() {
        let empty = io::Error::new(io::ErrorKind::InvalidInput, "the path is empty");
        return Err(files::unusable(directory)(empty));
    }
    if !create && !paths.stamp.exists() {
        let none = io::Error::new(io::ErrorKind::NotFound, "there is none, and none is made");
        return Err(files::unusable(directory)(none));
    }
    fs::create_dir_all(directory).map_err(files::unusable(directory))?;
    // Before the lock, which would leave a file in a directory that is somebody else's.
    refuse_foreign(&paths)?;
    let lock = files::Lock::take(directory, &paths.lock)?;
    open_locked(paths, lock, durability, bounds, log)
}

/// Opens what lies at `paths`, or begins it.
pub(super) fn open_locked<E: Engine>(
    paths: Paths,
    lock: files::Lock,
    durability: Durability,
    bounds: Bounds,
    log: impl FnOnce(&Path) -> Result<E, StoreError>,
) -> Result<DirectoryStore<E>, StoreError> {
    let directory = paths.directory.as_path();
    let mut stamp = match Stamp::read(directory, &paths.stamp)? {
        Some(stamp) => stamp,
        None => begin::<E>(&paths)?,
    };
    if stamp.engine() != E::NAME {
        return Err(StoreError::OtherEngine {
            path: directory.to_owned(),
            theirs: stamp.engine().to_owned(),
            ours: E::NAME,
        });
    }
    if stamp.format != stamp::FORMAT {
        // An older one that is read. Before anything is written that its version does not know.
        tracing::info!(path = %directory.display(), from = stamp.format, to = stamp::FORMAT,
            "the store's format is raised");
        stamp.format = stamp::FORMAT;
        stamp.write(&paths.stamp)?;
    }
    let (mut high_water, mut marks) = HighWater::open(&paths.high_water, stamp.partitions.len())?;
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
    if !paths.data.exists() && !stamp.partitions.is_empty() {
        return Err(files::damaged(&paths.log, "the log is gone"));
    }
    let log = log(&paths.log)?;
    let (index, covered) = open_index(&log, &paths, &partitions, &stamp.store_id, bounds)?;
    let reading = Reading::new(&log, &paths, &mut partitions, &mut marks, &index);
    reading.read(&covered)?;
    raise(&log, &paths, &partitions, &mut marks, &mut high_water)?;
    let (journal, left) = Journal::open(&paths.journal, stamp.partitions.is_empty())?;
    if journal.is_of_another_boot() {
        doubt(&paths, &mut marks, &mut high_water)?;
    }
    let store = DirectoryStore {
        state: Mutex::new(State {
            log,
            stamp,
            high_water,
            marks,
            partitions,
            poison: None,
            clock: Arc::new(SystemClock::new()),
            oldest: HashMap::new(),
        }),
        journal: Mutex::new(journal),
        index,
        claims: Claims::default(),
        paths,
        durability,
        _lock: lock,
    };
    journal::take_over(&store, left)?;
    Ok(store)
}

/// Writes down that leases which were not released may lack what was kept. Before the journal says
/// that it is of this boot: whoever opens the store next could not tell any more.
fn doubt(
    paths: &Paths,
    marks: &mut [high_water::Mark],
    high_water: &mut HighWater,
) -> Result<(), StoreError> {
    let failed = || files::failed::<io::Error>(&paths.high_water, "writing the high water");
    for (id, mark) in (0..).map(PartitionId).zip(marks) {
        if mark.open && !mark.lacks {
            mark.lacks = true;
            high_water.write(id, mark).map_err(failed())?;
        }
    }
    high_water.sync().map_err(failed())
}

/// Opens the index; where it is not of this log, an empty one in its place.
fn open_index(
    log: &impl Log,
    paths: &Paths,
    partitions: &Partitions,
    store_id: &str,
    bounds: Bounds,
) -> Result<(Index, Covered), StoreError> {
    let (index, covered) = Index::open(&paths.index, store_id, bounds)?;
    let Some(what) = read::doubt(log, partitions, &covered)? else {
        return Ok((index, covered));
    };
    tracing::warn!(path = %paths.index.display(), what,
        "the index is not of this log: it is made anew from it");
    index.invalidate()?;
    drop(index);
    Index::open(&paths.index, store_id, bounds)
}

/// A directory without a stamp may hold nothing but what an unfinished creation leaves behind.
fn refuse_foreign(paths: &Paths) -> Result<(), StoreError> {
    let directory = &paths.directory;
    let new = paths.stamp.with_extension("new");
    let ours = [
        &paths.stamp,
        &new,
        &paths.lock,
        &paths.high_water,
        &paths.journal,
        &paths.log,
    ];
    if paths.stamp.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(files::unusable(directory))? {
        let path = entry.map_err(files::unusable(directory))?.path();
        if !ours.contains(&&path) {
            let found = format!("no store, and not empty: it holds {}", path.display());
            return Err(files::unusable(directory)(io::Error::other(found)));
        }
    }
    Ok(())
}

/// Starts a store in an empty directory.
fn begin<E: Engine>(paths: &Paths) -> Result<Stamp, StoreError> {
    let directory = &paths.directory;
    if paths.log.exists() || paths.high_water.exists() {
        return Err(files::damaged(directory, "its stamp is gone"));
    }
    let stamp = Stamp::new(E::NAME).map_err(files::unusable(directory))?;
    stamp.write(&paths.stamp)?;
    files::sync_parent(directory).map_err(files::failed(directory, "syncing a directory"))?;
    Ok(stamp)
}

/// Demands from now on what was found: without `Power` the high water lags behind until a release,
/// and after a death of the process nothing else would miss a record that goes later.
fn raise(
    log: &impl Log,
    paths: &Paths,
    partitions: &Partitions,
    marks: &mut [high_water::Mark],
    high_water: &mut HighWater,
) -> Result<(), StoreError> {
    let mut lagging = partitions
        .iter()
        .zip(marks)
        .filter_map(|((id, partition), mark)| {
            let place = partition.head.map(|_| high_water::held(partition.place))?;
            Some((id, place, mark))
        })
        .filter(|(_, place, mark)| mark.place.map(high_water::held) != Some(*place))
        .peekable();
    if lagging.peek().is_none() {
        return Ok(());
    }
    log.sync()?;
    let failed = || files::failed::<io::Error>(&paths.high_water, "writing the high water");
    for (id, place, mark) in lagging {
        mark.place = Some(place);
        high_water.write(id, mark).map_err(failed())?;
    }
    high_water.sync().map_err(failed())
}
