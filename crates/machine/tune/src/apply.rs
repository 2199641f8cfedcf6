//! Writes settings under `/proc/sys`, all of them or none.
//!
//! `/proc/sys/net` shows the network namespace of the thread that opens it, so
//! a thread that has entered a lab's namespace changes that lab and nothing else.

use crate::Buffers;
use record::PlanItem;
use record::{is_tuned_sysctl as is_key, is_tuned_value as is_value};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where the kernel exposes its settings.
pub const PROC_SYS: &str = "/proc/sys";

/// A setting that was written and read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The setting, with dots.
    pub key: String,
    /// Its value before, as it was read; what [`restore`] writes.
    pub before: String,
    /// Its value after, as it was read back.
    pub now: String,
}

/// Why a setting could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Not a setting that Longhaul changes.
    #[error("'{0}' is not among the settings that Longhaul changes")]
    Key(String),
    /// Not a value that a setting has.
    #[error("'{key}' cannot be set to '{value}': its values have a different format")]
    Value {
        /// The setting.
        key: String,
        /// The requested value, shortened and without control characters.
        value: String,
    },
    /// It could not be read.
    #[error("cannot read {key} at {path}: {source}; check that this kernel and namespace have it")]
    Read {
        /// The setting.
        key: String,
        /// The file behind it.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// It could not be written.
    #[error("cannot set {key} to '{value}': {source}; {}", remedy(.source))]
    Write {
        /// The setting.
        key: String,
        /// The requested value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel accepted the value and bounded it.
    #[error("{key} was set to '{value}' but reads '{now}': the kernel bounded it")]
    Differs {
        /// The setting.
        key: String,
        /// The requested value.
        value: String,
        /// The value read back.
        now: String,
    },
    /// A change failed, and so did reverting those before it.
    #[error("{cause}; restoring {} failed too, set by hand: {}", .left.len(), by_hand(.left))]
    Rollback {
        /// The first failure.
        cause: Box<TuneError>,
        /// The settings that still hold their new value.
        left: Vec<Applied>,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "run as root",
        io::ErrorKind::InvalidInput => "the kernel does not accept that value",
        _ => "nothing was changed",
    }
}

fn by_hand(left: &[Applied]) -> String {
    let lines: Vec<_> = left.iter().map(|a| format!("{}='{}'", a.key, a.before)).collect();
    lines.join(", ")
}

impl Buffers {
    /// The settings in the network namespace of this thread.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn read() -> io::Result<Self> {
        let triple = |key: &str| {
            host::sysctl::read_triple(key)
                .ok_or_else(|| io::Error::other(format!("{key} cannot be read")))
        };
        Ok(Buffers {
            tcp_rmem: triple("net.ipv4.tcp_rmem")?,
            tcp_wmem: triple("net.ipv4.tcp_wmem")?,
            window_scaling: host::sysctl::read("net.ipv4.tcp_window_scaling")? != "0",
        })
    }
}

/// Writes every item in the network namespace of this thread and reads it
/// back. The items' hosts are ignored: pass those of one host.
///
/// # Errors
/// At the first item that is refused, cannot be written or reads differently;
/// those before it are reverted.
pub fn apply(items: &[PlanItem]) -> Result<Vec<Applied>, TuneError> {
    apply_under(Path::new(PROC_SYS), items)
}

/// [`apply`] below another root than `/proc/sys`.
///
/// # Errors
/// As [`apply`].
pub fn apply_under(root: &Path, items: &[PlanItem]) -> Result<Vec<Applied>, TuneError> {
    // All are checked before the first is written.
    for item in items {
        check(item)?;
    }
    let mut done = Vec::with_capacity(items.len());
    for item in items {
        if let Err(cause) = change(root, item, &mut done) {
            return Err(match restore_under(root, &done) {
                Ok(()) => cause,
                Err(left) => TuneError::Rollback { cause: Box::new(cause), left },
            });
        }
    }
    Ok(done)
}

/// Restores what [`apply`] changed, last first.
///
/// # Errors
/// The settings that could not be restored; the others were.
pub fn restore(applied: &[Applied]) -> Result<(), Vec<Applied>> {
    restore_under(Path::new(PROC_SYS), applied)
}

/// [`restore`] below another root than `/proc/sys`.
///
/// # Errors
/// As [`restore`].
pub fn restore_under(root: &Path, applied: &[Applied]) -> Result<(), Vec<Applied>> {
    let holds = |entry: &Applied| read(root, &entry.key).is_ok_and(|now| same(&now, &entry.before));
    let back = |entry: &Applied| {
        if !is_value(&entry.key, &entry.before) {
            return false;
        }
        holds(entry) || fs::write(file(root, &entry.key), &entry.before).is_ok() && holds(entry)
    };
    let left: Vec<_> = applied.iter().rev().filter(|entry| !back(entry)).cloned().collect();
    if left.is_empty() { Ok(()) } else { Err(left) }
}

/// Writes one item. It enters `done` before it is written: of three numbers the
/// kernel may have taken two when it refuses the last.
fn change(root: &Path, item: &PlanItem, done: &mut Vec<Applied>) -> Result<(), TuneError> {
    let (key, value) = (item.key.clone(), item.to.clone());
    let before = read(root, &key)?;
    done.push(Applied { key: key.clone(), before, now: value.clone() });
    if let Err(source) = fs::write(file(root, &key), &value) {
        return Err(TuneError::Write { key, value, source });
    }
    let now = read(root, &key)?;
    if !same(&now, &value) {
        return Err(TuneError::Differs { key, value, now });
    }
    if let Some(last) = done.last_mut() {
        last.now = now;
    }
    Ok(())
}

fn check(item: &PlanItem) -> Result<(), TuneError> {
    if !is_key(&item.key) {
        return Err(TuneError::Key(shown(&item.key)));
    }
    if !is_value(&item.key, &item.to) {
        return Err(TuneError::Value { key: item.key.clone(), value: shown(&item.to) });
    }
    Ok(())
}

pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

fn file(root: &Path, key: &str) -> PathBuf {
    root.join(key.replace('.', "/"))
}

fn read(root: &Path, key: &str) -> Result<String, TuneError> {
    let path = file(root, key);
    fs::read_to_string(&path)
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .map_err(|source| TuneError::Read { key: key.to_owned(), path, source })
}

/// The kernel separates numbers with tabs.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RMEM: &str = "net.ipv4.tcp_rmem";
    const WMEM: &str = "net.ipv4.tcp_wmem";

    fn item(key: &str, to: &str) -> PlanItem {
        PlanItem {
            host: "client".to_owned(),
            key: key.to_owned(),
            from: String::new(),
            to: to.to_owned(),
            why: String::new(),
        }
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("net/ipv4")).unwrap();
        fs::write(file(root.path(), RMEM), "4096\t131072\t6291456\n").unwrap();
        fs::write(file(root.path(), WMEM), "4096\t16384\t4194304\n").unwrap();
        root
    }

    #[test]
    fn writes_reads_back_and_restores() {
        let root = tree();
        let items = [item(RMEM, "4096 131072 17825792"), item(WMEM, "4096 16384 17825792")];
        let applied = apply_under(root.path(), &items).unwrap();
        assert_eq!(applied.len(), 2);
        assert_eq!(applied[0].before, "4096 131072 6291456");
        assert_eq!(applied[0].now, "4096 131072 17825792");
        restore_under(root.path(), &applied).unwrap();
        assert_eq!(read(root.path(), RMEM).unwrap(), "4096 131072 6291456");
    }

    #[test]
    fn a_failure_reverts_earlier_changes() {
        let root = tree();
        let items = [item(RMEM, "1 2 3"), item("net.core.rmem_max", "1")];
        let error = apply_under(root.path(), &items).unwrap_err();
        assert!(matches!(error, TuneError::Read { .. }), "{error}");
        assert_eq!(read(root.path(), RMEM).unwrap(), "4096 131072 6291456");
    }

    #[test]
    fn a_failed_rollback_names_the_remaining_settings() {
        let left = Applied { key: RMEM.into(), before: "1 2 3".into(), now: "4 5 6".into() };
        let cause = Box::new(TuneError::Key("x".into()));
        let error = TuneError::Rollback { cause, left: vec![left.clone()] };
        assert!(error.to_string().contains("net.ipv4.tcp_rmem='1 2 3'"), "{error}");
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(restore_under(nowhere.path(), std::slice::from_ref(&left)), Err(vec![left]));
    }

    #[test]
    fn only_the_networks_settings_are_written() {
        let root = tree();
        for key in [
            "kernel.panic",
            "net.ipv4.ip_forward",
            "net.ipv4",
            "net.ipv4.",
            "net.ipv6.conf",
            "net.ipv4...tcp_rmem",
            "net.ipv4./etc/passwd",
            "net.core.a b",
            "vm.net.ipv4.x",
            "",
        ] {
            // One bad key, and not even the good one is written.
            let error = apply_under(root.path(), &[item(RMEM, "1 2 3"), item(key, "1")]);
            assert!(matches!(error, Err(TuneError::Key(_))), "{key}");
        }
        assert_eq!(read(root.path(), RMEM).unwrap(), "4096 131072 6291456");
        assert!(is_key("net.core.rmem_max") && is_key("net.ipv4.tcp_window_scaling"));
    }

    #[test]
    fn values_are_one_line() {
        let root = tree();
        for value in ["", "  ", "1\n2", "1\0", "\u{e9}"] {
            let error = apply_under(root.path(), &[item(RMEM, value)]);
            assert!(matches!(error, Err(TuneError::Value { .. })), "{value:?}");
        }
    }

    #[test]
    fn white_space_makes_no_difference() {
        assert!(same("4096\t131072\t6291456", "4096 131072 6291456"));
        assert!(!same("4096 131072 6291456", "4096 131072 629145"));
    }
}
