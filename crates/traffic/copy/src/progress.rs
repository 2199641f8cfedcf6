//! What a copy has done so far.

use host::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Errors of single files that are kept with their text; the others are counted.
const MAX_PROBLEMS: usize = 100;

/// Counters that both ends of a copy advance while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    listed_entries: AtomicU64,
    listed_bytes: AtomicU64,
    is_listed: AtomicBool,
    entries: AtomicU64,
    bytes: AtomicU64,
    kept_bytes: AtomicU64,
    written_bytes: AtomicU64,
    receiver_waited_ns: AtomicU64,
    sender_waited_ns: AtomicU64,
    problems: AtomicU64,
    texts: Mutex<Vec<String>>,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Figures {
    /// Files, directories and links found so far.
    pub listed_entries: u64,
    /// Bytes of the files found so far.
    pub listed_bytes: u64,
    /// Whether that is all.
    pub is_listed: bool,
    /// Files, directories and links that were stored.
    pub entries: u64,
    /// Bytes of file data that the network carried.
    pub bytes: u64,
    /// Bytes that were there already and verified, and holes.
    pub kept_bytes: u64,
    /// Bytes that the receiver reported as written; its disk's side of `bytes`.
    pub written_bytes: u64,
    /// Nanoseconds in which the receiver's disk kept the network waiting.
    pub receiver_waited_ns: u64,
    /// Nanoseconds in which the network waited for the sender's disk.
    pub sender_waited_ns: u64,
    /// Entries that failed.
    pub problems: u64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Progress {
    pub(crate) fn listed(&self, bytes: u64) {
        add(&self.listed_entries, 1);
        add(&self.listed_bytes, bytes);
    }

    /// The copy is continued after a failure: everything is listed once more.
    pub(crate) fn restart(&self) {
        let counters = [
            &self.listed_entries,
            &self.listed_bytes,
            &self.entries,
            &self.kept_bytes,
            &self.written_bytes,
            &self.problems,
        ];
        counters.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.is_listed.store(false, Ordering::Relaxed);
        lock(&self.texts).clear();
    }

    pub(crate) fn all_listed(&self) {
        self.is_listed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn carried(&self, bytes: u64) {
        add(&self.bytes, bytes);
    }

    pub(crate) fn kept(&self, bytes: u64) {
        add(&self.kept_bytes, bytes);
    }

    pub(crate) fn stored(&self) {
        add(&self.entries, 1);
    }

    pub(crate) fn written(&self, total: u64) {
        self.written_bytes.store(total, Ordering::Relaxed);
    }

    /// The receiver's disk kept the network waiting for so many nanoseconds so far.
    pub(crate) fn waited(&self, total_ns: u64) {
        self.receiver_waited_ns.store(total_ns, Ordering::Relaxed);
    }

    /// The network waited for the sender's disk for so many nanoseconds so far.
    pub(crate) fn sender_waited(&self, total_ns: u64) {
        self.sender_waited_ns.store(total_ns, Ordering::Relaxed);
    }

    pub(crate) fn problem(&self, text: String) {
        add(&self.problems, 1);
        let mut texts = lock(&self.texts);
        if texts.len() < MAX_PROBLEMS {
            texts.push(text);
        }
    }

    /// Texts of the first entries that failed.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        lock(&self.texts).clone()
    }

    /// The counters now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            listed_entries: read(&self.listed_entries),
            listed_bytes: read(&self.listed_bytes),
            is_listed: self.is_listed.load(Ordering::Relaxed),
            entries: read(&self.entries),
            bytes: read(&self.bytes),
            kept_bytes: read(&self.kept_bytes),
            written_bytes: read(&self.written_bytes),
            receiver_waited_ns: read(&self.receiver_waited_ns),
            sender_waited_ns: read(&self.sender_waited_ns),
            problems: read(&self.problems),
        }
    }
}
