//! Which request a reply belongs to. Pure: no socket, no clock.

use std::collections::VecDeque;

use super::frame::{ApiKey, RequestHeader};

/// Requests remembered per connection. Above it the oldest is forgotten: a producer that asks
/// for no acknowledgement sends requests that are never answered.
const REMEMBERED_MAX: usize = 16 * 1024;

/// The requests of one connection that were forwarded and not answered yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    requests: VecDeque<RequestHeader>,
}

impl InFlight {
    pub(super) fn sent(&mut self, request: RequestHeader) {
        if self.requests.len() == REMEMBERED_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }

    /// The kind of request that this reply answers. A broker answers in order, so requests
    /// older than that one will have no answer and are forgotten.
    pub(super) fn answered(&mut self, correlation_id: i32) -> Option<ApiKey> {
        let position = self
            .requests
            .iter()
            .position(|request| request.correlation_id == correlation_id)?;
        self.requests
            .drain(..=position)
            .next_back()
            .map(|request| request.api_key)
    }
}
