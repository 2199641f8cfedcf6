//! The file that holds the process id while the program runs.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Goes with its value.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes it, unless another process that it names is there.
    pub(crate) fn write(path: &Path) -> Result<Self, Failure> {
        let before = std::fs::read_to_string(path).ok();
        let other = before.and_then(|text| text.trim().parse::<u32>().ok());
        if let Some(other) = other.filter(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            return Err(Failure::work(format!(
                "process {other} of {} is still there; end it, or name another file",
                path.display()
            )));
        }
        std::fs::write(path, std::process::id().to_string()).map_err(|error| {
            Failure::work(format!("cannot write the process id to {}: {error}", path.display()))
        })?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Whoever took it away before has done the work.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::PidFile;

    #[test]
    fn kept_while_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        std::fs::write(&path, "nonsense").unwrap();
        let kept = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        // This process is there, so a second one is refused.
        assert!(PidFile::write(&path).is_err());
        drop(kept);
        assert!(!path.exists());
        assert!(PidFile::write(&folder.path().join("no/such")).is_err());
    }
}
