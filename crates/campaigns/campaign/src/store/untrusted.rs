//! A SQLite file from somebody else: what it may make this process do, and for how long.
//!
//! - Its schema is the one that its reader expects and nothing else, so it has no views, triggers,
//!   generated columns or indices of its own ([`definitions`]).
//! - Each of its pages belongs to one place of one table ([`first_fault`]), so what is read of it
//!   is no longer than the file; a page that is referred to again and again would be rows without
//!   end.
//! - Whatever a query finds, it ends after [`MAX_STEPS`].

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

/// The longest text of a store, a series of figures, in bytes.
pub const MAX_TEXT: i32 = 4 << 20;

/// The longest value: a measurement, compressed.
pub const MAX_VALUE: i32 = 64 << 20;

/// Instructions of SQLite's machine for all queries of a connection: a study of a million flows
/// takes a third of it, and a second of time is some ten million.
pub const MAX_STEPS: u64 = 1 << 29;

/// Instructions between two counts.
const STEPS_COUNTED: i32 = 10_000;

/// Definitions of a study, with some in reserve.
const MAX_DEFINITIONS: usize = 32;

/// Restricts what a connection does for its file, and to so many steps. Nothing may have been read
/// yet.
///
/// # Errors
/// SQLite's.
pub fn restrict(connection: &mut Connection, most_steps: u64) -> rusqlite::Result<()> {
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, value)?;
    }
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
        (Limit::SQLITE_LIMIT_COLUMN, 64),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 64),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 4),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    connection.pragma_update(None, "cell_size_check", "ON")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    let mut steps = 0_u64;
    let is_enough = move || {
        steps += u64::from(STEPS_COUNTED.unsigned_abs());
        steps > most_steps
    };
    connection.progress_handler(STEPS_COUNTED, Some(is_enough))
}

/// Lets a connection add rows to a file that was found whole.
///
/// # Errors
/// SQLite's.
pub fn allow_writing(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.progress_handler(0, None::<fn() -> bool>)
}

/// Something that a file defines.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    kind: String,
    name: String,
    table: String,
    sql: Option<String>,
}

/// What a file defines, by name.
///
/// # Errors
/// SQLite's; also of a file that is no database.
pub fn definitions(connection: &Connection) -> rusqlite::Result<Vec<Definition>> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
    let mut query = connection.prepare(sql)?;
    let rows = query.query_map([], |row| {
        Ok(Definition {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            sql: row.get(3)?,
        })
    })?;
    rows.take(MAX_DEFINITIONS).collect()
}

/// The first fault of the file's structure or types, if it has any: a page that is used twice or
/// by nothing, a value of another type than its column's.
///
/// # Errors
/// SQLite's.
pub fn first_fault(connection: &mut Connection) -> rusqlite::Result<Option<String>> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT)?;
    found.map(|found| (found != "ok").then_some(found))
}
