//! Appending lines so that it is known, also after a failure, which ones are there.

use std::{
    fs::File,
    io::{self, Write},
};

use rustix::event::PollFlags;

use crate::stdin;

/// An append that failed part of the way.
pub(crate) struct Torn {
    /// How many bytes of the lines are there, whole lines only.
    pub(crate) whole: usize,
    pub(crate) source: io::Error,
    /// How many bytes are there, half a line included.
    written: usize,
}

impl Torn {
    /// A failure that leaves nothing to count on.
    pub(crate) fn nothing(source: io::Error) -> Self {
        Self {
            whole: 0,
            source,
            written: 0,
        }
    }
}

/// Appends to a regular file, without making it durable. After a failure the file ends with its
/// last whole line where that can be had; where it cannot, the next run mends it.
pub(crate) fn to_file(file: &File, lines: &[u8], terminator: u8) -> Result<(), Torn> {
    let before = file.metadata().map_err(Torn::nothing)?.len();
    let appended = to_stream(file, lines, terminator);
    if let Err(torn) = &appended {
        let after = file.metadata().map_or(0, |metadata| metadata.len());
        // Only our own half line may go: a script that knows no lock may have written behind it.
        if torn.written > torn.whole && after == before + torn.written as u64 {
            let _ = file.set_len(before + torn.whole as u64);
        }
    }
    appended
}

/// Appends to whatever it is, without making it durable.
pub(crate) fn to_stream(mut file: &File, lines: &[u8], terminator: u8) -> Result<(), Torn> {
    let mut written = 0;
    while written < lines.len() {
        let result = match file.write(&lines[written..]) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => {
                written += bytes;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                stdin::wait(file, PollFlags::OUT, None).map(drop)
            }
            Err(error) => Err(error),
        };
        if let Err(source) = result {
            let whole = memchr::memrchr(terminator, &lines[..written]).map_or(0, |last| last + 1);
            return Err(Torn {
                whole,
                source,
                written,
            });
        }
    }
    Ok(())
}
