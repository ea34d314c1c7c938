//! The front door: [`IdempotentConsumer`].

mod builder;
mod effect_store;
mod horizon;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use self::builder::Builder;
use self::effect_store::Effecting;
pub use self::effect_store::{Access, EffectStore};
use crate::dead_letter::{DeadLetter, Letters, reached_as};
use crate::engine::Engine;
use crate::error::Error;
use crate::handler::{Delivery, Effects, Handler, HandlerFn, HandlerResult};
use crate::outbox::Outlet;
#[cfg(feature = "postgres")]
use crate::pipeline::Together;
use crate::pipeline::{
    Driver, Driving, HandlerWorker, Pull, PullWorker, Report, Session, Settings, drive,
};
use crate::source::Source;
use crate::source::kafka::{ClientConfig, KafkaSource};

/// How long the brokers are tried at the start, before the group is joined.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// A consumer group member whose records take effect once.
///
/// `E` is what its handlers get beside the record: its store says so, see [`EffectStore`].
pub struct IdempotentConsumer<E = Effects> {
    effects: Effecting<E>,
    membership: Membership,
}

/// All of a consumer but its handler.
struct Membership {
    config: ClientConfig,
    topics: Vec<String>,
    engine: Engine,
    outlet: Option<Arc<dyn Outlet>>,
    settings: Settings,
    dead_letter: Option<DeadLetter>,
}

impl IdempotentConsumer {
    /// Starts from an rdkafka configuration, in librdkafka's names. It is audited by
    /// [`build`](Builder::build); `auto.offset.reset` is `earliest` unless it is set.
    pub fn builder(config: ClientConfig) -> Builder {
        Builder::new(config)
    }

    /// Joins the group and gives the deliveries one by one, for those who own their loop.
    ///
    /// Must be called in a Tokio runtime.
    #[must_use]
    pub fn pull(self) -> Pull {
        let shutdown = CancellationToken::new();
        let (worker, claims) = PullWorker::new();
        let runtime = Handle::current();
        let driver = Driving { worker, runtime };
        let end = self.membership.start(Arc::new(driver), shutdown.clone());
        Pull::new(claims, end, shutdown)
    }
}

impl<E: 'static> IdempotentConsumer<E> {
    /// Joins the group and hands every new record to `handler`, until `shutdown` is cancelled or
    /// something fails. Then work in hand is finished and committed, and the group is left.
    ///
    /// Must be called in a Tokio runtime, whose timers and sockets the handler may use. Dropping
    /// the future stops the consumer as `shutdown` does.
    ///
    /// # Errors
    /// What ended it; see [`Error`].
    pub async fn run<F>(self, handler: F, shutdown: CancellationToken) -> Result<Report, Error>
    where
        F: AsyncFn(&Delivery<'_>, &mut E) -> HandlerResult + Send + Sync + 'static,
    {
        self.run_handler(HandlerFn(handler), shutdown).await
    }

    /// As [`run`](Self::run), for a [`Handler`] with a name.
    ///
    /// # Errors
    /// What ended it; see [`Error`].
    pub async fn run_handler(
        self,
        handler: impl Handler<E>,
        shutdown: CancellationToken,
    ) -> Result<Report, Error> {
        let stop = shutdown.child_token();
        let _stop = stop.clone().drop_guard();
        let driver = self.driver(handler);
        let end = self.membership.start(driver, stop);
        end.await.unwrap_or(Err(Error::Panicked))
    }

    fn driver(&self, handler: impl Handler<E>) -> Arc<dyn Driver> {
        let shows_copies = self.membership.settings.on_duplicate.is_some();
        let runtime = Handle::current();
        match &self.effects {
            Effecting::Collected(collect) => {
                let worker = HandlerWorker {
                    handler,
                    collect: *collect,
                    shows_copies,
                };
                Arc::new(Driving { worker, runtime })
            }
            #[cfg(feature = "postgres")]
            Effecting::Transactions(transactions) => Arc::new(Together {
                handler,
                transactions: Arc::clone(transactions),
                shows_copies,
                runtime,
            }),
        }
    }
}

/// An outlet that was opened. It is closed whatever ends the consumer: else its store would serve
/// no other.
struct Open<'a> {
    outlet: &'a Arc<dyn Outlet>,
    limit: Duration,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.outlet.close(self.limit);
    }
}

impl Membership {
    fn start(
        self,
        driver: Arc<dyn Driver>,
        shutdown: CancellationToken,
    ) -> tokio::task::JoinHandle<Result<Report, Error>> {
        // A thread of its own for as long as the membership lasts: librdkafka's calls block.
        tokio::task::spawn_blocking(move || {
            let source = KafkaSource::new(&self.config, self.topics)?;
            if let Some(cluster) = source.cluster_id(CONNECT_LIMIT, &|| shutdown.is_cancelled())? {
                self.engine.store().bind_cluster(&cluster)?;
            }
            let given_up = || shutdown.is_cancelled();
            horizon::check(
                &self.settings.retention,
                &self.settings.retry,
                &reached_as(&self.config, &ClientConfig::new()),
                source.topics(),
            );
            let letters = match &self.dead_letter {
                // Before the group is joined: a topic that is missing is found now, not when the
                // first record fails.
                Some(to) => Letters::open(to, &self.config, CONNECT_LIMIT, &given_up)?,
                None => None,
            };
            let limit = self.settings.drain_limit;
            let outlet = match &self.outlet {
                // Before the group is joined too: what an earlier process left open is ended, and
                // then the group's positions stand.
                Some(outlet) => {
                    outlet.open(&self.config, source.group(), CONNECT_LIMIT, &given_up)?;
                    Some(Open { outlet, limit })
                }
                None => None,
            };
            let letters = letters.map(Arc::new);
            let mut settings = self.settings;
            settings.letterbox = letters.clone().map(|letters| letters as _);
            if shutdown.is_cancelled() {
                return Ok(Report::default());
            }
            let summary = self.engine.store().summary();
            let reset = self
                .config
                .get("auto.offset.reset")
                .unwrap_or("as configured");
            tracing::info!(
                group = self.config.get("group.id"),
                reset,
                "joining the group; {summary}"
            );
            let session = Arc::new(Session::new(self.engine, settings, driver)?);
            let report = drive(source, &session, &shutdown);
            drop(outlet);
            let closed = letters.map_or(Ok(()), |letters| letters.close(limit));
            report.and_then(|report| Ok(closed.map(|()| report)?))
        })
    }
}
