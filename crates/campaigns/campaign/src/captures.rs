//! Captures of a study's runs, on request: headers at the first client of the cell's lab, of the
//! first run of each cell. Bounded in number and size.

use crate::CampaignError;
use crate::testbed::AttemptError;
use host::directory::{Directory, Trust};
use lab::{Lab, LabError};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use study::{CellRun, Part};
use units::ByteCount;

/// Most captures of a study.
pub const MAX_CAPTURES: u32 = 1000;

/// Bytes kept of a packet, from its IP header: as `longhaul capture` keeps.
const SNAPLEN: usize = 192;

/// The directory within the study's.
const FOLDER: &str = "captures";

/// Where the captures of a study are kept, and how long each may become.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The study's directory.
    pub folder: PathBuf,
    /// Size of a capture at most; further packets are left out.
    pub max_size: ByteCount,
}

/// The open directory of a study's captures.
#[derive(Debug)]
pub(crate) struct Captures {
    directory: Directory,
    max_size: ByteCount,
    made: AtomicU32,
}

impl Captures {
    pub(crate) fn open(options: &CaptureOptions) -> Result<Self, CampaignError> {
        let folder = options.folder.join(FOLDER);
        let wrong = |source| CampaignError::Folder { folder: folder.clone(), source };
        let path = std::path::absolute(&folder).map_err(wrong)?;
        let directory = Directory::create(&path, Trust::Owner).map_err(wrong)?;
        Ok(Captures { directory, max_size: options.max_size, made: AtomicU32::new(0) })
    }

    /// An empty file for a run, if it is the first one of its cell. An attempt before is
    /// overwritten.
    pub(crate) fn file(
        &self,
        part: &Part,
        run: CellRun,
        attempt: u32,
    ) -> io::Result<Option<CaptureFile>> {
        let is_further = run.repeat > 1;
        if is_further || (attempt == 1 && self.made.fetch_add(1, Ordering::Relaxed) >= MAX_CAPTURES)
        {
            return Ok(None);
        }
        let name = name(&part.name, run);
        let file = self.directory.open_or_create(&name)?;
        file.set_len(0)?;
        Ok(Some(CaptureFile {
            path: self.directory.path().join(name),
            file,
            left: self.max_size.bytes(),
        }))
    }
}

/// `cell-7.pcapng`, or with the name of the study's part.
fn name(part: &str, run: CellRun) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let part: String = part.chars().take(100).map(plain).collect();
    let dash = if part.is_empty() { "" } else { "-" };
    format!("{part}{dash}cell-{}.pcapng", run.cell)
}

/// A file that takes whole blocks up to a size.
#[derive(Debug)]
pub(crate) struct CaptureFile {
    path: PathBuf,
    file: File,
    left: u64,
}

impl CaptureFile {
    /// Captures at the first client from now on, until the lab ends.
    pub(crate) fn start(self, lab: &Arc<Lab>) -> Result<RunningCapture, LabError> {
        let client = lab.client().name.clone();
        let watch = lab.watch(Some(&client), SNAPLEN)?;
        let (lab, path) = (Arc::clone(lab), self.path.clone());
        let write = move || lab::capture::stream(&lab, &client, &watch, self);
        let thread = thread::Builder::new().name("capture".to_owned()).spawn(write);
        let thread = thread.map_err(|source| LabError::System {
            step: "starting the thread of a capture",
            source,
        })?;
        Ok(RunningCapture { path, thread })
    }
}

impl Write for CaptureFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What comes at once are whole blocks: a capture that is full ends with one.
        if bytes.len() as u64 > self.left {
            self.left = 0;
            return Ok(bytes.len());
        }
        self.file.write_all(bytes)?;
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A capture of a lab.
#[derive(Debug)]
pub(crate) struct RunningCapture {
    path: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

impl RunningCapture {
    /// Waits for its last packet, after the lab has ended.
    pub(crate) fn finish(self) -> Result<(), AttemptError> {
        let ended = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_err(|source| AttemptError::Capture { path: self.path, source })
    }
}

/// Where the captures of the study in `folder` are.
#[must_use]
pub fn captures_folder(folder: &Path) -> PathBuf {
    folder.join(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        let run = CellRun { cell: 7, repeat: 1 };
        assert_eq!(name("", run), "cell-7.pcapng");
        assert_eq!(name("up/../down", run), "up____down-cell-7.pcapng");
    }

    #[test]
    fn a_full_capture_takes_no_part_of_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let file = File::create(&path).unwrap();
        let mut capture = CaptureFile { path: path.clone(), file, left: 10 };
        for block in [&[1; 6][..], &[2; 6], &[3; 4]] {
            capture.write_all(block).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), [1; 6]);
    }
}
