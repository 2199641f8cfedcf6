//! Directories that are not complete: they get their attributes when all that is below them
//! has arrived, since files and links in them change their times, and permissions may forbid
//! more of them.
//!
//! A sender names a directory before what is in it, and everything in it before anything else.
//! So the directories of the last entry's path are open, and those that are not any more are
//! complete once their last file is.

use super::{Receiver, permissions, times};
use crate::CopyError;
use crate::budget::Share;
use crate::directory::Links;
use crate::protocol::message::Entry;
use crate::protocol::path::RelativePath;
use rustix::fs::{fchmod, futimens};
use std::io;
use std::sync::Arc;

/// A directory that has no answer yet. Every entry below it that has none refers to it.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    pub(super) entry: Entry,
    /// This copy created it: nothing else is in it.
    pub(super) is_new: bool,
    /// False: it could not be created, which was answered.
    pub(super) is_there: bool,
    /// The directory that contains it.
    pub(super) parent: Parent,
    /// Memory of this.
    pub(super) _share: Share,
}

/// The directory that contains an entry; `None`: that of the copy.
pub(super) type Parent = Option<Arc<OpenDirectory>>;

/// The directories of the last entry's path, the innermost last.
#[derive(Debug, Default)]
pub(super) struct OpenDirectories(Vec<Arc<OpenDirectory>>);

impl OpenDirectories {
    /// Leaves the directories that `path` is not in, and gives the one that contains it.
    pub(super) fn enter(
        &mut self,
        receiver: &Receiver<'_>,
        path: &RelativePath,
    ) -> Result<Parent, CopyError> {
        let parent = path.split_last().0;
        while let Some(last) = self.0.last() {
            let last = last.entry.path.bytes();
            let is_in = path.bytes().strip_prefix(last).is_some_and(|rest| rest.starts_with(b"/"));
            if is_in {
                break;
            }
            receiver.leave(self.0.pop())?;
        }
        let innermost = self.0.last();
        if innermost.map(|directory| directory.entry.path.bytes()) != parent {
            return Err(CopyError::Protocol(format!("{path} does not follow its directory")));
        }
        Ok(innermost.cloned())
    }

    pub(super) fn push(&mut self, directory: OpenDirectory) {
        self.0.push(Arc::new(directory));
    }

    /// No entry follows.
    pub(super) fn leave_all(&mut self, receiver: &Receiver<'_>) -> Result<(), CopyError> {
        while let Some(last) = self.0.pop() {
            receiver.leave(Some(last))?;
        }
        Ok(())
    }
}

impl Receiver<'_> {
    /// An entry of this directory has its answer, or no entry follows in it. Directories that
    /// are complete with that get their attributes, and their answer.
    pub(super) fn leave(&self, directory: Parent) -> Result<(), CopyError> {
        let mut next = directory;
        while let Some(complete) = next.and_then(Arc::into_inner) {
            let OpenDirectory { entry, is_there, parent, .. } = complete;
            if is_there {
                let result = self.set_attributes(&entry);
                self.answer(entry.id, &entry.path, result)?;
            }
            next = parent;
        }
        Ok(())
    }

    fn set_attributes(&self, entry: &Entry) -> io::Result<()> {
        let directory = self.directory.directory(entry.path.bytes(), Links::Refuse)?;
        let set = || -> io::Result<()> {
            futimens(&directory, &times(entry.modified))?;
            Ok(fchmod(&directory, permissions(entry.mode))?)
        };
        set().map_err(|error| io::Error::new(error.kind(), format!("its attributes: {error}")))
    }
}
