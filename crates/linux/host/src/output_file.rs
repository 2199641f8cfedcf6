//! Output files named by the user: captures, logs, recordings, reports, pages. Every output file
//! of the program is opened here.
//!
//! The path is walked one directory at a time (`walk.rs`), and everything that follows (creating,
//! renaming, removing) is relative to the open directory. A symbolic link on the path is followed
//! by root only if nobody else can have made it, and by other users unless somebody else planted
//! it in a directory that everybody can write to. In a directory where other users can create
//! names, an existing file must belong to the user, under one name. A new file is readable by its
//! owner alone. This holds whatever the kernel's `protected_*` settings are (proc_sys_fs(5)).

mod replacement;
mod walk;

use crate::directory::{Unsafe, UnsafePath, metadata, open_at};
pub use replacement::Replacement;
use rustix::fs::{self, AtFlags, Mode, renameat};
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
pub use walk::FinalLink;
pub(crate) use walk::Writer;
use walk::{Name, Walk};

/// Readable and writable by the owner alone.
const PRIVATE_MODE: u32 = 0o600;

/// Mode of an ordinary new file, reduced by the umask.
const DEFAULT_MODE: u32 = 0o666;

/// Creates a file, or truncates an existing one and keeps its permissions.
/// Devices and FIFOs are opened as they are.
///
/// # Errors
/// The system error, and [`UnsafePath`] inside an [`io::Error`].
pub fn create(path: &Path) -> io::Result<File> {
    Destination::of(path, FinalLink::Follow)?.create(PRIVATE_MODE)
}

/// As [`create`]; a new file has the permissions of the umask.
///
/// # Errors
/// As [`create`].
pub fn create_readable(path: &Path) -> io::Result<File> {
    Destination::of(path, FinalLink::Follow)?.create(DEFAULT_MODE)
}

/// Opens a log for appending; creates it with the permissions of the umask.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT;
    Destination::of(path, FinalLink::Follow)?.open(flags, DEFAULT_MODE)
}

/// Creates a directory with the permissions of the umask; fails if the name exists.
///
/// # Errors
/// As [`create`].
pub fn create_directory(path: &Path) -> io::Result<()> {
    let Name { directory, name, .. } =
        Walk::begin(path, Writer::calling())?.into_name(FinalLink::Refuse)?;
    Ok(fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777))?)
}

/// Opens the directory at `path`, to write below it.
///
/// # Errors
/// As [`create`].
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let directory = Walk::begin(path, Writer::calling())?.into_directory()?;
    open_at(Some(directory.as_fd()), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)
}

/// The destination of an output file: a name in an open directory.
#[derive(Debug)]
pub struct Destination {
    name: Name,
    writer: Writer,
}

impl Destination {
    /// Walks to the destination that `path` names.
    ///
    /// # Errors
    /// The system error, and [`UnsafePath`] inside an [`io::Error`].
    pub fn of(path: &Path, link: FinalLink) -> io::Result<Self> {
        Destination::of_writer(path, link, Writer::calling())
    }

    pub(crate) fn of_writer(path: &Path, link: FinalLink, writer: Writer) -> io::Result<Self> {
        if walk::names_directory(path) {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        Ok(Destination { name: Walk::begin(path, writer)?.into_name(link)?, writer })
    }

    /// Creates a file with the permissions of the umask; fails if the name exists,
    /// also as a link.
    ///
    /// # Errors
    /// The system error.
    pub fn create_new(&self) -> io::Result<File> {
        self.create_exclusively(&self.name.name, DEFAULT_MODE)
    }

    /// As [`create_new`](Self::create_new), readable by the owner alone.
    pub(crate) fn create_private(&self) -> io::Result<File> {
        self.create_exclusively(&self.name.name, PRIVATE_MODE)
    }

    /// Opens a regular file for reading; `None` if there is none.
    ///
    /// # Errors
    /// The system error, and [`UnsafePath`] inside an [`io::Error`].
    pub fn open_existing(&self) -> io::Result<Option<File>> {
        let file = match self.open_at(libc::O_RDONLY | libc::O_NONBLOCK, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if file.metadata()?.is_file() {
            Ok(Some(file))
        } else {
            Err(self.refused(Unsafe::NotRegular))
        }
    }

    /// Removes the name.
    ///
    /// # Errors
    /// The system error.
    pub fn remove(&self) -> io::Result<()> {
        self.unlink(&self.name.name)
    }

    /// Removes the name if it is still that of `file`.
    ///
    /// # Errors
    /// The system error.
    pub fn remove_if(&self, file: &File) -> io::Result<()> {
        let file = file.metadata()?;
        match self.existing()? {
            Some(there) if (there.dev(), there.ino()) == (file.dev(), file.ino()) => self.remove(),
            _ => Ok(()),
        }
    }

    fn create(&self, mode: u32) -> io::Result<File> {
        let file = self.open(libc::O_WRONLY | libc::O_CREAT, mode)?;
        // Not with O_TRUNC: the file is truncated only once its owner has been checked.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }

    fn open(&self, flags: libc::c_int, mode: u32) -> io::Result<File> {
        // The file is checked before it is opened: opening a FIFO waits for its reader.
        if let Some(there) = self.existing()? {
            self.check_owner(&there)?;
        }
        let file = self.open_at(flags, mode)?;
        self.check_owner(&file.metadata()?)?;
        Ok(file)
    }

    fn open_at(&self, flags: libc::c_int, mode: u32) -> io::Result<File> {
        let follow = if self.name.is_descriptor { 0 } else { libc::O_NOFOLLOW };
        // A terminal does not become the controlling one.
        let flags = flags | follow | libc::O_NOCTTY;
        match open_at(Some(self.name.directory.as_fd()), &self.name.name, flags, mode) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                Err(self.refused(Unsafe::Symlink))
            }
            other => other.map(File::from),
        }
    }

    /// Creates a file beside the destination, or at it.
    fn create_exclusively(&self, name: &CStr, mode: u32) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        open_at(Some(self.name.directory.as_fd()), name, flags, mode).map(File::from)
    }

    /// Opens a regular file for reading and writing that belongs to the writer, under one name.
    pub(crate) fn open_own(&self) -> io::Result<File> {
        // Opening a FIFO must not block.
        let file = self.open_at(libc::O_RDWR | libc::O_NONBLOCK, 0)?;
        let there = file.metadata()?;
        if !there.is_file() {
            return Err(self.refused(Unsafe::NotRegular));
        }
        self.check_own(&there)?;
        Ok(file)
    }

    /// What the name is; `None` if it does not exist.
    fn existing(&self) -> io::Result<Option<Metadata>> {
        match self.open_at(libc::O_PATH, 0) {
            Ok(file) => file.metadata().map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Rejects a file that another user has put into a shared directory.
    fn check_owner(&self, there: &Metadata) -> io::Result<()> {
        if self.name.is_descriptor || !self.writer.is_shared(&metadata(&self.name.directory)?) {
            return Ok(());
        }
        self.check_own(there)
    }

    fn check_own(&self, there: &Metadata) -> io::Result<()> {
        if there.is_symlink() {
            return Err(self.refused(Unsafe::Symlink));
        }
        if there.uid() != self.writer.uid {
            return Err(self.refused(Unsafe::Owner(there.uid())));
        }
        if there.is_file() && there.nlink() > 1 {
            return Err(self.refused(Unsafe::HardLinks));
        }
        Ok(())
    }

    fn unlink(&self, name: &CStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.name.directory, name, AtFlags::empty())?)
    }

    /// Gives the file with a name in this directory the name of the destination, and replaces what is
    /// there.
    fn take_name_of(&self, name: &CStr) -> io::Result<()> {
        let directory = &self.name.directory;
        Ok(renameat(directory, name, directory, &self.name.name)?)
    }

    fn refused(&self, why: Unsafe) -> io::Error {
        UnsafePath { component: self.name.path.clone(), why }.into()
    }
}

#[cfg(test)]
mod tests;
