//! The stamp: whose store this is, and which number each partition has in it.
//!
//! A text file, so that a person can read whose a directory is: JSON and a line with its checksum.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files;
use crate::store::{Owner, StoreError};

/// The format of the whole directory, as it is written. All before it are read.
pub(super) const FORMAT: u32 = 3;
const UNNAMED_ENGINE: &str = "sled";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// First, so that a newer format is recognised whatever else it changed.
    pub(super) format: u32,
    /// What the log is kept in, `None` for sled: there was none other at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<String>,
    pub(super) store_id: String,
    pub(super) hash_key: String,
    pub(super) group: Option<String>,
    pub(super) recipe: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) cluster_id: Option<String>,
    /// A partition's place in the list is its number in the log.
    pub(super) partitions: Vec<PartitionName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartitionName {
    pub(super) topic: String,
    pub(super) partition: i32,
}

#[derive(Deserialize)]
struct JustFormat {
    format: u32,
}

impl Stamp {
    /// A stamp for a new store, with a secret of its own.
    pub(super) fn new(engine: &str) -> io::Result<Self> {
        let random = || -> io::Result<[u8; 16]> {
            let mut bytes = [0; 16];
            // As text: its error is a std error only with a feature that nothing here needs.
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            Ok(bytes)
        };
        Ok(Self {
            format: FORMAT,
            engine: named(engine),
            store_id: hex(&random()?),
            hash_key: hex(&random()?),
            group: None,
            recipe: None,
            scope: None,
            cluster_id: None,
            partitions: Vec::new(),
        })
    }

    /// Reads a directory's stamp, `None` where there is none.
    pub(super) fn read(directory: &Path, path: &PathBuf) -> Result<Option<Self>, StoreError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(files::damaged(path, "the stamp is no text"));
            }
            Err(error) => return Err(files::unusable(path)(error)),
        };
        let (json, sum) = text
            .trim_end()
            .rsplit_once("\nchecksum ")
            .ok_or_else(|| files::damaged(path, "the stamp has no checksum line"))?;
        // Before the checksum: what it covers may differ between formats.
        if let Ok(JustFormat { format }) = serde_json::from_str(json) {
            if !(1..=FORMAT).contains(&format) {
                return Err(StoreError::UnknownFormat {
                    path: directory.to_owned(),
                    found: format,
                    known: FORMAT,
                });
            }
        }
        if sum != checksum(json) {
            return Err(files::damaged(path, "the stamp's checksum does not match"));
        }
        let stamp = serde_json::from_str(json)
            .map_err(|error| files::damaged(path, format!("the stamp cannot be read ({error})")))?;
        Ok(Some(stamp))
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let failed = files::failed(path, "writing the stamp");
        let json = match serde_json::to_string_pretty(self) {
            Ok(json) => json,
            Err(error) => return Err(failed(io::Error::other(error))),
        };
        let text = format!("{json}\nchecksum {}\n", checksum(&json));
        files::replace(path, text.as_bytes()).map_err(failed)
    }

    /// What the log is kept in.
    pub(super) fn engine(&self) -> &str {
        self.engine.as_deref().unwrap_or(UNNAMED_ENGINE)
    }

    /// The same store's with its log elsewhere.
    pub(super) fn for_engine(&self, engine: &str) -> Self {
        Self {
            engine: named(engine),
            ..self.clone()
        }
    }

    /// The owner, once there is one.
    pub(super) fn owner(&self) -> Option<Owner> {
        Some(Owner {
            group: self.group.clone()?,
            recipe: self.recipe.clone()?,
            scope: self.scope.clone()?,
        })
    }

    pub(super) fn hash_key(&self, path: &Path) -> Result<[u8; 16], StoreError> {
        let digits = self.hash_key.as_bytes();
        let mut key = [0; 16];
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = std::str::from_utf8(pair)
                .ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(|| files::damaged(path, "the hash key is not hexadecimal"))?;
        }
        if digits.len() != 32 {
            return Err(files::damaged(path, "the hash key has not 32 digits"));
        }
        Ok(key)
    }
}

fn named(engine: &str) -> Option<String> {
    (engine != UNNAMED_ENGINE).then(|| engine.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn checksum(json: &str) -> String {
    format!("{:08x}", crc32fast::hash(json.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of a store are hashed with it: another reading of it would forget them all.
    #[test]
    fn the_hash_key_of_the_first_format_is_read_as_it_was_written() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1");
        let path = fixture.join("stamp");
        let stamp = Stamp::read(&fixture, &path).unwrap().unwrap();
        let key = 0x3229_8284_a6e4_9835_e2de_cfec_d17c_bdee_u128;
        assert_eq!(stamp.hash_key(&path).unwrap(), key.to_be_bytes());
        assert_eq!(stamp.engine(), "sled");
    }
}
