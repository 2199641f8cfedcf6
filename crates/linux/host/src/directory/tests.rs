use super::*;
use crate::sys::check;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn why(error: &io::Error) -> (PathBuf, Unsafe) {
    let inner = error.get_ref().unwrap().downcast_ref::<UnsafePath>().unwrap();
    (inner.component.clone(), inner.why)
}

#[test]
fn missing_components_are_created_private() {
    let (_folder, path) = temporary();
    let deep = path.join("a/b");
    assert_eq!(Directory::open(&deep, Trust::Owner).unwrap_err().kind(), io::ErrorKind::NotFound);
    Directory::create(&deep, Trust::Owner).unwrap();
    for directory in [path.join("a"), deep.clone()] {
        assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o700);
    }
    assert!(Directory::open(&deep.join("../b"), Trust::Owner).is_err());
    assert!(Directory::open(Path::new("a/b"), Trust::NoSymlinks).is_err());
}

#[test]
fn a_symlink_anywhere_in_the_path_is_refused() {
    let (_folder, path) = temporary();
    fs::create_dir_all(path.join("real/inner")).unwrap();
    symlink(path.join("real"), path.join("link")).unwrap();
    for (through, component) in [("link", "link"), ("link/inner", "link"), ("link/new", "link")] {
        for trust in [Trust::Owner, Trust::NoSymlinks] {
            let error = Directory::create(&path.join(through), trust).unwrap_err();
            assert_eq!(why(&error), (path.join(component), Unsafe::Symlink), "{error}");
        }
    }
    assert!(!path.join("real/new").exists());
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let (_folder, path) = temporary();
    for (mode, sound) in [(0o700, true), (0o755, true), (0o775, false), (0o1777, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = Directory::open(&path, Trust::Owner);
        assert_eq!(opened.is_ok(), sound, "{mode:o}");
        if let Err(error) = opened {
            assert_eq!(why(&error), (path.clone(), Unsafe::Writable(mode)));
        }
        // As root or not, /tmp or its owner is refused before the directory itself.
        if path.starts_with("/tmp") {
            assert!(is_unsafe(&Directory::open(&path, Trust::RootOnly).unwrap_err()));
        }
    }
}

#[test]
fn a_symlink_is_neither_read_nor_written() {
    let (_folder, path) = temporary();
    let precious = path.join("precious");
    fs::write(&precious, "precious").unwrap();
    let state = path.join("state");
    let directory = Directory::create(&state, Trust::Owner).unwrap();
    let plant = || {
        let _ = fs::remove_file(state.join("name"));
        symlink(&precious, state.join("name")).unwrap();
    };
    plant();
    assert_eq!(why(&directory.read("name", 10).unwrap_err()).1, Unsafe::Symlink);
    assert_eq!(why(&directory.append("name", b"x").unwrap_err()).1, Unsafe::Symlink);
    assert_eq!(why(&directory.open_or_create("name").unwrap_err()).1, Unsafe::Symlink);
    assert!(directory.create_new("name", 0o600).is_err());
    assert_eq!(directory.read_linked("name", 10).unwrap(), b"precious");
    directory.store("name", 0o600, b"own").unwrap();
    assert_eq!(directory.read("name", 10).unwrap(), b"own");
    assert_eq!(fs::metadata(state.join("name")).unwrap().mode() & 0o7777, 0o600);
    // Storing to a name that is a link replaces the link and leaves its target.
    directory.store("other", 0o600, b"more").unwrap();
    plant();
    directory.rename("other", "name").unwrap();
    plant();
    directory.remove("name").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    for name in ["../precious", "..", "", "a/b", "a\0b"] {
        assert!(directory.read(name, 10).is_err(), "{name:?}");
        assert!(directory.remove(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_hard_link_a_pipe_and_a_long_file_are_refused() {
    let (_folder, path) = temporary();
    let directory = Directory::open(&path, Trust::Owner).unwrap();
    directory.store("one", 0o600, b"0123456789").unwrap();
    assert_eq!(directory.read_own("one", 10).unwrap(), b"0123456789");
    assert!(directory.read_own("one", 9).unwrap_err().to_string().contains("9 bytes"));
    fs::set_permissions(path.join("one"), fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!(why(&directory.read_own("one", 10).unwrap_err()).1, Unsafe::Writable(0o622));
    fs::set_permissions(path.join("one"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(path.join("one"), path.join("two")).unwrap();
    assert_eq!(why(&directory.read_own("two", 10).unwrap_err()).1, Unsafe::HardLinks);
    let pipe = CString::new(path.join("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: a valid path.
    check(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }).unwrap();
    assert_eq!(why(&directory.read("pipe", 10).unwrap_err()).1, Unsafe::NotRegular);
}

/// While another process keeps replacing the directory with a link, nothing is
/// ever written to the link's target.
#[test]
fn a_directory_replaced_with_a_symlink_redirects_nothing() {
    let (_folder, path) = temporary();
    let (target, state, aside) = (path.join("target"), path.join("state"), path.join("aside"));
    fs::create_dir(&target).unwrap();
    fs::create_dir(&state).unwrap();
    symlink(&target, path.join("link")).unwrap();
    let swaps = std::thread::spawn({
        let (state, aside, link) = (state.clone(), aside.clone(), path.join("link"));
        move || {
            for _ in 0..500 {
                fs::rename(&state, &aside).unwrap();
                fs::rename(&link, &state).unwrap();
                fs::rename(&state, &link).unwrap();
                fs::rename(&aside, &state).unwrap();
            }
        }
    });
    while !swaps.is_finished() {
        if let Ok(directory) = Directory::open(&state, Trust::Owner) {
            directory.store("journal", 0o600, b"x").unwrap();
        }
    }
    swaps.join().unwrap();
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}
