//! What the values of options mean.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    time::Duration,
};

use super::{Stats, Store};
use crate::{ages::Ages, error::Error, format::Format, recipe::Recipe};

/// A wait is for a writer that is about to finish, not a schedule.
pub(super) const WAIT_SECONDS_MAX: u64 = 86_400;

/// What goes into the first line of a seen file, which is read at once.
const RECIPE_BYTES_MAX: usize = 1000;

pub(super) fn store(typed: &OsStr) -> Result<Store, Error> {
    match typed.to_str() {
        Some("text") => Ok(Store::Text),
        #[cfg(feature = "sled")]
        Some("sled") => Ok(Store::Sled),
        #[cfg(feature = "redb")]
        Some("redb") => Ok(Store::Redb),
        #[cfg(not(feature = "sled"))]
        Some("sled") => Err(absent("sled")),
        #[cfg(not(feature = "redb"))]
        Some("redb") => Err(absent("redb")),
        _ => Err(Error::Usage(format!(
            "--store takes text, sled or redb, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}

#[cfg(not(all(feature = "sled", feature = "redb")))]
fn absent(kind: &str) -> Error {
    Error::Usage(format!(
        "--store {kind} is not in this build; build with the feature '{kind}'"
    ))
}

pub(super) fn wait(typed: &OsStr) -> Result<Duration, Error> {
    match typed.to_str().and_then(|text| text.parse().ok()) {
        Some(seconds) if seconds <= WAIT_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::Usage(format!(
            "--wait takes whole seconds from 0 to {WAIT_SECONDS_MAX}, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}

/// What ends a line, and what makes two the same.
pub(super) fn format(
    null: bool,
    key: Option<&OsStr>,
    delimiter: Option<OsString>,
    ages: Option<Ages>,
) -> Result<Format, Error> {
    let word = match key.map(OsStr::to_str) {
        None => "line",
        Some(Some(word)) => word,
        Some(None) => return Err(Error::Usage("--key is no text".to_owned())),
    };
    if delimiter.is_some() && !word.starts_with("field:") {
        return Err(Error::Usage(
            "--delimiter is for --key field:NUMBER alone".to_owned(),
        ));
    }
    let delimiter = match delimiter.map(OsString::into_vec) {
        None => b"\t".to_vec(),
        Some(typed) if typed == b"\\t" => b"\t".to_vec(),
        Some(typed) if typed.is_empty() => {
            return Err(Error::Usage("--delimiter is empty".to_owned()));
        }
        Some(typed) => typed,
    };
    if word.len() + delimiter.len() > RECIPE_BYTES_MAX {
        return Err(Error::Usage(format!(
            "--key and --delimiter have at most {RECIPE_BYTES_MAX} bytes together"
        )));
    }
    let terminator = if null { 0 } else { b'\n' };
    if delimiter.contains(&terminator) {
        return Err(Error::Usage(
            "--delimiter holds what ends a line; no line has it inside".to_owned(),
        ));
    }
    Ok(Format {
        terminator,
        recipe: Recipe::parse(word, &delimiter)
            .map_err(Error::Usage)?
            .into(),
        ages,
    })
}

pub(super) fn key_required(typed: Option<&OsStr>) -> Result<bool, Error> {
    match typed.map(OsStr::as_bytes) {
        None | Some(b"stop") => Ok(true),
        Some(b"pass") => Ok(false),
        Some(other) => Err(Error::Usage(format!(
            "--no-key takes stop or pass, not '{}'",
            String::from_utf8_lossy(other)
        ))),
    }
}

pub(super) fn stats(typed: &OsStr) -> Result<Stats, Error> {
    match typed.to_str() {
        Some("text") => Ok(Stats::Text),
        Some("json") => Ok(Stats::Json),
        _ => Err(Error::Usage(format!(
            "--stats takes text or json, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}

/// An age: a whole number with a unit, so that nobody takes hours for days.
pub(super) fn ttl(typed: &OsStr) -> Result<Duration, Error> {
    let seconds = |text: &str| {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let each = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(each)
    };
    match typed.to_str().and_then(seconds) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::Usage(format!(
            "--ttl takes a whole number above 0 and s, m, h or d, such as 7d, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}
