//! What the database's answers mean: whether the same work may succeed later, and what to tell.

use std::error::Error as _;
use std::io;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::store::StoreError;
use crate::store::transaction::TransactionError;

/// Something that did not succeed, with whether trying again may help.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) transient: bool,
    pub(super) error: StoreError,
}

impl Failure {
    /// Trying again will not help.
    pub(super) fn lasting(error: StoreError) -> Self {
        Self {
            transient: false,
            error,
        }
    }

    pub(super) fn new(place: &str, operation: &'static str, error: &tokio_postgres::Error) -> Self {
        Self {
            transient: is_transient(error),
            error: StoreError::Database {
                place: place.to_owned(),
                operation,
                message: describe(error),
            },
        }
    }
}

impl From<Failure> for TransactionError {
    fn from(failure: Failure) -> Self {
        if failure.transient {
            Self::Aborted(failure.error)
        } else {
            Self::Failed(failure.error)
        }
    }
}

/// Whether the same work may succeed later, on this connection or on another.
pub(super) fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(state) = error.code() else {
        let cause = error
            .source()
            .and_then(|cause| cause.downcast_ref::<io::Error>());
        return error.is_closed() || cause.is_some();
    };
    let others = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        // A server that has become a standby: another one will be found under the same name.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        // Prepared statements that the server, or something before it, does not know any more.
        SqlState::INVALID_SQL_STATEMENT_NAME,
    ];
    // Connection, rollback, resources, and an operator's intervention, each with all of its kind.
    let classes = ["08", "40", "53", "57P"];
    classes.iter().any(|class| state.code().starts_with(class)) || others.contains(state)
}

/// Whether the server has said that it did not commit. Whatever else went wrong with a COMMIT, it
/// may have happened.
pub(super) fn is_refused_commit(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// The server's words; the crate's own say "db error" and no more. Not its `DETAIL`, which quotes
/// rows: whose logs those may go to is not for this crate to say.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    let Some(answer) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            text = format!("{text}: {inner}");
            cause = inner.source();
        }
        return text;
    };
    let mut text = format!("{} (SQLSTATE {})", answer.message(), answer.code().code());
    if let Some(hint) = answer.hint() {
        text = format!("{text}. {hint}");
    }
    text
}
