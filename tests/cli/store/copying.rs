//! `dedup store copy`, and stores in redb as `dedup` uses them.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use idempotent_consumer::store::{Inspection, RedbStore, SledStore, Store as _};

use super::{handled, new_again, refused, said, store};
use crate::support::{Lab, Random, read, run};
use idempotent_consumer::key::Scope;

fn copy(lab: &Lab, from: &str, to: &str, more: &[&str]) -> Command {
    store(
        lab,
        &[&["copy", "--from", from, "--to", to][..], more].concat(),
    )
}

/// But for the engine.
fn alike(one: &Inspection, other: &Inspection) {
    let engine = one.engine;
    let other = Inspection {
        engine,
        ..other.clone()
    };
    assert_eq!(*one, other);
}

#[test]
fn a_copy_is_said_first_then_made_and_then_the_other_way() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    let dry = said(&run(&mut copy(&lab, "seen", "redb:new", &[]), ""));
    let what = "the store of group ship-svc\n  from seen\n  to   redb:new\n  \
                2 partitions, 5 keys, 2 records\n";
    assert!(
        dry.starts_with(&format!("Would be copied: {what}")),
        "{dry}"
    );
    assert!(dry.contains("Nothing was written"), "{dry}");
    assert!(!lab.path("new").exists());

    let made = said(&run(&mut copy(&lab, "seen", "redb:new", &["--yes"]), ""));
    assert!(made.starts_with(&format!("Copied: {what}")), "{made}");
    let before = SledStore::open(lab.path("seen")).unwrap().inspect();
    let copied = RedbStore::open(lab.path("new")).unwrap().inspect();
    alike(&before, &copied);

    let back = ["--yes"];
    said(&run(&mut copy(&lab, "redb:new", "sled:back", &back), ""));
    alike(
        &before,
        &SledStore::open(lab.path("back")).unwrap().inspect(),
    );
    assert_eq!(new_again(&lab.path("back"), 0, Scope::Topic), [0_i64; 0]);
}

#[test]
fn a_target_with_anything_in_it_is_refused_dry_or_not_and_stays_as_it_is() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    fs::create_dir(lab.path("taken")).unwrap();
    fs::write(lab.path("taken/letter"), "dear").unwrap();
    for more in [&[][..], &["--yes"]] {
        for to in ["redb:taken", "sled:seen", "redb:seen"] {
            let finished = run(&mut copy(&lab, "seen", to, more), "");
            refused(&finished, 1, &["nothing is copied over what is there"]);
        }
        let none = run(&mut copy(&lab, "mistyped", "redb:new", more), "");
        refused(&none, 1, &["mistyped", "there is no store"]);
    }
    let held: Vec<_> = fs::read_dir(lab.path("taken")).unwrap().collect();
    assert_eq!(held.len(), 1);
    assert!(!lab.path("mistyped").exists() && !lab.path("new").exists());
}

#[test]
fn a_store_is_shown_and_forgets_under_its_own_kind_or_none_and_under_no_other() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    said(&run(
        &mut copy(&lab, "sled:seen", "redb:new", &["--yes"]),
        "",
    ));
    for (name, engine) in [
        ("seen", "sled"),
        ("sled:seen", "sled"),
        ("new", "redb"),
        ("redb:new", "redb"),
    ] {
        let text = said(&run(&mut store(&lab, &["show", name]), ""));
        assert!(text.contains(&format!("\nengine:  {engine}\n")), "{text}");
        assert!(text.contains("\nkeys:    5\n"), "{text}");
    }
    for (name, other) in [("redb:seen", "sled:seen"), ("sled:new", "redb:new")] {
        let finished = run(&mut store(&lab, &["show", name]), "");
        refused(&finished, 1, &["dedup store copy --from", other]);
    }
    let forget = ["forget", "new", "--topic=orders", "--key=order-2", "--yes"];
    said(&run(&mut store(&lab, &forget), ""));
    let text = said(&run(&mut store(&lab, &["show", "redb:new"]), ""));
    assert!(text.contains("but for offset 1: forgotten"), "{text}");
}

#[test]
fn a_store_in_use_is_not_copied() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    let _open = SledStore::open(lab.path("seen")).unwrap();
    let finished = run(&mut copy(&lab, "seen", "redb:new", &["--yes"]), "");
    refused(&finished, 1, &["in use", "stop the consumer first"]);
    assert!(!lab.path("new").exists());
}

#[test]
fn a_copy_that_is_made_is_called_so_though_the_report_could_not_be_written() {
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = copy(&lab, "seen", "redb:new", &["--yes"]);
    let finished = command.stdout(full.unwrap()).output().unwrap();
    let said = String::from_utf8(finished.stderr).unwrap();
    assert_eq!(finished.status.code(), Some(1), "{said}");
    assert!(said.contains("made and checked all the same"), "{said}");
    assert_eq!(RedbStore::open(lab.path("new")).unwrap().summary().keys, 5);
}

#[test]
fn killed_at_any_moment_there_is_a_whole_copy_or_none() {
    let mut random = Random(11);
    let (mut killed, mut whole) = (0, 0);
    let lab = Lab::new();
    handled(&lab.path("seen"), Scope::Topic);
    let before = SledStore::open(lab.path("seen")).unwrap().inspect();
    let begun = Instant::now();
    said(&run(&mut copy(&lab, "seen", "redb:first", &["--yes"]), ""));
    let micros = usize::try_from(begun.elapsed().as_micros()).unwrap() * 5 / 4;
    for round in 0..16 {
        let target = format!("new-{round}");
        let to = format!("redb:{target}");
        let mut command = copy(&lab, "seen", &to, &["--yes"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_micros(random.below(micros) as u64));
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        if lab.path(&target).join("stamp").exists() {
            alike(
                &before,
                &RedbStore::open(lab.path(&target)).unwrap().inspect(),
            );
            whole += 1;
        } else if holds_more_than_a_lock(&lab.path(&target)) {
            let finished = run(&mut store(&lab, &["show", &to]), "");
            refused(&finished, 1, &[&target]);
            refused(
                &run(&mut copy(&lab, "seen", &to, &["--yes"]), ""),
                1,
                &["nothing is copied"],
            );
        }
        alike(
            &before,
            &SledStore::open(lab.path("seen")).unwrap().inspect(),
        );
    }
    println!("{killed} killed, {whole} whole copies");
    assert!(killed > 0, "none was killed");
}

fn holds_more_than_a_lock(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut held| {
        held.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "lock"))
    })
}

#[test]
fn dedup_keeps_its_lines_in_redb_and_goes_on_with_a_copy() {
    let lab = Lab::new();
    let dedup = |kind, seen| {
        let mut dedup = lab.dedup();
        dedup.args(["--store", kind, "--seen", seen]);
        dedup
    };
    assert_eq!(run(&mut dedup("redb", "a"), "1\n2\n2\n").code, Some(0));
    assert_eq!(run(&mut dedup("redb", "a"), "2\n3\n").code, Some(0));
    said(&run(&mut copy(&lab, "redb:a", "sled:b", &["--yes"]), ""));
    assert_eq!(run(&mut dedup("sled", "b"), "3\n4\n").code, Some(0));
    assert_eq!(read(lab.out()), b"1\n2\n3\n4\n");
    refused(
        &run(&mut dedup("redb", "b"), "5\n"),
        1,
        &["sled:b", "redb:PATH"],
    );
    assert_eq!(read(lab.out()), b"1\n2\n3\n4\n");
}
