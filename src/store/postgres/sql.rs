//! The statements, with the schema's name in them.

use super::rows::{DEAD_LETTERED, FORGOTTEN, RESTORED};

/// What a partition's row is read from, in the order that [`rows`](super::rows) expects.
const PARTITION: &str = "p.id, p.topic, p.partition, p.epoch, p.leased, p.next, p.step, p.gaps, \
     p.anchor_offset, p.anchor_timestamp_ms, p.anchor_digest, p.max_timestamp_ms, p.retained_from, \
     p.restore_until";

/// Every statement that the store sends more than once in its life.
pub(super) struct Sql {
    pub(super) partitions: String,
    pub(super) partition_for_update: String,
    pub(super) epoch: String,
    pub(super) register: String,
    pub(super) lease: String,
    pub(super) release: String,
    pub(super) restores: String,
    pub(super) lookup: String,
    pub(super) result: String,
    pub(super) unit_behind: String,
    pub(super) unit_entries: String,
    pub(super) unit_is_there: String,
    pub(super) count: String,
    pub(super) estimate: String,
    pub(super) claim: String,
    pub(super) give_back: String,
    pub(super) put: String,
    pub(super) advance: String,
    pub(super) expirable: String,
    pub(super) retained_from: String,
    pub(super) retain_from: String,
    pub(super) expire_marks: String,
    pub(super) expire_units: String,
    pub(super) stamp: String,
    pub(super) bind: String,
    pub(super) bind_cluster: String,
}

impl Sql {
    /// For a schema whose name is quoted already.
    pub(super) fn new(s: &str) -> Self {
        let [lookup, result, unit_behind, unit_entries, unit_is_there] = reads(s);
        let [claim, give_back, put, advance] = writes(s);
        let [expirable, retain_from, expire_marks, expire_units] = expiry(s);
        Self {
            partitions: format!("SELECT {PARTITION} FROM {s}.partitions p ORDER BY p.id"),
            partition_for_update: format!(
                "SELECT {PARTITION} FROM {s}.partitions p WHERE p.id = $1 FOR UPDATE"
            ),
            epoch: format!(
                "SELECT epoch, pg_current_xact_id()::text FROM {s}.partitions WHERE id = $1"
            ),
            // The caller holds the lock under which numbers are given.
            register: format!(
                "INSERT INTO {s}.partitions (id, topic, partition) \
                 SELECT coalesce(max(id) + 1, 0), $1, $2 FROM {s}.partitions \
                 ON CONFLICT (topic, partition) DO NOTHING"
            ),
            lease: format!(
                "WITH before AS (SELECT id, leased FROM {s}.partitions \
                 WHERE topic = $1 AND partition = $2 FOR UPDATE) \
                 UPDATE {s}.partitions p SET epoch = p.epoch + 1, leased = true FROM before \
                 WHERE p.id = before.id RETURNING {PARTITION}, before.leased"
            ),
            release: format!(
                "UPDATE {s}.partitions SET leased = false WHERE id = $1 AND epoch = $2"
            ),
            restores: format!(
                "UPDATE {s}.partitions SET restore_until = greatest(restore_until, $3) \
                 WHERE id = $1 AND epoch = $2"
            ),
            lookup,
            result,
            unit_behind,
            unit_entries,
            unit_is_there,
            count: format!("SELECT count(*) FROM (SELECT FROM {s}.marks LIMIT $1) AS first"),
            estimate: format!(
                "SELECT reltuples::bigint FROM pg_catalog.pg_class WHERE oid = '{}'::regclass",
                format!("{s}.marks").replace('\'', "''")
            ),
            claim,
            give_back,
            put,
            advance,
            expirable,
            retained_from: format!("SELECT retained_from FROM {s}.partitions WHERE id = $1"),
            retain_from,
            expire_marks,
            expire_units,
            stamp: format!("SELECT hash_key, owner_group, recipe, scope, cluster FROM {s}.stamp"),
            bind: format!(
                "UPDATE {s}.stamp SET owner_group = $1, recipe = $2, scope = $3 \
                 WHERE owner_group IS NULL"
            ),
            bind_cluster: format!("UPDATE {s}.stamp SET cluster = $1 WHERE cluster IS NULL"),
        }
    }
}

fn reads(s: &str) -> [String; 5] {
    [
        format!(
            "SELECT fingerprint, partition, record_offset, value_digest, flags, \
             result IS NOT NULL FROM {s}.marks WHERE fingerprint = ANY($1)"
        ),
        format!(
            "SELECT result FROM {s}.marks \
             WHERE fingerprint = $1 AND partition = $2 AND record_offset = $3"
        ),
        format!(
            "SELECT next, step, previous, epoch, token, max_timestamp_ms, anchor_offset, \
             anchor_timestamp_ms, anchor_digest, gaps, keys FROM {s}.units \
             WHERE partition = $1 AND (next, step) > ($2, $3) ORDER BY next, step LIMIT 1"
        ),
        format!(
            "SELECT fingerprint, record_offset, value_digest, flags, result FROM {s}.marks \
             WHERE fingerprint = ANY($1) AND partition = $2 AND token = $3"
        ),
        format!("SELECT FROM {s}.units WHERE partition = $1 AND next = $2 AND token = $3"),
    ]
}

fn writes(s: &str) -> [String; 4] {
    [
        // In the order of the keys, so that two that want the same ones wait instead of dying. A
        // key whose mark gives way is only locked: given back, the mark is what it was.
        format!(
            "INSERT INTO {s}.marks AS m \
             (fingerprint, partition, token, record_offset, value_digest, flags) \
             SELECT k.fingerprint, $5, $6, k.record_offset, k.value_digest, 0 \
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) \
             AS k (fingerprint, record_offset, value_digest) ORDER BY k.fingerprint \
             ON CONFLICT (fingerprint) DO UPDATE SET flags = m.flags WHERE \
             m.flags & {FORGOTTEN} <> 0 OR m.flags & {DEAD_LETTERED} <> 0 \
             AND (m.partition, m.record_offset) <> (excluded.partition, excluded.record_offset) \
             OR m.flags & {RESTORED} <> 0 AND m.fingerprint = ANY($4::bytea[]) \
             RETURNING m.fingerprint, m.token"
        ),
        format!(
            "DELETE FROM {s}.marks \
             WHERE fingerprint = ANY($1) AND partition = $2 AND token = $3"
        ),
        // The first mark stands, but for the ranks, and for the claims of this very unit.
        format!(
            "INSERT INTO {s}.marks AS m \
             (fingerprint, partition, token, record_offset, value_digest, flags, result) \
             SELECT * FROM unnest($1::bytea[], $2::integer[], $3::bigint[], $4::bigint[], \
             $5::bigint[], $6::smallint[], $7::bytea[]) AS k (fingerprint) \
             ORDER BY k.fingerprint ON CONFLICT (fingerprint) DO UPDATE SET \
             partition = excluded.partition, token = excluded.token, \
             record_offset = excluded.record_offset, value_digest = excluded.value_digest, \
             flags = excluded.flags, result = excluded.result \
             WHERE m.token = excluded.token OR {} < {}",
            rank("m"),
            rank("excluded")
        ),
        // Head and unit in one: no row where the lease is over, the head elsewhere, or nothing
        // would change.
        format!(
            "WITH p AS (UPDATE {s}.partitions SET next = $4, \
             step = CASE WHEN next = $4 THEN step + 1 ELSE 0 END, gaps = $5, \
             anchor_offset = CASE WHEN next = $4 THEN anchor_offset ELSE $6 END, \
             anchor_timestamp_ms = CASE WHEN next = $4 THEN anchor_timestamp_ms ELSE $7 END, \
             anchor_digest = CASE WHEN next = $4 THEN anchor_digest ELSE $8 END, \
             max_timestamp_ms = greatest(max_timestamp_ms, $9) \
             WHERE id = $1 AND epoch = $2 AND coalesce(next, $3) = $3 \
             AND ($4 > $3 OR next = $4 AND gaps <> $5) \
             AND pg_current_xact_id()::text = coalesce($12, pg_current_xact_id()::text) \
             RETURNING *), unit AS (INSERT INTO {s}.units (partition, next, step, previous, \
             epoch, token, max_timestamp_ms, anchor_offset, anchor_timestamp_ms, anchor_digest, \
             gaps, keys) SELECT p.id, p.next, p.step, $3, p.epoch, $10, $9, $6, $7, $8, $5, $11 \
             FROM p) SELECT {PARTITION} FROM p"
        ),
    ]
}

/// As the index in memory ranks marks: what took effect before what was only read, then what went
/// to the dead letters, then what was forgotten.
fn rank(row: &str) -> String {
    format!(
        "CASE WHEN {row}.flags & {FORGOTTEN} <> 0 THEN 0 \
         WHEN {row}.flags & {DEAD_LETTERED} <> 0 THEN 1 \
         WHEN {row}.flags & {RESTORED} <> 0 THEN 2 ELSE 3 END"
    )
}

fn expiry(s: &str) -> [String; 4] {
    [
        format!(
            "SELECT next, token, keys, max_timestamp_ms FROM {s}.units \
             WHERE partition = $1 AND next <= $2 ORDER BY next, step LIMIT $3"
        ),
        format!(
            "UPDATE {s}.partitions SET retained_from = $2 WHERE id = $1 AND retained_from < $2"
        ),
        format!(
            "DELETE FROM {s}.marks WHERE fingerprint IN (SELECT m.fingerprint FROM {s}.marks m \
             WHERE m.fingerprint = ANY($1) AND m.partition = $2 AND m.token = ANY($3) \
             ORDER BY m.fingerprint FOR UPDATE)"
        ),
        format!("DELETE FROM {s}.units WHERE partition = $1 AND next <= $2 AND token = ANY($3)"),
    ]
}
