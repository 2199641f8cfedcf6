//! Files for captures, which root creates for a user who may be another one.
//!
//! The directory is opened without following a symbolic link that another user can have
//! created, and the file in it is opened relative to it. An existing file is overwritten only if
//! it is a regular one with one name that belongs to the user: whoever can write to the
//! directory cannot redirect the capture to a file of someone else.

use crate::directory::{Directory, Trust, Unsafe, UnsafePath, effective_uid};
use crate::privileges::User;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Component, Path, PathBuf};

/// Most symbolic links on the path to a file, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Creates or empties the file at `path`, readable by its owner alone: `user`, or the calling
/// user.
///
/// # Errors
/// The system error, and [`UnsafePath`] inside an [`io::Error`].
pub fn create(path: &Path, user: Option<User>) -> io::Result<File> {
    let not_a_file = || io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file");
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_a_file)?;
    let owner = user.map_or_else(effective_uid, |user| user.uid);
    let path = std::path::absolute(path)?;
    let folder = path.parent().ok_or_else(not_a_file)?;
    let folder = without_links(folder, owner)?;
    let directory = Directory::open(&folder, Trust::NoSymlinks)?;
    let file = match directory.create_new(name, 0o600) {
        Ok(file) => {
            if let Some(User { uid, gid }) = user {
                fchown(&file, Some(uid), Some(gid))?;
            }
            return Ok(file);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            directory.open_or_create(name)?
        }
        Err(error) => return Err(error),
    };
    let there = file.metadata()?;
    let refused = |why| Err(UnsafePath { component: path.clone(), why }.into());
    if there.uid() != owner {
        return refused(Unsafe::Owner(there.uid()));
    }
    if there.nlink() > 1 {
        return refused(Unsafe::HardLinks);
    }
    // Emptied only now.
    file.set_len(0)?;
    Ok(file)
}

/// An absolute path with its symbolic links resolved: those of root, of the caller and of
/// `owner`. A component that becomes a link afterwards is refused when the path is opened.
fn without_links(path: &Path, owner: u32) -> io::Result<PathBuf> {
    let trusted = [0, effective_uid(), owner];
    let mut resolved = PathBuf::from("/");
    let mut rest: Vec<OsString> = reversed(path);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&name);
        let there = std::fs::symlink_metadata(&next)?;
        if !there.is_symlink() {
            resolved = next;
            continue;
        }
        links += 1;
        if !trusted.contains(&there.uid()) || links > MAX_LINKS {
            return Err(UnsafePath { component: next, why: Unsafe::Symlink }.into());
        }
        let target = std::fs::read_link(&next)?;
        if target.is_absolute() {
            resolved = PathBuf::from("/");
        }
        rest.extend(reversed(&target));
    }
    Ok(resolved)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    fn refused(path: &Path) -> String {
        create(path, None).unwrap_err().to_string()
    }

    #[test]
    fn an_own_file_is_emptied_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.pcapng");
        create(&path, None).unwrap().write_all(b"packets").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"packets");
        create(&folder.path().join("../").join(folder.path()).join("./c.pcapng"), None).unwrap();
        assert!(fs::read(&path).unwrap().is_empty());
    }

    #[test]
    fn links_directories_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "data").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        fs::hard_link(at("precious"), at("hard")).unwrap();
        assert!(refused(&at("link")).contains("is a symbolic link"));
        assert!(refused(&at("dangling")).contains("is a symbolic link"));
        assert!(refused(&at("hard")).contains("has several hard links"));
        assert!(refused(folder.path()).contains("directory"));
        assert!(refused(Path::new("/dev/null")).contains("is not a regular file"));
        assert!(refused(&at("missing/c.pcapng")).contains("No such file"));
        assert_eq!(fs::read(at("precious")).unwrap(), b"data");
        assert!(!at("nothing").exists());
        // A directory's own link is followed.
        fs::create_dir(at("real")).unwrap();
        symlink("real", at("alias")).unwrap();
        create(&at("alias/c.pcapng"), None).unwrap();
        assert!(at("real/c.pcapng").exists());
    }

    /// What a user can prepare for root in a directory of their own.
    #[test]
    fn files_and_links_of_other_users_are_refused() {
        if effective_uid() != 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("planted"), "data").unwrap();
        lchown(at("planted"), Some(1234), None).unwrap();
        fs::create_dir(at("target")).unwrap();
        fs::write(at("target/passwd"), "root").unwrap();
        symlink(at("target"), at("redirect")).unwrap();
        lchown(at("redirect"), Some(1234), None).unwrap();
        assert!(refused(&at("planted")).contains("is owned by uid 1234"));
        assert!(refused(&at("redirect/passwd")).contains("is a symbolic link"));
        assert_eq!(fs::read(at("target/passwd")).unwrap(), b"root");
        // For the user who called sudo, that user's files are right, and root's are not.
        let user = Some(User { uid: 1234, gid: 1234 });
        create(&at("planted"), user).unwrap();
        assert!(fs::read(at("planted")).unwrap().is_empty());
        let error = create(&at("target/passwd"), user).unwrap_err().to_string();
        assert!(error.contains("is owned by uid 0"), "{error}");
        create(&at("new"), user).unwrap();
        assert_eq!(fs::metadata(at("new")).unwrap().uid(), 1234);
    }
}
