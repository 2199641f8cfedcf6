//! The end that writes files: it says what it has of each, writes the rest beside the old
//! file, verifies the hash of the whole and puts it in the old one's place.

mod directories;
mod file;
mod links;
mod open_files;
mod partial;
#[cfg(test)]
mod tests;
mod worker;

use crate::CopyError;
use crate::budget::{Budget, Share};
use crate::directory::{Directory, Links};
use crate::progress::Progress;
use crate::protocol::message::{Entry, EntryKind, Message};
use crate::protocol::path::RelativePath;
use crate::queue::Queue;
use crate::transport::{REPORT, Session};
use crate::walk::{PARTIAL, matches_name};
use directories::{OpenDirectories, OpenDirectory, Parent};
use host::clock;
use rustix::fs::{Mode, Timespec, Timestamps};
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
/// What a copy may hold besides what is in its queues, bytes: entries without an answer, and
/// hashes. Three times what a sender of ours needs, with each block of 16 GiB early.
pub(crate) const HELD_BYTES: usize = 48 << 20;
/// As long as no more of that is held, hashes of what is there already are, bytes.
const KNOWN_BYTES: usize = HELD_BYTES / 2;
/// Memory of an entry besides its path, bytes: a file's state, with the hashes of its subtrees.
const ENTRY_BYTES: usize = 1_536;
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
    /// Memory of what is held of it, bytes.
    pub(crate) held: Arc<Budget>,
    /// Files that may be open, of all copies that share this.
    pub(crate) open_files: Arc<Budget>,
}

impl Destination {
    /// Below a directory, for a copy with memory of its own.
    pub(crate) fn new(directory: Directory, open_files: Arc<Budget>) -> Self {
        let held = Budget::new(HELD_BYTES);
        Destination { directory, rename: None, expected: None, held, open_files }
    }
}

/// State that the receiver's threads share.
#[derive(Debug)]
pub(crate) struct Receiver<'a> {
    session: &'a Session,
    progress: &'a Progress,
    directory: &'a Directory,
    answered: AtomicU64,
    written: AtomicU64,
    held: &'a Arc<Budget>,
    open_files: &'a Arc<Budget>,
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
        held: &destination.held,
        open_files: &destination.open_files,
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
        let answer = match result {
            Ok(()) => {
                self.progress.stored();
                Message::Stored(id)
            }
            Err(error) => {
                let reason = error.to_string();
                self.progress.problem(format!("{path}: {reason}"));
                Message::NotStored { id, reason }
            }
        };
        self.session.send(&answer)?;
        // Once all are counted, the last message follows.
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Gives each message to whom it concerns.
struct Dispatcher<'a> {
    receiver: &'a Receiver<'a>,
    destination: &'a Destination,
    queues: &'a [Queue<Task>; WORKERS],
    next_id: u32,
    total: Option<u32>,
    open: OpenDirectories,
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
            open: OpenDirectories::default(),
            reported,
        }
    }

    fn run(&mut self) -> Result<(), CopyError> {
        let session = self.receiver.session;
        loop {
            match session.receive_within(TICK)? {
                Some(Message::Entry(entry)) => self.on_entry(entry)?,
                Some(Message::AllEntries(total)) if self.is_all(total) => {
                    self.total = Some(total);
                    self.open.leave_all(self.receiver)?;
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

    /// Returns true if these are all entries, and this was not said before.
    fn is_all(&self, total: u32) -> bool {
        total == self.next_id && self.total.is_none()
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), CopyError> {
        let answered = self.receiver.answered.load(Ordering::Relaxed);
        let is_next = entry.id == self.next_id && self.total.is_none();
        if !is_next || u64::from(entry.id) >= answered + MAX_OUTSTANDING {
            return Err(unexpected());
        }
        self.next_id = self.next_id.checked_add(1).ok_or_else(unexpected)?;
        let entry = Entry { path: self.path(&entry)?, ..entry };
        let parent = self.open.enter(self.receiver, &entry.path)?;
        let share = self.receiver.held.take(ENTRY_BYTES + entry.path.bytes().len());
        let share = share.ok_or_else(|| {
            CopyError::Protocol("its entries take more memory than a copy may have".into())
        })?;
        let bytes = match &entry.kind {
            EntryKind::File(bytes) => *bytes,
            _ => 0,
        };
        self.receiver.progress.listed(bytes);
        let is_partial = entry.path.bytes().ends_with(PARTIAL);
        let refused = || io::Error::other("names of this form are reserved for incomplete copies");
        let result = match &entry.kind {
            EntryKind::Directory => {
                let made = if is_partial { Err(refused()) } else { self.make_directory(&entry) };
                return self.on_directory(entry, made, parent, share);
            }
            _ if is_partial => Err(refused()),
            EntryKind::File(_) => return self.assign(Task::begin(entry, parent, share)),
            EntryKind::Symlink(target) => {
                links::make(self.receiver.directory, &entry.path, target, entry.modified)
            }
        };
        self.receiver.answer(entry.id, &entry.path, result)?;
        self.receiver.leave(parent)
    }

    /// Where an entry goes. Only names that were asked for are accepted.
    fn path(&self, entry: &Entry) -> Result<RelativePath, CopyError> {
        let (first, _) = entry.path.split_first();
        if let Some(expected) = &self.destination.expected
            && !expected.iter().any(|pattern| matches_name(pattern, first))
        {
            return Err(CopyError::Protocol(format!(
                "it sends {}, which was not requested",
                entry.path
            )));
        }
        match &self.destination.rename {
            Some(name) => entry.path.with_first(name).map_err(|error| CopyError::at(name, error)),
            None => Ok(entry.path.clone()),
        }
    }

    /// Creates a directory, or takes one that is there. Whether it is new.
    fn make_directory(&self, entry: &Entry) -> io::Result<bool> {
        let (parent, name) = entry.path.split_last();
        let directory = self.receiver.directory;
        directory.directory(parent.unwrap_or_default(), Links::Refuse)?.make_directory(name)
    }

    /// The entries that follow may be in it, even if it could not be created.
    fn on_directory(
        &mut self,
        entry: Entry,
        made: io::Result<bool>,
        parent: Parent,
        share: Share,
    ) -> Result<(), CopyError> {
        let (is_there, is_new) = (made.is_ok(), matches!(made, Ok(true)));
        if let Err(error) = made {
            self.receiver.answer(entry.id, &entry.path, Err(error))?;
        }
        self.open.push(OpenDirectory { entry, is_new, is_there, parent, _share: share });
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
    CopyError::Protocol("an unexpected message".into())
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
