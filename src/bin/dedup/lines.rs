//! Whole lines, of any bytes and any length, from a reader.

use std::io::{self, Read};

/// How much is asked for at once, and what the buffer goes back to after a long line.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Gives what a reader gives, cut at line ends. The memory it takes is [`BUFFER_BYTES`], and
/// more only while one line is longer than that.
pub(crate) struct Lines<R> {
    source: R,
    terminator: u8,
    /// `buffer[..given]` was handed out, `buffer[given..searched]` holds no
    /// terminator, and `buffer[searched..end]` was read last.
    buffer: Vec<u8>,
    given: usize,
    searched: usize,
    end: usize,
    ended: bool,
    end_completed: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R, terminator: u8) -> Self {
        Self {
            source,
            terminator,
            buffer: vec![0; BUFFER_BYTES],
            given: 0,
            searched: 0,
            end: 0,
            ended: false,
            end_completed: false,
        }
    }

    pub(crate) fn source(&self) -> &R {
        &self.source
    }

    /// Reads once, so that a slow producer's line is there when it was written and not when the
    /// buffer is full. `false` is the end of the input.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.make_room();
        let read = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        if read > 0 {
            return Ok(true);
        }
        self.ended = true;
        if self.given == self.end {
            return Ok(false);
        }
        self.buffer[self.end] = self.terminator;
        self.end += 1;
        self.end_completed = true;
        Ok(true)
    }

    /// The whole lines that were read and not given before, each with its terminator; empty
    /// when there is none.
    pub(crate) fn whole(&mut self) -> &[u8] {
        let start = self.given;
        let searched = &self.buffer[self.searched..self.end];
        if let Some(last) = memchr::memrchr(self.terminator, searched) {
            self.given = self.searched + last + 1;
        }
        self.searched = self.end;
        &self.buffer[start..self.given]
    }

    /// Whether the input ended in the middle of a line. What [`Self::whole`] gives after the last
    /// [`Self::fill`] is then that line alone, and its terminator was added here.
    pub(crate) fn end_completed(&self) -> bool {
        self.end_completed
    }

    /// Leaves room for at least one byte after `end`.
    fn make_room(&mut self) {
        if self.given == self.end {
            (self.given, self.searched, self.end) = (0, 0, 0);
            if self.buffer.len() > BUFFER_BYTES {
                self.buffer.truncate(BUFFER_BYTES);
                self.buffer.shrink_to_fit();
            }
        } else if self.given > 0 && self.end == self.buffer.len() {
            self.buffer.copy_within(self.given..self.end, 0);
            self.end -= self.given;
            self.searched -= self.given;
            self.given = 0;
        }
        // Doubling, not adding: a line of n bytes is then copied less than twice, not n times.
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }
}

/// The lines of a block of whole lines, each without its terminator.
pub(crate) fn split(block: &[u8], terminator: u8) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(terminator, block).map(move |end| {
        let line = &block[start..end];
        start = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `step` bytes a call, as a slow pipe does.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = self.1.min(buffer.len());
            self.0.read(&mut buffer[..step])
        }
    }

    fn lines(input: &[u8], step: usize) -> (Vec<Vec<u8>>, bool) {
        let mut reader = Lines::new(Slow(input, step), b'\n');
        let mut all = Vec::new();
        while reader.fill().unwrap() {
            let completed = reader.end_completed();
            let before = all.len();
            all.extend(split(reader.whole(), b'\n').map(Vec::from));
            assert!(
                !completed || all.len() == before + 1,
                "the end is not alone"
            );
        }
        (all, reader.end_completed())
    }

    #[test]
    fn however_the_bytes_arrive_the_lines_are_the_same() {
        let input = b"a\n\nb\r\n\0\xff\n last";
        let whole: Vec<Vec<u8>> = [&b"a"[..], b"", b"b\r", b"\0\xff", b" last"]
            .map(Vec::from)
            .to_vec();
        for step in 1..=input.len() {
            assert_eq!(
                lines(input, step),
                (whole.clone(), true),
                "{step} bytes a read"
            );
        }
        assert_eq!(lines(b"", 1), (vec![], false));
        assert_eq!(lines(b"a\n", 1), (vec![b"a".to_vec()], false));
    }

    #[test]
    fn a_line_longer_than_the_buffer_comes_whole_and_the_buffer_shrinks_again() {
        for length in [
            BUFFER_BYTES - 1,
            BUFFER_BYTES,
            BUFFER_BYTES + 1,
            5 * BUFFER_BYTES / 2,
        ] {
            let mut input = b"a\n".to_vec();
            input.resize(2 + length, b'x');
            input.extend_from_slice(b"\nb");
            let (all, completed) = lines(&input, 65_536);
            let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
            assert_eq!((lengths, completed), (vec![1, length, 1], true));
        }
        let mut long = vec![b'x'; 4 * BUFFER_BYTES];
        long.push(b'\n');
        let mut reader = Lines::new(&long[..], b'\n');
        while reader.fill().unwrap() {
            reader.whole();
        }
        assert_eq!(reader.buffer.len(), BUFFER_BYTES);
    }
}
