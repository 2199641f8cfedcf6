//! The way from a path to an open directory: one component at a time, so that nobody who can
//! change a directory on the path redirects what is written.

use crate::directory::{Unsafe, UnsafePath, c_string, effective_uid, metadata, open_at};
use crate::identity;
use rustix::io::retry_on_intr;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Most symbolic links on a path, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Longest target of a symbolic link, bytes (`PATH_MAX` of linux/limits.h).
const MAX_TARGET: usize = 4096;

const LOOK: libc::c_int = libc::O_PATH | libc::O_NOFOLLOW;

/// Whoever writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) uid: u32,
    /// Root of the machine: it has rights that no other user has, so nobody else may choose
    /// where it writes.
    is_root: bool,
}

impl Writer {
    /// The calling user.
    pub(crate) fn calling() -> Self {
        Writer { uid: effective_uid(), is_root: identity::is_root() }
    }

    /// An ordinary user, whose rights the calling thread has.
    pub(crate) const fn user(uid: u32) -> Self {
        Writer { uid, is_root: false }
    }

    /// Whether users other than root and this one can create names in a directory.
    pub(super) fn is_shared(self, directory: &Metadata) -> bool {
        ![0, self.uid].contains(&directory.uid()) || directory.mode() & 0o022 != 0
    }

    /// Whether a symbolic link in a directory is followed. A user's own rights apply to what a
    /// link leads to: on the path to a directory, only what others plant in a directory of
    /// everybody's is refused (`protected_symlinks` of proc_sys_fs(5), whatever the kernel is
    /// set to). Root follows what only root can have made.
    fn may_follow(self, directory: &Metadata, link: &Metadata, is_last: bool) -> bool {
        let is_trusted = [0, self.uid].contains(&link.uid());
        if self.is_root {
            is_trusted && !self.is_shared(directory)
        } else if is_last {
            !self.is_shared(directory)
        } else {
            is_trusted || directory.mode() & 0o002 == 0
        }
    }
}

/// A symbolic link as the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalLink {
    /// Followed if no other user can have made it.
    Follow,
    /// Refused when the file is opened.
    Refuse,
}

/// A name in an open directory.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) directory: OwnedFd,
    pub(super) name: CString,
    /// The name is an open file of a process, such as `/proc/self/fd/1`, which the kernel
    /// follows.
    pub(super) is_descriptor: bool,
    /// The path of the name.
    pub(super) path: PathBuf,
}

/// A path of which a part has been walked.
pub(super) struct Walk {
    writer: Writer,
    directory: OwnedFd,
    /// The path of `directory`, for messages.
    at: PathBuf,
    /// The components to come, last one first.
    rest: Vec<OsString>,
    links: usize,
}

impl Walk {
    pub(super) fn begin(path: &Path, writer: Writer) -> io::Result<Self> {
        let (start, at) = if path.is_absolute() { (c"/", "/") } else { (c".", "") };
        let directory = open_at(None, start, libc::O_PATH | libc::O_DIRECTORY, 0)?;
        Ok(Walk { writer, directory, at: at.into(), rest: reversed(path), links: 0 })
    }

    /// Walks to the directory that the path names.
    pub(super) fn into_directory(mut self) -> io::Result<OwnedFd> {
        while let Some(name) = self.rest.pop() {
            self.enter(&name)?;
        }
        Ok(self.directory)
    }

    /// Walks to the last component, which need not exist.
    pub(super) fn into_name(mut self, link: FinalLink) -> io::Result<Name> {
        while let Some(name) = self.rest.pop() {
            if !self.rest.is_empty() || name == ".." {
                self.enter(&name)?;
                continue;
            }
            let text = c_string(&name)?;
            let is_descriptor = match self.look(&text)? {
                Some((file, there)) if there.is_symlink() && link == FinalLink::Follow => {
                    match self.follow(&name, &file, &there, true)? {
                        Followed::Target => continue,
                        Followed::Descriptor => true,
                    }
                }
                _ => false,
            };
            let path = self.at.join(&name);
            return Ok(Name { directory: self.directory, name: text, is_descriptor, path });
        }
        Err(io::Error::from_raw_os_error(libc::EISDIR))
    }

    /// Goes down into a directory, or up.
    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let open = |walk: &Self, name: &CStr| {
            open_at(Some(walk.directory.as_fd()), name, libc::O_PATH | libc::O_DIRECTORY, 0)
        };
        if name == ".." {
            // Of the directory itself: no link is involved.
            self.directory = open(self, c"..")?;
            self.at.push("..");
            return Ok(());
        }
        let text = c_string(name)?;
        let (file, there) =
            self.look(&text)?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        if there.is_symlink() {
            match self.follow(name, &file, &there, false)? {
                Followed::Target => return Ok(()),
                Followed::Descriptor => self.directory = open(self, &text)?,
            }
        } else if there.is_dir() {
            self.directory = file;
        } else {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        self.at.push(name);
        Ok(())
    }

    /// What a name of the directory is; a link itself.
    fn look(&self, name: &CStr) -> io::Result<Option<(OwnedFd, Metadata)>> {
        match open_at(Some(self.directory.as_fd()), name, LOOK, 0) {
            Ok(file) => {
                let there = metadata(&file)?;
                Ok(Some((file, there)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Continues at the target of a link, if the link is trusted.
    fn follow(
        &mut self,
        name: &OsStr,
        link: &OwnedFd,
        there: &Metadata,
        is_last: bool,
    ) -> io::Result<Followed> {
        if !self.writer.may_follow(&metadata(&self.directory)?, there, is_last) {
            return Err(UnsafePath { component: self.at.join(name), why: Unsafe::Symlink }.into());
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        // The text of a link to an open file does not say which file it is.
        if is_procfs(&self.directory)? {
            return Ok(Followed::Descriptor);
        }
        let target = target(link)?;
        if target.is_absolute() {
            self.directory = open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
            self.at = "/".into();
        }
        self.rest.extend(reversed(&target));
        Ok(Followed::Target)
    }
}

/// How a link is followed.
enum Followed {
    /// Its target's components are those to come.
    Target,
    /// By the kernel.
    Descriptor,
}

fn is_procfs(directory: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(directory)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Reads an open link (readlinkat(2) with an empty path).
fn target(link: &OwnedFd) -> io::Result<PathBuf> {
    let mut bytes = vec![0_u8; MAX_TARGET];
    let length = retry_on_intr(|| rustix::fs::readlinkat_raw(link, c"", &mut bytes[..]))?;
    bytes.truncate(length);
    if bytes.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    Ok(OsString::from_vec(bytes).into())
}

/// The components of a path, last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let components = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    components.collect()
}

/// Whether a path can only name a directory.
pub(super) fn names_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"."
}
