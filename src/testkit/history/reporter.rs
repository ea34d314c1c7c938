//! The member's end of the line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::message::{Effect, Message, NOTED};

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Reports what a member's handler does. Clones share one connection, and their reports take
/// turns; a report blocks its thread until it is answered, some 50 microseconds.
#[derive(Clone, Debug)]
pub struct Reporter(Arc<Mutex<Line>>);

#[derive(Debug)]
struct Line {
    stream: BufReader<TcpStream>,
    begun: u64,
}

impl Reporter {
    /// Begins a life of a member. Those of one name must have one store.
    ///
    /// # Errors
    /// The collector is not there, or does not answer.
    pub fn connect(collector: SocketAddr, member: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(collector)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut line = Line {
            stream: BufReader::new(stream),
            begun: 0,
        };
        line.say(&Message::Started {
            member: member.to_owned(),
            process: std::process::id(),
        })?;
        Ok(Self(Arc::new(Mutex::new(line))))
    }

    /// Reports that a handler begins. From here on the effect may happen.
    ///
    /// # Errors
    /// The collector is gone or refuses the report; the effect must not happen then.
    pub fn begin(&self, effect: &Effect) -> io::Result<Open> {
        let number = self.with(|line| {
            line.begun += 1;
            let number = line.begun;
            line.say(&Message::Began {
                number,
                effect: effect.clone(),
            })?;
            Ok(number)
        })?;
        Ok(Open {
            reporter: self.clone(),
            number: Some(number),
        })
    }

    fn with<T>(&self, say: impl FnOnce(&mut Line) -> io::Result<T>) -> io::Result<T> {
        // A panic between a report and its answer leaves the line unusable, and that shows.
        say(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A handler at work. Dropping it reports that the handler gave up.
#[derive(Debug)]
#[must_use = "dropping it reports a failure"]
pub struct Open {
    reporter: Reporter,
    number: Option<u64>,
}

impl Open {
    /// Reports that the effect has happened. It has as soon as the report is under way, whether
    /// the answer arrives or not, so this stands for the effect itself.
    ///
    /// # Errors
    /// The collector is gone or refuses the report: it is not known whether it has it.
    pub fn applied(mut self) -> io::Result<()> {
        match self.number.take() {
            Some(number) => self
                .reporter
                .with(|line| line.say(&Message::Applied { number })),
            None => Ok(()),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            let failed = self
                .reporter
                .with(|line| line.say(&Message::Failed { number }));
            if let Err(error) = failed {
                tracing::warn!("the collector does not know of a failure: {error}");
            }
        }
    }
}

impl Line {
    /// Sends a line in one write, and waits for the answer.
    fn say(&mut self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match answer.trim_end() {
            NOTED => Ok(()),
            reason => Err(io::Error::other(format!("the collector: {reason}"))),
        }
    }
}
