//! Where a capture is written to.

use crate::failure::Failure;
use longhaul::capture::CaptureOutput;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;
use units::ByteCount;

/// Files in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    files: usize,
    size: ByteCount,
}

impl Ring {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "use FILES:SIZE, such as 10:100MB".to_owned();
        let (files, size) = text.split_once(':').ok_or_else(wrong)?;
        let files = files.parse().map_err(|_| wrong())?;
        let size = size.parse().map_err(|error: units::ParseError| error.to_string())?;
        Ok(Ring { files, size })
    }
}

pub(super) fn of(path: &Path, ring: Option<Ring>) -> CaptureOutput {
    let path = path.to_owned();
    match ring {
        Some(Ring { files, size }) => CaptureOutput::Rotating { path, files, size },
        None => CaptureOutput::File(path),
    }
}

/// Standard output.
pub(super) fn pipe(ring: Option<Ring>) -> Result<File, Failure> {
    if ring.is_some() {
        return Err(Failure::usage("--ring needs a file name: -w FILE"));
    }
    let stream = io::stdout();
    if stream.is_terminal() {
        return Err(Failure::usage(
            "cannot write a capture to a terminal; use -w FILE, or pipe it to tshark -r -",
        ));
    }
    let file = stream.as_fd().try_clone_to_owned().map_err(Failure::work)?;
    Ok(File::from(file))
}
