//! The rows of a run as they are stored, to be compared with another store's and copied.

use super::untrusted::{MAX_TEXT, MAX_VALUE};
use super::{SCHEMA, Store, signed};
use crate::CampaignError;
use rusqlite::limits::Limit as SqlLimit;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use study::CellRun;

/// The tables with rows of a run, in the order in which [`Store::add`] writes them, and the order of
/// a run's rows in each.
const TABLES_OF_RUN: [(&str, &str); 4] =
    [("run", "repeat"), ("start_skew", "repeat"), ("flow", "position"), ("measurement", "rowid")];

/// Rows of a run in a table: its flows are far fewer.
const MAX_ROWS: usize = 10_000;

/// The rows of a run, of each of [`TABLES_OF_RUN`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunRows([Vec<Vec<Value>>; TABLES_OF_RUN.len()]);

impl Store {
    /// True if this version writes its tables as they are.
    pub(crate) fn is_current(&self) -> Result<bool, CampaignError> {
        Ok(self.version()? == SCHEMA)
    }

    /// The rows of a run of a part.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn rows(&mut self, part: &str, run: CellRun) -> Result<RunRows, CampaignError> {
        let rows = self.attempt(|connection| {
            connection.set_limit(SqlLimit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
            let rows = rows(connection, part, run);
            connection.set_limit(SqlLimit::SQLITE_LIMIT_LENGTH, MAX_TEXT)?;
            rows
        })?;
        if rows.0.iter().any(|rows| rows.len() > MAX_ROWS) {
            return Err(self.damaged(format!("a run with more than {MAX_ROWS} flows")));
        }
        Ok(rows)
    }

    /// Stores the rows of a run of another store; they are on the disk when this returns.
    ///
    /// # Errors
    /// The disk is full, the run is stored already, or the rows are not a run's.
    pub(crate) fn add_rows(&mut self, rows: &RunRows) -> Result<(), CampaignError> {
        self.attempt(|connection| {
            let transaction = connection.transaction()?;
            for ((table, _), rows) in TABLES_OF_RUN.iter().zip(&rows.0) {
                for row in rows {
                    let places = vec!["?"; row.len()].join(", ");
                    let sql = format!("INSERT INTO {table} VALUES ({places})");
                    transaction.execute(&sql, params_from_iter(row))?;
                }
            }
            transaction.commit()
        })
    }

    /// Sets a property to what another store has, unless it is the same.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn copy_property(&mut self, name: &str, value: &str) -> Result<(), CampaignError> {
        if self.optional_property(name)?.as_deref() == Some(value) {
            return Ok(());
        }
        self.attempt(|connection| {
            let sql = "INSERT OR REPLACE INTO study VALUES (?1, ?2)";
            connection.execute(sql, [name, value]).map(drop)
        })
    }
}

fn rows(connection: &Connection, part: &str, run: CellRun) -> rusqlite::Result<RunRows> {
    let mut all: [Vec<Vec<Value>>; TABLES_OF_RUN.len()] = Default::default();
    for ((table, order), rows) in TABLES_OF_RUN.iter().zip(&mut all) {
        let mut query = connection.prepare(&format!(
            "SELECT * FROM {table} WHERE part = ?1 AND cell = ?2 AND repeat = ?3 ORDER BY {order}"
        ))?;
        let columns = query.column_count();
        let key = params![part, signed(run.cell), run.repeat];
        let found = query.query_map(key, |row| {
            (0..columns).map(|column| row.get::<_, Value>(column)).collect()
        })?;
        *rows = found.take(MAX_ROWS + 1).collect::<rusqlite::Result<_>>()?;
    }
    Ok(RunRows(all))
}
