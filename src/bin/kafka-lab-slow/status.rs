//! `status`.

use std::path::Path;

use crate::error::Error;
use crate::file::StateFile;
use crate::say;

pub(crate) fn run(path: &Path) -> Result<(), Error> {
    let file = StateFile::at(path);
    let stored = file.read()?;
    let state = stored.unwrap_or_default();
    let is_served = file.is_served()?;
    let in_vain = if state.on && !is_served {
        " (stored; no proxy runs, nothing is delayed)"
    } else {
        ""
    };
    let serving = if is_served {
        match file.serving()? {
            Some(serving) => format!(
                "running, process {}, {} -> {}{}",
                serving.process_id,
                serving.listen,
                serving.upstream,
                if serving.in_force == state {
                    ""
                } else {
                    ", the state above is not in force yet"
                }
            ),
            None => "starting".to_owned(),
        }
    } else {
        "not running".to_owned()
    };
    say(&format!(
        "{}{in_vain}\ndelay: {}\nproxy: {serving}\nstate file: {}{}",
        state.on_or_off(),
        state.delay_in_words(),
        file.path.display(),
        if stored.is_some() {
            ""
        } else {
            " (not there yet)"
        },
    ))
}
