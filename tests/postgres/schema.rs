//! The store's own tables: made once, kept from others, and never guessed at.

use std::thread;

use idempotent_consumer::store::{Owner, PostgresOptions, PostgresStore, Store as _, StoreError};
use tokio_postgres::Config;

use crate::database::Database;
use crate::member::{GROUP, Member, broker, builder, note, produce, store};
use crate::shared;

/// Every table of the store's, and what is in the stamp.
const TABLES: &str = "SELECT tablename::text FROM pg_tables \
    WHERE schemaname = 'idempotent_consumer' ORDER BY tablename";
const STAMP: &str = "SELECT stamp::text FROM idempotent_consumer.stamp AS stamp";

fn open(options: PostgresOptions, config: &Config) -> Result<PostgresStore, StoreError> {
    options.connect(config.clone())
}

/// Why a store is not opened. Names the place, and never the password.
fn refusal(options: PostgresOptions, config: &Config) -> String {
    let text = open(options, config).err().unwrap().to_string();
    let name = config.get_dbname().unwrap();
    let password = String::from_utf8(config.get_password().unwrap().to_vec()).unwrap();
    assert!(text.contains(name), "{text}");
    assert!(!text.contains(&password), "{text}");
    text
}

fn owner(group: &str) -> Owner {
    Owner {
        group: group.to_owned(),
        recipe: "record key".to_owned(),
        scope: "topic".to_owned(),
    }
}

#[test]
fn tables_are_made_once_however_many_members_begin_at_the_same_time() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| store(&database.config).bind(&owner(GROUP)).unwrap()))
            .collect();
        let keys = all.into_iter().map(|member| member.join().unwrap());
        let mut keys: Vec<_> = keys.map(|key| format!("{key:?}")).collect();
        keys.dedup();
        assert_eq!(keys.len(), 1, "members that hash with different keys");
    });
    let stamp: Vec<String> = database.ask(STAMP);
    assert_eq!(stamp.len(), 1);
    let tables: Vec<String> = database.ask(TABLES);
    // A member that comes later finds all of it, and changes nothing.
    store(&database.config);
    assert_eq!(database.ask::<String>(STAMP), stamp);
    assert_eq!(database.ask::<String>(TABLES), tables);
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_as_it_is() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    store(&database.config);
    database.run("UPDATE idempotent_consumer.stamp SET format = 999");
    let stamp: Vec<String> = database.ask(STAMP);
    let text = refusal(PostgresOptions::default(), &database.config);
    assert!(text.contains("format 999"), "{text}");
    assert!(text.contains("newer"), "{text}");
    assert_eq!(database.ask::<String>(STAMP), stamp);
}

#[test]
fn a_schema_that_is_somebody_elses_is_refused_and_left_as_it_is() {
    let Some(server) = shared::server() else {
        return;
    };
    for theirs in [
        "letters (id INT)",
        "stamp (id INT)",
        "stamp (made_by TEXT, format INT)",
    ] {
        let database = Database::new(&server);
        database.run(&format!(
            "CREATE SCHEMA idempotent_consumer; CREATE TABLE idempotent_consumer.{theirs}"
        ));
        let tables: Vec<String> = database.ask(TABLES);
        let text = refusal(PostgresOptions::default(), &database.config);
        assert!(
            text.contains("name a schema of the store's own") || text.contains("schema"),
            "{theirs}: {text}"
        );
        assert_eq!(database.ask::<String>(TABLES), tables, "{theirs}");
        // Beside it there is room.
        open(PostgresOptions::default().schema("seen"), &database.config).unwrap();
    }
}

#[test]
fn a_store_of_another_group_is_refused() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    store(&database.config).bind(&owner(GROUP)).unwrap();
    let error = store(&database.config).bind(&owner("billing")).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(GROUP) && text.contains("billing"), "{text}");
}

#[test]
fn a_store_that_is_not_there_is_not_made_where_that_was_not_asked_for() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let text = refusal(PostgresOptions::default().create(false), &database.config);
    assert!(text.contains("there is no store"), "{text}");
    assert_eq!(database.ask::<String>(TABLES), [] as [&str; 0]);
}

#[test]
fn a_user_with_the_documented_rights_and_no_others_can_work() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let mut service = database.config.clone();
    let role = format!("service_{}", database.config.get_dbname().unwrap());
    service.user(&role).password("of-the-service");
    database.run(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'of-the-service'"
    ));
    let text = refusal(PostgresOptions::default(), &service);
    assert!(text.contains("permission denied"), "{text}");
    // An administrator makes the tables, and grants what docs/postgres.md lists.
    store(&database.config);
    let text = refusal(PostgresOptions::default().create(false), &service);
    assert!(text.contains("permission denied"), "{text}");
    database.run(&format!(
        "GRANT USAGE ON SCHEMA idempotent_consumer TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA idempotent_consumer \
         TO {role}; \
         GRANT INSERT ON effects TO {role}; GRANT USAGE ON SEQUENCE effects_number_seq TO {role}"
    ));
    let opened = open(PostgresOptions::default().create(false), &service).unwrap();
    produce(&broker, 0, &["order-0", "order-1", "order-0"]);
    let member = Member::with_store(builder(broker.bootstrap_servers()), opened, note);
    database.wait_for_effects(2);
    member.stop();
    database.assert_each_once(&["order-0", "order-1"], &[], true);
}
