use super::*;
use crate::journal::{Begun, Entry, FileChange, Identity, Line};
use crate::{HostDisk, ThisHost};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn here() -> Identity {
    let [machine, hostname, boot] = ["machine", "host", "boot"].map(str::to_owned);
    Identity { machine, hostname, boot, network: 1, network_cookie: None }
}

/// A journal of one setting, and of the boot file if given.
fn journal(key: &str, file: Option<&str>) -> String {
    let entry = |key: &str| Entry {
        key: key.to_owned(),
        before: "212992".to_owned(),
        planned: "4194304".to_owned(),
    };
    let begun = Begun {
        schema: Begun::schema(),
        version: "0.1.0".to_owned(),
        at_s: 1_700_000_000,
        identity: here(),
        goal: "1 Gbit/s over 100 ms".to_owned(),
        routes: Vec::new(),
        entries: vec![entry(key)],
    };
    let change = |text: &str| FileChange { before: Some(text.into()), planned: String::new() };
    let file = file.map(|text| Line::File(change(text)));
    let lines = [Some(Line::Begun(begun)), file, Some(Line::Ended)];
    lines.iter().flatten().map(|line| line.text().unwrap()).collect()
}

struct StateFolders {
    _folder: tempfile::TempDir,
    old: PathBuf,
    new: PathBuf,
    precious: PathBuf,
}

impl StateFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let (old, new, precious) = (path.join("old"), path.join("new"), path.join("precious"));
        fs::create_dir(&old).unwrap();
        fs::write(&precious, journal("net.core.wmem_max", None)).unwrap();
        StateFolders { _folder: folder, old, new, precious }
    }

    fn plant(&self, number: u64, text: &str) {
        let path = self.old.join(format!("{number:06}.journal"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn adopt(&self) -> Vec<Adopted> {
        let disk = HostDisk { journals: self.new.clone(), trust: Trust::Owner };
        let tuner = Tuner {
            settings: &ThisHost,
            routes: &ThisHost,
            disk: &disk,
            folder: &self.new,
            persisted: &self.precious,
            here: here(),
            now_s: 0,
        };
        let lock = Lock::take(&self.new, Trust::Owner).unwrap();
        let found = tuner.adopt(&lock, &self.old).unwrap();
        // Moved journals are usable.
        tuner.journals().unwrap();
        found
    }

    fn moved(&self) -> usize {
        let names = fs::read_dir(&self.new).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".journal")).count()
    }
}

#[test]
fn valid_journals_are_moved_in_order() {
    let folders = StateFolders::new();
    assert!(!has_journals(&folders.old) && folders.adopt().is_empty());
    folders.plant(3, &journal("net.core.wmem_max", None));
    folders.plant(20, &journal("net.core.rmem_max", Some("net.core.rmem_max = 1\n")));
    assert!(has_journals(&folders.old));
    // One that was stored before a crash, but not yet removed.
    let killed = fs::read(folders.old.join("000003.journal")).unwrap();
    fs::write(folders.new.join("000001.journal"), &killed).unwrap();
    let found = folders.adopt();
    let to = |name: &str| folders.new.join(name);
    let from = |name: &str| folders.old.join(name);
    assert_eq!(
        found,
        [
            Adopted::Moved { from: from("000003.journal"), to: to("000001.journal") },
            Adopted::Moved { from: from("000020.journal"), to: to("000002.journal") },
        ]
    );
    assert!(!has_journals(&folders.old) && folders.moved() == 2);
}

#[test]
fn planted_journals_are_reported_and_not_applied() {
    let folders = StateFolders::new();
    folders.plant(1, &journal("kernel.core_pattern", None));
    folders.plant(2, &journal("net.core.rmem_max", Some("kernel.core_pattern = |/tmp/x\n")));
    folders.plant(3, "nonsense\n");
    folders.plant(4, &"x".repeat(2 << 20));
    symlink(&folders.precious, folders.old.join("000005.journal")).unwrap();
    // A hard link to a file of root's, and a journal that others can write to.
    fs::hard_link(&folders.precious, folders.old.join("000006.journal")).unwrap();
    folders.plant(7, &journal("net.core.rmem_max", None));
    fs::set_permissions(folders.old.join("000007.journal"), fs::Permissions::from_mode(0o666))
        .unwrap();
    let found = folders.adopt();
    assert_eq!(found.len(), 7, "{found:?}");
    for (one, says) in found.iter().zip([
        "'kernel.core_pattern'",
        "line 1 sets 'kernel.core_pattern'",
        "is damaged",
        "larger than",
        "symbolic link",
        "hard links",
        "writable by other users",
    ]) {
        let Adopted::Refused { path, why } = one else { panic!("{one:?}") };
        assert!(why.contains(says) && !why.contains('\n'), "{why}");
        assert!(path.symlink_metadata().is_ok(), "it is still there");
    }
    assert_eq!(folders.moved(), 0);
}

#[test]
fn an_old_directory_behind_a_link_is_not_entered() {
    let folders = StateFolders::new();
    folders.plant(1, &journal("net.core.rmem_max", None));
    let real = folders.old.with_file_name("real");
    fs::rename(&folders.old, &real).unwrap();
    symlink(&real, &folders.old).unwrap();
    let found = folders.adopt();
    let [Adopted::Refused { path, why }] = found.as_slice() else { panic!("{found:?}") };
    assert!(path == &folders.old && why.contains("symbolic link"), "{why}");
    assert!(real.join("000001.journal").exists() && folders.moved() == 0);
}
