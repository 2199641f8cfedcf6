//! Packets of an interface, captured to files.
//!
//! ```no_run
//! use longhaul::capture::{self, CaptureRequest};
//! use longhaul::StopFlag;
//!
//! let request = CaptureRequest { packets: Some(100), ..CaptureRequest::new("eth0", "a.pcapng") };
//! let document = capture::run(&request, &mut |_| (), &StopFlag::new())?;
//! println!("{} packets", document.report.packets);
//! # Ok::<(), longhaul::Problem>(())
//! ```

mod interfaces;
mod permission;

pub use interfaces::interfaces;
pub use live_capture::{DEFAULT_BUFFER, DEFAULT_SNAPLEN, MAX_SNAPLEN, Output, WriteFormat};
pub use permission::may_need_permission;

use crate::{Fault, Field, Problem, StopFlag};
use host::privileges::{self, User};
use live_capture::{CaptureConfig, Event, Limits, LiveCapture, Totals};
use record::{CAPTURE_SCHEMA, CaptureReport};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::ByteCount;

/// Sizes of the memory for packets that wait to be written.
const BUFFERS: RangeInclusive<ByteCount> =
    ByteCount::from_bytes(2 << 20)..=ByteCount::from_bytes(1 << 30);

/// The packets to capture, and their destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaptureRequest {
    /// The interface; `any` for all.
    pub interface: String,
    /// A filter in tcpdump's syntax; empty for every packet.
    pub filter: String,
    /// Bytes of a packet that are kept, up to 262,144; 0 for all of it.
    pub snaplen: u32,
    /// Memory for packets waiting to be written, from 2 MiB to 1 GiB.
    pub buffer: ByteCount,
    /// True for adapter timestamps of received packets.
    pub hardware_timestamps: bool,
    /// True to also receive packets addressed to other hosts.
    pub promiscuous: bool,
    /// Where the packets go.
    pub output: CaptureOutput,
    /// The format of the files; `None`: pcap if their name ends in it, else pcapng.
    pub format: Option<CaptureFormat>,
    /// Stops after so many packets.
    pub packets: Option<u64>,
    /// Stops after this time, in seconds.
    #[serde(with = "units::seconds::option")]
    pub duration: Option<Duration>,
}

/// Files of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureOutput {
    /// One file.
    File(PathBuf),
    /// Files in turn; the oldest is overwritten.
    Rotating {
        /// Their name, without the number.
        path: PathBuf,
        /// Their number.
        files: usize,
        /// The size of each.
        size: ByteCount,
    },
}

/// The format of capture files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureFormat {
    /// With interface names, statistics and directions.
    Pcapng,
    /// For programs that cannot read pcapng.
    Pcap,
}

impl Default for CaptureRequest {
    /// Headers of every packet. Interface and output are missing.
    fn default() -> Self {
        CaptureRequest {
            interface: String::new(),
            filter: String::new(),
            snaplen: DEFAULT_SNAPLEN,
            buffer: DEFAULT_BUFFER,
            hardware_timestamps: false,
            promiscuous: false,
            output: CaptureOutput::File(PathBuf::new()),
            format: None,
            packets: None,
            duration: None,
        }
    }
}

impl CaptureRequest {
    /// Headers of every packet of an interface, until the stop flag is raised.
    pub fn new(interface: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        let (interface, output) = (interface.into(), CaptureOutput::File(file.into()));
        CaptureRequest { interface, output, ..CaptureRequest::default() }
    }

    /// Checks the request before anything is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.path().as_os_str().is_empty() {
            return Err(Problem::field(Field::Output, "no file for the packets", ""));
        }
        self.check_source()
    }

    fn check_source(&self) -> Result<(), Problem> {
        if self.interface.is_empty() {
            return Err(Problem::field(Field::Interface, "no interface", "or any for all of them"));
        }
        if self.snaplen > MAX_SNAPLEN {
            let message = format!("{} bytes of each packet", self.snaplen);
            return Err(Problem::field(Field::Snaplen, message, format!("0 to {MAX_SNAPLEN}")));
        }
        if !BUFFERS.contains(&self.buffer) {
            let message = format!("a buffer of {}", self.buffer);
            return Err(Problem::field(Field::Buffer, message, "2MiB to 1GiB"));
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        match &self.output {
            CaptureOutput::File(path) | CaptureOutput::Rotating { path, .. } => path,
        }
    }

    fn config(&self) -> CaptureConfig {
        CaptureConfig {
            interface: self.interface.clone(),
            filter: self.filter.clone(),
            snaplen: if self.snaplen == 0 { MAX_SNAPLEN } else { self.snaplen },
            buffer: self.buffer,
            hardware_timestamps: self.hardware_timestamps,
            promiscuous: self.promiscuous,
        }
    }

    fn write_format(&self) -> WriteFormat {
        match self.format {
            Some(CaptureFormat::Pcap) => WriteFormat::Pcap,
            Some(CaptureFormat::Pcapng) => WriteFormat::Pcapng,
            None if self.path().extension().is_some_and(|it| it == "pcap") => WriteFormat::Pcap,
            None => WriteFormat::Pcapng,
        }
    }
}

/// Events of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureEvent {
    /// Packets are captured, and the process has no privileges from here on.
    Started {
        /// Bytes that are kept of each packet.
        snaplen: u32,
        /// The memory for packets waiting to be written.
        buffer: ByteCount,
    },
    /// A second has passed.
    Progress(CaptureProgress),
    /// The interface is down; its packets are captured once it is up.
    Down,
}

/// The totals so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CaptureProgress {
    /// Packets that were written.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Packets that the kernel dropped: the buffer was full.
    pub dropped_packets: u64,
    /// Length of the capture.
    pub seconds: f64,
}

impl From<&Totals> for CaptureProgress {
    fn from(totals: &Totals) -> Self {
        CaptureProgress {
            packets: totals.packets,
            wire_bytes: totals.bytes,
            dropped_packets: totals.dropped,
            seconds: totals.elapsed.as_secs_f64(),
        }
    }
}

/// The result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaptureDocument {
    /// Name and version of the document.
    pub schema: String,
    /// Longhaul's version.
    pub version: String,
    /// The capture.
    #[serde(flatten)]
    pub report: CaptureReport,
    /// The reason the capture ended early: the disk is full, or the interface was removed. Not part
    /// of the document, so it is `None` after [`crate::run`].
    #[serde(skip)]
    pub problem: Option<Problem>,
}

/// Captures to files until a limit is reached or `stop` is raised.
///
/// The socket and the files are opened first; then the process gives up all its privileges for
/// good, and root becomes the user who called sudo, or nobody. Threads that run already keep
/// theirs. [`crate::run`] runs this in a helper process: see [`crate::init`].
///
/// # Errors
/// An invalid field, an unknown interface, no privilege, a file that cannot be created.
pub fn run(
    request: &CaptureRequest,
    on_event: &mut dyn FnMut(CaptureEvent),
    stop: &StopFlag,
) -> Result<CaptureDocument, Problem> {
    request.check()?;
    let output = match request.output.clone() {
        CaptureOutput::File(path) => Output::File(path),
        CaptureOutput::Rotating { path, files, size } => Output::Rotating { path, files, size },
    };
    run_to(request, output, on_event, stop)
}

/// Captures to an output that is open already, such as a pipe; ignores the request's output.
///
/// # Errors
/// As [`run`].
pub fn run_to(
    request: &CaptureRequest,
    output: Output,
    on_event: &mut dyn FnMut(CaptureEvent),
    stop: &StopFlag,
) -> Result<CaptureDocument, Problem> {
    request.check_source()?;
    let config = request.config();
    let user = User::instead_of_root();
    let creator = user.filter(|it| it.is_caller());
    let capture = LiveCapture::open(&config, output, request.write_format(), creator)?;
    privileges::drop(user).map_err(|error| {
        Problem::new(Fault::Internal, format!("cannot give up privileges: {error}"))
    })?;
    on_event(CaptureEvent::Started { snaplen: config.snaplen, buffer: capture.buffer() });
    let limits = Limits { packets: request.packets, duration: request.duration };
    let mut observe = |event: Event<'_>| {
        on_event(match event {
            Event::Progress(totals) => CaptureEvent::Progress(totals.into()),
            Event::Down => CaptureEvent::Down,
        });
    };
    let (totals, ending) = capture.run(limits, &|| stop.is_raised(), &mut observe);
    Ok(CaptureDocument {
        schema: CAPTURE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        report: live_capture::report(&config, &totals, &ending),
        problem: ending.problem(&totals, &config.interface),
    })
}
