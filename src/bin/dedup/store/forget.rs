//! Says what is forgotten, and has it forgotten where that is wanted.

use std::path::Path;

use idempotent_consumer::store::{DirectoryStore, Engine, Forget, Forgotten, Inspection};

use super::show;
use crate::error::Error;

/// Programs whose store is kept in step with a file, byte by byte.
const OF_LINES: [&str; 2] = ["dedup", "ship-process"];

pub(super) fn run<E: Engine>(
    directory: &Path,
    store: DirectoryStore<E>,
    forget: &Forget,
    yes: bool,
) -> Result<String, Error> {
    let before = store.inspect();
    let of_lines = before
        .owner
        .as_ref()
        .is_some_and(|owner| owner.recipe == "line" && OF_LINES.contains(&owner.group.as_str()));
    if of_lines {
        return Err(Error::Refused {
            path: directory.to_path_buf(),
            reason: "it holds the lines of a file that is kept in step with it, and without some \
                     of them that file would be refused. To have lines written again, move the \
                     store and the file away",
        });
    }
    if yes {
        let forgotten = store.forget(forget).map_err(Error::Store)?;
        let done = said(directory, "Forgotten", forget, &before, &forgotten);
        return Ok(done
            + "Now start the consumer with the corrected handler. Each of these records\n\
               is handled once more, whatever offset the group has committed.\n");
    }
    let planned = store.plan_forget(forget).map_err(Error::Store)?;
    let planned = said(directory, "Would be forgotten", forget, &before, &planned);
    Ok(planned + "Nothing was changed. To do it, call the same with --yes.\n")
}

fn said(
    directory: &Path,
    verb: &str,
    forget: &Forget,
    store: &Inspection,
    forgotten: &Forgotten,
) -> String {
    let group = store.owner.as_ref().map_or("", |owner| &owner.group);
    let directory = directory.display();
    let head = format!("{verb}: {forget}\n  in {directory}, the store of group {group}\n");
    let parts = forgotten.partitions.iter().map(|one| {
        let offsets = show::offsets(&one.offsets, true);
        let (name, position) = (&one.partition, one.position);
        let keys = match one.keys {
            1 => "1 key".to_owned(),
            more => format!("{more} keys"),
        };
        format!("  {name}: {keys}, {offsets}; reading begins at {position}\n")
    });
    head + &parts.collect::<String>()
}
