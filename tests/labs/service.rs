//! `examples/shipments` as a process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tempfile::TempDir;

use crate::support::kafka::Kafka;

/// A dead member's session, and a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The example that cargo built beside this test.
pub(crate) fn example() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.ancestors().nth(2).unwrap().join("examples/shipments");
    assert!(
        path.exists(),
        "{} is not there: `cargo build --example shipments` makes it",
        path.display()
    );
    path
}

/// A shipping service of one group, with what it keeps between its runs.
pub(crate) struct Service<'a> {
    kafka: &'a Kafka,
    topic: &'a str,
    group: String,
    dir: TempDir,
}

pub(crate) struct Run<'a> {
    service: &'a Service<'a>,
    process: Child,
}

impl<'a> Service<'a> {
    pub(crate) fn new(kafka: &'a Kafka, topic: &'a str) -> Self {
        Self {
            kafka,
            topic,
            group: format!("library-{topic}"),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn start(&self, options: &[&str]) -> Run<'_> {
        let process = Command::new(example())
            .args(["consume", "--brokers", self.kafka.bootstrap()])
            .args(["--topic", self.topic, "--group", &self.group])
            .arg("--store")
            .arg(self.dir.path().join("seen"))
            .arg("--shipped")
            .arg(self.shipped_file())
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Run {
            service: self,
            process,
        }
    }

    fn shipped_file(&self) -> PathBuf {
        self.dir.path().join("shipped")
    }

    /// What was shipped, in order, without the tokens.
    pub(crate) fn shipped(&self) -> Vec<String> {
        lines(&self.shipped_file())
            .iter()
            .map(|line| line.split_once(' ').unwrap().1.to_owned())
            .collect()
    }

    /// The operator's rewind, with Kafka's own tool.
    pub(crate) fn rewind(&self) {
        let words = [
            "--group",
            &self.group,
            "--topic",
            self.topic,
            "--reset-offsets",
            "--to-earliest",
            "--execute",
        ];
        self.kafka.tool("kafka-consumer-groups.sh", &words);
        assert_eq!(self.committed(), Some(0));
    }

    fn committed(&self) -> Option<i64> {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.kafka.bootstrap())
            .set("group.id", &self.group)
            .create()
            .unwrap();
        let mut asked = TopicPartitionList::new();
        asked.add_partition(self.topic, 0);
        let answer = client.committed_offsets(asked, PATIENCE).unwrap();
        match answer.elements()[0].offset() {
            Offset::Offset(next) => Some(next),
            _ => None,
        }
    }
}

impl Run<'_> {
    /// Waits until it dies by itself.
    pub(crate) fn dies(mut self) -> ExitStatus {
        // An input that ended would tell it to stop.
        let _input = self.process.stdin.take();
        self.process.wait().unwrap()
    }

    /// SIGKILL, as soon as so many orders were shipped.
    pub(crate) fn kill_at(mut self, orders: usize) {
        self.wait_for("orders", Duration::from_millis(1), |service| {
            lines(&service.shipped_file()).len() >= orders
        });
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Lets it come to the end of the topic, stops it in order, and gives its last word.
    pub(crate) fn finish(mut self) -> String {
        let end = self.service.kafka.end_offsets(self.service.topic)[0];
        self.wait_for(
            "the end of the topic",
            Duration::from_millis(20),
            |service| service.committed() == Some(end),
        );
        drop(self.process.stdin.take());
        let output = self.process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn wait_for(&mut self, what: &str, pause: Duration, holds: impl Fn(&Service<'_>) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self.service) {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended before {what}: {ended:?}");
            if Instant::now() > deadline {
                self.process.kill().unwrap();
                panic!("waited {PATIENCE:?} for {what}");
            }
            std::thread::sleep(pause);
        }
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
