//! A group member whose broker is the [`Stage`].

use std::sync::Arc;
use std::time::Duration;

use super::cluster::Produced;
use super::history::{Given, TOPIC};
use super::stage::{Command, Reading, Stage, World};
use crate::engine::Committed;
use crate::record::{Headers, NextOffset, Record, TopicPartition};
use crate::source::{Batch, Listener, Offered, Reader, Source, SourceError, Start};

/// Few, so that a handful of records is more than one batch.
const BATCH_RECORDS_MAX: usize = 3;

fn named(partition: usize) -> TopicPartition {
    TopicPartition::new(TOPIC, i32::try_from(partition).unwrap())
}

fn next_offset(next: i64) -> NextOffset {
    NextOffset::new(next).unwrap()
}

fn refused(operation: &'static str) -> SourceError {
    SourceError::client(operation)("refused by the script")
}

pub(super) struct Scripted {
    stage: Arc<Stage>,
    listener: Option<Arc<dyn Listener>>,
    answers: Vec<Result<Vec<Committed>, SourceError>>,
}

impl Scripted {
    pub(super) fn new(stage: Arc<Stage>) -> Self {
        Self {
            stage,
            listener: None,
            answers: Vec::new(),
        }
    }

    fn assign(&self, listener: &dyn Listener, partitions: &[usize]) {
        let offered: Vec<_> = {
            let mut world = self.stage.world();
            let offer = |partition: &usize| {
                let committed = world.cluster.committed[*partition];
                let marks = world.marks.as_ref();
                let position = marks.and_then(|marks| marks.position(*partition));
                let given = Given {
                    committed,
                    position,
                    since: None,
                };
                if given.is_behind() {
                    world.history.disorder.insert(*partition);
                }
                world.given[*partition] = Some(given);
                world.touched.insert(*partition);
                Offered {
                    partition: named(*partition),
                    committed: committed.map(next_offset),
                }
            };
            partitions.iter().map(offer).collect()
        };
        let starts = listener.offered(&offered);
        let mut readers = Vec::new();
        let mut world = self.stage.world();
        let now = world.tick();
        for (partition, start) in partitions.iter().copied().zip(starts) {
            let next = begin(&world, partition, start);
            world.log.push(format!("{partition} is read from {next}"));
            if let Some(given) = &mut world.given[partition] {
                given.since = Some(now);
            }
            world.handled.retain(|(of, _), _| *of != partition);
            world.reading[partition] = Some(Reading {
                next,
                idle: false,
                closing: false,
            });
            let reader = ScriptedReader {
                stage: Arc::clone(&self.stage),
                partition,
            };
            let reader: Box<dyn Reader> = Box::new(reader);
            readers.push((named(partition), reader));
        }
        drop(world);
        listener.assigned(readers);
    }

    fn revoke(&self, listener: &dyn Listener, partitions: &[usize], lost: bool) {
        let mut world = self.stage.world();
        for partition in partitions {
            if let Some(reading) = &mut world.reading[*partition] {
                reading.closing = true;
            }
            // Somebody else's from here on, and what they did in it need not be known.
            if let Some(given) = &mut world.given[*partition] {
                given.since = None;
            }
        }
        drop(world);
        self.stage.tell();
        let names: Vec<_> = partitions.iter().copied().map(named).collect();
        let positions = listener.revoked(&names, lost);
        let mut world = self.stage.world();
        if !lost {
            world.commit(&positions);
        }
        for partition in partitions {
            world.given[*partition] = None;
            world.reading[*partition] = None;
        }
    }
}

/// Where reading begins, with `auto.offset.reset=earliest`.
fn begin(world: &World, partition: usize, start: Start) -> i64 {
    let log = &world.cluster.logs[partition];
    let asked = match start {
        Start::Committed => world.cluster.committed[partition],
        Start::Oldest => None,
        Start::At(next) => Some(next.get()),
    };
    let inside = asked.filter(|next| (log.low..=log.high).contains(next));
    inside.unwrap_or(log.low)
}

impl Source for Scripted {
    fn join(&mut self, listener: Arc<dyn Listener>) -> Result<(), SourceError> {
        self.listener = Some(listener);
        Ok(())
    }

    fn poll(&mut self, _wait: Duration) -> Result<(), SourceError> {
        let mut world = self.stage.world();
        if world.commands.is_empty() {
            world = self.stage.pause(world);
        }
        let command = world.commands.front().cloned();
        drop(world);
        let (Some(command), Some(listener)) = (command, &self.listener) else {
            return Ok(());
        };
        match &command {
            Command::Assign(partitions) => self.assign(&**listener, partitions),
            Command::Revoke(partitions, lost) => self.revoke(&**listener, partitions, *lost),
        }
        // Only now: whoever waits for it waits until it is carried out.
        self.stage.world().commands.pop_front();
        self.stage.tell();
        Ok(())
    }

    fn commit(&mut self, positions: &[Committed]) {
        let agreed = self.stage.world().commit(positions);
        let answer = agreed.then(|| positions.to_vec());
        self.answers.push(answer.ok_or_else(|| refused("commit")));
    }

    fn commit_answers(&mut self) -> Vec<Result<Vec<Committed>, SourceError>> {
        std::mem::take(&mut self.answers)
    }

    fn leave(&mut self, positions: &[Committed], _limit: Duration) -> Result<(), SourceError> {
        let mut world = self.stage.world();
        if world.commit(positions) {
            return Ok(());
        }
        world.source_failed = true;
        Err(refused("leave"))
    }

    fn cluster_id(
        &self,
        _limit: Duration,
        _given_up: &dyn Fn() -> bool,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }
}

struct ScriptedReader {
    stage: Arc<Stage>,
    partition: usize,
}

impl Reader for ScriptedReader {
    fn read(&mut self, max: usize, _wait: Duration) -> Result<Arc<dyn Batch>, SourceError> {
        let mut world = self.stage.world();
        if world.broken == Some(self.partition) {
            world.broken = None;
            world.source_failed = true;
            return Err(refused("read"));
        }
        let mut records = self.take(&mut world, max);
        if records.is_empty() {
            // All that was handed out is decided about: else nobody would read on.
            if let Some(reading) = &mut world.reading[self.partition] {
                reading.idle = true;
            }
            self.stage.tell();
            let mut world = self.stage.pause(world);
            records = self.take(&mut world, max);
        }
        Ok(Arc::new(Records {
            partition: named(self.partition),
            records,
        }))
    }

    fn watermarks(&self) -> Result<(NextOffset, NextOffset), SourceError> {
        let log = &self.stage.world().cluster.logs[self.partition];
        Ok((next_offset(log.low), next_offset(log.high)))
    }
}

impl ScriptedReader {
    fn take(&self, world: &mut World, max: usize) -> Vec<(i64, Arc<Produced>)> {
        let now = world.tick();
        let World {
            cluster,
            reading,
            read_at,
            ..
        } = world;
        let Some(reading) = &mut reading[self.partition] else {
            return Vec::new();
        };
        if reading.closing {
            return Vec::new();
        }
        let log = &cluster.logs[self.partition];
        let from = log.records.range(reading.next..);
        let records: Vec<_> = from
            .take(max.min(BATCH_RECORDS_MAX))
            .map(|(offset, record)| (*offset, Arc::clone(record)))
            .collect();
        if let Some((last, _)) = records.last() {
            (reading.next, reading.idle) = (last + 1, false);
        }
        let places = records.iter().map(|(at, _)| ((self.partition, *at), now));
        read_at.extend(places);
        records
    }
}

struct Records {
    partition: TopicPartition,
    records: Vec<(i64, Arc<Produced>)>,
}

impl Batch for Records {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn record(&self, index: usize) -> Option<Record<'_>> {
        let (offset, record) = self.records.get(index)?;
        Some(Record {
            topic: self.partition.topic(),
            partition: self.partition.partition(),
            offset: *offset,
            timestamp_ms: Some(record.timestamp_ms),
            key: Some(&record.record_key),
            value: Some(&record.value),
            headers: Headers::new(&record.headers),
        })
    }
}
