//! `dedup store`: a consumer's store, looked at, made to forget, copied. Case C067.

mod calls;
#[cfg(feature = "redb")]
mod copying;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use idempotent_consumer::{
    TopicPartition,
    engine::{Engine, Ledger, Look},
    key::Scope,
    store::{Owner, SledStore},
};

use crate::support::{Finished, Lab, Random, run};

const NONE: [i64; 0] = [];
const ORDERS: [&[u8]; 5] = [b"order-1", b"order-2", b"\xff\0", b"-n", b"order-5"];

fn owner(scope: Scope) -> Owner {
    Owner {
        group: "ship-svc".into(),
        recipe: "record-key".into(),
        scope: match scope {
            Scope::Topic => "topic".into(),
            _ => "partition".into(),
        },
    }
}

fn take(directory: &Path, partition: i32, scope: Scope) -> (Engine, Ledger) {
    let store = SledStore::open(directory).unwrap();
    let engine = Engine::new(Arc::new(store), &owner(scope), scope).unwrap();
    let ledger = engine
        .lease(&TopicPartition::new("orders", partition))
        .unwrap();
    (engine, ledger)
}

/// A store that has seen the orders at offsets 0 to 4 of partitions 0 and 1.
fn handled(directory: &Path, scope: Scope) {
    for partition in [0, 1] {
        let (_engine, mut ledger) = take(directory, partition, scope);
        for (offset, order) in (0..).zip(ORDERS) {
            let candidate = ledger.candidate(offset, order, None);
            match ledger.look(&candidate).unwrap() {
                Look::New => ledger
                    .done(&candidate, Some(b"shipped"[..].into()))
                    .unwrap(),
                _ => ledger.skip(&candidate).unwrap(),
            }
        }
        ledger.finish().unwrap();
    }
}

/// The offsets of a partition whose order would be handled if it came again.
fn new_again(directory: &Path, partition: i32, scope: Scope) -> Vec<i64> {
    let (_engine, ledger) = take(directory, partition, scope);
    let new = (0..).zip(ORDERS).filter(|(offset, order)| {
        let candidate = ledger.candidate(*offset, order, None);
        let new = ledger.look(&candidate).unwrap() == Look::New;
        ledger.release(&candidate);
        new
    });
    let new = new.map(|(offset, _)| offset).collect();
    ledger.finish().unwrap();
    new
}

fn store(lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.dedup();
    command.arg("store").args(args);
    command
}

fn said(finished: &Finished) -> String {
    assert_eq!(
        (finished.code, &*finished.stderr),
        (Some(0), ""),
        "{finished:?}"
    );
    String::from_utf8(finished.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(finished: &Finished, code: i32, parts: &[&str]) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    assert_eq!(finished.stdout, b"", "{finished:?}");
    for part in parts {
        assert!(
            finished.stderr.contains(part),
            "{part:?} is not in {}",
            finished.stderr
        );
    }
}

#[test]
fn a_dry_run_says_what_would_be_forgotten_and_changes_nothing() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    handled(&seen, Scope::Topic);
    let key = ["forget", "seen", "--topic", "orders", "--key", "order-2"];
    for _ in 0..2 {
        let text = said(&run(&mut store(&lab, &key), "not read\n"));
        let expected = "Would be forgotten: key \"order-2\" of topic orders\n  \
                        in seen, the store of group ship-svc\n  \
                        orders[0]: 1 key, offset 1; reading begins at 1\n\
                        Nothing was changed. To do it, call the same with --yes.\n";
        assert_eq!(text, expected);
    }
    assert_eq!(new_again(&seen, 0, Scope::Topic), NONE);
}

#[test]
fn what_is_named_is_forgotten_with_yes_and_shown_from_then_on() {
    type Row<'a> = (&'a [&'a str], &'a str, &'a str, &'a [i64]);
    let rows: [Row<'_>; 5] = [
        (
            &["--key", "order-2"],
            "orders[0]: 1 key, offset 1; reading begins at 1\n",
            "orders[0]: done from offset 0 up to 5\n  but for offset 1: forgotten, to be handled\n",
            &[1],
        ),
        (
            &["--key-hex", "FF00"],
            "orders[0]: 1 key, offset 2; reading begins at 2\n",
            "but for offset 2: forgotten",
            &[2],
        ),
        (
            &["--key", "-n"],
            "orders[0]: 1 key, offset 3; reading begins at 3\n",
            "but for offset 3: forgotten",
            &[3],
        ),
        (
            &["--offsets", "3..9", "--partition", "0"],
            "orders[0]: 2 keys, offsets 3 to 4; reading begins at 3\n",
            "but for offsets 3 to 4: forgotten",
            &[3, 4],
        ),
        (
            &["--all"],
            "orders[1]: 0 keys, offsets 0 to 4; reading begins at 0\n",
            "orders[1]: done from offset 0 up to 5\n  but for offsets 0 to 4: forgotten",
            &[0, 1, 2, 3, 4],
        ),
    ];
    for (what, forgotten, shown, new) in rows {
        let lab = Lab::new();
        let seen = lab.path("seen");
        handled(&seen, Scope::Topic);
        let mut forget = store(&lab, &["forget", "seen", "--topic", "orders"]);
        let text = said(&run(forget.args(what).arg("--yes"), ""));
        assert!(text.starts_with("Forgotten: "), "{text}");
        assert!(text.contains(forgotten), "{text}");
        assert!(text.contains("Now start the consumer"), "{text}");
        let text = said(&run(&mut store(&lab, &["show", "seen"]), ""));
        assert!(text.contains(shown), "{text}");
        assert!(
            text.contains("\ngroup:   ship-svc\nrecipe:  record-key\n"),
            "{text}"
        );
        assert_eq!(new_again(&seen, 0, Scope::Topic), new, "{what:?}");
    }
}

#[test]
fn a_key_of_partition_scope_is_forgotten_in_the_partition_that_is_named() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    handled(&seen, Scope::Partition);
    let key = [
        "forget",
        "seen",
        "--topic=orders",
        "--partition=1",
        "--key=order-1",
        "--yes",
    ];
    let text = said(&run(&mut store(&lab, &key), ""));
    assert!(text.contains("orders[1]: 1 key, offset 0;"), "{text}");
    assert_eq!(new_again(&seen, 0, Scope::Partition), NONE);
    assert_eq!(new_again(&seen, 1, Scope::Partition), [0]);
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    fs::create_dir(lab.path("empty")).unwrap();
    let forget = |dir, args: &[&str]| {
        let mut command = store(&lab, &["forget", dir, "--yes"]);
        run(command.args(args), "")
    };
    let other = forget("seen", &["--topic", "order", "--all"]);
    refused(&other, 1, &["orders[0] from 0 up to 5, orders[1]"]);
    let key = forget("seen", &["--topic", "orders", "--key", "order-9"]);
    refused(&key, 1, &["\"order-9\"", "no such key was done"]);
    let event = forget("seen", &["--topic", "orders", "--cloud-event", "a", "b"]);
    refused(
        &event,
        1,
        &["recipe is \"record-key\"", "named by its bytes"],
    );
    let scope = forget(
        "seen",
        &["--topic", "orders", "--key", "order-1", "--partition", "0"],
    );
    refused(&scope, 1, &["leave out the partition"]);
    for missing in ["empty", "mistyped"] {
        let finished = forget(missing, &["--topic", "orders", "--all"]);
        refused(&finished, 1, &[missing, "there is no store"]);
        refused(
            &run(&mut store(&lab, &["show", missing]), ""),
            1,
            &["there is no store"],
        );
    }
    assert!(!lab.path("mistyped").exists());
    assert_eq!(fs::read_dir(lab.path("empty")).unwrap().count(), 0);
}

#[test]
fn a_store_in_use_is_refused_with_who_uses_it() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    handled(&seen, Scope::Topic);
    let _open = SledStore::open(&seen).unwrap();
    let by = format!("in use by process {}", std::process::id());
    let finished = run(&mut store(&lab, &["show", "seen"]), "");
    refused(&finished, 1, &["seen", &by, "stop the consumer first"]);
}

#[test]
fn what_was_forgotten_is_called_so_though_the_report_could_not_be_written() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    handled(&seen, Scope::Topic);
    let forget = ["forget", "seen", "--topic=orders", "--key=order-2", "--yes"];
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = store(&lab, &forget);
    let finished = command.stdout(full).output().unwrap();
    let said = String::from_utf8(finished.stderr).unwrap();
    assert_eq!(finished.status.code(), Some(1), "{said}");
    assert!(said.contains("forgotten all the same"), "{said}");
    assert_eq!(new_again(&seen, 0, Scope::Topic), [1]);
}

#[test]
fn a_store_of_lines_is_shown_and_forgets_nothing() {
    let lab = Lab::new();
    let mut dedup = lab.dedup();
    dedup.args(["--store", "sled", "--seen", "seen.store"]);
    assert_eq!(run(&mut dedup, "a\nb\n").code, Some(0));
    let text = said(&run(&mut store(&lab, &["show", "seen.store"]), ""));
    assert!(text.contains("group:   dedup\nrecipe:  line\n"), "{text}");
    let forget = ["forget", "seen.store", "--topic=lines", "--all", "--yes"];
    let finished = run(&mut store(&lab, &forget), "");
    refused(&finished, 1, &["seen.store", "in step"]);
    assert_eq!(run(&mut dedup, "a\nc\n").code, Some(0));
    assert_eq!(fs::read(lab.out()).unwrap(), b"a\nb\nc\n");
}

#[test]
fn killed_at_any_moment_it_leaves_no_key_that_is_neither_known_nor_to_be_handled() {
    let mut random = Random(7);
    let mut killed = 0;
    for round in 0..12 {
        let lab = Lab::new();
        let seen = lab.path("seen");
        handled(&seen, Scope::Topic);
        let forget = ["forget", "seen", "--topic=orders", "--all", "--yes"];
        let mut child = store(&lab, &forget).stdout(Stdio::null()).spawn().unwrap();
        // The first is killed as soon as it is there, however fast the machine.
        let moment_us = if round == 0 { 0 } else { random.below(40_000) };
        thread::sleep(Duration::from_micros(moment_us as u64));
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        let gaps = SledStore::open(&seen).unwrap().inspect().partitions[0]
            .gaps
            .clone();
        let new = new_again(&seen, 0, Scope::Topic);
        assert!(
            new.iter().all(|offset| gaps.at(*offset).is_some()),
            "{new:?} beside {gaps:?}"
        );
        run(&mut store(&lab, &forget), "");
        assert_eq!(new_again(&seen, 0, Scope::Topic), [0, 1, 2, 3, 4]);
    }
    assert!(killed > 0, "none was killed");
}
