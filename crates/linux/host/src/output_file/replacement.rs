//! Files that appear at their destination when they are complete.

use super::{Destination, FinalLink, PRIVATE_MODE};
use crate::directory::{Unsafe, c_string};
use crate::random;
use std::ffi::{CString, OsStr};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Most attempts at a name that nobody has.
const ATTEMPTS: u32 = 16;

/// A file that is being written beside the one it replaces: until it is [kept](Self::keep) it is
/// temporary, and removed when dropped. A device or a pipe is written to directly.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    temporary: Option<Temporary>,
}

/// A name beside a destination, removed when dropped.
#[derive(Debug)]
struct Temporary {
    destination: Destination,
    /// `None` once the file has its destination.
    name: Option<CString>,
}

impl Replacement {
    /// Begins to write what replaces the file at `path`, readable by the owner alone.
    ///
    /// # Errors
    /// The system error, and [`UnsafePath`](crate::directory::UnsafePath) inside an
    /// [`io::Error`]; also for a directory.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let destination = Destination::of(path, FinalLink::Follow)?;
        match destination.existing()? {
            Some(there) if there.is_dir() => {
                return Err(io::Error::from_raw_os_error(libc::EISDIR));
            }
            Some(there) if there.is_symlink() => return Err(destination.refused(Unsafe::Symlink)),
            Some(there) if destination.name.is_descriptor || !there.is_file() => {
                return Ok(Replacement {
                    file: destination.create(PRIVATE_MODE)?,
                    temporary: None,
                });
            }
            _ => {}
        }
        let mut attempt = 0;
        loop {
            let name = c_string(OsStr::new(&format!(".longhaul-{:016x}.part", random::seed())))?;
            match destination.create_exclusively(&name, PRIVATE_MODE) {
                Ok(file) => {
                    let temporary = Some(Temporary { destination, name: Some(name) });
                    return Ok(Replacement { file, temporary });
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What is written to.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Whether the file is a device or a pipe, which is written to at once.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.temporary.is_none()
    }

    /// Puts the file in its destination. It has the permissions of an earlier file of the user's.
    ///
    /// # Errors
    /// The system error; the earlier file is then unchanged.
    pub fn keep(self) -> io::Result<()> {
        let Some(mut temporary) = self.temporary else { return Ok(()) };
        let destination = &temporary.destination;
        if let Some(there) = destination.existing()?
            && there.is_file()
            && there.uid() == destination.writer.uid
        {
            self.file.set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
        }
        if let Some(name) = &temporary.name {
            destination.take_name_of(name)?;
        }
        temporary.name = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = self.destination.unlink(name);
        }
    }
}
