//! Reading a store, whoever wrote it.

use super::untrusted::{self, MAX_TEXT, MAX_VALUE};
use super::{FILE, SCHEMA, SINCE, Store, TESTBED, WITH_START_SKEW, classified, form, signed};
use crate::CampaignError;
use flate2::read::GzDecoder;
use record::{
    FlowFigures, Limit, Measurement, RunStatus, StartSkew, StudyHost, StudyRun, StudyTestbed,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, limits::Limit as SqlLimit, params};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use study::{CellRun, Part, Study};

/// Properties that only some stores have.
pub(crate) const NOT_SET: &str = "not_set";
pub(crate) const HOSTS: &str = "hosts";

/// The most plans of a study.
const MAX_PARTS: usize = 100;

/// The most hosts of a study.
const MAX_HOSTS: usize = 32;

/// The longest measurement, unpacked.
const MAX_MEASUREMENT: u64 = 256 << 20;

/// The figures of a part's runs, in bytes of memory.
const MAX_FIGURES: usize = 512 << 20;

impl Store {
    /// Opens a study to read it; nothing of it is changed.
    ///
    /// # Errors
    /// There is none, it is of a later version, or it is not a study's.
    pub fn read(folder: &Path) -> Result<Self, CampaignError> {
        let file = folder.join(FILE);
        if !file.is_file() {
            return Err(CampaignError::NoStudy { folder: folder.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&file, flags).map_err(|error| classified(&file, &error))?;
        let mut store = Store { file, connection, _lock: None };
        store.attempt(|connection| {
            untrusted::restrict(connection, untrusted::MAX_STEPS)?;
            connection.pragma_update(None, "query_only", "ON")?;
            connection.busy_timeout(super::LOCKED)
        })?;
        store.check()?;
        Ok(store)
    }

    /// Checks that it is a store, and whole, before anything of it is believed.
    pub(super) fn check(&mut self) -> Result<(), CampaignError> {
        self.check_version()?;
        self.check_tables()?;
        match self.attempt(untrusted::first_fault)? {
            None => Ok(()),
            Some(fault) => Err(self.damaged(fault)),
        }
    }

    /// That its tables are those that [`Store::open`] creates, and nothing else: a view in the
    /// place of a table could compute rows without end.
    pub(super) fn check_tables(&self) -> Result<(), CampaignError> {
        let tables = super::tables(self.version()?);
        let own = Connection::open_in_memory().and_then(|own| {
            own.execute_batch(&tables)?;
            untrusted::definitions(&own)
        });
        let found = untrusted::definitions(&self.connection);
        match (own, found) {
            (Ok(own), Ok(found)) if own == found => Ok(()),
            (Err(error), _) | (_, Err(error)) => Err(classified(&self.file, &error)),
            _ => Err(self.damaged("its tables are not study tables")),
        }
    }

    pub(super) fn version(&self) -> Result<i64, CampaignError> {
        let version = self.connection.pragma_query_value(None, "user_version", |row| row.get(0));
        version.map_err(|error| classified(&self.file, &error))
    }

    pub(super) fn check_version(&self) -> Result<(), CampaignError> {
        match self.version()? {
            1..=SCHEMA => Ok(()),
            0 => Err(self.damaged("it has no study tables")),
            version => Err(CampaignError::Version { file: self.file.clone(), version }),
        }
    }

    /// The study, its plans checked again.
    ///
    /// # Errors
    /// The file is damaged, or has a plan that this version does not accept.
    pub fn study(&self) -> Result<Study, CampaignError> {
        let read = |connection: &Connection| -> rusqlite::Result<Vec<(String, String)>> {
            let mut query = connection.prepare("SELECT part, plan FROM part ORDER BY position")?;
            let parts = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            parts.take(MAX_PARTS).collect()
        };
        let texts = read(&self.connection).map_err(|error| classified(&self.file, &error))?;
        let quick = self.property("form")? == form(true);
        let parts = texts.iter().map(|(name, text)| Part::parse(name, text, quick));
        let parts: Vec<Part> = parts
            .collect::<Result<_, _>>()
            .map_err(|error| self.damaged(format!("its plan is not valid: {error}")))?;
        // A part's name is that of its cells' pages.
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !parts.iter().all(|part| part.name.chars().all(named)) {
            return Err(
                self.damaged("a part's name has characters other than letters, digits, '-'")
            );
        }
        if parts.is_empty() {
            return Err(self.damaged("it has no plan"));
        }
        let (name, question) = (self.property("name")?, self.property("question")?);
        Ok(Study { name, question, quick, parts })
    }

    /// A property of the study: `name`, `question`, `form` or `version`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn property(&self, name: &str) -> Result<String, CampaignError> {
        let sql = "SELECT value FROM study WHERE name = ?1";
        let value = self.connection.query_row(sql, [name], |row| row.get(0));
        value.map_err(|error| classified(&self.file, &error))
    }

    /// A property that not every store has.
    pub(crate) fn optional_property(&self, name: &str) -> Result<Option<String>, CampaignError> {
        let sql = "SELECT value FROM study WHERE name = ?1";
        let value = self.connection.query_row(sql, [name], |row| row.get(0)).optional();
        value.map_err(|error| classified(&self.file, &error))
    }

    /// Where its runs took place.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn testbed(&self) -> Result<StudyTestbed, CampaignError> {
        let name = self.optional_property(TESTBED)?;
        let known = |name: String| {
            let found = StudyTestbed::ALL.into_iter().find(|known| known.name() == name);
            found.ok_or_else(|| self.damaged("its testbed is unknown"))
        };
        name.map_or_else(|| Ok(self.study()?.testbed()), known)
    }

    /// The optional sysctls that the labs did not have; none before the first run.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn not_set(&self) -> Result<Vec<String>, CampaignError> {
        let text = self.optional_property(NOT_SET)?;
        let names = text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text));
        names.map_err(|error| self.damaged(format!("its sysctls that are not set: {error}")))
    }

    /// The real hosts of the last runs; none of labs.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn hosts(&self) -> Result<Vec<StudyHost>, CampaignError> {
        let text = self.optional_property(HOSTS)?;
        let hosts = text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text));
        let mut hosts: Vec<StudyHost> =
            hosts.map_err(|error| self.damaged(format!("its hosts: {error}")))?;
        hosts.truncate(MAX_HOSTS);
        Ok(hosts)
    }

    /// The runs of a part that are stored.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn done(&self, part: &str) -> Result<BTreeSet<CellRun>, CampaignError> {
        let read = |connection: &Connection| -> rusqlite::Result<BTreeSet<CellRun>> {
            let mut query = connection.prepare("SELECT cell, repeat FROM run WHERE part = ?1")?;
            let runs = query.query_map([part], |row| Ok((row.get::<_, u32>(0)?, row.get(1)?)))?;
            runs.map(|run| run.map(|(cell, repeat)| CellRun { cell: cell as usize, repeat }))
                .collect()
        };
        read(&self.connection).map_err(|error| classified(&self.file, &error))
    }

    /// How many runs are stored.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn count(&self) -> Result<usize, CampaignError> {
        let count = self.connection.query_row("SELECT count(*) FROM run", [], |row| row.get(0));
        let count: u32 = count.map_err(|error| classified(&self.file, &error))?;
        Ok(count as usize)
    }

    /// The runs of a part, by cell and repeat.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn runs(&self, part: &str) -> Result<Vec<StudyRun>, CampaignError> {
        let version = self.version()?;
        let skew = if version >= WITH_START_SKEW {
            (
                "start_skew.ms, start_skew.uncertainty_ms",
                "LEFT JOIN start_skew USING (part, cell, repeat)",
            )
        } else {
            ("NULL, NULL", "")
        };
        let added = SINCE.map(|(name, _, since)| if since <= version { name } else { "NULL" });
        let added = added.join(", ");
        let mut bytes = 0;
        let mut read = |connection: &Connection| -> rusqlite::Result<Vec<StudyRun>> {
            let (columns, join) = skew;
            let mut query = connection.prepare(&format!(
                "SELECT cell, repeat, status, attempts, started_unix_s, took_s, test_s, reason,
                        {columns}
                 FROM run {join} WHERE part = ?1 ORDER BY cell, repeat",
            ))?;
            let mut runs: Vec<StudyRun> = Vec::new();
            for run in query.query_map([part], run_of)? {
                let run = run?;
                bytes += size_of::<StudyRun>() + run.reason.len();
                if bytes > MAX_FIGURES {
                    return Ok(runs);
                }
                runs.push(run);
            }
            let mut query = connection.prepare(&format!(
                "SELECT cell, repeat, flow, began_s, seconds, throughput_bps, steady_bps, sent_bps,
                        retransmits, min_rtt_ms, mean_rtt_ms, window_bytes, loss, out_of_order,
                        jitter_ms, \"limit\", probability, series_bps, {added}
                 FROM flow WHERE part = ?1 ORDER BY cell, repeat, position",
            ))?;
            let mut rows = query.query([part])?;
            let mut at = 0;
            while let Some(row) = rows.next()? {
                let key = (row.get::<_, u32>(0)? as usize, row.get::<_, u32>(1)?);
                // Both are in the order of their keys; a flow without a run belongs to none.
                while runs.get(at).is_some_and(|run| (run.cell, run.repeat) < key) {
                    at += 1;
                }
                if let Some(run) = runs.get_mut(at).filter(|run| (run.cell, run.repeat) == key) {
                    let flow = flow_of(row)?;
                    bytes += bytes_of(&flow);
                    if bytes > MAX_FIGURES {
                        return Ok(runs);
                    }
                    run.flows.push(flow);
                }
            }
            Ok(runs)
        };
        let runs = read(&self.connection).map_err(|error| classified(&self.file, &error))?;
        if bytes > MAX_FIGURES {
            return Err(self.damaged(format!("more than {} MiB of figures", MAX_FIGURES >> 20)));
        }
        Ok(runs)
    }

    /// The measurement of a run's flow, with its samples; `None` if there is none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn measurement(
        &self,
        part: &str,
        run: CellRun,
        flow: &str,
    ) -> Result<Option<Measurement>, CampaignError> {
        let sql = "SELECT json_gz FROM measurement
                   WHERE part = ?1 AND cell = ?2 AND repeat = ?3 AND flow = ?4";
        let key = params![part, signed(run.cell), run.repeat, flow];
        let limit = |most| self.connection.set_limit(SqlLimit::SQLITE_LIMIT_LENGTH, most);
        let found = limit(MAX_VALUE)
            .and_then(|_| self.connection.query_row(sql, key, |row| row.get::<_, Vec<u8>>(0)));
        limit(MAX_TEXT).map_err(|error| classified(&self.file, &error))?;
        let Some(packed) = found.optional().map_err(|error| classified(&self.file, &error))? else {
            return Ok(None);
        };
        let json = GzDecoder::new(packed.as_slice()).take(MAX_MEASUREMENT);
        serde_json::from_reader(json).map(Some).map_err(|error| self.damaged(error.to_string()))
    }
}

/// Bytes of memory that a flow takes.
fn bytes_of(flow: &FlowFigures) -> usize {
    let series = flow.series_bps.len() + flow.disk_series_bps.len() + flow.nak_series.len();
    size_of::<FlowFigures>() + flow.name.len() + series * size_of::<f64>()
}

fn run_of(row: &Row<'_>) -> rusqlite::Result<StudyRun> {
    let status: String = row.get(2)?;
    let status = RunStatus::ALL.into_iter().find(|known| known.name() == status);
    Ok(StudyRun {
        cell: row.get::<_, u32>(0)? as usize,
        repeat: row.get(1)?,
        // Of a store whose check was removed.
        status: status.unwrap_or(RunStatus::Failed),
        attempts: row.get(3)?,
        started_unix_s: row.get::<_, i64>(4)?.unsigned_abs(),
        took_s: row.get(5)?,
        test_s: row.get(6)?,
        reason: row.get(7)?,
        start_skew: match (row.get::<_, Option<f64>>(8)?, row.get::<_, Option<f64>>(9)?) {
            (Some(ms), Some(uncertainty_ms)) => Some(StartSkew { ms, uncertainty_ms }),
            _ => None,
        },
        flows: Vec::new(),
    })
}

/// A series; what is no list of numbers is none.
fn listed<T: serde::de::DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<T>> {
    let text: Option<String> = row.get(at)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn flow_of(row: &Row<'_>) -> rusqlite::Result<FlowFigures> {
    let count = |column: usize| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::unsigned_abs))
    };
    let limit: Option<String> = row.get(15)?;
    Ok(FlowFigures {
        name: row.get(2)?,
        began_s: row.get(3)?,
        seconds: row.get(4)?,
        throughput_bps: row.get(5)?,
        steady_bps: row.get(6)?,
        sent_bps: row.get(7)?,
        retransmits: count(8)?,
        min_rtt_ms: row.get(9)?,
        mean_rtt_ms: row.get(10)?,
        window_bytes: count(11)?,
        loss: row.get(12)?,
        out_of_order: count(13)?,
        jitter_ms: row.get(14)?,
        limit: limit.and_then(|name| Limit::ALL.into_iter().find(|known| known.name() == name)),
        probability: row.get(16)?,
        // A text that is not a list of numbers is not a series.
        series_bps: serde_json::from_str(&row.get::<_, String>(17)?).unwrap_or_default(),
        decrease_factor: row.get(18)?,
        acks_per_packet: row.get(19)?,
        light_acks_per_packet: row.get(20)?,
        naks: count(21)?,
        increases: count(22)?,
        increases_by_alpha: count(23)?,
        growth_over_alpha: row.get(24)?,
        disk_bps: row.get(25)?,
        disk_series_bps: listed(row, 26)?,
        nak_series: listed(row, 27)?,
    })
}
