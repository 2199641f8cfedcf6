//! The disks of flows that send a file: each of a rate, and each with a file of its own, so that
//! no page cache has what another run read.

use crate::testbed::AttemptError;
use host::confined::{Scratch, ScratchDirectory};
use host::slow_disk::SlowDisk;
use std::path::Path;
use study::Traffic;
use units::BitRate;

/// The disk of one flow.
#[derive(Debug)]
pub(crate) struct FlowDisk {
    /// Unmounted before its mount point is removed.
    disk: SlowDisk,
    _directory: ScratchDirectory,
}

impl FlowDisk {
    /// Of a flow that sends a file.
    pub(crate) fn mount(
        traffic: &Traffic,
        rate: BitRate,
        scratch: &Scratch,
    ) -> Result<Self, AttemptError> {
        let wrong = |source| AttemptError::Disk { flow: traffic.name.clone(), source };
        let directory = scratch.directory(true, |_| Vec::new()).map_err(wrong)?;
        let disk = SlowDisk::mount(directory.path(), rate).map_err(wrong)?;
        Ok(FlowDisk { disk, _directory: directory })
    }

    /// The file that is sent.
    pub(crate) fn file(&self) -> &Path {
        self.disk.file()
    }
}
