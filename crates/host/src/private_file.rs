//! Output files named by the user: captures, logs, recordings, results.
//!
//! A new file is readable by its owner alone. In a directory where other users
//! can create names, a symbolic link is not followed, and an existing file must
//! belong to the user: the rules of `protected_symlinks`, `protected_regular`
//! and `protected_fifos` (proc_sys_fs(5)), regardless of the kernel's settings.

use crate::directory::{Unsafe, UnsafePath, effective_uid};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    let file = open(path, OpenOptions::new().write(true).create(true).mode(PRIVATE_MODE))?;
    // Not with O_TRUNC: the file is truncated only once its owner has been checked.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a log for appending; creates it with the permissions of the umask.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true).mode(DEFAULT_MODE))
}

/// Creates a file with the permissions of the umask; fails if the name exists,
/// also as a link.
///
/// # Errors
/// The system error.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(DEFAULT_MODE).open(path)
}

/// Opens a regular file for reading, without following symbolic links.
///
/// # Errors
/// The system error, and [`UnsafePath`].
pub fn read(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| symlink_error(error, path))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused(path, Unsafe::NotRegular)) }
}

/// Where a file at `path` would be written: the target of a symbolic link, if
/// nobody else can have created the link.
///
/// # Errors
/// [`UnsafePath`] if another user can have created it, or the system error.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() && is_shared(path)? => Err(refused(path, Unsafe::Symlink)),
        // For a dangling link, the name of its target.
        Ok(there) if there.is_symlink() => std::fs::canonicalize(path).or_else(|_| {
            let target = std::fs::read_link(path)?;
            Ok(parent(path).join(target))
        }),
        _ => Ok(path.to_owned()),
    }
}

/// Permissions for a file that replaces the one at `path`: its own if the calling
/// user owns it, otherwise those of a private file.
#[must_use]
pub fn permissions(path: &Path) -> Permissions {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.is_file() && there.uid() == effective_uid() => {
            Permissions::from_mode(there.mode() & 0o777)
        }
        _ => Permissions::from_mode(PRIVATE_MODE),
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // The file is checked before it is opened: opening a FIFO waits for its reader.
    match std::fs::symlink_metadata(path) {
        // Such as `/dev/stdout`: only root or this user can have created the link.
        Ok(there) if there.is_symlink() && !is_shared(path)? => return options.open(path),
        Ok(there) if there.is_symlink() => return Err(refused(path, Unsafe::Symlink)),
        Ok(there) => check_owner(path, &there)?,
        Err(_) => {}
    }
    let opened = options.custom_flags(libc::O_NOFOLLOW).open(path);
    let file = opened.map_err(|error| symlink_error(error, path))?;
    check_owner(path, &file.metadata()?)?;
    Ok(file)
}

/// Rejects a file that another user has put into a shared directory.
fn check_owner(path: &Path, there: &Metadata) -> io::Result<()> {
    if !is_shared(path)? {
        return Ok(());
    }
    if there.uid() != effective_uid() {
        return Err(refused(path, Unsafe::Owner(there.uid())));
    }
    if there.is_file() && there.nlink() > 1 {
        return Err(refused(path, Unsafe::HardLinks));
    }
    Ok(())
}

/// Whether users other than root and the calling one can create names beside `path`.
fn is_shared(path: &Path) -> io::Result<bool> {
    let directory = std::fs::metadata(parent(path))?;
    let trusted = [0, effective_uid()].contains(&directory.uid());
    Ok(!trusted || directory.mode() & 0o022 != 0)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn symlink_error(error: io::Error, path: &Path) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => refused(path, Unsafe::Symlink),
        _ => error,
    }
}

fn refused(path: &Path, why: Unsafe) -> io::Error {
    UnsafePath { component: path.to_owned(), why }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    /// A shared directory such as `/tmp`, and a private one.
    fn directories() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (shared, own) = (folder.path().join("shared"), folder.path().join("own"));
        for (path, mode) in [(&shared, 0o1777), (&own, 0o700)] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        (folder, shared, own)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_is_emptied() {
        let (_folder, shared, own) = directories();
        for path in [shared.join("c.pcap"), own.join("c.pcap")] {
            create(&path).unwrap().write_all(b"packets").unwrap();
            assert_eq!(mode(&path), 0o600);
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            create(&path).unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap().len()), (0o640, 0));
        }
    }

    #[test]
    fn a_symlink_that_others_can_create_is_not_followed() {
        let (_folder, shared, own) = directories();
        let precious = own.join("precious");
        fs::write(&precious, "precious").unwrap();
        let planted = shared.join("c.pcap");
        symlink(&precious, &planted).unwrap();
        for opened in [create(&planted), append(&planted), create_new(&planted), read(&planted)] {
            assert!(opened.is_err());
        }
        let error = create(&planted).unwrap_err().to_string();
        assert!(error.contains("c.pcap is a symbolic link"), "{error}");
        fs::remove_file(&planted).unwrap();
        fs::hard_link(&precious, &planted).unwrap();
        assert!(create(&planted).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        // In a private directory links are followed.
        let link = own.join("link");
        symlink(&precious, &link).unwrap();
        append(&link).unwrap().write_all(b"!").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious!");
        symlink(own.join("new"), own.join("dangling")).unwrap();
        create(&own.join("dangling")).unwrap();
        assert_eq!(mode(&own.join("new")), 0o600);
    }

    #[test]
    fn devices_are_opened_directly() {
        assert!(create(Path::new("/dev/null")).is_ok() && append(Path::new("/dev/null")).is_ok());
        // A link to a pipe, such as a shell's `>(program)`.
        let (_reader, writer) = std::io::pipe().unwrap();
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        assert!(create(Path::new(&name)).is_ok());
        assert!(create(Path::new("/nonexistent/file")).is_err());
    }
}
