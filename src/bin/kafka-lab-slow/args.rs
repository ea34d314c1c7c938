//! The command line, checked but not acted on.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use lexopt::prelude::*;

use crate::state::{DELAY_MS_MAX, Settings, default_path};

pub(crate) const HELP: &str = "\
kafka-lab-slow: a loopback proxy in front of a Kafka broker that delays large requests

usage:
  kafka-lab-slow serve --listen ADDR --upstream ADDR [options]
  kafka-lab-slow on|off [options]
  kafka-lab-slow status [--state FILE]

  serve    Forward ADDR to the broker until SIGTERM or SIGINT. Prints one line,
           'listening on ADDR ...', when clients can connect. The broker must
           advertise the address that serve listens on.
  on, off  Start or stop delaying. With a serve running, returns once it has taken
           effect; otherwise the state is stored for the next serve.
  status   Print whether it is on, the settings, and the proxy that is running.

options:
  --listen ADDR          host:port of this machine; loopback only, for example
                         127.0.0.1:9092
  --upstream ADDR        host:port of the broker
  --threshold-bytes N    delay requests of more than N bytes (kept in the state
                         file; 4096 at first)
  --delay-ms N           delay them by N milliseconds, 1 to 3600000 (kept in the
                         state file; 600 at first)
  --state FILE           where on/off and the settings are kept. Default: the
                         environment's KAFKA_LAB_SLOW_STATE; else kafka-lab-slow.json
                         in /run if that is writable, else in XDG_RUNTIME_DIR, else
                         in the directory for temporary files
  -h, --help             print this
  -V, --version          print the version

exit status: 0 done, 1 failed, 2 the command line is wrong";

#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Version,
    Serve(Serve),
    Switch(Switch),
    Status { state: PathBuf },
}

#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: SocketAddr,
    pub(crate) state: PathBuf,
    pub(crate) settings: Settings,
}

#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) on: bool,
    pub(crate) state: PathBuf,
    pub(crate) settings: Settings,
}

/// What was typed, before it is known to fit the command.
#[derive(Default)]
struct Typed {
    command: Option<String>,
    listen: Option<SocketAddr>,
    upstream: Option<SocketAddr>,
    state: Option<PathBuf>,
    settings: Settings,
}

pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut typed = Typed::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('V') | Long("version") => return Ok(Command::Version),
            Long("listen") => typed.listen = Some(address("--listen", parser.value()?)?),
            Long("upstream") => typed.upstream = Some(address("--upstream", parser.value()?)?),
            Long("state") => typed.state = Some(state_path(parser.value()?)?),
            Long("threshold-bytes") => {
                let bytes = number("--threshold-bytes", &parser.value()?, &(0..=u32::MAX))?;
                typed.settings.threshold_bytes = Some(bytes);
            }
            Long("delay-ms") => {
                let ms = number("--delay-ms", &parser.value()?, &(1..=DELAY_MS_MAX))?;
                typed.settings.delay_ms = Some(ms);
            }
            Value(command) if typed.command.is_none() => typed.command = Some(command.string()?),
            other => return Err(other.unexpected()),
        }
    }
    typed.resolve()
}

impl Typed {
    fn resolve(self) -> Result<Command, lexopt::Error> {
        let Some(command) = self.command.as_deref() else {
            return Err("no command; it is one of serve, on, off, status".into());
        };
        let serves = command == "serve";
        if !serves && (self.listen.is_some() || self.upstream.is_some()) {
            return Err(format!("'{command}' takes no --listen and no --upstream").into());
        }
        if command == "status" && self.settings != Settings::default() {
            return Err("'status' takes no --threshold-bytes and no --delay-ms".into());
        }
        let state = self.state.unwrap_or_else(default_path);
        let settings = self.settings;
        match command {
            "serve" => match (self.listen, self.upstream) {
                (Some(listen), Some(upstream)) => Ok(Command::Serve(Serve {
                    listen,
                    upstream,
                    state,
                    settings,
                })),
                (None, None) => Err("'serve' needs --listen ADDR and --upstream ADDR".into()),
                (None, _) => Err("'serve' needs --listen ADDR".into()),
                (_, None) => Err("'serve' needs --upstream ADDR".into()),
            },
            "on" | "off" => Ok(Command::Switch(Switch {
                on: command == "on",
                state,
                settings,
            })),
            "status" => Ok(Command::Status { state }),
            other => Err(
                format!("unknown command '{other}'; it is one of serve, on, off, status").into(),
            ),
        }
    }
}

/// Takes names as well, since labs write `localhost:9092`. Of several addresses an IPv4 one is
/// preferred: brokers and clients in the labs say 127.0.0.1.
fn address(flag: &str, value: OsString) -> Result<SocketAddr, lexopt::Error> {
    let value = value.string()?;
    let addresses: Vec<SocketAddr> = match value.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            return Err(format!("{flag} {value}: not a host and port: {error}").into());
        }
    };
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or(addresses.first())
        .copied()
        .ok_or_else(|| format!("{flag} {value}: the name has no address").into())
}

fn state_path(value: OsString) -> Result<PathBuf, lexopt::Error> {
    if value.is_empty() {
        return Err("--state: the name of a file is needed, not an empty one".into());
    }
    Ok(value.into())
}

fn number<N>(flag: &str, value: &OsStr, range: &RangeInclusive<N>) -> Result<N, lexopt::Error>
where
    N: FromStr + PartialOrd + Display,
{
    let number = value.to_str().and_then(|text| text.parse().ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let value = value.to_string_lossy();
            let (min, max) = (range.start(), range.end());
            format!("{flag} {value}: it must be a whole number from {min} to {max}").into()
        })
}
