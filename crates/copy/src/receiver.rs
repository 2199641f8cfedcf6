//! The end that writes files: it says what it has of each, writes the rest beside the old
//! file, verifies the hash of the whole and puts it in the old one's place.

mod file;
#[cfg(test)]
mod tests;
mod worker;

use crate::CopyError;
use crate::directory::{Directory, Links};
use crate::progress::Progress;
use crate::queue::Queue;
use crate::transport::{REPORT, Session};
use crate::walk::{PARTIAL, matches_name};
use copy_proto::message::{Entry, EntryKind, Message};
use copy_proto::path::RelativePath;
use host::clock;
use rustix::fs::{AtFlags, Mode, Timespec, Timestamps, fchmod, futimens, utimensat};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use worker::{Task, Worker};

/// Threads that write files; a file is one thread's.
const WORKERS: usize = 2;
/// Memory of each one's queue, bytes.
const TASK_BYTES: usize = 8 << 20;
/// Entries without an answer, at most: twice what a sender of ours has.
const MAX_OUTSTANDING: u64 = 16_384;
const TICK: Duration = Duration::from_millis(5);

/// Where the copy goes, and what is expected.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Everything is stored below it.
    pub(crate) directory: Directory,
    /// The name that the only source gets.
    pub(crate) rename: Option<Vec<u8>>,
    /// The last components of the paths that were asked for; `None`: the peer decides.
    pub(crate) expected: Option<Vec<Vec<u8>>>,
}

/// What the receiver's threads share.
#[derive(Debug)]
pub(crate) struct Receiver<'a> {
    session: &'a Session,
    progress: &'a Progress,
    directory: &'a Directory,
    answered: AtomicU64,
    written: AtomicU64,
}

/// Receives until every entry is answered.
pub(crate) fn receive(
    session: &Session,
    progress: &Progress,
    destination: &Destination,
) -> Result<(), CopyError> {
    let receiver = &Receiver {
        session,
        progress,
        directory: &destination.directory,
        answered: AtomicU64::new(0),
        written: AtomicU64::new(0),
    };
    let queues: [Queue<Task>; WORKERS] = std::array::from_fn(|_| Queue::new(TASK_BYTES));
    let result = std::thread::scope(|scope| {
        for queue in &queues {
            scope.spawn(move || {
                if let Err(error) = Worker::new(receiver).run(queue) {
                    receiver.session.give_up(error);
                    queue.close();
                }
            });
        }
        let result = Dispatcher::new(receiver, destination, &queues).run();
        if let Err(error) = &result {
            receiver.session.give_up(error.clone());
        }
        queues.iter().for_each(Queue::close);
        result
    });
    session.finish();
    result
}

impl Receiver<'_> {
    fn answer(
        &self,
        id: u32,
        path: &RelativePath,
        result: io::Result<()>,
    ) -> Result<(), CopyError> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(()) => {
                self.progress.stored();
                self.session.send(&Message::Stored(id))
            }
            Err(error) => {
                let reason = error.to_string();
                self.progress.problem(format!("{path}: {reason}"));
                self.session.send(&Message::NotStored { id, reason })
            }
        }
    }
}

/// Gives each message to whom it concerns.
struct Dispatcher<'a> {
    receiver: &'a Receiver<'a>,
    destination: &'a Destination,
    queues: &'a [Queue<Task>; WORKERS],
    next_id: u32,
    total: Option<u32>,
    /// Directories get their attributes last: files in them change the times.
    directories: Vec<(RelativePath, u32, (i64, u32))>,
    /// Directories that this copy created: nothing is in them yet.
    new_directories: HashSet<Vec<u8>>,
    named_directories: HashSet<Vec<u8>>,
    reported: Instant,
}

impl<'a> Dispatcher<'a> {
    fn new(
        receiver: &'a Receiver<'a>,
        destination: &'a Destination,
        queues: &'a [Queue<Task>; WORKERS],
    ) -> Self {
        let reported = clock::now();
        Dispatcher {
            receiver,
            destination,
            queues,
            next_id: 0,
            total: None,
            directories: Vec::new(),
            new_directories: HashSet::new(),
            named_directories: HashSet::new(),
            reported,
        }
    }

    fn run(&mut self) -> Result<(), CopyError> {
        let session = self.receiver.session;
        loop {
            match session.receive_within(TICK)? {
                Some(Message::Entry(entry)) => self.on_entry(entry)?,
                Some(Message::AllEntries(total)) if total == self.next_id => {
                    self.total = Some(total);
                    self.receiver.progress.all_listed();
                }
                Some(Message::Progress { waited, .. }) => {
                    self.receiver.progress.sender_waited(waited);
                }
                Some(Message::Skipped(text)) => self.receiver.progress.problem(text),
                Some(Message::Refused(reason)) => return Err(CopyError::Refused(reason)),
                Some(message) => {
                    let task = Task::of(message).ok_or_else(unexpected)?;
                    if task.id >= self.next_id {
                        return Err(unexpected());
                    }
                    self.assign(task)?;
                }
                None if session.is_over() => {
                    return Err(CopyError::Connection("the peer closed it".into()));
                }
                None => {}
            }
            self.report();
            let answered = self.receiver.answered.load(Ordering::Relaxed);
            if self.total.is_some_and(|total| u64::from(total) == answered) {
                self.set_directories()?;
                self.report_now();
                return session.finish_with(&Message::Finished);
            }
        }
    }

    /// Gives a task to the thread of its file. Where that is busy for long, the sender still
    /// learns that this end is alive.
    fn assign(&mut self, task: Task) -> Result<(), CopyError> {
        let queue = &self.queues[task.id as usize % WORKERS];
        let (mut task, session) = (task, self.receiver.session);
        loop {
            let bytes = task.bytes();
            match queue.push_within(task, bytes, REPORT).map_err(|_| session.ended())? {
                None => return Ok(()),
                Some(back) => task = back,
            }
            session.check()?;
            self.report();
        }
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), CopyError> {
        let answered = self.receiver.answered.load(Ordering::Relaxed);
        if entry.id != self.next_id || u64::from(entry.id) >= answered + MAX_OUTSTANDING {
            return Err(unexpected());
        }
        self.next_id = self.next_id.checked_add(1).ok_or_else(unexpected)?;
        let path = self.path(&entry)?;
        let bytes = match &entry.kind {
            EntryKind::File(bytes) => *bytes,
            _ => 0,
        };
        self.receiver.progress.listed(bytes);
        let result = match &entry.kind {
            _ if path.bytes().ends_with(PARTIAL) => {
                Err(io::Error::other("names of this form are those of incomplete copies"))
            }
            EntryKind::File(_) => {
                let parent = path.split_last().0.unwrap_or_default();
                let is_new = self.new_directories.contains(parent);
                return self.assign(Task::begin(Entry { path, ..entry }, is_new));
            }
            EntryKind::Directory => self.make_directory(&path, &entry),
            EntryKind::Symlink(target) => self.make_symlink(&path, target, entry.modified),
        };
        self.receiver.answer(entry.id, &path, result)
    }

    /// Where an entry goes. Only names that were asked for are accepted.
    fn path(&self, entry: &Entry) -> Result<RelativePath, CopyError> {
        let (first, _) = entry.path.split_first();
        if let Some(expected) = &self.destination.expected
            && !expected.iter().any(|pattern| matches_name(pattern, first))
        {
            return Err(CopyError::Protocol(format!("it sends {}, not asked for", entry.path)));
        }
        match &self.destination.rename {
            Some(name) => entry.path.with_first(name).map_err(|error| CopyError::at(name, error)),
            None => Ok(entry.path.clone()),
        }
    }

    fn make_directory(&mut self, path: &RelativePath, entry: &Entry) -> io::Result<()> {
        let (parent, name) = path.split_last();
        let directory = self.receiver.directory;
        let parent = directory.directory(parent.unwrap_or_default(), Links::Refuse)?;
        if parent.make_directory(name)? {
            self.new_directories.insert(path.bytes().to_vec());
        }
        // Once each, however often a sender names it.
        if self.named_directories.insert(path.bytes().to_vec()) {
            self.directories.push((path.clone(), entry.mode, entry.modified));
        }
        Ok(())
    }

    fn make_symlink(
        &self,
        path: &RelativePath,
        target: &[u8],
        modified: (i64, u32),
    ) -> io::Result<()> {
        if !path.contains_target(target) {
            return Err(io::Error::other(format!(
                "a symbolic link to {} leads out of the copy; it is not created",
                String::from_utf8_lossy(target)
            )));
        }
        let (parent, name) = path.split_last();
        let parent =
            self.receiver.directory.directory(parent.unwrap_or_default(), Links::Refuse)?;
        let partial = file::partial_name(name);
        match parent.remove(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        parent.make_symlink(target, &partial)?;
        utimensat(&parent, &partial[..], &times(modified), AtFlags::SYMLINK_NOFOLLOW)?;
        parent.rename(&partial, name)
    }

    fn set_directories(&mut self) -> Result<(), CopyError> {
        for (path, mode, modified) in std::mem::take(&mut self.directories).into_iter().rev() {
            let set = || -> io::Result<()> {
                let directory = self.receiver.directory.directory(path.bytes(), Links::Refuse)?;
                futimens(&directory, &times(modified))?;
                Ok(fchmod(&directory, permissions(mode))?)
            };
            if let Err(error) = set() {
                let text = format!("{path}: its attributes: {error}");
                self.receiver.progress.problem(text.clone());
                self.receiver.session.send(&Message::Skipped(text))?;
            }
        }
        Ok(())
    }

    fn report(&mut self) {
        if self.reported.elapsed() >= REPORT {
            self.reported = clock::now();
            self.report_now();
        }
    }

    fn report_now(&self) {
        let written = self.receiver.written.load(Ordering::Relaxed);
        self.receiver.progress.written(written);
        let waited = self.receiver.session.receiver_wait();
        let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.receiver.progress.waited(nanos);
        self.receiver.session.report(written, waited);
    }
}

fn unexpected() -> CopyError {
    CopyError::Protocol("a message that has no place here".into())
}

fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// The nine permission bits: never set-user-ID, set-group-ID or sticky.
fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

/// An open directory that several files share.
type SharedDirectory = Arc<Directory>;

/// The directory of the last file: the next one is often in it.
#[derive(Debug)]
struct Parents<'a> {
    top: &'a Directory,
    last: Option<(Vec<u8>, SharedDirectory)>,
}

impl Parents<'_> {
    fn of(&mut self, path: &RelativePath) -> io::Result<SharedDirectory> {
        let parent = path.split_last().0.unwrap_or_default();
        if let Some((known, directory)) = &self.last
            && known == parent
        {
            return Ok(Arc::clone(directory));
        }
        let opened = Arc::new(self.top.directory(parent, Links::Refuse)?);
        self.last = Some((parent.to_vec(), Arc::clone(&opened)));
        Ok(opened)
    }
}
