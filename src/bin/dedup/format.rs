//! How lines lie in the files: what ends one, and what makes two the same.

use std::{borrow::Cow, sync::Arc};

use crate::{lines, recipe::Recipe};

#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// A newline, or NUL.
    pub(crate) terminator: u8,
    pub(crate) recipe: Arc<Recipe>,
}

impl Format {
    /// As it stands in a store's stamp: a store of other settings is refused.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(crate) fn name(&self) -> String {
        let ends = if self.terminator == 0 { "null " } else { "" };
        format!("{ends}{}", self.recipe)
    }

    /// The marks of whole lines: the lines themselves, or the keys of those that have one.
    pub(crate) fn marks<'a>(&self, block: &'a [u8]) -> Cow<'a, [u8]> {
        if self.recipe.is_line() {
            return Cow::Borrowed(block);
        }
        let mut marks = Vec::new();
        for line in lines::split(block, self.terminator) {
            if let Ok(key) = self.recipe.key(line) {
                marks.extend_from_slice(&key);
                marks.push(self.terminator);
            }
        }
        Cow::Owned(marks)
    }

    /// The first line of a file of keys, which tells it from a file of lines and from one of
    /// other keys. A file of lines has none: it is the script's.
    pub(crate) fn header(&self) -> Vec<u8> {
        if self.recipe.is_line() {
            return Vec::new();
        }
        let mut header = format!("{HEADER_BEGINS}{}", self.recipe).into_bytes();
        header.push(self.terminator);
        header
    }
}

/// How the first line of every file of keys begins.
pub(crate) const HEADER_BEGINS: &str = "# seen file of dedup, keys: ";
