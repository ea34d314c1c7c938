//! One process at a time.

use std::time::{Duration, Instant};

use idempotent_consumer::store::{Durability, StoreError};

use crate::child;
use crate::model::open;

#[test]
fn a_store_open_in_another_process_is_refused_with_path_and_holder() {
    let parent = tempfile::tempdir().unwrap();
    let mut holder = child::start(&[], "hold", parent.path());
    assert_eq!(holder.hear().as_deref(), Some("held"));
    let start = Instant::now();
    let error = open(parent.path(), Durability::Power).err().unwrap();
    // At once, on a busy machine too; the holder would not end by itself.
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let text = error.to_string();
    let pid = format!("by process {}", holder.child.id());
    for part in [
        pid.as_str(),
        &parent.path().display().to_string(),
        "stop the other",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // A lock dies with its process, however that dies.
    holder.kill();
    open(parent.path(), Durability::Power).unwrap();
}

#[test]
fn this_process_is_named_to_the_other() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let said = child::start(&[], "open", parent.path()).rest();
    let pid = format!("by process {}", std::process::id());
    assert!(
        said[0].starts_with("refused") && said[0].contains(&pid),
        "{said:?}"
    );
    drop(store);
    let said = child::start(&[], "open", parent.path()).rest();
    assert_eq!(said[0], "opened");
}
