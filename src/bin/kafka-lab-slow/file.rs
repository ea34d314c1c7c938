//! The state file, through which the commands reach each other.
//!
//! | file | what it is |
//! | --- | --- |
//! | `FILE` | on or off and the settings, replaced as a whole |
//! | `FILE.serve` | what the running serve has put in force, replaced as a whole |
//! | `FILE.serve.lock` | locked by a serve for as long as it runs; the system unlocks it if it is killed |
//! | `FILE.edit.lock` | locked from reading `FILE` until what was written to it is in force |
//!
//! A state is confirmed when `FILE.serve` holds an equal one, so nothing has to be counted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::disk::{Lock, POLL, beside, lock, read, replace};
use crate::error::Error;
use crate::state::{DELAY_MS_MAX, Serving, State};

/// How long a command waits for another command, or for a serve to confirm.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a new serve waits for the lock of an old one: a `status` holds it for a moment.
const SERVE_LOCK_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
    serve: PathBuf,
    serve_lock: PathBuf,
    edit_lock: PathBuf,
}

impl StateFile {
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            serve: beside(path, ".serve"),
            serve_lock: beside(path, ".serve.lock"),
            edit_lock: beside(path, ".edit.lock"),
        }
    }

    /// The stored state; `None` when nothing was stored yet.
    pub(crate) fn read(&self) -> Result<Option<State>, Error> {
        let state: Option<State> = read(&self.path)?;
        match state {
            Some(state) if !(1..=DELAY_MS_MAX).contains(&state.delay_ms) => Err(Error::Damaged {
                path: self.path.clone(),
                reason: format!("delay_ms is {}", state.delay_ms),
            }),
            state => Ok(state),
        }
    }

    pub(crate) fn write(&self, state: State) -> Result<(), Error> {
        replace(&self.path, &state)
    }

    /// Keeps other commands from changing the state.
    pub(crate) fn lock_for_edit(&self) -> Result<Lock, Error> {
        lock(&self.edit_lock, PATIENCE)?.ok_or_else(|| Error::Busy {
            path: self.path.clone(),
            waited: PATIENCE,
        })
    }

    /// Makes this process the one that serves.
    pub(crate) fn lock_for_serve(&self) -> Result<Lock, Error> {
        match lock(&self.serve_lock, SERVE_LOCK_PATIENCE)? {
            Some(lock) => Ok(lock),
            None => Err(Error::AlreadyServing {
                path: self.path.clone(),
                process_id: self.process_id(),
            }),
        }
    }

    /// Whether a serve runs, which its lock tells even if it was killed. Opened for reading, so
    /// that everybody may ask.
    pub(crate) fn is_served(&self) -> Result<bool, Error> {
        let failed = |source| Error::file("look at", &self.serve_lock, source);
        let file = match File::open(&self.serve_lock) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// What the serve last said; worth nothing unless [`StateFile::is_served`].
    pub(crate) fn serving(&self) -> Result<Option<Serving>, Error> {
        read(&self.serve)
    }

    pub(crate) fn confirm(&self, serving: Serving) -> Result<(), Error> {
        replace(&self.serve, &serving)
    }

    pub(crate) fn withdraw(&self) -> Result<(), Error> {
        match fs::remove_file(&self.serve) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::file("remove", &self.serve, error))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the running serve has put this state in force; `None` when none runs.
    pub(crate) fn wait_in_force(&self, state: State) -> Result<Option<Serving>, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if !self.is_served()? {
                return Ok(None);
            }
            match self.serving()? {
                Some(serving) if serving.in_force == state => return Ok(Some(serving)),
                _ if Instant::now() >= deadline => {
                    return Err(Error::NotConfirmed {
                        path: self.path.clone(),
                        process_id: self.process_id(),
                        waited: PATIENCE,
                    });
                }
                _ => thread::sleep(POLL),
            }
        }
    }

    fn process_id(&self) -> Option<u32> {
        let serving = self.serving().ok().flatten()?;
        Some(serving.process_id)
    }
}
