//! The repository's texts, and where they say what.

use std::fmt;
use std::fs;
use std::path::Path;

/// A text file of the repository.
pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The lines that are not comments, numbered from 1, without a comment at their end.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate();
        numbered
            .map(|(at, line)| (at + 1, without_comment(line)))
            .filter(|(_, line)| !line.trim().is_empty())
    }

    pub(crate) fn below(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

/// A quote that is open where `//` stands makes it a part of a string.
fn without_comment(line: &str) -> &str {
    let start = line
        .match_indices("//")
        .map(|(at, _)| at)
        .find(|at| line[..*at].replace("\\\"", "").matches('"').count() % 2 == 0);
    &line[..start.unwrap_or(line.len())]
}

/// Every text file below `places` whose name ends in one of `suffixes`; fixtures are data.
pub(crate) fn files(places: &[&str], suffixes: &[&str]) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for place in places {
        collect(root, &root.join(place), &mut found);
    }
    found.retain(|file| suffixes.iter().any(|suffix| file.path.ends_with(suffix)));
    found.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(!found.is_empty(), "nothing found below {places:?}");
    found
}

fn collect(root: &Path, path: &Path, found: &mut Vec<File>) {
    if path.is_dir() {
        if path.ends_with("fixtures") {
            return;
        }
        for entry in fs::read_dir(path).unwrap() {
            collect(root, &entry.unwrap().path(), found);
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        let path = path.strip_prefix(root).unwrap().to_str().unwrap();
        found.push(File {
            path: path.replace('\\', "/"),
            text,
        });
    }
}

/// The rust files of the crate, its tests, examples, benchmarks and fuzz targets. These rules are left
/// out: they have to name what they forbid.
pub(crate) fn sources() -> Vec<File> {
    let mut found = files(
        &["src", "tests", "examples", "benches", "fuzz/targets"],
        &[".rs"],
    );
    found.retain(|file| !file.below(&["tests/tidy/"]));
    found
}

/// Every text that goes into a commit but cargo's own lists.
pub(crate) fn everything() -> Vec<File> {
    let places = [
        "src",
        "tests",
        "examples",
        "benches",
        "fuzz/targets",
        "fuzz/Cargo.toml",
        "scripts",
        "docs",
        ".ci",
        "README.md",
        "CHANGELOG.md",
        "Cargo.toml",
        "clippy.toml",
    ];
    let mut found = files(&places, &[""]);
    found.retain(|file| !file.path.ends_with("Cargo.lock"));
    found
}

/// A line of code, or a whole file, that breaks a rule.
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) said: String,
}

impl Place {
    pub(crate) fn line(file: &File, number: usize, line: &str) -> Self {
        Self {
            path: file.path.clone(),
            said: format!(":{number}: {}", line.trim()),
        }
    }

    pub(crate) fn file(file: &File, said: impl fmt::Display) -> Self {
        Self {
            path: file.path.clone(),
            said: format!(": {said}"),
        }
    }
}

/// Fails with one line for each breach, so that one run names them all.
pub(crate) fn no_breach(rule: &str, breaches: &[Place]) {
    let list: Vec<_> = breaches
        .iter()
        .map(|place| format!("{}{}", place.path, place.said))
        .collect();
    assert!(list.is_empty(), "{rule}:\n{}", list.join("\n"));
}

/// The lines of code below `rooms` that `breaks` is true for.
pub(crate) fn lines(rooms: &[&str], breaks: impl Fn(&str) -> bool) -> Vec<Place> {
    let mut found = Vec::new();
    for file in sources().iter().filter(|file| file.below(rooms)) {
        let bad = file.code().filter(|(_, line)| breaks(line));
        found.extend(bad.map(|(number, line)| Place::line(file, number, line)));
    }
    found
}

/// The same without what lies below `allowed`.
pub(crate) fn lines_but(
    rooms: &[&str],
    allowed: &[&str],
    breaks: impl Fn(&str) -> bool,
) -> Vec<Place> {
    let mut found = lines(rooms, breaks);
    found.retain(|place| !allowed.iter().any(|room| place.path.starts_with(room)));
    found
}

/// Whether `line` has `word`, a name or a path of names, and not only as a part of a longer name.
pub(crate) fn says(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

pub(crate) fn has_any(line: &str, pieces: &[&str]) -> bool {
    pieces.iter().any(|piece| line.contains(piece))
}
