//! A thread that writes files.

use super::file::Incoming;
use super::{Parents, Receiver, unexpected};
use crate::CopyError;
use crate::queue::Queue;
use copy_proto::hash::Hash;
use copy_proto::message::{Entry, Message};
use copy_proto::path::RelativePath;
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
    /// An entry, and whether its directory is new.
    Begin(Box<Entry>, bool),
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
    pub(super) fn begin(entry: Entry, is_new: bool) -> Self {
        Task { id: entry.id, action: Action::Begin(Box::new(entry), is_new) }
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
            _ => TASK_COST,
        }
    }
}

/// A file that is being received, or that failed: what still comes for it is ignored.
enum State {
    Receiving(Box<Incoming>),
    Failed(RelativePath, io::Error),
}

pub(super) struct Worker<'a> {
    receiver: &'a Receiver<'a>,
    files: HashMap<u32, State>,
    parents: Parents<'a>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(receiver: &'a Receiver<'a>) -> Self {
        let parents = Parents { top: receiver.directory, last: None };
        Worker { receiver, files: HashMap::new(), parents }
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
        if let Action::Begin(entry, is_new) = action {
            return self.begin(*entry, is_new);
        }
        let state = match (self.files.get_mut(&id), &action) {
            (Some(state), _) => state,
            // It was on its way on another connection when the file was given up.
            (None, Action::Data { .. } | Action::Hole { .. } | Action::Kept { .. }) => {
                return Ok(());
            }
            (None, _) => return Err(unexpected()),
        };
        let mut is_last = matches!(action, Action::End(_) | Action::Unreadable(_));
        if let State::Receiving(file) = state {
            let (file, progress) = (&mut *file, self.receiver.progress);
            let (session, parents) = (self.receiver.session, &mut self.parents);
            let result = match action {
                Action::Begin(..) => Ok(()),
                Action::Data { block, bytes } => {
                    let count = bytes.len() as u64;
                    progress.carried(count);
                    self.receiver.written.fetch_add(count, Ordering::Relaxed);
                    file.write(session, parents, block, &bytes)
                }
                Action::Hole { first, count } => {
                    progress.kept(file.bytes_of(first, count));
                    file.hole(session, parents, first, count)
                }
                Action::Kept { first, count } => {
                    progress.kept(file.bytes_of(first, count));
                    file.keep(session, parents, first, count)
                }
                Action::End(hash) => {
                    file.expect(hash);
                    Ok(())
                }
                Action::Unreadable(reason) => Err(io::Error::other(reason)),
            };
            // Data may come later than the end of the file, on another connection.
            let result = result.and_then(|()| file.complete(session, parents));
            if let Ok(is_complete) = result {
                is_last = is_complete;
            }
            if let Err(error) = result {
                session.check()?;
                // What remains of it is ignored; where its end was announced, nothing does.
                is_last |= file.is_announced();
                let path = file.path().clone();
                stop_if_full(&path, &error)?;
                *state = State::Failed(path, error);
            }
        }
        if is_last {
            let (path, result) = match self.files.remove(&id) {
                Some(State::Receiving(file)) => (file.path().clone(), Ok(())),
                Some(State::Failed(path, error)) => (path, Err(error)),
                None => return Err(unexpected()),
            };
            self.receiver.answer(id, &path, result)?;
        }
        Ok(())
    }

    fn begin(&mut self, entry: Entry, is_new: bool) -> Result<(), CopyError> {
        let (id, path) = (entry.id, entry.path.clone());
        let session = self.receiver.session;
        let have = |first: u64, hashes: Vec<Hash>, is_last: bool| {
            session.send(&Message::Have { id, first, hashes, is_last })
        };
        let opened = Incoming::open(session, &mut self.parents, entry, is_new);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                session.check()?;
                stop_if_full(&path, &error)?;
                // The sender sends nothing of it.
                return self.receiver.answer(id, &path, Err(error));
            }
        };
        file.send_hashes(&mut self.parents, |first, hashes| have(first, hashes, false))?;
        let state = State::Receiving(Box::new(file));
        self.files.insert(id, state);
        have(0, Vec::new(), true)
    }
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
