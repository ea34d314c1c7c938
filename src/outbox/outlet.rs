//! What a consumer needs of whoever sends.

use std::time::Duration;

use super::OutboxError;
use crate::audit::Finding;
use crate::source::ClientConfig;
use crate::source::kafka::Group;

/// Sends what is committed, and the positions with it.
pub(crate) trait Outlet: Send + Sync {
    /// What is at fault with its settings, beside the consumer's.
    fn findings(&self, consumer: &ClientConfig) -> Vec<Finding>;

    /// Connects, before the group is joined: with the consumer's own settings, audited, and the
    /// membership that its positions are committed for. Ends what an earlier process has left open.
    ///
    /// `given_up` says that nobody waits for it any more.
    fn open(
        &self,
        config: &ClientConfig,
        group: Group,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<(), OutboxError>;

    /// Ends it, behind the last commit.
    fn close(&self, limit: Duration);
}
