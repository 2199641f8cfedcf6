//! Packets of a capture, written to another one.

use crate::{Fault, Problem};
use capture::file::{FileSummary, Format, Interface, Packet};
use capture::write::{self, CapturedInterface, WriteFormat};
use std::io::Write;
use std::path::Path;
use store::{PendingFile, WriteError};

/// Bytes that are collected before they are written.
const CHUNK: usize = 256 * 1024;

/// A capture file that appears when it is complete; so it may replace the one that is read.
pub(crate) struct PacketFile {
    file: PendingFile,
    path: Box<Path>,
    bytes: Vec<u8>,
    /// The format, when the file has begun.
    format: Option<WriteFormat>,
    /// Interfaces that are described.
    described: usize,
}

fn described(interface: &Interface) -> CapturedInterface<'_> {
    let Interface { link, snaplen, name, .. } = interface;
    CapturedInterface { name, link: *link, snaplen: *snaplen, filter: "" }
}

fn cannot_write(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Host, error)
}

impl PacketFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Problem> {
        let file = PendingFile::create(path).map_err(cannot_write)?;
        Ok(PacketFile { file, path: path.into(), bytes: Vec::new(), format: None, described: 0 })
    }

    /// Adds a packet of a file.
    pub(crate) fn add(&mut self, packet: &Packet<'_>, from: &FileSummary) -> Result<(), Problem> {
        let format = self.begin(from);
        // Interfaces may be described anywhere in the file, each before its first packet.
        let needed = packet.interface as usize + 1;
        if format == WriteFormat::Pcapng && self.described < needed {
            let new = from.interfaces.iter().take(needed).skip(self.described);
            new.for_each(|it| write::interface(&mut self.bytes, &described(it)));
            self.described = needed;
        }
        write::copied(&mut self.bytes, format, packet);
        if self.bytes.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn begin(&mut self, from: &FileSummary) -> WriteFormat {
        if let Some(format) = self.format {
            return format;
        }
        let application = concat!("longhaul ", env!("CARGO_PKG_VERSION"));
        let first: Vec<CapturedInterface<'_>> =
            from.interfaces.iter().take(1).map(described).collect();
        let (format, interfaces) = match from.format {
            Format::Pcapng => (WriteFormat::Pcapng, &[][..]),
            _ => (WriteFormat::Pcap, &first[..]),
        };
        write::begin(&mut self.bytes, format, application, interfaces);
        self.format = Some(format);
        format
    }

    fn flush(&mut self) -> Result<(), Problem> {
        let written = self.file.write_all(&self.bytes);
        self.bytes.clear();
        let path = self.path.to_path_buf();
        written.map_err(|source| cannot_write(WriteError { path, source }))
    }

    /// Completes the file, and puts it in its place.
    pub(crate) fn finish(mut self, from: &FileSummary) -> Result<(), Problem> {
        self.begin(from);
        self.flush()?;
        self.file.commit().map_err(cannot_write)
    }
}
