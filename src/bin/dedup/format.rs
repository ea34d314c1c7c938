//! How lines lie in the files: what ends one, and what makes two the same.

use std::{borrow::Cow, sync::Arc};

use crate::{ages::Ages, lines, recipe::Recipe};

#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// A newline, or NUL.
    pub(crate) terminator: u8,
    pub(crate) recipe: Arc<Recipe>,
    /// Where keys are forgotten, marks have times.
    pub(crate) ages: Option<Ages>,
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
        if self.is_bare() {
            return Cow::Borrowed(block);
        }
        let mut marks = Vec::new();
        for line in lines::split(block, self.terminator) {
            if let Ok(key) = self.recipe.key(line) {
                if let Some(ages) = &self.ages {
                    ages.begin(&mut marks);
                }
                marks.extend_from_slice(&key);
                marks.push(self.terminator);
            }
        }
        Cow::Owned(marks)
    }

    /// Whether the seen file holds lines and nothing else, as the script's does.
    fn is_bare(&self) -> bool {
        self.recipe.is_line() && self.ages.is_none()
    }

    /// What the seen file's marks are, in words.
    pub(crate) fn marked(&self) -> String {
        let times = if self.ages.is_some() {
            " with times"
        } else {
            ""
        };
        format!("{}{times}", self.recipe)
    }

    /// How what lies in the seen file is read: keys, and none where they are too old.
    pub(crate) fn of_marks(&self) -> Self {
        let recipe = match &self.ages {
            None => Recipe::Line,
            Some(ages) => Recipe::Mark {
                not_before: ages.not_before(),
            },
        };
        Self {
            recipe: recipe.into(),
            ages: None,
            ..*self
        }
    }

    /// The first line of a file of keys, which tells it from a file of lines and from one of
    /// other keys. A file of lines has none: it is the script's.
    pub(crate) fn header(&self) -> Vec<u8> {
        if self.is_bare() {
            return Vec::new();
        }
        let mut header = format!("{HEADER_BEGINS}{}", self.marked()).into_bytes();
        header.push(self.terminator);
        header
    }
}

/// How the first line of every file of keys begins.
pub(crate) const HEADER_BEGINS: &str = "# seen file of dedup, keys: ";
