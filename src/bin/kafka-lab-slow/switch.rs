//! `on` and `off`.

use crate::args::Switch;
use crate::error::Error;
use crate::file::StateFile;
use crate::{complain, say};

pub(crate) fn run(switch: &Switch) -> Result<(), Error> {
    let file = StateFile::at(&switch.state);
    // Held until the end: of two commands at once, each sees its own state come into force.
    let _edit = file.lock_for_edit()?;
    let mut state = file.read()?.unwrap_or_default().with(switch.settings);
    state.on = switch.on;
    file.write(state)?;
    let serving = file.wait_in_force(state)?;
    if serving.is_none() {
        complain(&format!(
            "no proxy is running with the state file {}; stored for the next 'kafka-lab-slow serve'",
            file.path.display()
        ));
    }
    say(&if state.on {
        format!("on: a delay of {}", state.delay_in_words())
    } else {
        "off: no delay".to_owned()
    })
}
