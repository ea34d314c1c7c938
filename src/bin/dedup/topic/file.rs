//! A file of `name=value` lines.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::{error::Error, names::is_name};

/// A file of settings is a page; what is longer is another file.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) value: Vec<u8>,
}

/// Reads the settings of a file, each name at most once.
pub(super) fn read(path: &Path) -> Result<Vec<Line>, Error> {
    let failed = |source| Error::Config {
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("longer than {FILE_BYTES_MAX} bytes; name a file of settings");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    parse(&bytes).map_err(|(number, what)| {
        let path = path.display();
        Error::Usage(format!("{path}, line {number}: {what}"))
    })
}

/// The lines, or the number of the first that is none and what is wrong with it.
fn parse(bytes: &[u8]) -> Result<Vec<Line>, (usize, String)> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        // A password may hold '=', a name does not.
        let equals = line.iter().position(|byte| *byte == b'=');
        let Some((name, value)) = equals.map(|at| (&line[..at], &line[at + 1..])) else {
            return Err((number, "it is not name=value".to_owned()));
        };
        let name = std::str::from_utf8(name.trim_ascii()).unwrap_or_default();
        if name.is_empty() {
            return Err((number, "it has no name before the '='".to_owned()));
        }
        if !is_name(name) {
            let what =
                "what stands before the '=' is no name: only a-z, A-Z, 0-9, '.', '_' and '-'";
            return Err((number, what.to_owned()));
        }
        if let Some(first) = lines.iter().find(|line| line.name == name) {
            let what = format!("{name} stands in line {} already", first.number);
            return Err((number, what));
        }
        lines.push(Line {
            number,
            name: name.to_owned(),
            value: value.trim_ascii().to_vec(),
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_comments_and_blanks() {
        let text = b"# a comment\r\n\r\n from = orders \r\nkafka.sasl.password=a=b#c\nkafka.x=\n";
        let lines = parse(text).map_err(|(number, what)| format!("{number}: {what}"));
        let lines: Vec<_> = lines
            .unwrap_or_default()
            .into_iter()
            .map(|line| (line.number, line.name, line.value))
            .collect();
        let line = |number, name: &str, value: &[u8]| (number, name.to_owned(), value.to_vec());
        assert_eq!(
            lines,
            [
                line(3, "from", b"orders"),
                line(4, "kafka.sasl.password", b"a=b#c"),
                line(5, "kafka.x", b""),
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_setting_is_refused_with_its_number() {
        for (text, number) in [
            (&b"from=a\nto\n"[..], 2),
            (b"=a", 1),
            (b"\xff=a", 1),
            (b"sasl.password:a=b", 1),
            (b"from=a\n\nfrom=b", 3),
        ] {
            let refused = parse(text).err().map(|(number, _)| number);
            assert_eq!(refused, Some(number), "{text:?}");
        }
    }
}
