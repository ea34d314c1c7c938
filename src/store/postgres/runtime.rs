//! The thread on which everything runs that waits for the database.

use std::future::Future;
use std::io;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime of the store's own: its calls come from threads that drive other runtimes, and from
/// threads that have none.
pub(super) struct Background(Option<Runtime>);

impl Background {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("ic-postgres")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Waiting for its thread would panic in a task of another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs work there and waits for it here. `None` where the runtime is gone, or the work panicked.
pub(super) fn wait<T: Send + 'static>(
    handle: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (answer, answered) = mpsc::sync_channel(1);
    handle.spawn(async move {
        // Nobody waits any more only where the waiting thread is gone.
        let _ = answer.send(work.await);
    });
    answered.recv().ok()
}
