//! Journals of a running lab's hosts: a directory for each lab's process, and one for each host in it.

use super::state::State;
use crate::{Fault, Problem};
use host::directory::{Directory, Trust};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of journals of a host of a running lab. Those of labs that have ended are removed.
///
/// # Errors
/// No directory for journals, or one that others can write to.
pub fn lab_journals(process: u32, host: &str) -> Result<PathBuf, Problem> {
    let state = State::find()?;
    let labs = state.directory.join("labs");
    remove_ended(&labs, state.trust).map_err(|error| {
        Problem::new(Fault::Host, format!("cannot keep journals of labs: {error}"))
    })?;
    Ok(labs.join(process.to_string()).join(host))
}

/// The settings of an ended lab are gone: remove its journals.
///
/// # Errors
/// Where the directory itself is not to be followed.
fn remove_ended(labs: &Path, trust: Trust) -> io::Result<()> {
    let labs = match Directory::open(labs, trust) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        labs => labs?,
    };
    for name in labs.names()? {
        let is_process = name.parse::<u32>().is_ok();
        if is_process && !Path::new("/proc").join(&name).exists() {
            // Files of others stay; they are harmless.
            let _ = remove_lab(&labs, &name);
        }
    }
    Ok(())
}

/// Removes one lab's directory: a directory for each host, with the files of a
/// directory of journals. A link, another user's directory and any other file stay,
/// and so do the directories above them.
fn remove_lab(labs: &Directory, lab: &str) -> io::Result<()> {
    let hosts = labs.child(lab)?;
    for host in hosts.names()? {
        let journals = hosts.child(&host)?;
        for file in journals.names()?.iter().filter(|name| tune::is_journal_file(name)) {
            journals.remove(file)?;
        }
        hosts.remove_directory(&host)?;
    }
    labs.remove_directory(lab)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    /// Above any process id: PID_MAX_LIMIT is 2^22 (proc_sys_kernel(5)).
    const ENDED: &str = "99999999";

    fn directory(path: &Path) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).unwrap();
    }

    fn temporary() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let labs = folder.path().canonicalize().unwrap().join("labs");
        directory(&labs);
        (folder, labs)
    }

    #[test]
    fn an_ended_labs_journals_go_and_a_running_ones_stay() {
        let (_folder, labs) = temporary();
        let running = std::process::id().to_string();
        for lab in [ENDED, &running] {
            directory(&labs.join(lab).join("server"));
            for file in ["lock", "unfinished", "000001.journal"] {
                fs::write(labs.join(lab).join("server").join(file), "").unwrap();
            }
        }
        remove_ended(&labs, Trust::Owner).unwrap();
        assert!(!labs.join(ENDED).exists() && labs.join(running).join("server/lock").exists());
    }

    #[test]
    fn nothing_else_is_removed() {
        let (_folder, labs) = temporary();
        let precious = labs.with_file_name("precious");
        directory(&precious.join(ENDED).join("host"));
        let journal = precious.join(ENDED).join("host/000001.journal");
        for file in [&journal, &precious.join("letter")] {
            fs::write(file, "precious").unwrap();
        }
        // A link in the place of `labs`, of a lab, of a host.
        let link = labs.with_file_name("link");
        symlink(&precious, &link).unwrap();
        assert!(remove_ended(&link, Trust::Owner).is_err());
        symlink(precious.join(ENDED), labs.join(ENDED)).unwrap();
        remove_ended(&labs, Trust::Owner).unwrap();
        fs::remove_file(labs.join(ENDED)).unwrap();
        directory(&labs.join(ENDED));
        symlink(precious.join(ENDED).join("host"), labs.join(ENDED).join("host")).unwrap();
        remove_ended(&labs, Trust::Owner).unwrap();
        assert!(journal.exists() && precious.join("letter").exists());
        // A file that is not a journal, and a directory that is not a lab's.
        fs::remove_file(labs.join(ENDED).join("host")).unwrap();
        directory(&labs.join(ENDED).join("host/deeper"));
        fs::write(labs.join(ENDED).join("host/letter"), "").unwrap();
        directory(&labs.join("photographs"));
        remove_ended(&labs, Trust::Owner).unwrap();
        assert!(labs.join(ENDED).join("host/letter").exists());
        assert!(labs.join(ENDED).join("host/deeper").exists() && labs.join("photographs").exists());
    }
}
