//! Says what is copied, and has it copied where that is wanted.

use std::path::Path;

#[cfg(feature = "redb")]
use idempotent_consumer::store::RedbStore;
#[cfg(feature = "sled")]
use idempotent_consumer::store::SledStore;
use idempotent_consumer::store::{Copied, DirectoryStore, Engine, StoreError};

use super::spec::{Kind, Spec};
use crate::error::Error;

pub(super) fn run<E: Engine>(
    from: &Spec,
    source: &DirectoryStore<E>,
    (kind, to): (Kind, &Path),
    yes: bool,
) -> Result<String, Error> {
    let copied = copied(source, kind, to, yes).map_err(Error::Store)?;
    let before = source.inspect();
    let group = before
        .owner
        .map_or_else(String::new, |owner| format!(" of group {}", owner.group));
    let Copied {
        partitions,
        keys,
        records,
    } = copied;
    let what = format!(
        "the store{group}\n  from {from}\n  to   {}:{}\n  {partitions} partitions, {keys} keys, \
         {records} records\n",
        kind.name(),
        to.display(),
    );
    Ok(if yes {
        format!(
            "Copied: {what}The copy was read back and is the same. Have the consumer open it from \
             now\non, and the old one no more: neither knows what the other does next.\n"
        )
    } else {
        format!("Would be copied: {what}Nothing was written. To do it, call the same with --yes.\n")
    })
}

fn copied<E: Engine>(
    source: &DirectoryStore<E>,
    kind: Kind,
    directory: &Path,
    yes: bool,
) -> Result<Copied, StoreError> {
    match (kind, yes) {
        #[cfg(feature = "sled")]
        (Kind::Sled, true) => SledStore::options().copy_from(source, directory),
        #[cfg(feature = "sled")]
        (Kind::Sled, false) => SledStore::options().plan_copy(source, directory),
        #[cfg(feature = "redb")]
        (Kind::Redb, true) => RedbStore::options().copy_from(source, directory),
        #[cfg(feature = "redb")]
        (Kind::Redb, false) => RedbStore::options().plan_copy(source, directory),
    }
}
