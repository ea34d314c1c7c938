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
//! - When the out file is a stream and cannot be asked, the seen file's end is cut off. A line
//!   may then come twice; kept, half a mark could suppress another line for good.

use std::{io, path::Path, time::Duration};

use crate::{
    error::Error,
    files,
    lines::{Lines, content, split},
    output::Output,
    run::State,
    say,
    seen::Seen,
};

const NEWLINE_ADDED: &str = "a newline was added, nothing else to do";

pub(crate) struct Plain {
    seen: Seen,
    out: Output,
}

impl Plain {
    /// Takes over the state. Every reason to refuse comes up before the out file is touched.
    pub(crate) fn open(seen: Seen, out: Output, wait: Duration) -> Result<Self, Error> {
        if files::same(out.metadata(), &seen.metadata()?) {
            return Err(Error::Refused {
                path: out.path().to_path_buf(),
                reason: "the seen file and the out file are the same file; give each its own",
            });
        }
        out.lock(wait)?;
        let mut plain = Self { seen, out };
        if let Some(end) = plain.seen.load()? {
            plain.mend_seen(end)?;
        }
        plain.mend_out()?;
        Ok(plain)
    }

    fn mend_seen(&mut self, mut end: Vec<u8>) -> Result<(), Error> {
        let half = end.len();
        if self.out.readable().is_none() {
            self.seen.cut_end(half)?;
            warn(
                self.seen.path(),
                &end,
                "it was cut off, as it may be half a mark: if not, the line comes once more",
            );
            return Ok(());
        }
        let mut what = NEWLINE_ADDED;
        if let Some(whole) = self.unmarked_line(&end)? {
            end = whole;
            what = "it was completed from the out file, nothing else to do";
        }
        end.push(b'\n');
        self.seen.insert(&end, |_| {});
        self.seen.append(&end[half..])?;
        self.seen.sync()?;
        warn(self.seen.path(), &end[..half], what);
        Ok(())
    }

    /// The first line of the out file, after the last one that is marked, that starts with `end`.
    fn unmarked_line(&self, end: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(out) = self.out.readable() else {
            return Ok(None);
        };
        let mut found = None;
        let mut lines = Lines::new(out);
        while lines.fill().map_err(|source| self.unreadable(source))? {
            // The out file's own half line is no line to complete a mark from.
            if lines.end_completed() {
                break;
            }
            for line in split(lines.whole()).map(content) {
                if self.seen.contains(line) {
                    found = None;
                } else if found.is_none() && line.starts_with(end) {
                    found = Some(line.to_vec());
                }
            }
        }
        Ok(found)
    }

    fn mend_out(&self) -> Result<(), Error> {
        let Some(file) = self.out.readable() else {
            return Ok(());
        };
        let end = files::unfinished_end(file).map_err(|source| self.unreadable(source))?;
        if let Some(end) = end {
            self.out
                .append(b"\n")
                .map_err(|torn| self.out.failure(torn.source))?;
            warn(self.out.path(), &end, NEWLINE_ADDED);
        }
        Ok(())
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

impl State for Plain {
    fn claim(&mut self, block: &[u8], new: &mut Vec<u8>) -> Result<u64, Error> {
        let mut count = 0;
        self.seen.insert(block, |line| {
            new.extend_from_slice(line);
            count += 1;
        });
        Ok(count)
    }

    fn commit(&mut self, mut lines: &[u8]) -> Result<(), Error> {
        while !lines.is_empty() {
            let (part, rest) = lines.split_at(self.out.part(lines));
            // IMPORTANT: out before seen. The other way round a stop between the two loses the
            // part: marked, and written nowhere.
            if let Err(torn) = self.out.append(part) {
                self.seen.append(&part[..torn.whole])?;
                self.seen.sync()?;
                return Err(self.out.failure(torn.source));
            }
            self.seen.append(part)?;
            lines = rest;
        }
        self.seen.sync()
    }

    fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
