//! Standard input as a file of its own: no second buffer, and it can be asked what is ready.

use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek},
    os::fd::AsFd,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::chunk::Source;

pub(crate) struct Stdin {
    file: File,
}

impl Stdin {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            file: File::from(io::stdin().as_fd().try_clone_to_owned()?),
        })
    }

    /// How many bytes there are to read, where that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        let metadata = self.file.metadata().ok()?;
        let position = (&self.file).stream_position().ok()?;
        metadata
            .is_file()
            .then(|| metadata.len().saturating_sub(position))
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Source for Stdin {
    /// With bytes or with the end of the input.
    fn ready(&self) -> io::Result<bool> {
        wait(
            &self.file,
            PollFlags::IN,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                // A process that shares the descriptor may have made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.file, PollFlags::IN, None)?;
                }
                other => return other,
            }
        }
    }
}

/// Waits until the file can be read or written, for ever without a time-out.
pub(crate) fn wait(file: &File, event: PollFlags, timeout: Option<&Timespec>) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(file, event)], timeout) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
