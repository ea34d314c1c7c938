//! Copies a store into another directory, and mostly into another engine.

use std::fs;
use std::io;
use std::path::Path;

use super::high_water::HighWater;
use super::state::State;
use super::{Bounds, DirectoryStore, Durability, Engine, Paths, files, open};
use crate::store::{Mark, Store as _, StoreError, format};

/// What a copy's stamp is called until the copy has been compared: a directory without a stamp is
/// opened by nobody, and this name says why there is none.
const UNFINISHED: &str = "unfinished-copy";
/// How much is inserted between two syncs: a bound for what an engine keeps in memory.
const SYNC_EVERY_BYTES: usize = 8 << 20;

/// What was copied, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The partitions.
    pub partitions: u64,
    /// The keys, as the source's [summary](crate::store::Store::summary) counts them.
    pub keys: u64,
    /// The records of the log.
    pub records: u64,
}

/// Says what [`copy`] would do, and whether the target may be used. Nothing is written.
pub(in crate::store) fn plan<E: Engine>(
    source: &DirectoryStore<E>,
    directory: &Path,
) -> Result<Copied, StoreError> {
    refuse_taken(directory)?;
    count(source)
}

/// Copies every record as it is, then what stands beside them; opens the copy as any store is
/// opened, compares it, and only then gives it the stamp that makes it one.
pub(in crate::store) fn copy<E: Engine, T: Engine>(
    source: &DirectoryStore<E>,
    directory: &Path,
    log: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<Copied, StoreError> {
    let planned = plan(source, directory)?;
    fs::create_dir_all(directory).map_err(files::unusable(directory))?;
    let mut paths = Paths::new::<T>(directory);
    let stamp = std::mem::replace(&mut paths.stamp, directory.join(UNFINISHED));
    let lock = files::Lock::take(directory, &paths.lock)?;
    {
        // Held to the end of the copying: nothing is committed to the source meanwhile.
        let state = source.state();
        state.stamp.for_engine(T::NAME).write(&paths.stamp)?;
        copy_log(&state, &log(&paths.log)?)?;
        copy_marks(&state, &paths)?;
    }
    let copied = open::open_locked(paths, lock, Durability::Power, Bounds::default(), log)?;
    compare(source, &copied)?;
    let found = count(&copied)?;
    // Not the keys: one that has several marks is counted by how they were sealed.
    if (found.partitions, found.records) != (planned.partitions, planned.records) {
        return Err(differs(&copied)(format!(
            "{found:?} instead of {planned:?}"
        )));
    }
    let unfinished = copied.paths.stamp.clone();
    drop(copied);
    fs::rename(unfinished, &stamp)
        .and_then(|()| files::sync_parent(&stamp))
        .and_then(|()| files::sync_parent(directory))
        .map_err(files::failed(&stamp, "finishing the copy"))?;
    Ok(planned)
}

/// A copy goes where nothing is, but for the lock of one that was refused.
fn refuse_taken(directory: &Path) -> Result<(), StoreError> {
    let unusable = |error| files::unusable(directory)(error);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unusable(error)),
    };
    for entry in entries {
        let entry = entry.map_err(unusable)?;
        if entry.file_name() != "lock" {
            let held = entry.path();
            let held = format!("nothing is copied over what is there: {}", held.display());
            return Err(unusable(io::Error::other(held)));
        }
    }
    Ok(())
}

fn count<E: Engine>(store: &DirectoryStore<E>) -> Result<Copied, StoreError> {
    let state = store.state();
    if let Some(cause) = &state.poison {
        return Err(StoreError::Poisoned {
            place: store.place(),
            cause: cause.clone(),
        });
    }
    let mut records = 0;
    state.scan(|_, _| {
        records += 1;
        Ok(())
    })?;
    Ok(Copied {
        partitions: state.partitions.len() as u64,
        keys: store.index.len(),
        records,
    })
}

fn copy_log<E: Engine, T: Engine>(source: &State<E>, target: &T) -> Result<(), StoreError> {
    let mut unsynced = 0;
    source.scan(|key, value| {
        target.insert(key, value.to_vec())?;
        unsynced += value.len();
        if unsynced >= SYNC_EVERY_BYTES {
            unsynced = 0;
            target.sync()?;
        }
        Ok(())
    })?;
    target.sync()
}

fn copy_marks<E: Engine>(source: &State<E>, paths: &Paths) -> Result<(), StoreError> {
    let failed = || files::failed::<io::Error>(&paths.high_water, "writing the high water");
    let (mut high_water, _) = HighWater::open(&paths.high_water, 0)?;
    for ((id, _), mark) in source.partitions.iter().zip(&source.marks) {
        high_water.write(id, mark).map_err(failed())?;
    }
    high_water.sync().map_err(failed())
}

/// Whether the copy knows what its source does, as it was read back from the disk.
pub(super) fn compare<E: Engine, T: Engine>(
    source: &DirectoryStore<E>,
    copied: &DirectoryStore<T>,
) -> Result<(), StoreError> {
    let differs = differs(copied);
    let (ours, theirs) = (source.state(), copied.state());
    if ours.stamp.for_engine(T::NAME) != theirs.stamp {
        return Err(differs("its stamp is another".to_owned()));
    }
    let pairs = ours.partitions.iter().zip(theirs.partitions.iter());
    for (((_, one), (_, other)), (mark, copy)) in pairs.zip(ours.marks.iter().zip(&theirs.marks)) {
        if !one.is_same(other) || one.head.and(mark.floor) != other.head.and(copy.floor) {
            return Err(differs(format!("{other:?} instead of {one:?}")));
        }
    }
    let (mut known, mut found) = (Vec::new(), Vec::new());
    ours.scan(|key, value| {
        let logged =
            format::decode(key, value).map_err(|what| files::damaged(&source.paths.log, what))?;
        let same = theirs
            .log
            .first_from(key)?
            .is_some_and(|(at, record)| at.as_ref() == key && record.as_ref() == value);
        let keys: Vec<_> = logged
            .unit
            .entries
            .iter()
            .map(|one| one.fingerprint)
            .collect();
        source.lookup(&keys, &mut known)?;
        copied.lookup(&keys, &mut found)?;
        if same && known.iter().zip(&found).all(knows_as_well) {
            return Ok(());
        }
        let (id, place) = (logged.unit.id.0, logged.place);
        Err(differs(format!(
            "the record of partition number {id} up to {place} is another"
        )))
    })
}

/// Whether a copy knows as much of a key as its source, which keeps one of several marks of a rank:
/// where that has expired, a later one that suppresses nothing is in the log alone, and the copy,
/// made from the log, has it.
fn knows_as_well((known, found): (&Option<Mark>, &Option<Mark>)) -> bool {
    let suppresses = |mark: &Mark| !mark.dead_lettered && !mark.forgotten;
    let weak = |mark: Option<&Mark>| mark.is_none_or(|mark| !suppresses(mark));
    known == found || found.is_some() && weak(known.as_ref()) && weak(found.as_ref())
}

fn differs<E: Engine>(copied: &DirectoryStore<E>) -> impl Fn(String) -> StoreError + '_ {
    |what| StoreError::CopyDiffers {
        path: copied.paths.directory.clone(),
        what,
    }
}
