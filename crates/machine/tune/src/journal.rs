//! The journals: one file per applied plan, with the previous values.
//!
//! ```text
//! 000001.journal
//!   {"sum":"9f86d081884c7d65","record":{"begun":{…what was, what is planned…}}}
//!   {"sum":"…","record":{"set":{"key":"net.ipv4.tcp_rmem","now":"…"}}}
//!   …
//!   {"sum":"…","record":"ended"}
//! ```
//!
//! The first line is synced to disk under the file's final name before the
//! first value is written: it alone suffices to restore every value. The lines
//! after it record the progress, each synced before the next operation: the
//! value the kernel accepted, and the boot file before it is replaced. Only the
//! last line can be torn, and then counts as missing: its operation was not
//! done, or reads as planned.
//!
//! A journal is of sysctls or of the route to one prefix. Of a route it has the prefix, the
//! priority, and three TCP metrics: no gateway, no device, and no other attribute, and a field
//! with one makes it a damaged journal.

mod damage;
mod route_entry;
mod store;

pub use damage::Damage;
pub(crate) use route_entry::RouteEntry;
pub(crate) use store::JournalStore;

use crate::apply::shown;
use crate::persist;
use crate::route::MAX_ROUTES;
use record::{
    RouteMetrics, RoutePrefix, TUNED_SYSCTLS, is_tuned_sysctl as is_key, is_tuned_value as is_value,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "longhaul.tune-journal/2";

/// The version before routes, which is read as well.
const SCHEMA_1: &str = "longhaul.tune-journal/1";

/// Largest journal that is read, in bytes: two texts of the boot file, each
/// byte of which JSON may encode as six.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of lines: the beginning, one per setting or route, the file, the end.
const MAX_LINES: usize = TUNED_SYSCTLS + MAX_ROUTES + 3;

/// Name of a journal under construction.
const UNFINISHED: &str = "unfinished";

/// The suffix of a journal whose network namespace is gone.
const SET_ASIDE: &str = ".gone";

/// Longest text that is printed, in bytes.
const MAX_TEXT: usize = 256;

/// The machine, boot and network namespace of a journal's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// machine-id(5), or the host name.
    pub machine: String,
    /// The host's name.
    pub hostname: String,
    /// The boot id: settings do not survive a reboot.
    pub boot: String,
    /// The inode number of the network namespace, which has its own settings.
    pub network: u64,
    /// Its cookie: inode numbers are used again. `None` where the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_cookie: Option<u64>,
}

impl Identity {
    /// Of this machine and the calling thread's network namespace.
    #[must_use]
    pub fn here() -> Self {
        let hostname = host::identity::hostname().unwrap_or_default();
        Identity {
            machine: host::identity::machine_id().unwrap_or_else(|| hostname.clone()),
            hostname,
            boot: host::identity::boot_id().unwrap_or_default(),
            network: host::identity::network_namespace().unwrap_or_default(),
            network_cookie: host::identity::network_namespace_cookie(),
        }
    }

    /// Returns true if both are of one network namespace, by the cookies where both are known.
    fn is_same_network(&self, other: &Identity) -> bool {
        match (self.network_cookie, other.network_cookie) {
            (Some(own), Some(others)) => own == others,
            _ => self.network == other.network,
        }
    }
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error(
        "cannot {operation} the journal {}: {source}; set LONGHAUL_STATE_DIR to a \
         directory that only you can write to", path.display()
    )]
    Access {
        /// The operation: `read`, `write`, …
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is truncated or modified.
    #[error(
        "the journal {} is damaged ({why}), so nothing was restored; it may still show the \
         previous values: set them with sysctl -w, delete copied \
         routes (ip route show proto 76) with ip route del, then remove the file", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Damage,
    },
    /// Another version wrote it.
    #[error(
        "the journal {} has another version ({schema}, not {SCHEMA}); use the longhaul version \
         that wrote it", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: String,
    },
    /// It belongs to another machine.
    #[error(
        "the journal {} belongs to another host ({hostname}): run it there, or separate this \
         host's with LONGHAUL_STATE_DIR; if that host is gone, remove the file", path.display()
    )]
    OtherHost {
        /// The file.
        path: PathBuf,
        /// The host's name.
        hostname: String,
    },
    /// It belongs to another network namespace.
    #[error(
        "the journal {} belongs to another network namespace (net:[{network}]): run it there, for \
         example with nsenter; if the namespace is gone, so are its settings: remove the file", path.display()
    )]
    OtherNetwork {
        /// The file.
        path: PathBuf,
        /// The namespace's number.
        network: u64,
    },
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) before: String,
    pub(crate) planned: String,
}

/// The file that sets values at each boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileChange {
    /// Its previous text; `None` where there was no file.
    pub(crate) before: Option<String>,
    pub(crate) planned: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) schema: String,
    pub(crate) version: String,
    /// Seconds since 1970.
    pub(crate) at_s: u64,
    pub(crate) identity: Identity,
    pub(crate) goal: String,
    pub(crate) entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<RouteEntry>,
}

impl Begun {
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }

    /// The first part that Longhaul cannot have written.
    fn check(&self) -> Result<(), Damage> {
        let mut keys = BTreeSet::new();
        for Entry { key, before, planned } in &self.entries {
            check_value(key, before)?;
            check_value(key, planned)?;
            if !keys.insert(key) {
                return Err(Damage::Twice { key: key.clone() });
            }
        }
        self.check_routes()?;
        let texts = [&self.goal, &self.version, &self.identity.hostname, &self.identity.machine];
        if texts.iter().any(|text| text.len() > MAX_TEXT || text.contains(char::is_control)) {
            return Err(Damage::Text);
        }
        Ok(())
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Begun(Begun),
    /// A setting was written; the value read back.
    Set {
        key: String,
        now: String,
    },
    /// The kernel refused a setting; it is unchanged.
    Refused {
        key: String,
    },
    /// A route was written; the metrics read back.
    RouteSet {
        prefix: RoutePrefix,
        priority: u32,
        now: RouteMetrics,
    },
    /// The kernel refused a route; it is unchanged.
    RouteRefused {
        prefix: RoutePrefix,
        priority: u32,
    },
    /// The boot file, replaced next.
    File(FileChange),
    /// The apply finished.
    Ended,
}

impl Line {
    pub(crate) fn text(&self) -> io::Result<String> {
        let record = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(format!("{{\"sum\":\"{}\",\"record\":{record}}}\n", sum(&record)))
    }

    /// `None` where the checksum does not match.
    fn parse(text: &str) -> Option<Self> {
        let (sum_, rest) = text.strip_prefix("{\"sum\":\"")?.split_once('"')?;
        let record = rest.strip_prefix(",\"record\":")?.strip_suffix('}')?;
        if sum(record) != sum_ {
            return None;
        }
        serde_json::from_str(record).ok()
    }
}

/// The first 64 bits of SHA-256: protects against corruption, not against an
/// attacker, who could change the settings directly.
pub(crate) fn sum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A plan that was applied, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) begun: Begun,
    /// The values read back, by key.
    pub(crate) set: BTreeMap<String, String>,
    /// The settings that were refused.
    pub(crate) refused: BTreeSet<String>,
    /// Of each route, by prefix and priority: the metrics read back, or `None` if it was refused.
    pub(crate) routes: BTreeMap<(RoutePrefix, u32), Option<RouteMetrics>>,
    pub(crate) file: Option<FileChange>,
    pub(crate) ended: bool,
}

impl Journal {
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, JournalError> {
        let damaged = |why| JournalError::Damaged { path: path.into(), why };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged(Damage::NotText))?;
        // A torn write leaves a partial line after the last newline.
        let (whole, _torn) = text.rsplit_once('\n').ok_or_else(|| damaged(Damage::CutShort))?;
        let mut lines = whole.split('\n');
        let first = lines.next().unwrap_or_default();
        let Some(Line::Begun(begun)) = Line::parse(first) else {
            return Err(match schema_of(first) {
                Some(schema) if ![SCHEMA, SCHEMA_1].contains(&&*schema) => {
                    JournalError::Version { path: path.into(), schema }
                }
                _ => damaged(Damage::FirstChecksum),
            });
        };
        if ![SCHEMA, SCHEMA_1].contains(&&*begun.schema) {
            return Err(JournalError::Version { path: path.into(), schema: begun.schema });
        }
        begun.check().map_err(damaged)?;
        let mut journal = Journal {
            path: path.into(),
            begun,
            set: BTreeMap::new(),
            refused: BTreeSet::new(),
            routes: BTreeMap::new(),
            file: None,
            ended: false,
        };
        for (index, line) in lines.enumerate() {
            let line_number = index + 2;
            if line_number > MAX_LINES {
                return Err(damaged(Damage::TooManyLines));
            }
            let Some(line) = Line::parse(line) else {
                return Err(damaged(Damage::Checksum { line: line_number }));
            };
            let of_line = |damage| Damage::Line { line: line_number, damage: Box::new(damage) };
            journal.take(line).map_err(|damage| damaged(of_line(damage)))?;
        }
        Ok(journal)
    }

    /// Adds a line, if it is one that Longhaul writes.
    fn take(&mut self, line: Line) -> Result<(), Damage> {
        let planned = |key: &str| match self.begun.entries.iter().any(|entry| entry.key == key) {
            true => Ok(()),
            false => Err(Damage::NotPlanned { key: shown(key) }),
        };
        match line {
            Line::Begun(_) => return Err(Damage::SecondBeginning),
            Line::Set { key, now } => {
                planned(&key)?;
                check_value(&key, &now)?;
                self.set.insert(key, now);
            }
            Line::Refused { key } => {
                planned(&key)?;
                self.refused.insert(key);
            }
            Line::RouteSet { prefix, priority, now } => {
                self.begun.check_planned_route(prefix, priority)?;
                route_entry::check_metrics(prefix, &now)?;
                self.routes.insert((prefix, priority), Some(now));
            }
            Line::RouteRefused { prefix, priority } => {
                self.begun.check_planned_route(prefix, priority)?;
                self.routes.insert((prefix, priority), None);
            }
            // A route has no boot file.
            Line::File(_) if !self.begun.routes.is_empty() => return Err(Damage::Mixed),
            Line::File(change) => {
                change.before.as_deref().map_or(Ok(()), persist::check)?;
                persist::check(&change.planned)?;
                self.file = Some(change);
            }
            Line::Ended => self.ended = true,
        }
        Ok(())
    }

    /// Returns true if it belongs to this host.
    pub(crate) fn check(&self, here: &Identity) -> Result<(), JournalError> {
        let there = &self.begun.identity;
        if there.machine != here.machine {
            let hostname = crate::apply::shown(&there.hostname);
            return Err(JournalError::OtherHost { path: self.path.clone(), hostname });
        }
        if self.is_of_other_network(here) {
            let network = there.network;
            return Err(JournalError::OtherNetwork { path: self.path.clone(), network });
        }
        Ok(())
    }

    /// Returns true if its values are those of another network namespace of this boot: no matter of
    /// this host's.
    pub(crate) fn is_of_other_network(&self, here: &Identity) -> bool {
        let there = &self.begun.identity;
        there.machine == here.machine && there.boot == here.boot && !there.is_same_network(here)
    }

    pub(crate) fn is_of_earlier_boot(&self, here: &Identity) -> bool {
        self.begun.identity.boot != here.boot
    }
}

fn check_value(key: &str, value: &str) -> Result<(), Damage> {
    if !is_key(key) {
        return Err(Damage::OtherSetting { key: shown(key) });
    }
    match is_value(key, value) {
        true => Ok(()),
        false => Err(Damage::Value { key: key.to_owned() }),
    }
}

/// The schema in a first line of any version.
fn schema_of(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let schema = value["record"]["begun"]["schema"].as_str()?;
    Some(crate::apply::shown(schema))
}

/// Returns true if Longhaul creates a file of this name in a directory of journals.
#[must_use]
pub fn is_journal_file(name: &str) -> bool {
    let set_aside = || name.strip_suffix(SET_ASIDE).is_some_and(|name| number(name).is_some());
    matches!(name, "lock" | UNFINISHED) || number(name).is_some() || set_aside()
}

/// The number in a journal's name: six digits or more.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".journal")?;
    let number = digits.parse().ok().filter(|number| *number < u64::MAX)?;
    (format!("{number:06}") == digits).then_some(number)
}

#[cfg(test)]
mod tests;
