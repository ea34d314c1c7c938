//! Where the figures of a run go, and in what form.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    args::{Config, Stats},
    error::Error,
    files, say,
    stats::Summary,
    stdin::Stdin,
};

pub(crate) struct Report {
    form: Option<Stats>,
    file: Option<(PathBuf, File)>,
}

impl Report {
    /// Opens the file, where there is to be one, and empties it: figures of an earlier run would
    /// pass for this one's where it does not come to its end, whatever the reason.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let file = match &config.stats_file {
            None => None,
            Some(path) => {
                let file = open(path, config)?;
                empty(&file).map_err(|source| Error::io("empty for the figures", path, source))?;
                Some((path.clone(), file))
            }
        };
        Ok(Self {
            form: config.stats,
            file,
        })
    }

    pub(crate) fn give(self, summary: &Summary) -> Result<(), Error> {
        let text = match self.form {
            None => return Ok(()),
            Some(Stats::Text) => summary.to_string(),
            Some(Stats::Json) => summary.json(),
        };
        match self.file {
            Some((path, file)) => {
                replace(&file, &text).map_err(|source| Error::FiguresUnsaid { path, source })
            }
            None if self.form == Some(Stats::Json) => {
                // Nobody to talk to is no failure here either.
                let _ = writeln!(io::stderr(), "{text}");
                Ok(())
            }
            None => {
                say(&text);
                Ok(())
            }
        }
    }
}

/// Refuses what holds lines: it would be emptied.
fn open(path: &Path, config: &Config) -> Result<File, Error> {
    let failed = |source| Error::io("open for the figures", path, source);
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    let figures = file.metadata().map_err(failed)?;
    let is_same = |other: io::Result<Metadata>| {
        other.is_ok_and(|other| other.is_file() && files::same(&other, &figures))
    };
    let input = Stdin::open().and_then(|stdin| stdin.metadata());
    // Asked for once it is there, so that two names of one new file are noticed too.
    let others = [fs::metadata(&config.seen), fs::metadata(&config.out), input];
    if others.into_iter().any(is_same) {
        return Err(Error::Refused {
            path: path.to_path_buf(),
            reason: "it is the seen file, the out file or the input; give the figures their own",
        });
    }
    Ok(file)
}

/// There is nothing to empty in a pipe or a device.
fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(())
}

/// Another run may have given its figures meanwhile.
fn replace(mut file: &File, text: &str) -> io::Result<()> {
    empty(file)?;
    writeln!(file, "{text}")
}
