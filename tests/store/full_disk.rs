//! A disk that takes no more: the store stops, says why, and has lost nothing when there is room
//! again.

use std::path::Path;

use idempotent_consumer::store::{Durability, Store as _, StoreError};

use crate::child::{self, say};
use crate::kept::FULL_AT_BLOCKS;
use crate::model::{check, open, orders, owner, unit};

/// A shell that limits the size of every file to so many blocks (of 512 or 1,024 bytes) and turns
/// the signal for it into an error.
fn limited(blocks: &str) -> [&str; 5] {
    [
        "sh",
        "-c",
        "trap '' XFSZ; ulimit -f \"$0\" && exec \"$@\"",
        blocks,
        "",
    ]
}

/// The child: commits until that fails, then tries everything again.
pub(crate) fn fill(directory: &Path) {
    let store = open(directory, Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let mut at = lease.head.map_or(0, |head| head.next.get());
    let error = loop {
        match store.commit(&[unit(&lease, at, at + 500)]) {
            Ok(()) => at += 500,
            Err(error) => break error,
        }
        say(&format!("acknowledged {at}"));
    };
    say(&format!("failed {error}"));
    let again = [
        store.commit(&[unit(&lease, at, at + 1)]).err(),
        store.commit(&[]).err(),
        store.lease(&orders(0)).err(),
        store.lease(&orders(1)).err(),
        store.release(&lease).err(),
    ];
    for error in again {
        match error {
            Some(StoreError::Poisoned { cause, .. }) => say(&format!("poisoned {cause}")),
            other => say(&format!("wrong {other:?}")),
        }
    }
    let mut found = Vec::new();
    store
        .lookup(
            &[unit(&lease, at, at + 1).entries[0].fingerprint],
            &mut found,
        )
        .unwrap();
    assert_eq!(
        found,
        [None],
        "a mark that is not durable suppresses nothing"
    );
    drop(store);
    say("dropped");
}

// C085
#[test]
fn a_failed_write_poisons_the_store_and_loses_nothing() {
    for blocks in FULL_AT_BLOCKS {
        let parent = tempfile::tempdir().unwrap();
        let mut wrapper = limited(blocks).to_vec();
        wrapper.pop();
        let mut child = child::start(&wrapper, "fill-disk", parent.path());
        let said = child.rest();
        let status = child.child.wait().unwrap();
        let mut acknowledged = said
            .iter()
            .filter_map(|line| line.strip_prefix("acknowledged "));
        let last: i64 = acknowledged.next_back().unwrap().parse().unwrap();
        let failed = said.iter().find_map(|line| line.strip_prefix("failed "));
        let failed = failed.unwrap_or_else(|| panic!("{said:?}"));
        println!("{blocks} blocks, {last} keys: {failed}");
        assert!(
            failed.contains(&parent.path().display().to_string()),
            "{failed}"
        );
        let poisoned = said
            .iter()
            .filter_map(|line| line.strip_prefix("poisoned "));
        assert_eq!(poisoned.clone().count(), 5, "{said:?}");
        assert!(
            poisoned.into_iter().all(|cause| cause == failed),
            "{said:?}"
        );
        assert!(
            said.iter().any(|line| line == "dropped") && status.success(),
            "{said:?}"
        );

        // The limit is still there: refused, and not for a damage that there is none of.
        let again = child::start(&wrapper, "open", parent.path()).rest();
        assert!(!again[0].contains("is damaged"), "{again:?}");
        // Now it is gone.
        let store = open(parent.path(), Durability::Power).unwrap();
        check(&store, &[last]).unwrap();
        let lease = store.lease(&orders(0)).unwrap();
        assert!(lease.in_doubt);
        let at = lease.head.unwrap().next.get();
        store.commit(&[unit(&lease, at, at + 10)]).unwrap();
        drop(store);
        let store = open(parent.path(), Durability::Power).unwrap();
        check(&store, &[at + 10]).unwrap();
    }
}
