//! The file that holds the process id while the program runs.

use crate::output_file::{Destination, FinalLink};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Maximum size of a pid file: ten digits, a newline, and some space for what
/// other programs add.
const MAX_BYTES: u64 = 32;

/// Removes the file when dropped.
#[derive(Debug)]
pub struct PidFile {
    destination: Destination,
    file: File,
}

impl PidFile {
    /// Creates the file. Like iperf3 it replaces an existing pid file, unless that
    /// process is still running. Anything else, such as a symbolic link, is refused.
    ///
    /// # Errors
    /// The operation, the file and the reason.
    pub fn write(path: &Path) -> io::Result<Self> {
        let failed = |error: io::Error| {
            let text = format!("cannot write the process id to {}: {error}", path.display());
            io::Error::new(error.kind(), text)
        };
        let destination = Destination::of(path, FinalLink::Refuse).map_err(failed)?;
        if let Some(text) = destination.open_existing().and_then(read).map_err(failed)? {
            let other = text.trim().parse::<u32>().ok();
            if let Some(other) = other.filter(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
                return Err(io::Error::other(format!(
                    "process {other} in {} is still running; stop it or use another file",
                    path.display()
                )));
            }
            destination.remove().map_err(failed)?;
        }
        // Fails if another process has created it in the meantime.
        let mut file = destination.create_new().map_err(failed)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(failed)?;
        Ok(PidFile { destination, file })
    }
}

/// Reads a pid file, if there is one; a longer file is something else.
fn read(file: Option<File>) -> io::Result<Option<String>> {
    let Some(file) = file else { return Ok(None) };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it does not contain a process id"));
    }
    Ok(Some(text))
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // If another process has replaced it, it must stay.
        let text = self.destination.open_existing().and_then(read).ok().flatten();
        if text.is_some_and(|text| text.trim() == std::process::id().to_string()) {
            let _ = self.destination.remove_if(&self.file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PidFile;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_file_is_removed_on_drop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        fs::write(&path, "nonsense").unwrap();
        let kept = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        // This process is there, so a second one is refused.
        assert!(PidFile::write(&path).is_err());
        drop(kept);
        assert!(!path.exists());
        assert!(PidFile::write(&folder.path().join("no/such")).is_err());
    }

    #[test]
    fn links_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, precious) = (folder.path().join("pid"), folder.path().join("precious"));
        let text = "something that somebody would rather keep";
        fs::write(&precious, text).unwrap();
        for target in [precious.clone(), folder.path().join("new")] {
            symlink(target, &path).unwrap();
            let error = PidFile::write(&path).unwrap_err().to_string();
            assert!(error.contains("symbolic link") && !error.contains('\n'), "{error}");
            fs::remove_file(&path).unwrap();
        }
        assert!(PidFile::write(&precious).unwrap_err().to_string().contains("does not contain"));
        assert_eq!(fs::read_to_string(&precious).unwrap(), text);
        assert!(!folder.path().join("new").exists());
        // Replaced while we ran: it is another process's.
        let kept = PidFile::write(&path).unwrap();
        fs::write(&path, "1").unwrap();
        drop(kept);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
    }
}
