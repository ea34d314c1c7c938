//! What a source file looks like.

use crate::tree::{Place, everything, files, has_any, lines, no_breach, says};

const FILE_LINES_MAX: usize = 350;

#[test]
fn a_file_can_be_read_in_one_sitting() {
    let mut breaches = Vec::new();
    for file in files(
        &[
            "src",
            "tests",
            "examples",
            "benches",
            "fuzz/targets",
            "scripts",
        ],
        &[".rs", ".sh"],
    ) {
        let count = file.text.lines().count();
        if count > FILE_LINES_MAX {
            breaches.push(Place::file(&file, format!("{count} lines")));
        }
    }
    no_breach("too long, to be split by idea", &breaches);
}

#[test]
fn nothing_is_left_for_later() {
    let mut breaches = lines(&["src/", "tests/", "examples/", "benches/"], |line| {
        has_any(line, &["todo!", "unimplemented!", "dbg!"])
    });
    let later = ["TODO", "FIXME", "XXX"];
    // These rules have to name what they forbid.
    let texts = everything();
    for file in texts.iter().filter(|file| !file.below(&["tests/tidy/"])) {
        for (at, line) in file.text.lines().enumerate() {
            if later.iter().any(|word| says(line, word)) {
                breaches.push(Place::line(file, at + 1, line));
            }
        }
    }
    no_breach("left for later", &breaches);
}

/// A test may feed what users feed, and a comment may draw.
#[test]
fn code_is_ascii() {
    let code = ["src/", "examples/", "benches/"];
    no_breach("not ASCII", &lines(&code, |line| !line.is_ascii()));
}

#[test]
fn no_text_hides_anything() {
    // What turns or hides the text after it: an editor shows other code than the compiler reads.
    let hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let mut breaches = Vec::new();
    for file in everything() {
        if file.text.contains(hidden) {
            breaches.push(Place::file(&file, "invisible characters"));
        }
    }
    no_breach("hidden", &breaches);
}
