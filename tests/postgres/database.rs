//! A database of a test's own, as its operator sees it, with the tables of a shop.

use std::path::Path;
use std::time::{Duration, Instant};

use idempotent_consumer::testkit::history::{Effect, History, Rules, Summary};
use tokio::runtime::Runtime;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Config};

use crate::postgres::{Postgres, connect};

/// For anything that a loaded machine may take its time for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The article's message table and its orders, and a line for each effect. Nothing but the store
/// keeps an effect from happening twice: only `messages` has a unique key, for the tests that ask
/// for it.
const TABLES: &str = "
    CREATE TABLE messages (id TEXT PRIMARY KEY);
    CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT NOT NULL, changes INT NOT NULL);
    CREATE TABLE effects (
        number BIGSERIAL, process INT, key TEXT, place INT, at BIGINT, token TEXT, in_doubt BOOL,
        attempt INT
    )";

pub(crate) struct Database {
    pub(crate) config: Config,
    runtime: Runtime,
    client: Client,
}

impl Database {
    /// A new one, with the tables in it.
    pub(crate) fn new(server: &Postgres) -> Self {
        let new = Self::at(runtime().block_on(server.database()));
        new.run(TABLES);
        new
    }

    /// The same, all of it below a directory of the server's.
    pub(crate) fn in_directory(server: &Postgres, directory: &Path) -> Self {
        let operator = Self::at(server.config().clone());
        let directory = directory.display();
        operator.run(&format!("CREATE TABLESPACE small LOCATION '{directory}'"));
        let config = runtime().block_on(server.database());
        let name = config.get_dbname().unwrap();
        operator.run(&format!("ALTER DATABASE {name} SET TABLESPACE small"));
        let new = Self::at(config);
        new.run(TABLES);
        new
    }

    /// One that is there.
    pub(crate) fn at(config: Config) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(connect(&config));
        Self {
            config,
            runtime,
            client,
        }
    }

    /// After the server was killed.
    pub(crate) fn reconnect(&mut self) {
        self.client = self.runtime.block_on(connect(&self.config));
    }

    /// Statements without an answer.
    pub(crate) fn run(&self, statements: &str) {
        let done = self.runtime.block_on(self.client.batch_execute(statements));
        done.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// The first column of each row.
    pub(crate) fn ask<T: for<'a> FromSql<'a>>(&self, query: &str) -> Vec<T> {
        let rows = self.runtime.block_on(self.client.query(query, &[]));
        let rows = rows.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The first column of the first row.
    pub(crate) fn ask_one<T: for<'a> FromSql<'a>>(&self, query: &str) -> T {
        let mut rows = self.ask(query);
        assert!(!rows.is_empty(), "{query}: no row");
        rows.swap_remove(0)
    }

    /// How many effects there are.
    pub(crate) fn effects(&self) -> usize {
        let count: i64 = self.ask_one("SELECT count(*) FROM effects");
        usize::try_from(count).unwrap()
    }

    /// Waits until there are so many effects, of whichever member.
    pub(crate) fn wait_for_effects(&self, count: usize) {
        wait_for(&format!("{count} effects"), || self.effects() >= count);
    }

    /// All that took effect, as the history of one store: each life is a process, and those of
    /// `crashed` ended without order.
    fn history(&self, crashed: &[u32]) -> History {
        let mut history = History::default();
        let query =
            "SELECT process, key, place, at, token, in_doubt, attempt FROM effects ORDER BY number";
        let rows = self.runtime.block_on(self.client.query(query, &[]));
        for (number, row) in (0..).zip(rows.unwrap()) {
            let process = u32::try_from(row.get::<_, i32>(0)).unwrap();
            let run = history
                .run_of(process)
                .unwrap_or_else(|| history.start("the database", process));
            let effect = Effect {
                key: row.get(1),
                partition: row.get(2),
                offset: row.get(3),
                token: row.get(4),
                in_doubt: row.get(5),
                attempt: u32::try_from(row.get::<_, i32>(6)).unwrap(),
            };
            history.began(run, number, effect);
            history.applied(run, number);
        }
        for process in crashed {
            if let Some(run) = history.run_of(*process) {
                history.crashed(run, [].into());
            }
        }
        history
    }

    /// Every key took effect, and none twice: no crash excuses anything where the effect and its
    /// mark are one transaction.
    pub(crate) fn assert_each_once<K: AsRef<str>>(
        &self,
        keys: &[K],
        crashed: &[u32],
        in_order: bool,
    ) -> Summary {
        let rules = Rules::default().in_flight_max(0).in_order(in_order);
        let checked = self.history(crashed).check(keys, &rules);
        checked.unwrap_or_else(|violations| panic!("{violations}"))
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Waits for a condition.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
