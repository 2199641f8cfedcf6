//! The parsers of files that `rollback` reads as root, exposed only for the fuzz targets.

use crate::journal::{Journal, JournalError, sum};
use crate::persist;
use record::{is_tuned_sysctl as is_key, is_tuned_value as is_value};
use std::path::Path;

/// Reads the bytes of a journal.
///
/// # Errors
/// [`JournalError`].
pub fn journal(bytes: &[u8]) -> Result<(), JournalError> {
    let journal = Journal::parse(Path::new("fuzz.journal"), bytes)?;
    for entry in &journal.begun.entries {
        assert!(is_key(&entry.key), "{entry:?}");
        assert!(
            is_value(&entry.key, &entry.before) && is_value(&entry.key, &entry.planned),
            "{entry:?}"
        );
    }
    for entry in &journal.begun.routes {
        assert!(entry.before.is_valid() && entry.planned.is_valid(), "{entry:?}");
        assert!(journal.begun.entries.is_empty() && journal.file.is_none(), "{entry:?}");
    }
    Ok(())
}

/// Reads a journal of which only the records are given, one a line: each gets the
/// checksum that an attacker would compute as well.
///
/// # Errors
/// [`JournalError`].
pub fn journal_of_records(records: &str) -> Result<(), JournalError> {
    let line = |record: &str| format!("{{\"sum\":\"{}\",\"record\":{record}}}\n", sum(record));
    journal(records.lines().map(line).collect::<String>().as_bytes())
}

/// Reads the file that sets values at each boot, and writes it again as it is
/// kept: with no key and no value that is not one.
#[must_use]
pub fn boot_file(text: &str) -> String {
    for (key, value) in persist::parse(text) {
        assert!(is_key(&key) && is_value(&key, &value), "{key:?} = {value:?}");
    }
    persist::text(Some(text), &[])
}
