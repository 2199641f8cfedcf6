//! Files for captures, which root creates for a user who may be another one.
//!
//! For the user who called sudo(8), the file is opened with that user's rights, so that the kernel
//! decides whether that user may create it there. An existing file is overwritten only if it is a
//! regular one with one name that belongs to the user.

use crate::output_file::{Destination, FinalLink, Writer};
use crate::privileges::{self, User};
use std::fs::File;
use std::io;
use std::path::Path;

/// Creates or empties the file at `path`, readable by its owner alone: `user`, with the rights of
/// that user, or the calling user.
///
/// # Errors
/// The system error, and [`UnsafePath`](crate::directory::UnsafePath) inside an [`io::Error`].
pub fn create(path: &Path, user: Option<User>) -> io::Result<File> {
    match user {
        Some(user) => {
            let create = || create_as(path, Writer::user(user.uid));
            privileges::with_rights_of(user, create).map_err(|error| explained(error, user))
        }
        None => create_as(path, Writer::calling()),
    }
}

/// Says whose rights were not enough: root may write everywhere.
fn explained(error: io::Error, user: User) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let remedy = "the file is created with the rights of the user who called sudo";
    io::Error::new(error.kind(), format!("{error} for uid {}: {remedy}", user.uid))
}

fn create_as(path: &Path, writer: Writer) -> io::Result<File> {
    let destination = Destination::of_writer(path, FinalLink::Refuse, writer)?;
    match destination.create_private() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let file = destination.open_own()?;
    // Emptied only now.
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::effective_uid;
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

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
    }

    /// What the user who called sudo may not write to, that user's captures do not change.
    #[test]
    fn a_file_for_another_user_is_created_with_that_users_rights() {
        if effective_uid() != 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(folder.path(), 0o755);
        fs::create_dir(at("home")).unwrap();
        fs::write(at("home/planted"), "data").unwrap();
        fs::write(at("home/passwd"), "root").unwrap();
        mode(&at("home/passwd"), 0o666);
        symlink("planted", at("home/link")).unwrap();
        for name in ["home", "home/planted"] {
            lchown(at(name), Some(1234), Some(1234)).unwrap();
        }
        let user = Some(User { uid: 1234, gid: 1234 });
        create(&at("home/planted"), user).unwrap();
        assert!(fs::read(at("home/planted")).unwrap().is_empty());
        create(&at("home/new"), user).unwrap();
        let new = fs::metadata(at("home/new")).unwrap();
        assert_eq!((new.uid(), new.gid(), new.mode() & 0o777), (1234, 1234, 0o600));
        let error = create(&at("home/passwd"), user).unwrap_err().to_string();
        assert!(error.contains("is owned by uid 0"), "{error}");
        assert!(create(&at("home/link"), user).unwrap_err().to_string().contains("symbolic link"));
        // Root alone, or root's group, may write there.
        fs::create_dir(at("etc")).unwrap();
        for (owner_mode, group) in [(0o755, 0), (0o775, 0)] {
            lchown(at("etc"), Some(0), Some(group)).unwrap();
            mode(&at("etc"), owner_mode);
            let error = create(&at("etc/ld.so.preload"), user).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        assert_eq!(fs::read_dir(at("etc")).unwrap().count(), 0);
        // This thread has kept its rights.
        fs::write(at("etc/by-root"), "").unwrap();
        assert_eq!(fs::metadata(at("etc/by-root")).unwrap().uid(), 0);
    }
}
