//! Where a capture is written to.

use crate::failure::Failure;
use live_capture::Output;
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
        let wrong = || "write FILES:SIZE, such as 10:100MB".to_owned();
        let (files, size) = text.split_once(':').ok_or_else(wrong)?;
        let files = files.parse().map_err(|_| wrong())?;
        let size = size.parse().map_err(|error: units::ParseError| error.to_string())?;
        Ok(Ring { files, size })
    }
}

pub(super) fn of(path: &Path, ring: Option<Ring>) -> Result<Output, Failure> {
    let is_pipe = path.as_os_str() == "-";
    match ring {
        Some(_) if is_pipe => Err(Failure::usage("--ring needs a file name: -w FILE")),
        Some(Ring { files, size }) => Ok(Output::Rotating { path: path.to_owned(), files, size }),
        None if is_pipe => {
            if io::stdout().is_terminal() {
                return Err(Failure::usage(
                    "cannot write a capture to a terminal; use -w FILE, or pipe it to tshark -r -",
                ));
            }
            let stream = io::stdout();
            let file = stream.as_fd().try_clone_to_owned().map_err(Failure::work)?;
            Ok(Output::Pipe(File::from(file)))
        }
        None => Ok(Output::File(path.to_owned())),
    }
}
