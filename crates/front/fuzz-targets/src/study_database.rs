//! The database of a study that somebody else made.
//!
//! An input is a file as it is, or what is done to a study's own: SQL, and then behind a line `---`
//! bytes that are written over it, `PLACE HEX` on a line each.

use campaign::{CampaignError, Store};
use rusqlite::{Connection, limits::Limit};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use study::Study;

const PLAN: &str = r#"question = "?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = ["64KiB", "1MiB"]
[traffic]
duration = "1s"
"#;

/// The most that an input makes of a file.
const MAX_FILE: u32 = 1 << 20;

/// Reads a database in every way that reports and exports do.
pub(crate) fn study_database(input: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let file = folder.path().join("study.db");
    let bytes = match input.starts_with(b"SQLite format 3\0") {
        true => input.to_vec(),
        false => {
            let Some(bytes) = changed(input, &file) else { return };
            bytes
        }
    };
    if fs::write(&file, &bytes).is_err() {
        return;
    }
    if let Err(error) = read(folder.path()) {
        assert!(!error.to_string().is_empty());
    }
    assert!(fs::read(&file).is_ok_and(|now| now == bytes), "the file was changed");
    let others = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    for name in others.map(|entry| entry.file_name()) {
        let name = name.to_string_lossy();
        assert!(["study.db", "study.db-wal", "study.db-shm"].contains(&&*name), "{name}");
    }
}

fn read(folder: &Path) -> Result<(), CampaignError> {
    let store = Store::read(folder)?;
    let study = store.study()?;
    let runs = study.parts.iter().map(|part| store.runs(&part.name));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    for (part, runs) in study.parts.iter().zip(&runs) {
        store.done(&part.name)?;
        for run in runs.iter().take(4) {
            let at = study::CellRun { cell: run.cell, repeat: run.repeat };
            for flow in &run.flows {
                store.measurement(&part.name, at, &flow.name)?;
            }
        }
    }
    store.hosts()?;
    store.not_set()?;
    store.property("host")?;
    let report = study.report(&runs, study::trends(&study, &runs));
    let style = report::terminal::Style { colour: false, width: 80, unicode: true };
    let _ = report::terminal::study(&report, &style);
    let _ = (campaign::csv(&study, &runs), campaign::json_lines(&study, &runs));
    let _ = study::compare((&study, &runs), (&study, &runs));
    Ok(())
}

/// A study's own database with one run, as bytes.
fn own() -> &'static [u8] {
    static OWN: OnceLock<Vec<u8>> = OnceLock::new();
    OWN.get_or_init(|| {
        let made = || -> Option<Vec<u8>> {
            let folder = tempfile::tempdir().ok()?;
            let study = Study::of_plan("s", PLAN, false).ok()?;
            drop(Store::open(&folder.path().join("s"), &study, record::StudyTestbed::Lab).ok()?);
            let file = folder.path().join("s/study.db");
            let connection = Connection::open(&file).ok()?;
            connection.pragma_update(None, "journal_mode", "DELETE").ok()?;
            connection.execute_batch(ROWS).ok()?;
            connection.close().ok()?;
            fs::read(file).ok()
        };
        made().unwrap_or_default()
    })
}

const ROWS: &str = "
    INSERT INTO run VALUES ('', 0, 0, 'valid', 1, 1700000000, 1.5, 1.2, '');
    INSERT INTO flow (part, cell, repeat, flow, position, began_s, seconds, throughput_bps,
                      sent_bps, series_bps)
        VALUES ('', 0, 0, 'traffic', 0, 0.0, 1.0, 5e6, 5e6, '[5e6]');
    INSERT INTO measurement VALUES ('', 0, 0, 'traffic', x'1f8b');";

/// The database after SQL and changes of bytes; `None` where it grows beyond the most.
fn changed(input: &[u8], file: &Path) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(input).ok()?;
    let (sql, bytes) = text.split_once("---\n").unwrap_or((text, ""));
    fs::write(file, own()).ok()?;
    let mut connection = Connection::open(file).ok()?;
    connection.pragma_update(None, "synchronous", "OFF").ok()?;
    connection.pragma_update(None, "journal_mode", "MEMORY").ok()?;
    // Here the input is the attacker's program; it gets neither other files nor much time.
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).ok()?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1 << 20).ok()?;
    connection.pragma_update(None, "max_page_count", MAX_FILE / 4096).ok()?;
    let mut steps = 0;
    let is_enough = move || {
        steps += 1;
        steps > 100
    };
    connection.progress_handler(1000, Some(is_enough)).ok()?;
    // What comes before an error has its effect.
    let _ = connection.execute_batch(sql);
    let _ = connection.close();
    let mut database = fs::read(file).ok()?;
    for line in bytes.lines() {
        let Some((place, digits)) = line.split_once(' ') else { continue };
        let Ok(place) = place.parse::<usize>() else { continue };
        let (pairs, _) = digits.as_bytes().as_chunks::<2>();
        for (byte, pair) in database.iter_mut().skip(place).zip(pairs) {
            let pair = std::str::from_utf8(pair).ok();
            if let Some(value) = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
                *byte = value;
            }
        }
    }
    (database.len() <= MAX_FILE as usize).then_some(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_that_inputs_change_is_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("study.db"), own()).unwrap();
        let store = Store::read(folder.path()).unwrap();
        let runs = store.runs("").unwrap();
        assert_eq!((runs.len(), runs[0].flows.len()), (1, 1));
        // Of its measurement, which is none.
        assert!(matches!(read(folder.path()), Err(CampaignError::Damaged { .. })));
    }

    #[test]
    fn flipped_bytes_do_no_harm() {
        let mut state = 1_u64;
        let mut random = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % most
        };
        for _ in 0..200 {
            let mut bytes = own().to_vec();
            for _ in 0..=random(8) {
                // Half of them in the headers of pages.
                let page = random(bytes.len() / 4096) * 4096;
                let place = if random(2) == 0 { page + random(40) } else { random(bytes.len()) };
                bytes[place] = random(256) as u8;
            }
            study_database(&bytes);
        }
    }
}
