//! What lies in a partition's log, by Kafka's own `kafka-dump-log.sh`.

#![allow(
    dead_code,
    reason = "two test binaries compile this file, and each uses a part of it"
)]

use std::process::Command;

use crate::support::kafka::{Kafka, repository};
use crate::support::skip::cannot_run;

#[derive(Debug)]
pub(crate) struct Batch {
    /// -1 where its producer is not idempotent.
    pub(crate) producer_id: i64,
    pub(crate) base_sequence: i64,
}

/// What `kafka-dump-log.sh` printed.
#[derive(Debug)]
pub(crate) struct Dump {
    pub(crate) batches: Vec<Batch>,
    pub(crate) payloads: Vec<String>,
}

impl Dump {
    /// Of partition 0; `None` (said on standard error) where the broker's log cannot be read.
    pub(crate) fn of(kafka: &Kafka, topic: &str) -> Option<Self> {
        let Some(dir) = kafka.log_dir() else {
            cannot_run("KAFKA_LOG_DIR is not set.");
            return None;
        };
        let segment = dir.join(format!("{topic}-0/00000000000000000000.log"));
        let output = Command::new(repository().join("scripts/bin/kafka-dump-log.sh"))
            .arg("--files")
            .arg(&segment)
            .arg("--print-data-log")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", segment.display());
        Some(Self::parse(&String::from_utf8(output.stdout).unwrap()))
    }

    pub(crate) fn parse(text: &str) -> Self {
        let headers = text.lines().filter(|line| line.starts_with("baseOffset: "));
        let batches = headers
            .map(|line| Batch {
                producer_id: field(line, "producerId: "),
                base_sequence: field(line, "baseSequence: "),
            })
            .collect();
        let payloads = text
            .lines()
            .filter(|line| line.starts_with("| offset: "))
            .filter_map(|line| line.split_once(" payload: "))
            .map(|(_, payload)| payload.to_owned())
            .collect();
        Self { batches, payloads }
    }
}

fn field(line: &str, name: &str) -> i64 {
    let (_, rest) = line
        .split_once(name)
        .unwrap_or_else(|| panic!("no {name}in: {line}"));
    rest.split(' ').next().unwrap().parse().unwrap()
}
