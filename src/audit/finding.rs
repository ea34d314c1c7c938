//! What is at fault, and how it is said.

use std::fmt;

/// One setting at fault, by itself or beside others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The setting's name, as it was given.
    pub setting: String,
    /// Its value, `None` where it is not set.
    pub value: Option<String>,
    /// The other settings of the conflict; none where the setting is at fault by itself.
    pub beside: Vec<Beside>,
    /// What it would do.
    pub reason: &'static str,
    /// What to do instead.
    pub fix: &'static str,
}

/// A setting that another is at fault beside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Beside {
    /// The setting's name, as it was given.
    pub setting: String,
    /// The value in force.
    pub value: String,
    /// Whether it is the client's default, since nothing was set.
    pub is_default: bool,
}

impl Finding {
    /// A setting that is at fault by itself.
    pub(crate) fn new(
        setting: impl Into<String>,
        value: Option<String>,
        reason: &'static str,
        fix: &'static str,
    ) -> Self {
        Self {
            setting: setting.into(),
            value,
            beside: Vec::new(),
            reason,
            fix,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.setting)?,
            None => write!(f, "{} is not set", self.setting)?,
        }
        for (at, beside) in self.beside.iter().enumerate() {
            let joint = if at == 0 { "beside" } else { "and" };
            write!(f, " {joint} {beside}")?;
        }
        write!(f, ": {}; {}", self.reason, self.fix)
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.is_default { " (default)" } else { "" };
        write!(f, "{}={}{default}", self.setting, self.value)
    }
}

/// All that is at fault with a configuration, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<Finding>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is refused:")?;
        self.0
            .iter()
            .try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

impl std::error::Error for Refused {}
