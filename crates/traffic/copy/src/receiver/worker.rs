//! A thread that writes files.

use super::directories::Parent;
use super::file::Incoming;
use super::open_files::OpenFiles;
use super::{Parents, Receiver, unexpected};
use crate::CopyError;
use crate::budget::Share;
use crate::protocol::hash::Hash;
use crate::protocol::message::{Entry, Message};
use crate::protocol::path::RelativePath;
use crate::queue::Queue;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a task costs in the queue besides its data, bytes.
const TASK_COST: usize = 256;

/// Something to be done with an entry.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u32,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// An entry, its directory, and its memory.
    Begin(Box<Entry>, Parent, Share),
    Data {
        block: u64,
        bytes: Vec<u8>,
    },
    Hole {
        first: u64,
        count: u64,
    },
    Kept {
        first: u64,
        count: u64,
    },
    End(Hash),
    Unreadable(String),
}

impl Task {
    pub(super) fn begin(entry: Entry, directory: Parent, share: Share) -> Self {
        Task { id: entry.id, action: Action::Begin(Box::new(entry), directory, share) }
    }

    /// What a sender's message about a file asks for; `None` for any other message.
    pub(super) fn of(message: Message) -> Option<Self> {
        let (id, action) = match message {
            Message::Data { id, block, bytes } => (id, Action::Data { block, bytes }),
            Message::Hole { id, first, count } => (id, Action::Hole { first, count }),
            Message::Kept { id, first, count } => (id, Action::Kept { first, count }),
            Message::End { id, hash } => (id, Action::End(hash)),
            Message::Unreadable { id, reason } => (id, Action::Unreadable(reason)),
            _ => return None,
        };
        Some(Task { id, action })
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.action {
            Action::Data { bytes, .. } => TASK_COST + bytes.len(),
            Action::Begin(entry, ..) => TASK_COST + entry.path.bytes().len(),
            Action::Unreadable(reason) => TASK_COST + reason.len(),
            _ => TASK_COST,
        }
    }
}

/// A file without an answer.
struct Unanswered {
    state: State,
    directory: Parent,
    _share: Share,
}

/// A file that is being received, or that failed: what still comes for it is ignored.
enum State {
    Receiving(Box<Incoming>),
    Failed(RelativePath, io::Error),
}

pub(super) struct Worker<'a> {
    receiver: &'a Receiver<'a>,
    files: HashMap<u32, Unanswered>,
    open: OpenFiles,
    parents: Parents<'a>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(receiver: &'a Receiver<'a>) -> Self {
        let parents = Parents { top: receiver.directory, last: None };
        let open = OpenFiles::new(receiver.open_files);
        Worker { receiver, files: HashMap::new(), open, parents }
    }

    pub(super) fn run(&mut self, queue: &Queue<Task>) -> Result<(), CopyError> {
        while !queue.is_over() {
            if let Some(task) = queue.pop(Duration::from_secs(1)) {
                self.perform(task)?;
            }
        }
        Ok(())
    }

    fn perform(&mut self, Task { id, action }: Task) -> Result<(), CopyError> {
        if let Action::Begin(entry, directory, share) = action {
            return self.begin(*entry, directory, share);
        }
        let file = match (self.files.get_mut(&id), &action) {
            (Some(file), _) => file,
            // It was on its way on another connection when the file was given up.
            (None, Action::Data { .. } | Action::Hole { .. } | Action::Kept { .. }) => {
                return Ok(());
            }
            (None, _) => return Err(unexpected()),
        };
        let mut is_last = matches!(action, Action::End(_) | Action::Unreadable(_));
        if let State::Receiving(incoming) = &mut file.state {
            let result = act(self.receiver, &mut self.parents, incoming, action);
            if let Ok(is_complete) = result {
                is_last = is_complete;
            }
            if let Err(error) = result {
                self.receiver.session.check()?;
                // What remains of it is ignored; where its end was announced, nothing does.
                is_last |= incoming.is_announced();
                let path = incoming.path().clone();
                stop_if_full(&path, &error)?;
                file.state = State::Failed(path, error);
            }
        }
        if is_last {
            let Some(file) = self.files.remove(&id) else { return Err(unexpected()) };
            let (path, result) = match file.state {
                State::Receiving(incoming) => (incoming.path().clone(), Ok(())),
                State::Failed(path, error) => (path, Err(error)),
            };
            self.receiver.answer(id, &path, result)?;
            self.receiver.leave(file.directory)?;
        }
        self.close_others(id);
        Ok(())
    }

    /// Closes files for which nothing came for longest, where a file was used and there are
    /// too many.
    fn close_others(&mut self, id: u32) {
        let is_open = |file: &Unanswered| matches!(&file.state, State::Receiving(incoming) if incoming.is_open());
        for other in self.open.used(id, self.files.get(&id).is_some_and(is_open)) {
            let file = self.files.get_mut(&other).map(|file| &mut file.state);
            if let Some(State::Receiving(incoming)) = file {
                incoming.close();
            }
        }
    }

    fn begin(&mut self, entry: Entry, directory: Parent, share: Share) -> Result<(), CopyError> {
        let (id, path) = (entry.id, entry.path.clone());
        let (session, held) = (self.receiver.session, self.receiver.held);
        let have = |first: u64, hashes: Vec<Hash>, is_last: bool| {
            session.send(&Message::Have { id, first, hashes, is_last })
        };
        let is_new = directory.as_ref().is_some_and(|directory| directory.is_new);
        let opened = Incoming::open(session, &mut self.parents, held, entry, is_new);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                session.check()?;
                stop_if_full(&path, &error)?;
                // The sender sends nothing of it.
                self.receiver.answer(id, &path, Err(error))?;
                return self.receiver.leave(directory);
            }
        };
        file.send_hashes(&mut self.parents, |first, hashes| have(first, hashes, false))?;
        // It is opened again when something comes for it.
        file.close();
        let state = State::Receiving(Box::new(file));
        self.files.insert(id, Unanswered { state, directory, _share: share });
        have(0, Vec::new(), true)
    }
}

/// Does what is asked for with a file, and completes it if that was the last. Whether it is
/// complete.
fn act(
    receiver: &Receiver<'_>,
    parents: &mut Parents<'_>,
    file: &mut Incoming,
    action: Action,
) -> io::Result<bool> {
    let (session, progress) = (receiver.session, receiver.progress);
    match action {
        Action::Begin(..) => {}
        Action::Data { block, bytes } => {
            let count = bytes.len() as u64;
            progress.carried(count);
            receiver.written.fetch_add(count, Ordering::Relaxed);
            file.write(session, parents, block, &bytes)?;
        }
        Action::Hole { first, count } => {
            progress.kept(file.bytes_of(first, count));
            file.hole(session, parents, first, count)?;
        }
        Action::Kept { first, count } => {
            progress.kept(file.bytes_of(first, count));
            file.keep(session, parents, first, count)?;
        }
        Action::End(hash) => file.expect(hash),
        Action::Unreadable(reason) => return Err(io::Error::other(reason)),
    }
    // Data may come later than the end of the file, on another connection.
    file.complete(session, parents)
}

/// Where no file could be written any more, the copy ends; it can be continued.
fn stop_if_full(path: &RelativePath, error: &io::Error) -> Result<(), CopyError> {
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room and repeat the same command, which continues from here"
        }
        ErrorKind::ReadOnlyFilesystem => "choose a destination that can be written",
        _ => return Ok(()),
    };
    Err(CopyError::Local(format!("{path}: {error}; {remedy}")))
}
