//! What a crash may leave of each step, made by hand: the files of before, with a part of what the
//! step wrote, or those of behind, with what it had still to remove.

use std::collections::BTreeMap;

use super::*;

type Files = BTreeMap<String, Vec<u8>>;

fn files(directory: &Path) -> Files {
    let names = numbers(directory).into_iter();
    names
        .map(|name| {
            let content = fs::read(directory.join(&name)).unwrap();
            (name, content)
        })
        .collect()
}

fn put(directory: &Path, files: &Files) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).unwrap();
    for (name, content) in files {
        fs::write(directory.join(name), content).unwrap();
    }
}

/// Every state between the two that a crash may leave.
fn between(before: &Files, behind: &Files) -> Vec<Files> {
    let with = |files: &Files, name: &str, content: &[u8]| {
        let mut files = files.clone();
        files.insert(name.to_owned(), content.to_vec());
        files
    };
    let mut states = vec![before.clone(), behind.clone()];
    let mut whole = before.clone();
    for (name, content) in behind {
        if !is_run(name) || before.contains_key(name) {
            continue;
        }
        for cut in [
            0,
            1,
            4095,
            4096,
            content.len() / 2,
            content.len() - 1,
            content.len(),
        ] {
            states.push(with(before, name, &content[..cut.min(content.len())]));
        }
        whole = with(&whole, name, content);
    }
    let manifest = &behind["manifest"];
    for cut in [0, manifest.len() / 2, manifest.len()] {
        states.push(with(&whole, "manifest.new", &manifest[..cut]));
    }
    // The manifest is new, and what it no longer names is there, less and less.
    let mut left = with(&whole, "manifest", manifest);
    for name in before.keys().filter(|name| !behind.contains_key(*name)) {
        states.push(left.clone());
        left.remove(name);
    }
    states.push(left);
    states
}

#[test]
fn whatever_a_crash_leaves_of_sealing_and_merging_opens_and_knows_every_key() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let crashed = parent.path().join("crashed");
    let log = log(120);
    let mut pair = Pair::open(&directory, Vec::new());
    let mut before = Files::new();
    let (mut merges, mut states) = (0, 0);
    for (at, unit) in (1..).zip(&log) {
        pair.table.insert(unit, |_, _| true);
        pair.put(unit);
        pair.log.push(unit.clone());
        pair.settle();
        let behind = files(&directory);
        if behind == before {
            continue;
        }
        merges += usize::from(before.keys().any(|name| !behind.contains_key(name)));
        for state in between(&before, &behind) {
            put(&crashed, &state);
            let pair = Pair::open(&crashed, log[..at].to_vec());
            pair.compare();
            pair.settle();
            pair.compare();
            states += 1;
        }
        before = behind;
    }
    assert!(
        merges >= 5 && states > 300,
        "{merges} merges, {states} states"
    );
}
