//! Errors that cross stages.

/// Any error, as it comes out of user code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
