//! A host whose settings are files in a temporary directory, and which can be killed at
//! any operation.

use crate::defaults::DEFAULTS;
use host::directory::Trust;
use host::kernel_route::KernelRoute;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tune::{Disk, Goal, Identity, Lock, Settings, Tuner, advise};
use units::ByteCount;

/// How far the last operation before the kill got.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Last {
    Not,
    Half,
    Whole,
}

pub(crate) struct Fake {
    dir: tempfile::TempDir,
    pub(crate) state: PathBuf,
    pub(crate) conf: PathBuf,
    /// Operations until the kill, and how far the last one gets.
    death: Cell<Option<(u32, Last)>>,
    dead: Cell<bool>,
    /// Settings that cannot be opened for writing, and the error.
    pub(crate) closed: RefCell<BTreeMap<String, i32>>,
    /// Settings that refuse a write once opened.
    pub(crate) refusing: RefCell<BTreeMap<String, i32>>,
    /// Whether every write fails, as for another user.
    pub(crate) frozen: Cell<bool>,
    /// Settings with a maximum.
    pub(crate) bounds: RefCell<BTreeMap<String, u64>>,
    /// The main routing table.
    pub(crate) routes: RefCell<Vec<KernelRoute>>,
    /// The error of each change of a route.
    pub(crate) no_routes: Cell<Option<i32>>,
    /// Whether others change the table so often that it cannot be read once a route was changed,
    /// and whether that is so now.
    pub(crate) busy_after_change: Cell<bool>,
    pub(crate) busy: Cell<bool>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        // In memory if possible: the tests create hundreds of hosts.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (state, etc) = (dir.path().join("state/tune"), dir.path().join("etc/sysctl.d"));
        fs::create_dir_all(&etc).unwrap();
        for folder in ["sys/net/ipv4", "sys/net/core"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let fake = Fake {
            dir,
            state,
            conf: etc.join("90-longhaul.conf"),
            death: Cell::new(None),
            dead: Cell::new(false),
            closed: RefCell::default(),
            refusing: RefCell::default(),
            frozen: Cell::new(false),
            bounds: RefCell::default(),
            routes: RefCell::default(),
            no_routes: Cell::new(None),
            busy_after_change: Cell::new(false),
            busy: Cell::new(false),
        };
        for (key, value) in DEFAULTS {
            fake.put(key, value);
        }
        fake
    }

    fn file(&self, key: &str) -> PathBuf {
        self.dir.path().join("sys").join(key.replace('.', "/"))
    }

    /// Sets a value as another program would.
    pub(crate) fn put(&self, key: &str, value: &str) {
        fs::write(self.file(key), value.replace(' ', "\t") + "\n").unwrap();
    }

    pub(crate) fn get(&self, key: &str) -> String {
        let text = fs::read_to_string(self.file(key)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn hide(&self, key: &str) {
        fs::remove_file(self.file(key)).unwrap();
    }

    /// Everything that must be unchanged in the end.
    pub(crate) fn snapshot(&self) -> (Vec<String>, Option<String>) {
        let values = DEFAULTS.iter().map(|(key, _)| self.get(key)).collect();
        (values, fs::read_to_string(&self.conf).ok())
    }

    /// Files that runs have left, except for the lock.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = self.list(&self.state).unwrap();
        left.retain(|name| name != "lock");
        let folder = self.conf.parent().unwrap();
        left.extend(self.list(folder).unwrap().into_iter().filter(|n| n != "90-longhaul.conf"));
        left
    }

    pub(crate) fn tuner(&self) -> Tuner<'_> {
        Tuner {
            settings: self,
            routes: self,
            disk: self,
            folder: &self.state,
            persisted: &self.conf,
            here: identity(),
            now_s: 1_800_000_000,
        }
    }

    pub(crate) fn lock(&self) -> Lock {
        Lock::take(&self.state, Trust::Owner).unwrap()
    }

    pub(crate) fn plan(&self, goal: &Goal) -> record::TunePlan {
        advise(self, goal, None, Some(ByteCount::from_bytes(16 << 30))).unwrap()
    }

    /// Kills after this many more operations, the last of them performed so far.
    pub(crate) fn die_at(&self, operation: u32, last: Last) {
        self.death.set(Some((operation, last)));
        self.dead.set(false);
    }

    /// Starts another process; returns whether the previous one was killed.
    pub(crate) fn revive(&self) -> bool {
        self.death.set(None);
        self.dead.replace(false)
    }

    pub(crate) fn alive(&self) -> io::Result<()> {
        if self.dead.get() { Err(io::Error::other("killed")) } else { Ok(()) }
    }

    /// One operation that changes something. A process killed in it does not learn how far
    /// it got.
    pub(crate) fn step<T>(
        &self,
        half: impl FnOnce(),
        whole: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.alive()?;
        match self.death.get() {
            None => return whole(),
            Some((more, last)) if more > 1 => {
                self.death.set(Some((more - 1, last)));
                return whole();
            }
            Some((_, Last::Not)) => {}
            Some((_, Last::Half)) => half(),
            Some((_, Last::Whole)) => drop(whole()),
        }
        self.dead.set(true);
        Err(io::Error::other("killed"))
    }

    /// The central invariant: before a value is changed, a journal has it.
    fn journal_has(&self, key: &str, now: &str, to: &str) {
        let known = self.list(&self.state).unwrap().iter().any(|name| {
            let text = fs::read_to_string(self.state.join(name)).unwrap_or_default();
            name.ends_with(".journal")
                && text.contains(key)
                && (text.contains(&format!("\"before\":\"{now}\""))
                    || text.contains(&format!("\"before\":\"{to}\"")))
        });
        assert!(known, "{key} is set from {now} to {to} without a journal");
    }
}

/// The first numbers of one value and the last ones of another.
pub(crate) fn half_of(value: &str, now: &str) -> String {
    let some = value.split(' ').count().div_ceil(2);
    let mixed = value.split(' ').take(some).chain(now.split(' ').skip(some));
    mixed.collect::<Vec<_>>().join(" ")
}

pub(crate) fn identity() -> Identity {
    Identity {
        machine: "5f3a".to_owned(),
        hostname: "here".to_owned(),
        boot: "first".to_owned(),
        network: 4_026_531_840,
        network_cookie: None,
    }
}

impl Settings for Fake {
    fn read(&self, key: &str) -> io::Result<String> {
        self.alive()?;
        let text = fs::read_to_string(self.file(key))?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn write(&self, key: &str, value: &str) -> io::Result<()> {
        let now = self.read(key)?;
        if self.frozen.get() {
            return Err(io::Error::from_raw_os_error(13));
        }
        self.journal_has(key, &now, value);
        if let Some(error) = self.refusing.borrow().get(key) {
            // Some numbers are accepted before one is refused.
            self.put(key, &half_of(value, &now));
            // Only the new value is refused, not the previous one.
            if !self.journal_before(key, value) {
                return Err(io::Error::from_raw_os_error(*error));
            }
        }
        let bounded = match (self.bounds.borrow().get(key), value.parse::<u64>()) {
            (Some(bound), Ok(number)) => number.min(*bound).to_string(),
            _ => value.to_owned(),
        };
        let half = || {
            self.put(key, &half_of(value, &now));
        };
        self.step(half, || {
            self.put(key, &bounded);
            Ok(())
        })
    }

    fn may_write(&self, key: &str) -> io::Result<()> {
        self.alive()?;
        if let Some(error) = self.closed.borrow().get(key) {
            return Err(io::Error::from_raw_os_error(*error));
        }
        fs::metadata(self.file(key)).map(drop)
    }
}

impl Fake {
    fn journal_before(&self, key: &str, value: &str) -> bool {
        let pair = format!("\"key\":\"{key}\",\"before\":\"{value}\"");
        self.list(&self.state).unwrap().iter().any(|name| {
            fs::read_to_string(self.state.join(name)).unwrap_or_default().contains(&pair)
        })
    }
}

impl Disk for Fake {
    fn load(&self, file: &Path) -> io::Result<Vec<u8>> {
        self.alive()?;
        fs::read(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
        Ok(entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(|| (), || fs::create_dir_all(folder))
    }

    fn store(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let half = || fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        self.step(half, || fs::write(file, bytes))
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let with = |more: &[u8]| {
            let mut all = fs::read(file)?;
            all.extend(more);
            fs::write(file, all)
        };
        self.step(|| with(&bytes[..bytes.len() / 2]).unwrap(), || with(bytes))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| (), || fs::rename(from, to))
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.step(
            || (),
            || match fs::remove_file(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        )
    }
}
