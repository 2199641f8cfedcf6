//! The results of a study: one SQLite file, written run by run.
//!
//! A run is one transaction that is synced before the next run begins: a study that is
//! killed, or whose machine loses power, has all its finished runs and no part of another.
//! The primary key is the run, so none is stored twice.
//!
//! | table | a row for each |
//! |---|---|
//! | `study` | property: its name, question, form, host, and longhaul's version |
//! | `part` | plan of the study |
//! | `factor` | cell and factor: the value as text, and as a number in base units |
//! | `run` | run |
//! | `flow` | flow of a run: its figures, and its measurement as gzipped JSON |
//! | `start_skew` | run of several real clients: how precisely they began together |

mod read;
mod rows;
pub mod untrusted;

pub(crate) use read::{HOSTS, NOT_SET};

use crate::CampaignError;
use flate2::Compression;
use flate2::write::GzEncoder;
use host::directory::{Directory, Trust};
use host::{clock, sysctl};
use record::{FlowFigures, Measurement, StudyHost, StudyRun, StudyTestbed};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::Study;

/// The version of the tables; a file of a later one is not opened. Earlier ones lack the
/// columns of [`SINCE`], and those before version 3 the table [`START_SKEW`]; they are read and
/// continued without.
const SCHEMA: i64 = 3;

/// Columns of a flow that earlier versions lack: their names and types, and the version that
/// added them.
const SINCE: [(&str, &str, i64); 10] = [
    ("decrease_factor", "REAL", 2),
    ("acks_per_packet", "REAL", 3),
    ("light_acks_per_packet", "REAL", 3),
    ("naks", "INTEGER", 3),
    ("increases", "INTEGER", 3),
    ("increases_by_alpha", "INTEGER", 3),
    ("growth_over_alpha", "REAL", 3),
    ("disk_bps", "REAL", 3),
    ("disk_series_bps", "TEXT", 3),
    ("nak_series", "TEXT", 3),
];

/// The first version with a table of start skews.
const WITH_START_SKEW: i64 = 3;

/// That table.
const START_SKEW: &str = "
    CREATE TABLE start_skew (
        part TEXT NOT NULL,
        cell INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        ms REAL NOT NULL,
        uncertainty_ms REAL NOT NULL,
        PRIMARY KEY (part, cell, repeat)
    ) STRICT, WITHOUT ROWID;";

/// The property with the testbed's name; stores of earlier versions lack it.
const TESTBED: &str = "testbed";

/// The name of the file within the study's directory.
const FILE: &str = "study.db";

/// The file that the process which adds runs has locked (flock(2)): the lock ends with the
/// process, however that ends, and readers do not need it.
const LOCK: &str = "study.lock";

/// How long the store of a process that was just killed may stay locked.
const LOCKED: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE part (
        position INTEGER PRIMARY KEY,
        part TEXT NOT NULL UNIQUE,
        plan TEXT NOT NULL
    ) STRICT;
    CREATE TABLE factor (
        part TEXT NOT NULL,
        cell INTEGER NOT NULL,
        factor TEXT NOT NULL,
        value TEXT NOT NULL,
        number REAL,
        PRIMARY KEY (part, cell, factor)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE run (
        part TEXT NOT NULL,
        cell INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('valid', 'invalid', 'failed')),
        attempts INTEGER NOT NULL,
        started_unix_s INTEGER NOT NULL,
        took_s REAL NOT NULL,
        test_s REAL NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (part, cell, repeat)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE flow (
        part TEXT NOT NULL,
        cell INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        flow TEXT NOT NULL,
        position INTEGER NOT NULL,
        began_s REAL NOT NULL,
        seconds REAL NOT NULL,
        throughput_bps REAL NOT NULL,
        steady_bps REAL,
        sent_bps REAL NOT NULL,
        retransmits INTEGER,
        min_rtt_ms REAL,
        mean_rtt_ms REAL,
        window_bytes INTEGER,
        loss REAL,
        out_of_order INTEGER,
        jitter_ms REAL,
        \"limit\" TEXT,
        probability REAL,
        series_bps TEXT NOT NULL,
        decrease_factor REAL,
        acks_per_packet REAL,
        light_acks_per_packet REAL,
        naks INTEGER,
        increases INTEGER,
        increases_by_alpha INTEGER,
        growth_over_alpha REAL,
        disk_bps REAL,
        disk_series_bps TEXT,
        nak_series TEXT,
        PRIMARY KEY (part, cell, repeat, flow)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE measurement (
        part TEXT NOT NULL,
        cell INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        flow TEXT NOT NULL,
        json_gz BLOB NOT NULL,
        PRIMARY KEY (part, cell, repeat, flow)
    ) STRICT;";

/// The results of one study.
#[derive(Debug)]
pub struct Store {
    file: PathBuf,
    connection: Connection,
    /// Held by the process that adds runs.
    _lock: Option<File>,
}

/// A run with the measurement of each of its flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its figures.
    pub run: StudyRun,
    /// In the order of its flows; fewer if the run failed.
    pub measurements: Vec<Measurement>,
}

impl Store {
    /// Opens the study of a directory to add to it, or begins one. Only one process can.
    ///
    /// # Errors
    /// The results of another plan or testbed are there, another process is writing, or other
    /// users can write to the directory.
    pub fn open(
        folder: &Path,
        study: &Study,
        testbed: StudyTestbed,
    ) -> Result<Self, CampaignError> {
        let wrong = |source| CampaignError::Folder { folder: folder.to_owned(), source };
        let folder = std::path::absolute(folder).map_err(wrong)?;
        let directory = Directory::create(&folder, Trust::Owner).map_err(wrong)?;
        let file = folder.join(FILE);
        let locked = locked(&directory).map_err(wrong)?;
        let lock = locked.ok_or_else(|| CampaignError::Busy { file: file.clone() })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection =
            Connection::open_with_flags(&file, flags).map_err(|error| classified(&file, &error))?;
        let mut store = Store { file, connection, _lock: Some(lock) };
        store.attempt(|connection| {
            untrusted::restrict(connection, untrusted::MAX_STEPS)?;
            connection.busy_timeout(LOCKED)?;
            // Reports are made while runs are added.
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")
        })?;
        if store.version()? == 0 {
            store.begin(study, testbed)?;
        }
        store.check()?;
        store.attempt(untrusted::allow_writing)?;
        if store.study()? != *study {
            return Err(CampaignError::OtherPlan { folder });
        }
        let stored = store.testbed()?;
        if stored != testbed {
            return Err(CampaignError::OtherTestbed { folder, stored });
        }
        Ok(store)
    }

    /// Writes what is known before the first run, at once or not at all.
    fn begin(&mut self, study: &Study, testbed: StudyTestbed) -> Result<(), CampaignError> {
        let host = match testbed {
            StudyTestbed::Lab | StudyTestbed::Hosts => host_facts(),
            // The same on every machine.
            StudyTestbed::Simulator => "none: simulated in virtual time".to_owned(),
        };
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute_batch(&tables(SCHEMA))?;
            for (name, value) in [
                ("name", study.name.as_str()),
                ("question", &study.question),
                ("form", form(study.quick)),
                ("version", env!("CARGO_PKG_VERSION")),
                ("host", &host),
                (TESTBED, testbed.name()),
            ] {
                transaction.execute("INSERT INTO study VALUES (?1, ?2)", params![name, value])?;
            }
            for (position, part) in study.parts.iter().enumerate() {
                let values = params![signed(position), part.name, part.text];
                transaction.execute("INSERT INTO part VALUES (?1, ?2, ?3)", values)?;
            }
            {
                let mut insert =
                    transaction.prepare("INSERT INTO factor VALUES (?1, ?2, ?3, ?4, ?5)")?;
                for part in &study.parts {
                    for number in 0..part.plan.cells() {
                        let cell = part.plan.cell(number);
                        for (factor, level) in part.plan.factors.iter().zip(&cell.levels) {
                            insert.execute(params![
                                part.name,
                                signed(number),
                                factor.setting.to_string(),
                                level.text,
                                level.number()
                            ])?;
                        }
                    }
                }
            }
            transaction.pragma_update(None, "user_version", SCHEMA)?;
            transaction.commit()
        })
    }

    /// Notes the optional sysctls that the labs do not have.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn set_not_set(&mut self, names: &BTreeSet<String>) -> Result<(), CampaignError> {
        let names = serde_json::json!(names).to_string();
        self.attempt(|connection| {
            let sql = "INSERT OR REPLACE INTO study VALUES (?1, ?2)";
            connection.execute(sql, [NOT_SET, &names]).map(drop)
        })
    }

    /// Notes the real hosts that the runs to come are between.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn set_hosts(&mut self, hosts: &[StudyHost]) -> Result<(), CampaignError> {
        let hosts = serde_json::json!(hosts).to_string();
        self.attempt(|connection| {
            let sql = "INSERT OR REPLACE INTO study VALUES (?1, ?2)";
            connection.execute(sql, [HOSTS, &hosts]).map(drop)
        })
    }

    /// Stores a run of a part; it is on the disk when this returns.
    ///
    /// # Errors
    /// The disk is full, or the run is stored already.
    pub fn add(&mut self, part: &str, measured: &Measured) -> Result<(), CampaignError> {
        let run = &measured.run;
        let version = self.version()?;
        let mut packed = Vec::new();
        for measurement in &measured.measurements {
            packed.push(pack(measurement).map_err(|error| self.damaged(error.to_string()))?);
        }
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    part,
                    signed(run.cell),
                    run.repeat,
                    run.status.name(),
                    run.attempts,
                    run.started_unix_s.cast_signed(),
                    run.took_s,
                    run.test_s,
                    run.reason,
                ],
            )?;
            if let Some(skew) = run.start_skew.filter(|_| version > 2) {
                transaction.execute(
                    "INSERT INTO start_skew VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![part, signed(run.cell), run.repeat, skew.ms, skew.uncertainty_ms],
                )?;
            }
            for (position, flow) in run.flows.iter().enumerate() {
                add_flow(&transaction, version, part, run, position, flow)?;
            }
            for (flow, blob) in run.flows.iter().zip(&packed) {
                transaction.execute(
                    "INSERT INTO measurement VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![part, signed(run.cell), run.repeat, flow.name, blob],
                )?;
            }
            transaction.commit()
        })
    }

    /// Does something with the file; errors name it.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CampaignError> {
        work(&mut self.connection).map_err(|error| classified(&self.file, &error))
    }

    fn damaged(&self, why: impl Into<String>) -> CampaignError {
        CampaignError::Damaged { file: self.file.clone(), why: why.into() }
    }
}

/// The tables of a version.
fn tables(version: i64) -> String {
    let skew = if version < WITH_START_SKEW { "" } else { START_SKEW };
    let later = SINCE.iter().filter(|(_, _, since)| *since > version);
    later.fold(format!("{TABLES}{skew}"), |tables, (name, kind, _)| {
        tables.replace(&format!("        {name} {kind},\n"), "")
    })
}

fn add_flow(
    connection: &Connection,
    version: i64,
    part: &str,
    run: &StudyRun,
    position: usize,
    flow: &FlowFigures,
) -> rusqlite::Result<()> {
    let mut columns: Vec<(&str, &dyn ToSql)> = Vec::new();
    let (cell, position) = (signed(run.cell), signed(position));
    let count = |count: Option<u64>| count.map(u64::cast_signed);
    let [retransmits, window, out_of_order] =
        [flow.retransmits, flow.window_bytes, flow.out_of_order].map(count);
    let [naks, increases, by_alpha] =
        [flow.naks, flow.increases, flow.increases_by_alpha].map(count);
    let limit = flow.limit.map(record::Limit::name);
    let series = serde_json::json!(flow.series_bps).to_string();
    // Most flows have none.
    let disk_series = listed(&flow.disk_series_bps);
    let nak_series = listed(&flow.nak_series);
    columns.extend::<[(&str, &dyn ToSql); 20]>([
        ("part", &part),
        ("cell", &cell),
        ("repeat", &run.repeat),
        ("flow", &flow.name),
        ("position", &position),
        ("began_s", &flow.began_s),
        ("seconds", &flow.seconds),
        ("throughput_bps", &flow.throughput_bps),
        ("steady_bps", &flow.steady_bps),
        ("sent_bps", &flow.sent_bps),
        ("retransmits", &retransmits),
        ("min_rtt_ms", &flow.min_rtt_ms),
        ("mean_rtt_ms", &flow.mean_rtt_ms),
        ("window_bytes", &window),
        ("loss", &flow.loss),
        ("out_of_order", &out_of_order),
        ("jitter_ms", &flow.jitter_ms),
        ("\"limit\"", &limit),
        ("probability", &flow.probability),
        ("series_bps", &series),
    ]);
    let added: [&dyn ToSql; 10] = [
        &flow.decrease_factor,
        &flow.acks_per_packet,
        &flow.light_acks_per_packet,
        &naks,
        &increases,
        &by_alpha,
        &flow.growth_over_alpha,
        &flow.disk_bps,
        &disk_series,
        &nak_series,
    ];
    let added = SINCE.iter().zip(added).filter(|((_, _, since), _)| *since <= version);
    columns.extend(added.map(|((name, _, _), value)| (*name, value)));
    let (names, values): (Vec<&str>, Vec<&dyn ToSql>) = columns.into_iter().unzip();
    let places = vec!["?"; names.len()].join(", ");
    let sql = format!("INSERT INTO flow ({}) VALUES ({places})", names.join(", "));
    connection.execute(&sql, values.as_slice()).map(drop)
}

/// A series as JSON; `None` without any.
fn listed<T: serde::Serialize>(series: &[T]) -> Option<String> {
    (!series.is_empty()).then(|| serde_json::json!(series).to_string())
}

/// Locks the study; `None`: another process has it, also after waiting for one that was just
/// killed.
fn locked(directory: &Directory) -> io::Result<Option<File>> {
    let file = directory.open_or_create(LOCK)?;
    let give_up = clock::now() + LOCKED;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if clock::now() >= give_up => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The kernel and the cores of this host.
fn host_facts() -> String {
    let kernel = sysctl::read("kernel.osrelease").unwrap_or_else(|_| "unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("Linux {kernel}, {cores} {}", if cores == 1 { "core" } else { "cores" })
}

/// The form of a study in its store.
fn form(quick: bool) -> &'static str {
    if quick { "quick" } else { "full" }
}

/// SQLite's integers are signed; numbers of cells and flows are below a million.
fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn pack(measurement: &Measurement) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut packer, measurement)?;
    packer.flush()?;
    packer.finish()
}

/// The meaning of an SQLite error for a study.
fn classified(file: &Path, error: &rusqlite::Error) -> CampaignError {
    let file = file.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => CampaignError::Full { file },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CampaignError::Busy { file },
        _ => CampaignError::Damaged { file, why: error.to_string() },
    }
}

#[cfg(test)]
mod tests;
