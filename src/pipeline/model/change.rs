//! What happens to the topic and to the group, past the consumer.

use super::cluster::Identity;
use super::op::Op;
use super::stage::World;

impl World {
    /// Carries out a step that is none of the consumer's.
    pub(super) fn change(&mut self, op: &Op) {
        if let Op::Expire { partition, units } = op {
            return self.expire(*partition, *units);
        }
        let World {
            cluster,
            marks,
            given,
            ..
        } = self;
        let free = |partition: usize| given[partition].is_none();
        let head = |partition| marks.as_ref().and_then(|marks| marks.head(partition));
        match op {
            Op::Send {
                partition,
                attempts,
            } => {
                let identity = cluster.send(*partition);
                self.attempts
                    .insert(identity, attempts.iter().copied().collect());
            }
            Op::Again {
                partition,
                of,
                altered,
            } => cluster.again(*partition, *of, *altered),
            Op::Keyless { partition } => cluster.keyless(*partition),
            Op::Marker { partition } => cluster.marker(*partition),
            Op::Compact { partition, nth } => cluster.compact(*partition, *nth),
            Op::Trim { partition, count } => cluster.trim(*partition, *count),
            Op::Truncate {
                partition,
                back,
                grown,
            } if free(*partition) => {
                if let Some(head) = head(*partition) {
                    cluster.truncate(*partition, head, *back, *grown);
                }
            }
            Op::Recreate { partition, grown } if free(*partition) => {
                let head = head(*partition);
                cluster.recreate(*partition, head, *grown);
            }
            Op::Elsewhere { partition, count } if free(*partition) => {
                self.elsewhere(*partition, *count);
            }
            // Brokers refuse it while there are members.
            Op::Rewind { partition, back } if given.iter().all(Option::is_none) => {
                cluster.rewind(*partition, *back);
            }
            Op::Refuse { applied } => self.refusals.push_back(*applied),
            Op::Broken { partition } if !free(*partition) => self.broken = Some(*partition),
            _ => {}
        }
    }

    /// Another member handles records of a partition and commits them.
    pub(super) fn elsewhere(&mut self, partition: usize, count: usize) {
        let log = &self.cluster.logs[partition];
        let from = self.cluster.committed[partition].unwrap_or(log.low);
        if log.changed {
            return;
        }
        let records = log.records.range(from..).take(count);
        for (offset, record) in records {
            self.history.elsewhere(record.identity, partition, *offset);
            self.cluster.committed[partition] = Some(offset + 1);
        }
    }

    /// Records in the topic that never took effect.
    pub(super) fn unhandled(&self) -> Vec<(usize, i64, Identity)> {
        let logs = self.cluster.logs.iter().enumerate();
        let records = logs.flat_map(|(partition, log)| {
            let records = log.records.iter();
            records.map(move |(offset, record)| (partition, *offset, record.identity))
        });
        records
            .filter(|(_, _, identity)| !self.history.knows(*identity))
            .collect()
    }

    /// Whether everything in the topic has taken effect.
    pub(super) fn is_handled(&self) -> bool {
        self.unhandled().is_empty()
    }
}
