//! What was before, on disk: one file for each plan that was applied.
//!
//! ```text
//! 000001.journal
//!   {"sum":"9f86d081884c7d65","record":{"begun":{…what was, what is planned…}}}
//!   {"sum":"…","record":{"set":{"key":"net.ipv4.tcp_rmem","now":"…"}}}
//!   …
//!   {"sum":"…","record":"ended"}
//! ```
//!
//! The first line is on disk, whole and under its name, before the first value
//! is written: it alone suffices to put every value back. The lines after it
//! say how far the run came, each on disk before the next thing is done: what
//! the kernel made of a value, and the file for each boot before it is put in
//! its place. Only the last of them can be torn, and it counts as missing:
//! what it would have told had not been done, or reads as planned.

use crate::Disk;
use crate::apply::{is_key, is_value};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "longhaul.tune-journal/1";

/// Which machine, boot and network a journal's values are of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// machine-id(5); the host's name where it has none.
    pub machine: String,
    /// The host's name.
    pub hostname: String,
    /// The boot, after which all that was set is gone.
    pub boot: String,
    /// The network namespace, whose settings are its own.
    pub network: u64,
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
        }
    }
}

/// A journal that is not to be followed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error(
        "cannot {operation} the journal {}: {source}; set LONGHAUL_STATE_DIR to a folder that \
         you may write to", path.display()
    )]
    Access {
        /// `read`, `write`, …
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was cut short or changed.
    #[error(
        "the journal {} is damaged ({why}), so nothing was put back; its text may still tell \
         what was before: set that with sysctl -w, then remove the file", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another version wrote it.
    #[error(
        "the journal {} is of another version ({schema}, not {SCHEMA}); use the longhaul that \
         wrote it", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        schema: String,
    },
    /// It is about another machine.
    #[error(
        "the journal {} is of another host ({hostname}): run it there, or keep this host's \
         apart with LONGHAUL_STATE_DIR; if it is no more, remove the file", path.display()
    )]
    OtherHost {
        /// The file.
        path: PathBuf,
        /// The host's name.
        hostname: String,
    },
    /// It is about another network namespace.
    #[error(
        "the journal {} is of another network namespace (net:[{network}]): run it in there, as \
         with nsenter; if that is no more, so are its settings: remove the file", path.display()
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
    /// Its text before; `None` where there was none.
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
}

impl Begun {
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Begun(Begun),
    /// Written, and what it then read.
    Set {
        key: String,
        now: String,
    },
    /// Refused, and as before.
    Refused {
        key: String,
    },
    /// The file for each boot, which is put in its place next.
    File(FileChange),
    /// All was done.
    Ended,
}

impl Line {
    fn text(&self) -> io::Result<String> {
        let record = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(format!("{{\"sum\":\"{}\",\"record\":{record}}}\n", sum(&record)))
    }

    /// `None` where the line is not as it was written.
    fn parse(text: &str) -> Option<Self> {
        let (sum_, rest) = text.strip_prefix("{\"sum\":\"")?.split_once('"')?;
        let record = rest.strip_prefix(",\"record\":")?.strip_suffix('}')?;
        if sum(record) != sum_ {
            return None;
        }
        serde_json::from_str(record).ok()
    }
}

/// The first 64 bits of SHA-256: against accidents, not against enemies, who
/// could as well set the settings.
fn sum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// One plan that was applied, or begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) begun: Begun,
    /// What was read back, by key.
    pub(crate) set: BTreeMap<String, String>,
    /// What was left as it was.
    pub(crate) refused: BTreeSet<String>,
    pub(crate) file: Option<FileChange>,
    pub(crate) ended: bool,
}

impl Journal {
    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, JournalError> {
        let damaged = |why: &str| JournalError::Damaged { path: path.into(), why: why.into() };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        // What follows the last newline was torn off in the writing.
        let (whole, _torn) = text.rsplit_once('\n').ok_or_else(|| damaged("it is cut short"))?;
        let mut lines = whole.split('\n');
        let first = lines.next().unwrap_or_default();
        let Some(Line::Begun(begun)) = Line::parse(first) else {
            return Err(match schema_of(first) {
                Some(schema) if schema != SCHEMA => {
                    JournalError::Version { path: path.into(), schema }
                }
                _ => damaged("its first line does not match its checksum"),
            });
        };
        if begun.schema != SCHEMA {
            return Err(JournalError::Version { path: path.into(), schema: begun.schema });
        }
        let sound = |e: &Entry| is_key(&e.key) && is_value(&e.before) && is_value(&e.planned);
        if !begun.entries.iter().all(sound) {
            return Err(damaged("it names what is no setting of the network"));
        }
        let mut journal = Journal {
            path: path.into(),
            begun,
            set: BTreeMap::new(),
            refused: BTreeSet::new(),
            file: None,
            ended: false,
        };
        for (index, line) in lines.enumerate() {
            match Line::parse(line) {
                Some(Line::Set { key, now }) => drop(journal.set.insert(key, now)),
                Some(Line::Refused { key }) => drop(journal.refused.insert(key)),
                Some(Line::File(change)) => journal.file = Some(change),
                Some(Line::Ended) => journal.ended = true,
                _ => {
                    let why = format!("line {} does not match its checksum", index + 2);
                    return Err(damaged(&why));
                }
            }
        }
        Ok(journal)
    }

    /// Whether it can be followed here.
    pub(crate) fn check(&self, here: &Identity) -> Result<(), JournalError> {
        let there = &self.begun.identity;
        if there.machine != here.machine {
            let hostname = crate::apply::shown(&there.hostname);
            return Err(JournalError::OtherHost { path: self.path.clone(), hostname });
        }
        if there.boot == here.boot && there.network != here.network {
            let network = there.network;
            return Err(JournalError::OtherNetwork { path: self.path.clone(), network });
        }
        Ok(())
    }

    pub(crate) fn is_of_earlier_boot(&self, here: &Identity) -> bool {
        self.begun.identity.boot != here.boot
    }
}

/// The schema of a first line of any version.
fn schema_of(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let schema = value["record"]["begun"]["schema"].as_str()?;
    Some(crate::apply::shown(schema))
}

/// The folder of journals, each numbered one above the one before.
pub(crate) struct Shelf<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) folder: &'a Path,
}

impl Shelf<'_> {
    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Journal>, JournalError> {
        let mut numbers = self.numbers()?;
        numbers.sort_unstable();
        let read = |number: u64| {
            let path = self.path(number);
            let bytes = self.disk.load(&path).map_err(access("read", &path))?;
            Journal::parse(&path, &bytes)
        };
        numbers.into_iter().map(read).collect()
    }

    /// Begins one: when this returns it is on disk.
    pub(crate) fn begin(&self, begun: Begun) -> Result<Journal, JournalError> {
        self.disk.make_folder(self.folder).map_err(access("make a folder for", self.folder))?;
        let number = self.numbers()?.into_iter().max().map_or(1, |last| last + 1);
        let path = self.path(number);
        let unfinished = self.unfinished();
        Line::Begun(begun.clone())
            .text()
            .and_then(|text| self.disk.store(&unfinished, text.as_bytes()))
            .and_then(|()| self.disk.rename(&unfinished, &path))
            .map_err(access("write", &path))?;
        let (set, refused) = (BTreeMap::new(), BTreeSet::new());
        Ok(Journal { path, begun, set, refused, file: None, ended: false })
    }

    pub(crate) fn add(&self, journal: &Journal, line: &Line) -> Result<(), JournalError> {
        line.text()
            .and_then(|text| self.disk.append(&journal.path, text.as_bytes()))
            .map_err(access("write", &journal.path))
    }

    /// Forgets one: all of it has been put back.
    pub(crate) fn forget(&self, journal: &Journal) -> Result<(), JournalError> {
        self.disk.remove(&journal.path).map_err(access("remove", &journal.path))
    }

    fn numbers(&self) -> Result<Vec<u64>, JournalError> {
        let names = self.disk.list(self.folder).map_err(access("list", self.folder))?;
        let number = |name: &String| name.strip_suffix(".journal")?.parse().ok();
        Ok(names.iter().filter_map(number).collect())
    }

    /// Removes what a run left that was killed before its journal was whole:
    /// it had written nothing else.
    pub(crate) fn sweep(&self) -> Result<(), JournalError> {
        let unfinished = self.unfinished();
        self.disk.remove(&unfinished).map_err(access("remove", &unfinished))
    }

    fn unfinished(&self) -> PathBuf {
        self.folder.join("unfinished")
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}.journal"))
    }
}

fn access(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Access { operation, path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Begun {
        let entry = |key: &str| Entry {
            key: key.to_owned(),
            before: "4096 131072 6291456".to_owned(),
            planned: "4096 131072 17825792".to_owned(),
        };
        Begun {
            schema: SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            at_s: 1_700_000_000,
            identity: Identity {
                machine: "abc".to_owned(),
                hostname: "here".to_owned(),
                boot: "def".to_owned(),
                network: 4_026_531_840,
            },
            goal: "100 Mbit/s over 173 ms".to_owned(),
            entries: vec![entry("net.ipv4.tcp_rmem"), entry("net.ipv4.tcp_wmem")],
        }
    }

    fn text() -> String {
        let set = Line::Set { key: "net.ipv4.tcp_rmem".into(), now: "4096 131072 17825792".into() };
        [Line::Begun(begun()), set, Line::Ended].iter().map(|line| line.text().unwrap()).collect()
    }

    fn parse(text: &str) -> Result<Journal, JournalError> {
        Journal::parse(Path::new("000001.journal"), text.as_bytes())
    }

    #[test]
    fn reads_what_it_wrote() {
        let journal = parse(&text()).unwrap();
        assert_eq!(journal.begun, begun());
        assert_eq!(journal.set["net.ipv4.tcp_rmem"], "4096 131072 17825792");
        assert!(journal.ended);
    }

    #[test]
    fn cut_anywhere_it_is_a_prefix_or_refused() {
        let text = text();
        let first = text.find('\n').unwrap();
        for length in 0..text.len() {
            let cut = parse(&text[..length]);
            if length <= first {
                // Without its whole first line it says nothing.
                assert!(matches!(cut, Err(JournalError::Damaged { .. })), "{length}");
            } else {
                // The last line is torn, which is a run that was broken off.
                let cut = cut.unwrap();
                assert!(!cut.ended && cut.begun == begun(), "{length}");
            }
        }
    }

    #[test]
    fn one_changed_byte_is_noticed() {
        let text = text();
        for index in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[index] ^= 1;
            let changed = Journal::parse(Path::new("x"), &bytes);
            // The last newline: what stands before it is then torn.
            if index + 1 == text.len() {
                assert!(changed.is_ok_and(|journal| !journal.ended));
                continue;
            }
            assert!(changed.is_err(), "{index}: {:?}", char::from(text.as_bytes()[index]));
        }
    }

    #[test]
    fn another_version_and_another_target_are_refused() {
        let later = Begun { schema: "longhaul.tune-journal/2".into(), ..begun() };
        let error = parse(&Line::Begun(later).text().unwrap()).unwrap_err();
        assert!(matches!(error, JournalError::Version { .. }), "{error}");
        let mut elsewhere = begun();
        elsewhere.entries[1].key = "kernel.core_pattern".into();
        let error = parse(&Line::Begun(elsewhere).text().unwrap()).unwrap_err();
        assert!(error.to_string().contains("no setting of the network"), "{error}");
    }

    #[test]
    fn only_the_host_and_network_it_is_of_may_follow_it() {
        let journal = parse(&text()).unwrap();
        let here = begun().identity;
        assert!(journal.check(&here).is_ok());
        let other = Identity { machine: "xyz".into(), ..here.clone() };
        assert!(matches!(journal.check(&other), Err(JournalError::OtherHost { .. })));
        let other = Identity { network: 1, ..here.clone() };
        assert!(matches!(journal.check(&other), Err(JournalError::OtherNetwork { .. })));
        // After a boot the number says nothing.
        let later = Identity { network: 1, boot: "later".into(), ..here };
        assert!(journal.check(&later).is_ok() && journal.is_of_earlier_boot(&later));
    }
}
