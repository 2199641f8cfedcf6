//! The file of kept results: SQLite, with the newest ones within its bounds.

use crate::WebLimits;
use campaign::untrusted;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use host::directory::{Directory, Trust};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `longhaul`'s mark in the file's header, and the version of its tables.
const APPLICATION: i32 = 0x6c68_7762;
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE run (
        id BLOB PRIMARY KEY,
        secret BLOB NOT NULL,
        position INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        document BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE measurement (
        id BLOB NOT NULL,
        step INTEGER NOT NULL,
        document BLOB NOT NULL,
        PRIMARY KEY (id, step)
    ) STRICT, WITHOUT ROWID;";

/// How long another process that uses the file is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// The longest document and measurement, unpacked.
const MAX_UNPACKED: u64 = 64 << 20;
/// The most bytes of a run, packed: ten times those of a usual one.
const MAX_RUN: usize = 8 << 20;
/// The largest position, far beyond any that adding one by one reaches.
const MAX_POSITION: i64 = 1 << 52;
const PAGE_BYTES: u64 = 4096;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("cannot open {}: {source}", file.display())]
    Open { file: PathBuf, source: io::Error },
    #[error("{} is not a history of longhaul web", .0.display())]
    Foreign(PathBuf),
    #[error("{} is of a later version of longhaul", .0.display())]
    Later(PathBuf),
    #[error("{} is damaged: {why}", file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the history is full: no space left on its disk")]
    Full,
    #[error("another process uses the history; try again")]
    Busy,
    #[error("this result is too large to be kept")]
    TooLarge,
}

/// A run as it is kept, packed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    document: Vec<u8>,
    measurements: Vec<(u32, Vec<u8>)>,
}

impl Kept {
    /// Packs a document and the measurements of its steps.
    pub(crate) fn pack(document: &Value, measurements: Vec<(u32, Vec<u8>)>) -> Self {
        let measurements = measurements.into_iter().map(|(step, text)| (step, pack(&text)));
        Kept {
            document: pack(document.to_string().as_bytes()),
            measurements: measurements.collect(),
        }
    }

    /// Its size, packed.
    pub(crate) fn bytes(&self) -> usize {
        let measurements = self.measurements.iter().map(|(_, text)| text.len());
        self.document.len() + measurements.sum::<usize>()
    }
}

#[cfg(test)]
impl Kept {
    pub(crate) fn document_bytes(&self) -> &[u8] {
        &self.document
    }

    pub(crate) fn measurement_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.measurements.iter().map(|(_, text)| &text[..])
    }

    pub(super) fn middle_of_document(&self) -> Vec<u8> {
        let middle = self.document.len() / 2;
        self.document[middle..middle + 64].to_vec()
    }
}

fn pack(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = packer.write_all(text);
    packer.finish().unwrap_or_default()
}

/// The open file.
#[derive(Debug)]
pub(super) struct Store {
    file: PathBuf,
    pub(super) connection: Connection,
    most_runs: u64,
    most_bytes: u64,
}

impl Store {
    /// Opens a file in a directory that only this user can write to, or creates it.
    pub(super) fn open(file: &Path, limits: &WebLimits) -> Result<Self, StoreError> {
        let file =
            checked(file).map_err(|source| StoreError::Open { file: file.to_owned(), source })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection =
            Connection::open_with_flags(&file, flags).map_err(|error| classified(&file, &error))?;
        let mut store = Store {
            file,
            connection,
            most_runs: limits.kept.into(),
            most_bytes: limits.kept_bytes.bytes(),
        };
        store.attempt(|connection| {
            untrusted::restrict(connection, untrusted::MAX_STEPS)?;
            connection.busy_timeout(BUSY)
        })?;
        store.check()?;
        let pages = (store.most_bytes / PAGE_BYTES).saturating_mul(2).saturating_add(4096);
        store.attempt(|connection| {
            untrusted::allow_writing(connection)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "secure_delete", "ON")?;
            connection.pragma_update(None, "max_page_count", pages.min(1 << 31).cast_signed())
        })?;
        Ok(store)
    }

    /// Creates the tables of an empty file; checks that another one has them and is whole.
    fn check(&mut self) -> Result<(), StoreError> {
        let number =
            |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let found = untrusted::definitions(&self.connection)
            .and_then(|found| Ok((found, number("application_id")?, number("user_version")?)));
        let (found, application, version) =
            found.map_err(|error| classified(&self.file, &error))?;
        let foreign = || StoreError::Foreign(self.file.clone());
        match (application, version) {
            (0, 0) if found.is_empty() => return self.create(),
            (application, _) if application != i64::from(APPLICATION) => return Err(foreign()),
            (_, VERSION) => {}
            (_, version) if version > VERSION => return Err(StoreError::Later(self.file.clone())),
            _ => return Err(foreign()),
        }
        let own = Connection::open_in_memory().and_then(|own| {
            own.execute_batch(TABLES)?;
            untrusted::definitions(&own)
        });
        if own.map_err(|error| classified(&self.file, &error))? != found {
            return Err(foreign());
        }
        let wrong = "SELECT count(*) FROM run WHERE bytes NOT BETWEEN 0 AND ?1
            OR position NOT BETWEEN 0 AND ?2";
        let limits = params![MAX_RUN as i64, MAX_POSITION];
        let fault = self.attempt(|connection| {
            let wrong: i64 = connection.query_row(wrong, limits, |row| row.get(0))?;
            let fault = untrusted::first_fault(connection)?;
            Ok(fault.or((wrong > 0).then(|| "a number is out of range".to_owned())))
        });
        match fault? {
            None => Ok(()),
            Some(why) => Err(StoreError::Damaged { file: self.file.clone(), why }),
        }
    }

    fn create(&mut self) -> Result<(), StoreError> {
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()
        })
    }

    /// Adds a run; the oldest ones give way.
    pub(super) fn add(
        &mut self,
        id: [u8; 16],
        secret: &[u8],
        kept: &Kept,
    ) -> Result<(), StoreError> {
        let bytes = kept.bytes();
        if bytes > MAX_RUN || bytes as u64 > self.most_bytes {
            return Err(StoreError::TooLarge);
        }
        let (most_runs, most_bytes) = (self.most_runs, self.most_bytes);
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            let next = "SELECT coalesce(max(position), 0) + 1 FROM run";
            let position: i64 = transaction.query_row(next, [], |row| row.get(0))?;
            transaction.execute(
                "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, hash(secret), position, bytes as i64, kept.document],
            )?;
            for (step, document) in &kept.measurements {
                let values = params![id, step, document];
                transaction.execute("INSERT INTO measurement VALUES (?1, ?2, ?3)", values)?;
            }
            while is_beyond(&transaction, most_runs, most_bytes)? {
                let oldest = "SELECT id FROM run ORDER BY position LIMIT 1";
                let oldest: Vec<u8> = transaction.query_row(oldest, [], |row| row.get(0))?;
                delete(&transaction, &oldest)?;
            }
            transaction.commit()
        })
    }

    pub(super) fn document(&mut self, id: [u8; 16]) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT document FROM run WHERE id = ?1";
        let packed = self.attempt(|connection| {
            connection.query_row(sql, params![id], |row| row.get::<_, Vec<u8>>(0)).optional()
        })?;
        packed.map(|packed| self.unpack(&packed)).transpose()
    }

    pub(super) fn measurement(
        &mut self,
        id: [u8; 16],
        step: u32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT document FROM measurement WHERE id = ?1 AND step = ?2";
        let packed = self.attempt(|connection| {
            connection.query_row(sql, params![id, step], |row| row.get::<_, Vec<u8>>(0)).optional()
        })?;
        packed.map(|packed| self.unpack(&packed)).transpose()
    }

    /// Deletes a run; `None` if there is none, false if the secret is wrong.
    pub(super) fn remove(
        &mut self,
        id: [u8; 16],
        secret: &[u8],
    ) -> Result<Option<bool>, StoreError> {
        let given = hash(secret);
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            let sql = "SELECT secret FROM run WHERE id = ?1";
            let stored = transaction.query_row(sql, params![id], |row| row.get::<_, Vec<u8>>(0));
            let Some(stored) = stored.optional()? else { return Ok(None) };
            // Of hashes: how soon they differ tells nothing of the secret.
            if stored != given {
                return Ok(Some(false));
            }
            delete(&transaction, &id)?;
            transaction.commit()?;
            // Neither is it left in the log.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(Some(true))
        })
    }

    fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let damaged = |why: String| StoreError::Damaged { file: self.file.clone(), why };
        let mut text = Vec::new();
        let read = GzDecoder::new(packed).take(MAX_UNPACKED + 1).read_to_end(&mut text);
        read.map_err(|error| damaged(error.to_string()))?;
        if text.len() as u64 > MAX_UNPACKED {
            return Err(damaged("a document is too large".to_owned()));
        }
        Ok(text)
    }

    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&mut self.connection).map_err(|error| classified(&self.file, &error))
    }
}

fn is_beyond(connection: &Connection, runs: u64, bytes: u64) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0) FROM run";
    let (count, sum) =
        connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok(count.unsigned_abs() > runs || sum.unsigned_abs() > bytes)
}

fn delete(connection: &Connection, id: &[u8]) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM measurement WHERE id = ?1", params![id])?;
    connection.execute("DELETE FROM run WHERE id = ?1", params![id]).map(drop)
}

fn hash(secret: &[u8]) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

/// The absolute path of a file that nobody else can have put in its place. It is created if it is
/// missing.
fn checked(file: &Path) -> io::Result<PathBuf> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let file = std::path::absolute(file)?;
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(wrong("it is not a file's name"));
    };
    let name = name.to_str().ok_or_else(|| wrong("its name is not UTF-8"))?;
    let directory = Directory::open(folder, Trust::Owner)?;
    if directory.open_or_create(name)?.metadata()?.nlink() != 1 {
        return Err(wrong("it has several hard links"));
    }
    Ok(directory.path().join(name))
}

/// The meaning of an SQLite error.
fn classified(file: &Path, error: &rusqlite::Error) -> StoreError {
    let file = file.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(file),
        _ => StoreError::Damaged { file, why: error.to_string() },
    }
}
