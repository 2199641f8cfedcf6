//! Links and files that others plant, and what stays possible.

use super::*;
use crate::directory::effective_uid;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::PathBuf;

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

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let replacement = Replacement::begin(path)?;
    replacement.file().write_all(bytes)?;
    replacement.keep()
}

/// Every way to write a file.
fn write_in_every_way(path: &Path) -> [io::Result<()>; 6] {
    [
        create(path).map(drop),
        create_readable(path).map(drop),
        append(path).and_then(|mut file| file.write_all(b"line")),
        replace(path, b"page"),
        Destination::of(path, FinalLink::Refuse).and_then(|it| it.create_new()).map(drop),
        create_directory(path),
    ]
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
        replace(&path, b"page").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap().len()), (0o640, 4));
    }
}

#[test]
fn a_replacement_appears_when_it_is_kept() {
    let (_folder, _, own) = directories();
    let path = own.join("page.html");
    fs::write(&path, "earlier").unwrap();
    let dropped = Replacement::begin(&path).unwrap();
    dropped.file().write_all(b"half").unwrap();
    assert_eq!(fs::read_dir(&own).unwrap().count(), 2);
    drop(dropped);
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
    replace(&path, b"later").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"later");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1, "no temporary file is left");
    assert!(Replacement::begin(&own).is_err() && Replacement::begin(Path::new("/")).is_err());
    assert!(create(&own.join("new/")).is_err() && !own.join("new").exists());
}

#[test]
fn a_link_that_others_can_create_is_not_followed() {
    let (_folder, shared, own) = directories();
    let precious = own.join("precious");
    fs::write(&precious, "precious").unwrap();
    let planted = shared.join("c.pcap");
    symlink(&precious, &planted).unwrap();
    assert!(write_in_every_way(&planted).iter().all(Result::is_err));
    let error = create(&planted).unwrap_err().to_string();
    assert!(error.contains("c.pcap is a symbolic link"), "{error}");
    fs::remove_file(&planted).unwrap();
    fs::hard_link(&precious, &planted).unwrap();
    assert!(create(&planted).is_err() && append(&planted).is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    // In a private directory links are followed, at the end and on the path.
    symlink(&precious, own.join("link")).unwrap();
    append(&own.join("link")).unwrap().write_all(b"!").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious!");
    symlink("new", own.join("dangling")).unwrap();
    create(&own.join("dangling")).unwrap();
    assert_eq!(mode(&own.join("new")), 0o600);
    symlink("../own/.", own.join("loop")).unwrap();
    replace(&own.join("loop/loop/../own/./precious"), b"page").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "page");
    symlink("endless", own.join("endless")).unwrap();
    assert!(write_in_every_way(&own.join("endless/x")).iter().all(Result::is_err));
}

/// What another user can prepare for root, as links at the end and on the path, in a directory of
/// their own and in `/tmp`.
#[test]
fn root_follows_no_link_of_another_user() {
    if effective_uid() != 0 {
        return;
    }
    let (folder, shared, own) = directories();
    fs::write(own.join("victim"), "precious").unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    lchown(&home, Some(1234), Some(1234)).unwrap();
    for planted in [&home, &shared] {
        symlink(&own, planted.join("out")).unwrap();
        symlink("out", planted.join("twice")).unwrap();
        symlink(own.join("victim"), planted.join("last")).unwrap();
        symlink(own.join("new"), planted.join("dangling")).unwrap();
        for name in ["out", "twice", "last", "dangling"] {
            lchown(planted.join(name), Some(1234), Some(1234)).unwrap();
        }
        for name in ["out/victim", "out/new", "twice/victim", "twice/../x", "last", "dangling"] {
            let path = planted.join(name);
            for outcome in write_in_every_way(&path) {
                let error = outcome.unwrap_err();
                let is_refused = crate::directory::is_unsafe(&error)
                    || error.kind() == io::ErrorKind::AlreadyExists;
                assert!(is_refused, "{path:?}: {error}");
            }
            assert!(
                Destination::of(&path, FinalLink::Refuse).and_then(|p| p.open_existing()).is_err()
            );
        }
        assert!(directory(&planted.join("out")).is_err() && directory(planted).is_ok());
    }
    // Also root's own link, in a directory where another user can put it.
    symlink(&own, home.join("of-root")).unwrap();
    assert!(create(&home.join("of-root/new")).is_err());
    assert_eq!(fs::read_to_string(own.join("victim")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
    // A directory of another user's without links on the path can be written to.
    assert!(write_in_every_way(&home.join("plain"))[..4].iter().all(Result::is_ok));
    assert_eq!(fs::metadata(home.join("plain")).unwrap().uid(), 0);
}

/// The rights of an ordinary user: links are followed unless a stranger planted them in a
/// directory of everybody's.
#[test]
fn an_ordinary_user_follows_links_on_the_path() {
    if effective_uid() != 0 {
        return;
    }
    let (_folder, shared, own) = directories();
    let writer = Writer::user(1234);
    let open = |path: &Path| Destination::of_writer(path, FinalLink::Follow, writer);
    symlink(&own, shared.join("of-root")).unwrap();
    for (name, uid) in [("mine", 1234), ("strange", 4321)] {
        symlink(&own, shared.join(name)).unwrap();
        lchown(shared.join(name), Some(uid), None).unwrap();
    }
    assert!(open(&shared.join("of-root/x")).is_ok() && open(&shared.join("mine/x")).is_ok());
    assert!(open(&shared.join("strange/x")).is_err());
    symlink(&own, own.join("link")).unwrap();
    lchown(own.join("link"), Some(4321), None).unwrap();
    assert!(open(&own.join("link/x")).is_ok(), "root's directory: root has put it there");
}

/// What the path leads to is replaced between the walk and what follows.
#[test]
fn a_destination_stays_in_the_directory_that_was_walked_to() {
    let (folder, _, own) = directories();
    let victims = folder.path().join("victims");
    fs::create_dir(&victims).unwrap();
    fs::write(victims.join("pid"), "precious").unwrap();
    let destination = Destination::of(&own.join("pid"), FinalLink::Refuse).unwrap();
    let file = destination.create_new().unwrap();
    let replacement = Replacement::begin(&own.join("page")).unwrap();
    fs::rename(&own, folder.path().join("aside")).unwrap();
    symlink(&victims, &own).unwrap();
    destination.remove_if(&file).unwrap();
    replacement.keep().unwrap();
    assert_eq!(fs::read_to_string(victims.join("pid")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&victims).unwrap().count(), 1);
    let names: Vec<_> = fs::read_dir(folder.path().join("aside")).unwrap().collect();
    assert_eq!(names.len(), 1, "the page, and no file of the destination: {names:?}");
    // Another file of that name is not ours to remove.
    let destination = Destination::of(&victims.join("pid"), FinalLink::Refuse).unwrap();
    destination.remove_if(&file).unwrap();
    assert!(victims.join("pid").exists());
}

#[test]
fn devices_are_opened_directly() {
    assert!(create(Path::new("/dev/null")).is_ok() && append(Path::new("/dev/null")).is_ok());
    replace(Path::new("/dev/null"), b"page").unwrap();
    assert!(Replacement::begin(Path::new("/dev/null")).unwrap().is_direct());
    // A link to a pipe, such as a shell's `>(program)`.
    let (_reader, writer) = io::pipe().unwrap();
    let name = format!("/dev/fd/{}", writer.as_raw_fd());
    assert!(create(Path::new(&name)).is_ok());
    replace(Path::new(&name), b"page").unwrap();
    assert!(create(Path::new("/nonexistent/file")).is_err());
}
