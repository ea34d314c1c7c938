//! Bringing the file to the length that the store knows.

use std::{fs::File, path::Path};

use super::{Error, Journal, file, tape::Part};

/// How much of the file's end is compared with the store. A stop leaves nothing wrong before it:
/// the file is synced after each batch, and a batch is about as long.
const COMPARED_BYTES: u64 = 4 << 20;

/// Refuses a file with content where there is no store yet: a new one could know nothing of it,
/// and would stay behind.
pub(crate) fn refuse_without_store(
    file: &File,
    path: &Path,
    directory: &Path,
) -> Result<(), Error> {
    match file::length(file, path)? {
        0 => Ok(()),
        _ if directory.exists() => Ok(()),
        length => Err(Error::NotOurs {
            path: path.to_path_buf(),
            store: directory.to_path_buf(),
            length,
            from: 0,
        }),
    }
}

impl Journal {
    /// How long the file is that this is the journal of.
    pub(crate) fn length(&self) -> u64 {
        self.lines.end()
    }

    /// Appends to the file what it lacks, and returns how many bytes those are.
    ///
    /// # Errors
    /// Where the file holds what the store knows nothing of, and where it cannot be used.
    pub(crate) fn catch_up(&mut self, file: &File, path: &Path) -> Result<u64, Error> {
        let length = file::length(file, path)?;
        if length > self.length() {
            return Err(self.not_ours(path, length, self.length()));
        }
        let mut position = length.saturating_sub(COMPARED_BYTES);
        while let Some(record) = self.lines.record_at(self.engine.store(), position)? {
            for part in record.parts() {
                self.restore(&part, file, path, length)?;
            }
            position = record.end();
        }
        if length < self.length() {
            file::sync(file, path)?;
        }
        Ok(self.length() - length)
    }

    /// Compares what the file had of a line, and appends the rest.
    fn restore(
        &mut self,
        part: &Part<'_>,
        file: &File,
        path: &Path,
        length: u64,
    ) -> Result<(), Error> {
        let recorded = part.recorded.ok_or_else(|| self.not_a_line(part.start))?;
        if recorded.len() as u64 == part.length {
            return self.restore_bytes(part.start, recorded, file, path, length);
        }
        // Shorter than the line: the place of its pieces.
        let place = recorded.try_into().map(u64::from_le_bytes);
        let start = place.map_err(|_| self.not_a_line(part.start))?;
        let mut done = 0;
        while done < part.length {
            // A record of this tape holds one piece.
            let record = self.piece_at(start + done)?;
            let piece = record.as_ref().and_then(|record| record.parts().next());
            let piece = piece.filter(|piece| piece.start == start + done && piece.length > 0);
            let bytes = piece.and_then(|piece| piece.recorded);
            let bytes = bytes.ok_or_else(|| self.not_a_line(part.start))?;
            self.restore_bytes(part.start + done, bytes, file, path, length)?;
            done += bytes.len() as u64;
        }
        Ok(())
    }

    fn restore_bytes(
        &self,
        position: u64,
        recorded: &[u8],
        file: &File,
        path: &Path,
        length: u64,
    ) -> Result<(), Error> {
        let there = usize::try_from(length.saturating_sub(position)).unwrap_or(usize::MAX);
        let (there, missing) = recorded.split_at(there.min(recorded.len()));
        if !file::holds(file, path, position, there)? {
            return Err(self.not_ours(path, length, position));
        }
        file::append(file, path, missing)
    }

    /// The file is `length` bytes long, and not the store's from somewhere behind `from`.
    pub(super) fn not_ours(&self, path: &Path, length: u64, from: u64) -> Error {
        Error::NotOurs {
            path: path.to_path_buf(),
            store: self.directory.clone(),
            length,
            from,
        }
    }

    fn not_a_line(&self, position: u64) -> Error {
        Error::Damaged {
            path: self.directory.clone(),
            what: format!("the record of the line at byte {position} does not hold it"),
        }
    }
}
