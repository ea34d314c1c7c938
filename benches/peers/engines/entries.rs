//! The engines as people use them for this: an entry for each key, a batch for each commit. Each
//! with what its own documents advise for much writing, and synced before a commit returns.

use std::fs::File;
use std::path::Path;

use fjall::{KeyspaceCreateOptions, PersistMode};
use peers::Outcome;
use redb::ReadableDatabase as _;
use rocksdb::{BlockBasedOptions, DBCompressionType, Options, WriteBatch, WriteOptions};

use crate::Decide;

/// As the engine's guide to its options has it: dynamic levels, more background jobs, 16 KiB blocks, filters
/// of 10 bits, files written out as they grow. Its log's files are used again, so that a sync has
/// no file size to write.
pub(crate) struct RocksDb {
    db: rocksdb::DB,
    batch: WriteBatch,
    synced: WriteOptions,
}

impl RocksDb {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let mut table = BlockBasedOptions::default();
        table.set_block_size(16 * 1024);
        table.set_bloom_filter(10.0, false);
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_max_background_jobs(6);
        options.set_bytes_per_sync(1 << 20);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_recycle_log_file_num(4);
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(Self {
            db: rocksdb::DB::open(&options, directory)?,
            batch: WriteBatch::default(),
            synced,
        })
    }
}

impl Decide for RocksDb {
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool> {
        if self.db.get_pinned(key)?.is_some() {
            return Ok(false);
        }
        self.batch.put(key, number.to_le_bytes());
        Ok(true)
    }

    fn commit(&mut self) -> Outcome<()> {
        let batch = std::mem::take(&mut self.batch);
        Ok(self.db.write_opt(batch, &self.synced)?)
    }
}

pub(crate) struct Fjall {
    db: fjall::Database,
    keys: fjall::Keyspace,
    batch: fjall::OwnedWriteBatch,
}

impl Fjall {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let db = fjall::Database::builder(directory).open()?;
        let keys = db.keyspace("keys", KeyspaceCreateOptions::default)?;
        let batch = Self::batch(&db);
        Ok(Self { db, keys, batch })
    }

    fn batch(db: &fjall::Database) -> fjall::OwnedWriteBatch {
        db.batch().durability(Some(PersistMode::SyncData))
    }
}

impl Decide for Fjall {
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool> {
        if self.keys.contains_key(key)? {
            return Ok(false);
        }
        self.batch
            .insert(&self.keys, &key[..], &number.to_le_bytes()[..]);
        Ok(true)
    }

    fn commit(&mut self) -> Outcome<()> {
        let next = Self::batch(&self.db);
        Ok(std::mem::replace(&mut self.batch, next).commit()?)
    }
}

/// sled's own settings, but for its background flush: every batch is flushed here, and a second
/// flush would only cost.
pub(crate) struct Sled {
    db: sled::Db,
    data: File,
    batch: sled::Batch,
}

impl Sled {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let config = sled::Config::new().path(directory).flush_every_ms(None);
        Ok(Self {
            db: config.open()?,
            data: File::open(directory.join("db"))?,
            batch: sled::Batch::default(),
        })
    }
}

impl Decide for Sled {
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool> {
        if self.db.contains_key(key)? {
            return Ok(false);
        }
        self.batch.insert(key, &number.to_le_bytes());
        Ok(true)
    }

    fn commit(&mut self) -> Outcome<()> {
        self.db.apply_batch(std::mem::take(&mut self.batch))?;
        self.db.flush()?;
        // sled's flush does not ask the device to keep anything.
        Ok(self.data.sync_data()?)
    }
}

const TABLE: redb::TableDefinition<&[u8; 16], u64> = redb::TableDefinition::new("keys");

pub(crate) struct Redb {
    db: redb::Database,
    /// Its table borrows the transaction that it is opened in, so the batch waits here.
    batch: Vec<([u8; 16], u64)>,
    known: redb::ReadOnlyTable<&'static [u8; 16], u64>,
}

impl Redb {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let db = redb::Database::create(directory.join("redb"))?;
        let begun = db.begin_write()?;
        begun.open_table(TABLE)?;
        begun.commit()?;
        let known = db.begin_read()?.open_table(TABLE)?;
        Ok(Self {
            db,
            batch: Vec::new(),
            known,
        })
    }
}

impl Decide for Redb {
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool> {
        if self.known.get(key)?.is_some() {
            return Ok(false);
        }
        self.batch.push((*key, number));
        Ok(true)
    }

    fn commit(&mut self) -> Outcome<()> {
        // In the order of the keys: neighbours share pages.
        self.batch.sort_unstable();
        let begun = self.db.begin_write()?;
        {
            let mut table = begun.open_table(TABLE)?;
            for (key, number) in self.batch.drain(..) {
                table.insert(&key, number)?;
            }
        }
        begun.commit()?;
        self.known = self.db.begin_read()?.open_table(TABLE)?;
        Ok(())
    }
}
