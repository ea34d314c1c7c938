//! The state as the script keeps it: two text files, and nothing else.
//!
//! # Mending
//!
//! A writer that died, this program or the script, may have left half a line at the end of a
//! file. A user who made the file by hand may have left a whole line without its newline. The
//! bytes do not tell which.
//!
//! - The out file gets a newline, and nothing of it is ever deleted. A half line stays as a line
//!   of its own; the whole one was not marked and is written when it comes again.
//! - The seen file's end is held against the out file, where lines arrive first and in the same
//!   order. When a line there that is not marked goes on from the end, the end is half the mark
//!   of that line and is completed; else half of `order-12` would pass for `order-1` and suppress
//!   it. Otherwise it is a mark, as it is for the script, and gets its newline.
//! - When the out file is a stream and cannot be asked, or marks have times, the seen file's end is
//!   cut off. A line
//!   may then come twice; kept, half a mark could suppress another line for good.

use std::{io, path::Path, time::Duration};

use crate::{
    chunk::Chunk,
    error::Error,
    files,
    format::Format,
    index::{Hasher, Index},
    lines::{Lines, split},
    output::Output,
    run::State,
    say,
    seen::Seen,
    writer::{Commit, Writer},
};

/// The index, and the thread that writes the files.
pub(crate) struct Plain {
    index: Index,
    writer: Writer,
}

struct Files {
    seen: Seen,
    out: Output,
    format: Format,
}

impl Plain {
    /// Takes over the state. Every reason to refuse comes up before the out file is touched.
    pub(crate) fn open(
        seen: Seen,
        out: Output,
        format: Format,
        hasher: Hasher,
        wait: Duration,
    ) -> Result<Self, Error> {
        if files::same(out.metadata(), &seen.metadata()?) {
            return Err(Error::Refused {
                path: out.path().to_path_buf(),
                reason: "the seen file and the out file are the same file; give each its own",
            });
        }
        out.lock(wait)?;
        out.check_settings()?;
        let mut index = Index::new(hasher);
        let mut files = Files { seen, out, format };
        if let Some(end) = files.seen.load(&mut index)? {
            files.mend_seen(end, &mut index)?;
        }
        files.mend_out()?;
        files.seen.drop_old()?;
        Ok(Self {
            index,
            writer: Writer::start(files)?,
        })
    }
}

impl Files {
    fn mend_seen(&self, mut end: Vec<u8>, index: &mut Index) -> Result<(), Error> {
        let half = end.len();
        // A mark with a time does not say where its key begins before it is whole.
        if self.out.readable().is_none() || self.format.ages.is_some() {
            self.seen.cut_end(half)?;
            warn(
                self.seen.path(),
                &end,
                "it was cut off, as it may be half a mark: if not, the line comes once more",
            );
            return Ok(());
        }
        let mut what = self.end_added();
        if let Some(whole) = self.unmarked_key(&end, index)? {
            end = whole;
            what = "it was completed from the out file, nothing else to do";
        }
        index.remember(&end);
        end.push(self.format.terminator);
        self.seen.append(&end[half..])?;
        self.seen.sync()?;
        warn(self.seen.path(), &end[..half], what);
        Ok(())
    }

    /// The key of the first line of the out file, after the last one that is marked, whose key
    /// starts with `end`.
    fn unmarked_key(&self, end: &[u8], index: &Index) -> Result<Option<Vec<u8>>, Error> {
        let Some(out) = self.out.readable() else {
            return Ok(None);
        };
        let mut found = None;
        let mut lines = Lines::new(out, self.format.terminator);
        while lines.fill().map_err(|source| self.unreadable(source))? {
            // The out file's own half line is no line to complete a mark from.
            if lines.end_completed() {
                break;
            }
            for line in split(lines.whole(), self.format.terminator) {
                let Ok(key) = self.format.recipe.key(line) else {
                    continue;
                };
                if index.contains(&key) {
                    found = None;
                } else if found.is_none() && key.starts_with(end) {
                    found = Some(key.into_owned());
                }
            }
        }
        Ok(found)
    }

    fn mend_out(&self) -> Result<(), Error> {
        let Some(file) = self.out.readable() else {
            return Ok(());
        };
        let end = files::unfinished_end(file, self.format.terminator)
            .map_err(|source| self.unreadable(source))?;
        if let Some(end) = end {
            self.out
                .append(&[self.format.terminator])
                .map_err(|torn| self.out.failure(torn.source))?;
            warn(self.out.path(), &end, self.end_added());
        }
        Ok(())
    }

    fn end_added(&self) -> &'static str {
        match self.format.terminator {
            b'\n' => "a newline was added, nothing else to do",
            _ => "a NUL was added, nothing else to do",
        }
    }

    fn unreadable(&self, source: io::Error) -> Error {
        Error::io("read", self.out.path(), source)
    }
}

fn warn(path: &Path, end: &[u8], what: &str) {
    say(&format!(
        "{}: ended in the middle of a line ({}); {what}",
        path.display(),
        files::quoted(end)
    ));
}

impl Commit for Files {
    fn commit(&mut self, mut lines: &[u8]) -> Result<(), Error> {
        while !lines.is_empty() {
            let (part, rest) = lines.split_at(self.out.part(lines));
            // IMPORTANT: out before seen. The other way round a stop between the two loses the
            // part: marked, and written nowhere.
            if let Err(torn) = self.out.append(part) {
                self.seen.append(&self.format.marks(&part[..torn.whole]))?;
                self.seen.sync()?;
                return Err(self.out.failure(torn.source));
            }
            self.seen.append(&self.format.marks(part))?;
            lines = rest;
        }
        self.seen.sync()
    }
}

impl State for Plain {
    fn claim(&mut self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<u64, Error> {
        Ok(self.index.insert(chunk, new))
    }

    fn commit(&mut self, lines: &mut Vec<u8>) -> Result<(), Error> {
        self.writer.hand_over(lines)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.writer.settle()
    }

    fn finish(mut self) -> Result<(), Error> {
        self.settle()
    }
}
