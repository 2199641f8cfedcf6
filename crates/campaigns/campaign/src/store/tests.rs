//! Stores that are resumed, shared, and made by somebody else.

use super::*;
use record::{Limit, RunStatus, StartSkew};
use study::CellRun;

const PLAN: &str = r#"question = "?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = ["64KiB", "1MiB"]
[traffic]
duration = "1s"
[repeats]
count = 2
"#;

fn study() -> Study {
    Study::of_plan("s", PLAN, false).unwrap()
}

fn open(folder: &Path, study: &Study) -> Result<Store, CampaignError> {
    Store::open(folder, study, StudyTestbed::Lab)
}

fn measured(cell: usize, repeat: u32) -> Measured {
    let flow = FlowFigures {
        name: "traffic".to_owned(),
        throughput_bps: 5e6,
        steady_bps: Some(5.1e6),
        retransmits: Some(7),
        limit: Some(Limit::ReceiveWindow),
        series_bps: vec![4e6, 6e6],
        decrease_factor: Some(0.7),
        acks_per_packet: Some(0.001),
        light_acks_per_packet: Some(0.016),
        naks: Some(3),
        increases: Some(20),
        increases_by_alpha: Some(19),
        growth_over_alpha: Some(0.9),
        disk_bps: Some(2e7),
        disk_series_bps: vec![2e7, 1e7],
        nak_series: vec![0, 3],
        ..FlowFigures::default()
    };
    let run = StudyRun {
        cell,
        repeat,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 1_700_000_000,
        took_s: 1.5,
        test_s: 1.2,
        reason: String::new(),
        start_skew: Some(StartSkew { ms: 1.5, uncertainty_ms: 0.5 }),
        flows: vec![flow],
    };
    Measured { run, measurements: Vec::new() }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("results");
    (parent, folder)
}

#[test]
fn runs_are_read_as_they_were_stored_and_once_only() {
    let (_parent, folder) = folder();
    let mut store = open(&folder, &study()).unwrap();
    store.add("", &measured(1, 2)).unwrap();
    store.add("", &measured(0, 1)).unwrap();
    assert!(store.add("", &measured(0, 1)).is_err(), "a run is stored once");
    // Readers need not wait for the end.
    let reader = Store::read(&folder).unwrap();
    assert_eq!(reader.runs("").unwrap(), [measured(0, 1).run, measured(1, 2).run]);
    assert_eq!(reader.study().unwrap(), study());
    drop(store);
    let store = open(&folder, &study()).unwrap();
    let done: Vec<CellRun> = store.done("").unwrap().into_iter().collect();
    assert_eq!(done, [CellRun { cell: 0, repeat: 1 }, CellRun { cell: 1, repeat: 2 }]);
}

/// A study that an earlier version began is read and continued, in its own form.
#[test]
fn earlier_versions_are_read_and_continued() {
    for version in 1..SCHEMA {
        let (_parent, folder) = folder();
        drop(open(&folder, &study()).unwrap());
        let earlier = tables(version);
        assert_ne!(earlier, tables(version + 1));
        let flow = earlier.split(';').find(|sql| sql.contains("TABLE flow")).unwrap();
        let file = Connection::open(folder.join(FILE)).unwrap();
        let begin = format!(
            "DROP TABLE start_skew; DROP TABLE flow; {flow}; PRAGMA user_version = {version}"
        );
        file.execute_batch(&begin).unwrap();
        drop(file);
        let mut store = open(&folder, &study()).unwrap();
        store.add("", &measured(0, 1)).unwrap();
        let mut expected = measured(0, 1).run;
        expected.start_skew = None;
        let kept = expected.flows[0].clone();
        expected.flows[0] = FlowFigures {
            decrease_factor: kept.decrease_factor.filter(|_| version > 1),
            name: kept.name,
            throughput_bps: kept.throughput_bps,
            steady_bps: kept.steady_bps,
            retransmits: kept.retransmits,
            limit: kept.limit,
            series_bps: kept.series_bps,
            ..FlowFigures::default()
        };
        assert_eq!(store.runs("").unwrap(), [expected.clone()]);
        assert_eq!(Store::read(&folder).unwrap().runs("").unwrap(), [expected]);
    }
}

#[test]
fn one_process_adds_runs_and_of_one_plan_only() {
    let (_parent, folder) = folder();
    let store = open(&folder, &study()).unwrap();
    let second = open(&folder, &study());
    assert!(matches!(second, Err(CampaignError::Busy { .. })), "{second:?}");
    drop(store);
    let other = Study::of_plan("s", &PLAN.replace("1MiB", "2MiB"), false).unwrap();
    let refused = open(&folder, &other);
    assert!(matches!(refused, Err(CampaignError::OtherPlan { .. })), "{refused:?}");
    let quick = Study::of_plan("s", PLAN, true).unwrap();
    assert!(matches!(open(&folder, &quick), Err(CampaignError::OtherPlan { .. })));
}

#[test]
fn a_file_that_is_no_store_of_ours_is_refused() {
    let (_parent, folder) = folder();
    assert!(matches!(Store::read(&folder), Err(CampaignError::NoStudy { .. })));
    drop(open(&folder, &study()).unwrap());
    let change = |sql: &str| {
        Connection::open(folder.join(FILE)).unwrap().execute_batch(sql).unwrap();
        Store::read(&folder).map(|_| ()).unwrap_err()
    };
    // Rows without end in the place of a table.
    let error = change(
        "ALTER TABLE run RENAME TO other;
         CREATE VIEW run AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
            SELECT '' AS part, x AS cell, x AS repeat FROM n;",
    );
    assert!(matches!(error, CampaignError::Damaged { .. }), "{error}");
    let error = change("PRAGMA user_version = 4");
    assert!(matches!(error, CampaignError::Version { version: 4, .. }), "{error}");
    std::fs::write(folder.join(FILE), "not a database, but long enough to have a header").unwrap();
    let error = Store::read(&folder).unwrap_err();
    assert!(matches!(error, CampaignError::Damaged { .. }), "{error}");
}

/// Reads everything, as a report does.
fn read_all(folder: &Path) -> Result<usize, CampaignError> {
    let store = Store::read(folder)?;
    let study = store.study()?;
    let mut runs = 0;
    for part in &study.parts {
        runs += store.runs(&part.name)?.len();
    }
    store.hosts()?;
    store.not_set()?;
    store.property("host")?;
    Ok(runs)
}

/// A study with so many runs, in one file that no process has open.
fn stored(folder: &Path, runs: u32) {
    let mut store = open(folder, &study()).unwrap();
    store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
    for repeat in 0..runs {
        store.add("", &measured(0, repeat)).unwrap();
    }
    drop(store);
    let file = Connection::open(folder.join(FILE)).unwrap();
    file.pragma_update(None, "journal_mode", "DELETE").unwrap();
}

#[test]
fn definitions_of_somebody_else_are_refused() {
    for sql in [
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",
        "CREATE INDEX i ON run (abs(took_s))",
        "CREATE TABLE other (x)",
        "ALTER TABLE run ADD COLUMN g TEXT AS (hex(took_s))",
        "DROP TABLE flow; CREATE VIEW flow AS SELECT * FROM run",
        "DROP TABLE flow; CREATE VIRTUAL TABLE flow USING rtree(id, a, b)",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'view' WHERE name = 'run'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE run (x)' \
         WHERE name = 'run'",
    ] {
        let (_parent, folder) = folder();
        stored(&folder, 1);
        let file = Connection::open(folder.join(FILE)).unwrap();
        file.execute_batch(sql).unwrap();
        drop(file);
        let before = std::fs::read(folder.join(FILE)).unwrap();
        let error = read_all(&folder).unwrap_err();
        assert!(matches!(error, CampaignError::Damaged { .. }), "{sql}: {error}");
        assert_eq!(std::fs::read(folder.join(FILE)).unwrap(), before, "{sql}");
    }
}

/// A page that is referred to again and again would be rows without end: with a few levels of such
/// pages, more than any memory holds.
#[test]
fn a_page_in_several_places_is_found_before_it_is_read() {
    let (_parent, folder) = folder();
    stored(&folder, 60);
    assert_eq!(read_all(&folder).unwrap(), 60);
    let path = folder.join(FILE);
    let file = Connection::open(&path).unwrap();
    let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let size = number("PRAGMA page_size");
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'flow'");
    drop(file);
    let mut bytes = std::fs::read(&path).unwrap();
    let page = &mut bytes[(root - 1) * size..root * size];
    assert_eq!(page[0], 2, "an interior page");
    let cells = u16::from_be_bytes([page[3], page[4]]);
    assert!(cells > 1);
    let rightmost: [u8; 4] = page[8..12].try_into().unwrap();
    for cell in 0..usize::from(cells) {
        let at = usize::from(u16::from_be_bytes([page[12 + 2 * cell], page[13 + 2 * cell]]));
        page[at..at + 4].copy_from_slice(&rightmost);
    }
    std::fs::write(&path, &bytes).unwrap();
    let error = read_all(&folder).unwrap_err();
    assert!(matches!(error, CampaignError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn long_texts_and_values_of_other_types_are_refused() {
    for (sql, is_refused) in [
        ("UPDATE run SET reason = hex(zeroblob(2097152))", false),
        ("UPDATE run SET reason = hex(zeroblob(2097153))", true),
        ("UPDATE flow SET series_bps = hex(zeroblob(2097153))", true),
        ("INSERT INTO study VALUES ('hosts', hex(zeroblob(2097153)))", true),
        ("INSERT INTO study VALUES ('not_set', replace(hex(zeroblob(100000)), '0', '['))", true),
        ("UPDATE flow SET series_bps = '[1e999]', throughput_bps = 9e999", false),
        ("PRAGMA ignore_check_constraints = ON; UPDATE run SET status = 'x'", false),
    ] {
        let (_parent, folder) = folder();
        stored(&folder, 1);
        let file = Connection::open(folder.join(FILE)).unwrap();
        file.execute_batch(sql).unwrap();
        drop(file);
        assert_eq!(read_all(&folder).is_err(), is_refused, "{sql}");
    }
}

#[test]
fn a_query_ends_after_its_steps() {
    let (_parent, folder) = folder();
    stored(&folder, 1);
    let mut store = Store::read(&folder).unwrap();
    untrusted::restrict(&mut store.connection, 1_000_000).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
                   SELECT count(*) FROM n";
    let error = store.connection.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted), "{error}");
    let attached = store.connection.execute_batch("ATTACH ':memory:' AS other");
    assert!(attached.is_err());
    assert!(store.connection.execute_batch("DELETE FROM run").is_err());
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (_parent, folder) = folder();
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = open(&folder, &study());
    assert!(matches!(refused, Err(CampaignError::Folder { .. })), "{refused:?}");
}
