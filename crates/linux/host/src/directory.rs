//! Directories opened one component at a time, so that nobody who can change
//! part of the path can redirect what is read or written below it.
//!
//! Every operation is relative to the open directory (openat(2)), never follows
//! a symbolic link, and creates files exclusively.

use rustix::fs::{self, AtFlags, Mode, OFlags, renameat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of entries listed in a directory.
const MAX_ENTRIES: usize = 10_000;

/// Permission bits that let the group or everybody write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Requirements that a path must meet to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Every component is owned by root and writable by root only. A sticky
    /// directory such as `/tmp` does not qualify: anybody can create the next
    /// component first.
    RootOnly,
    /// The last component is owned by the calling user and writable by that user only.
    Owner,
    /// No component is a symbolic link; the reader of a file must check the file itself.
    NoSymlinks,
}

/// A component of a path that does not meet its [`Trust`].
#[derive(Debug, thiserror::Error)]
#[error("{} {why}", component.display())]
pub struct UnsafePath {
    /// The path up to and including the component.
    pub component: PathBuf,
    /// The reason.
    pub why: Unsafe,
}

/// Why a component is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    /// It is a symbolic link.
    #[error("is a symbolic link")]
    Symlink,
    /// Another user owns it.
    #[error("is owned by uid {0}")]
    Owner(u32),
    /// Other users can write to it.
    #[error("is writable by other users (mode {0:04o})")]
    Writable(u32),
    /// It has other names, which may belong to another user.
    #[error("has several hard links")]
    HardLinks,
    /// It is a device, a pipe or a directory.
    #[error("is not a regular file")]
    NotRegular,
}

impl From<UnsafePath> for io::Error {
    fn from(error: UnsafePath) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Whether an error means that a path is unsafe, as opposed to missing or not permitted.
#[must_use]
pub fn is_unsafe(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<UnsafePath>)
}

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens an absolute path.
    ///
    /// # Errors
    /// [`UnsafePath`] inside an [`io::Error`], or the system error.
    pub fn open(path: &Path, trust: Trust) -> io::Result<Self> {
        Self::walk(path, trust, false)
    }

    /// As [`open`](Self::open), but creates missing components for the calling
    /// user alone (mode 0700).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn create(path: &Path, trust: Trust) -> io::Result<Self> {
        Self::walk(path, trust, true)
    }

    fn walk(path: &Path, trust: Trust, create: bool) -> io::Result<Self> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(not_absolute(path)),
            }
        }
        if !path.is_absolute() {
            return Err(not_absolute(path));
        }
        let mut so_far = PathBuf::from("/");
        let mut fd = open_at(None, c"/", directory_flags(names.is_empty()), 0)?;
        check_directory(&fd, &so_far, trust, names.is_empty())?;
        for (index, name) in names.iter().enumerate() {
            let last = index + 1 == names.len();
            let text = c_string(name)?;
            so_far.push(name);
            let open = || open_at(Some(fd.as_fd()), &text, directory_flags(last), 0);
            let next = match open() {
                Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                    make_directory(fd.as_fd(), &text)?;
                    open()
                }
                other => other,
            };
            fd = next.map_err(|error| named(error, fd.as_fd(), &text, &so_far))?;
            check_directory(&fd, &so_far, trust, last)?;
        }
        Ok(Directory { fd, path: so_far })
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens or creates a directory in this one, owned by the calling user alone.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn child(&self, name: &str) -> io::Result<Self> {
        let (text, path) = (c_string(OsStr::new(name))?, self.path.join(name));
        let fd = open_at(Some(self.fd.as_fd()), &text, directory_flags(true), 0)
            .map_err(|error| named(error, self.fd.as_fd(), &text, &path))?;
        check_directory(&fd, &path, Trust::Owner, true)?;
        Ok(Directory { fd, path })
    }

    /// The names in it, unordered; an error if there are more than 10 000.
    ///
    /// # Errors
    /// The system error.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        // The magic link refers to the open directory itself, even if it has been moved.
        for entry in std::fs::read_dir(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))? {
            if names.len() == MAX_ENTRIES {
                return Err(io::Error::other(format!("more than {MAX_ENTRIES} entries")));
            }
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    /// Reads a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// The system error; also if the file is longer, a link, or not a regular file.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let (file, _) = self.open_file(name, libc::O_NOFOLLOW)?;
        bounded(file, limit)
    }

    /// As [`read`](Self::read), for a file owned by the calling user, with one
    /// hard link, and writable by nobody else.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`UnsafePath`].
    pub fn read_own(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let (file, metadata) = self.open_file(name, libc::O_NOFOLLOW)?;
        let refused = |why| Err(UnsafePath { component: self.path.join(name), why }.into());
        match (metadata.uid(), metadata.mode() & 0o7777, metadata.nlink()) {
            (owner, ..) if owner != effective_uid() => refused(Unsafe::Owner(owner)),
            (_, mode, _) if mode & WRITABLE_BY_OTHERS != 0 => refused(Unsafe::Writable(mode)),
            (.., 2..) => refused(Unsafe::HardLinks),
            _ => bounded(file, limit),
        }
    }

    /// As [`read`](Self::read), but follows symbolic links: for content that is only displayed.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_linked(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let (file, _) = self.open_file(name, 0)?;
        bounded(file, limit)
    }

    /// Creates a file that does not exist yet.
    ///
    /// # Errors
    /// The system error; `AlreadyExists` also for a link.
    pub fn create_new(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        open_at(Some(self.fd.as_fd()), &c_string(OsStr::new(name))?, flags, mode).map(File::from)
    }

    /// Opens a regular file for reading and writing, or creates it (mode 0600).
    ///
    /// # Errors
    /// The system error, and [`UnsafePath`] if it is a link or not a regular file.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT;
        self.open_regular(name, flags | libc::O_NOFOLLOW, 0o600).map(|(file, _)| file)
    }

    /// Replaces a file with new content and syncs it to disk. A link of that name
    /// is removed, not followed.
    ///
    /// # Errors
    /// The system error; the file may then be incomplete.
    pub fn store(&self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.unlink(name, AtFlags::empty())?;
        let mut file = self.create_new(name, mode)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Appends to a regular file and syncs it to disk.
    ///
    /// # Errors
    /// The system error, and [`UnsafePath`]; part of `bytes` may have been written.
    pub fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_NOFOLLOW;
        let (mut file, _) = self.open_regular(name, flags, 0)?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    /// Renames a file within this directory and syncs the directory.
    ///
    /// # Errors
    /// The system error.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (c_string(OsStr::new(from))?, c_string(OsStr::new(to))?);
        renameat(&self.fd, from, &self.fd, to)?;
        self.sync()
    }

    /// Removes a file or a link and syncs the directory. A missing file is no error.
    ///
    /// # Errors
    /// The system error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        if self.unlink(name, AtFlags::empty())? { self.sync() } else { Ok(()) }
    }

    /// Removes an empty directory. A missing one is no error.
    ///
    /// # Errors
    /// The system error; also if it is not empty, or a link.
    pub fn remove_directory(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::REMOVEDIR).map(drop)
    }

    /// Returns whether there was something to remove.
    fn unlink(&self, name: &str, flags: AtFlags) -> io::Result<bool> {
        match fs::unlinkat(&self.fd, c_string(OsStr::new(name))?, flags) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        // A name is on disk only once its directory has been synced (fsync(2)).
        Ok(fs::fsync(&self.fd)?)
    }

    fn open_file(&self, name: &str, flags: libc::c_int) -> io::Result<(File, Metadata)> {
        self.open_regular(name, libc::O_RDONLY | flags, 0)
    }

    fn open_regular(
        &self,
        name: &str,
        flags: libc::c_int,
        mode: u32,
    ) -> io::Result<(File, Metadata)> {
        let (text, path) = (c_string(OsStr::new(name))?, self.path.join(name));
        // Opening a FIFO must not block.
        let fd = open_at(Some(self.fd.as_fd()), &text, flags | libc::O_NONBLOCK, mode)
            .map_err(|error| named(error, self.fd.as_fd(), &text, &path))?;
        let file = File::from(fd);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(UnsafePath { component: path, why: Unsafe::NotRegular }.into());
        }
        Ok((file, metadata))
    }
}

/// The effective user ID of this process.
pub(crate) fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn check_directory(fd: &OwnedFd, path: &Path, trust: Trust, last: bool) -> io::Result<()> {
    let owner = match trust {
        Trust::RootOnly => 0,
        Trust::Owner if last => effective_uid(),
        Trust::Owner | Trust::NoSymlinks => return Ok(()),
    };
    let metadata = metadata(fd)?;
    let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    let why = if uid != owner {
        Unsafe::Owner(uid)
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        Unsafe::Writable(mode)
    } else {
        return Ok(());
    };
    Err(UnsafePath { component: path.to_owned(), why }.into())
}

/// What an open file is.
pub(crate) fn metadata(fd: &OwnedFd) -> io::Result<Metadata> {
    File::from(fd.try_clone()?).metadata()
}

/// A directory that is only traversed need not be readable.
fn directory_flags(last: bool) -> libc::c_int {
    let access = if last { libc::O_RDONLY } else { libc::O_PATH };
    access | libc::O_DIRECTORY | libc::O_NOFOLLOW
}

/// Identifies errors caused by a symbolic link: the kernel reports ELOOP or, if
/// a directory was asked for, ENOTDIR.
fn named(error: io::Error, at: BorrowedFd<'_>, name: &CStr, path: &Path) -> io::Error {
    let link = || {
        let fd = open_at(Some(at), name, libc::O_PATH | libc::O_NOFOLLOW, 0).ok()?;
        File::from(fd).metadata().ok().filter(Metadata::is_symlink)
    };
    match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) if link().is_some() => {
            UnsafePath { component: path.to_owned(), why: Unsafe::Symlink }.into()
        }
        _ => error,
    }
}

fn make_directory(at: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match fs::mkdirat(at, name, Mode::RWXU) {
        // One that exists by now is opened and checked like any other.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn open_at(
    at: Option<BorrowedFd<'_>>,
    name: &CStr,
    flags: libc::c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let flags = OFlags::from_bits_retain((flags | libc::O_CLOEXEC).cast_unsigned());
    let mode = Mode::from_raw_mode(mode);
    let at = at.unwrap_or(fs::CWD);
    Ok(rustix::io::retry_on_intr(|| fs::openat(at, name, flags, mode))?)
}

/// Converts one component of a path.
pub(crate) fn c_string(name: &OsStr) -> io::Result<CString> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not a file name");
    if name.is_empty() || name == "." || name == ".." || name.as_bytes().contains(&b'/') {
        return Err(invalid());
    }
    CString::new(name.as_bytes()).map_err(|_| invalid())
}

fn not_absolute(path: &Path) -> io::Error {
    let text = format!("{} is not an absolute path without '..'", path.display());
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests;
