//! The file of kept results, as others may have left it.

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use units::ByteCount;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn key(last: u8) -> AddressKey {
    AddressKey::of([192, 0, 2, last].into())
}

fn kept(text: &str) -> Kept {
    Kept::pack(&json!({"result": text}), vec![(1, b"{}".to_vec())])
}

fn open(file: &Path) -> Result<History, String> {
    History::open(file, &WebLimits::default()).map_err(|error| error.to_string())
}

fn opened(file: &Path, limits: WebLimits) -> History {
    History::open(file, &limits).unwrap()
}

fn keep(history: &History, text: &str) -> Result<Receipt, KeepError> {
    history.offer(text, kept(text));
    history.keep(text, key(1))
}

fn result(history: &History, receipt: &Receipt) -> Option<Value> {
    let text = history.document(&receipt.id).unwrap()?;
    Some(serde_json::from_slice::<Value>(&text).unwrap()["result"].clone())
}

#[test]
fn a_result_is_kept_once_and_deleted_by_its_secret_alone() {
    let folder = folder();
    let file = folder.path().join("history.db");
    let history = open(&file).unwrap();
    let receipt = keep(&history, "a").unwrap();
    assert!(matches!(history.keep("a", key(1)), Err(KeepError::Unknown)));
    assert!(matches!(history.keep("nonesuch", key(1)), Err(KeepError::Unknown)));
    drop(history);
    let history = open(&file).unwrap();
    assert_eq!(result(&history, &receipt), Some(json!("a")));
    assert_eq!(history.measurement(&receipt.id, 1).unwrap().unwrap(), b"{}");
    assert_eq!(history.measurement(&receipt.id, 2).unwrap(), None);
    let zeros = "0".repeat(32);
    for id in [&zeros, "", "é", &receipt.id[1..], &receipt.id.to_uppercase(), "' OR 1=1 --"] {
        assert_eq!(history.document(id).unwrap(), None, "{id}");
        assert_eq!(history.remove(id, &receipt.secret).unwrap(), None, "{id}");
    }
    for secret in [&zeros, "", &receipt.id, &receipt.secret[..31]] {
        assert_eq!(history.remove(&receipt.id, secret).unwrap(), Some(false), "{secret}");
    }
    assert_eq!(history.remove(&receipt.id, &receipt.secret).unwrap(), Some(true));
    assert_eq!(result(&history, &receipt), None);
    assert_eq!(history.measurement(&receipt.id, 1).unwrap(), None);
}

#[test]
fn a_deleted_result_is_not_left_in_the_file() {
    let folder = folder();
    let history = open(&folder.path().join("history.db")).unwrap();
    let random: String = (0..2000).map(|_| format!("{:016x}", host::random::seed())).collect();
    // As it is stored: packed.
    let packed = kept(&random);
    history.offer("run", packed.clone());
    let receipt = history.keep("run", key(1)).unwrap();
    let sought = packed.middle_of_document();
    let is_there = || {
        let names = ["history.db", "history.db-wal"].map(|name| folder.path().join(name));
        names
            .iter()
            .filter_map(|path| fs::read(path).ok())
            .any(|bytes| bytes.windows(sought.len()).any(|part| part == sought))
    };
    assert!(is_there());
    history.remove(&receipt.id, &receipt.secret).unwrap();
    assert!(!is_there());
}

#[test]
fn the_oldest_give_way() {
    let folder = folder();
    let limits = WebLimits { kept: 3, kept_per_day_per_address: 100, ..WebLimits::default() };
    let history = opened(&folder.path().join("runs.db"), limits);
    let receipts: Vec<_> =
        (0..5).map(|run| keep(&history, &format!("run {run}")).unwrap()).collect();
    let is_there: Vec<_> =
        receipts.iter().map(|receipt| result(&history, receipt).is_some()).collect();
    assert_eq!(is_there, [false, false, true, true, true]);
    assert_eq!(history.measurement(&receipts[0].id, 1).unwrap(), None);
    // By bytes: 10 kB hold two of these, and none of one that is larger.
    let limits = WebLimits { kept_bytes: ByteCount::from_bytes(10_000), ..limits };
    let history = opened(&folder.path().join("bytes.db"), limits);
    let large = |bytes: usize| -> String {
        (0..bytes / 8).map(|_| format!("{:016x}", host::random::seed())).collect()
    };
    let receipts: Vec<_> = (0..3).map(|_| keep(&history, &large(4_000)).unwrap()).collect();
    assert!(result(&history, &receipts[0]).is_none() && result(&history, &receipts[2]).is_some());
    assert!(matches!(keep(&history, &large(40_000)), Err(KeepError::Store(StoreError::TooLarge))));
    assert!(result(&history, &receipts[2]).is_some());
}

#[test]
fn a_flood_of_one_address_ends_at_its_share() {
    let folder = folder();
    let history = open(&folder.path().join("history.db")).unwrap();
    let most = WebLimits::default().kept_per_day_per_address;
    for run in 0..most {
        keep(&history, &run.to_string()).unwrap();
    }
    let refused = keep(&history, "more");
    assert!(matches!(refused, Err(KeepError::TooMany { seconds: 1..=86_400 })), "{refused:?}");
    // The run can still be kept, as from another address.
    assert!(history.keep("more", key(2)).is_ok());
    // Offers that nobody takes are bounded.
    for run in 0..10 * MAX_OFFERED {
        history.offer(&format!("offer {run}"), kept("x"));
    }
    assert_eq!(lock(&history.offered).len(), MAX_OFFERED);
}

#[test]
fn concurrent_deletes_delete_once() {
    let folder = folder();
    let history = open(&folder.path().join("history.db")).unwrap();
    let receipt = keep(&history, "a").unwrap();
    let other = keep(&history, "b").unwrap();
    let deleted: Vec<_> = std::thread::scope(|scope| {
        let delete = || history.remove(&receipt.id, &receipt.secret).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(delete)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(deleted.iter().filter(|deleted| **deleted == Some(true)).count(), 1);
    assert_eq!(deleted.iter().filter(|deleted| deleted.is_none()).count(), 7);
    assert!(result(&history, &other).is_some());
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    let folder = folder();
    let history = open(&folder.path().join("history.db")).unwrap();
    let first = keep(&history, "a").unwrap();
    let set = |pages: i64| {
        let store = lock(&history.store);
        store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    };
    set(1);
    let large: String = (0..20_000).map(|_| format!("{:016x}", host::random::seed())).collect();
    let full = keep(&history, &large).unwrap_err();
    assert!(matches!(full, KeepError::Store(StoreError::Full)), "{full}");
    assert_eq!(result(&history, &first), Some(json!("a")));
    // When there is room again, the same run can be kept.
    set(1 << 20);
    assert!(history.keep(&large, key(1)).is_ok());
}

#[test]
fn files_of_others_are_refused_in_one_sentence() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let refused = |file: &PathBuf, why: &str| {
        let error = open(file).unwrap_err();
        assert!(error.contains(why) && !error.contains('\n'), "{why}: {error}");
    };
    fs::write(path("text.db"), "no database, but of more than a page ".repeat(400)).unwrap();
    refused(&path("text.db"), "is not a history");
    let sql = |name: &str, sql: &str| {
        rusqlite::Connection::open(path(name)).unwrap().execute_batch(sql).unwrap();
        path(name)
    };
    refused(&sql("other.db", "CREATE TABLE run (id)"), "is not a history");
    refused(&sql("mark.db", "PRAGMA application_id = 5; CREATE TABLE a (b)"), "is not a history");
    for (name, change) in [
        ("view.db", "CREATE VIEW v AS SELECT 1"),
        ("index.db", "CREATE INDEX i ON run (position)"),
        ("trigger.db", "CREATE TRIGGER t AFTER DELETE ON run BEGIN SELECT 1; END"),
        ("version.db", "PRAGMA user_version = -1"),
    ] {
        drop(open(&path(name)).unwrap());
        refused(&sql(name, change), "is not a history");
    }
    drop(open(&path("later.db")).unwrap());
    refused(&sql("later.db", "PRAGMA user_version = 2"), "later version");
    symlink(path("later.db"), path("link.db")).unwrap();
    refused(&path("link.db"), "symbolic link");
    fs::hard_link(path("later.db"), path("hard.db")).unwrap();
    refused(&path("hard.db"), "hard links");
    refused(&folder.path().to_owned(), "cannot open");
    refused(&path("missing/history.db"), "cannot open");
    fs::create_dir(path("open")).unwrap();
    fs::set_permissions(path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    refused(&path("open/history.db"), "writable by other users");
    symlink(folder.path(), path("here")).unwrap();
    refused(&path("here/history.db"), "symbolic link");
}

#[test]
fn a_damaged_file_is_an_error_and_no_more() {
    let folder = folder();
    let file = folder.path().join("history.db");
    let history = open(&file).unwrap();
    let large: String = (0..20_000).map(|_| format!("{:016x}", host::random::seed())).collect();
    let receipt = keep(&history, &large).unwrap();
    drop(history);
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for place in (100..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        bytes[place..(place + 16).min(whole.len())].fill(0xa5);
        fs::write(&file, &bytes).unwrap();
        match open(&file) {
            Ok(history) => {
                let _ = history.document(&receipt.id);
                let _ = history.remove(&receipt.id, &receipt.secret);
            }
            Err(error) => {
                assert!(!error.contains('\n'), "{error}");
                refused += 1;
            }
        }
        let _ = fs::remove_file(folder.path().join("history.db-wal"));
    }
    assert!(refused > 0);
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(open(&file).is_err());
}

#[test]
fn forged_documents_are_bounded() {
    let folder = folder();
    let history = open(&folder.path().join("history.db")).unwrap();
    let receipt = keep(&history, "a").unwrap();
    // 100 MB of zeros in 100 kB.
    let bomb = Kept::pack(&json!("\0".repeat(17 << 20)), Vec::new());
    let set = |document: &[u8]| {
        let store = lock(&history.store);
        store.connection.execute("UPDATE run SET document = ?1", [document]).unwrap();
    };
    set(bomb.document_bytes());
    let error = history.document(&receipt.id).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    set(b"no gzip");
    assert!(history.document(&receipt.id).is_err());
}
