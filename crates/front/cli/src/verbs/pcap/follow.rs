//! `longhaul pcap follow`: data that both ends of a TCP stream or UDP conversation sent, in order.

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::read_progress;
use crate::stop;
use clap::{Args, ValueEnum};
use longhaul::pcap::document::packets::hexadecimal;
use longhaul::pcap::{self, FollowRequest, FollowedBytes, ReadEvent, StreamEnd, follow};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use store::{PendingFile, WriteError};

/// Show what both ends of a stream sent, in order
///
/// Like Wireshark's "Follow Stream". '>' marks lines from the end that sent
/// first, '<' lines from the other end, '!' bytes that were not captured.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FollowArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Stream number: tcp.stream, or udp.stream with --type udp
    #[arg(value_name = "STREAM")]
    stream: u32,
    /// Protocol: tcp, udp
    #[arg(long = "type", short = 't', value_enum, value_name = "PROTOCOL", default_value = "tcp")]
    #[arg(hide_possible_values = true)]
    transport: Transport,
    /// Form: ascii, hex, raw (hexadecimal alone)
    #[arg(long = "as", value_enum, value_name = "FORM", default_value = "ascii")]
    #[arg(hide_possible_values = true)]
    form: Form,
    /// Show one end: first (the one that sent first), second
    #[arg(long, value_enum, value_name = "END", hide_possible_values = true)]
    end: Option<End>,
    /// Bytes to show; 0 for all [default: 1000000; all with -w or -J]
    #[arg(long, short = 'n', value_name = "N")]
    bytes: Option<u64>,
    /// Print JSON, one document per line
    #[arg(long, short = 'J', conflicts_with = "form")]
    json: bool,
    /// Write the bytes to a file, as they were sent
    #[arg(long, short = 'w', value_name = "OUT", conflicts_with_all = ["json", "form"])]
    write: Option<OutputPath>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap follow trace.pcap 0
  longhaul pcap follow trace.pcap 3 --as hex
  longhaul pcap follow trace.pcap 1 --type udp --as raw
  longhaul pcap follow trace.pcap 0 --end second -w reply.bin
  longhaul pcap follow trace.pcap 0 --json

'pcap conversations FILE' lists the streams. Control characters are shown as '.'.

Exit codes: 0 read, 1 the file could not be read to its end or has no such
stream, 2 usage error.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// TCP streams
    Tcp,
    /// UDP conversations
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text, with '.' for other bytes
    Ascii,
    /// Offset, hexadecimal, text
    Hex,
    /// Hexadecimal
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum End {
    /// The end that sent first
    First,
    /// The other end
    Second,
}

/// Default number of bytes that are shown.
const SHOWN: u64 = 1_000_000;

/// Bytes of output that are collected before they are printed.
const CHUNK: usize = 32 * 1024;

impl FollowArgs {
    fn request(&self) -> FollowRequest {
        let is_whole = self.write.is_some() || self.json;
        FollowRequest {
            stream: self.stream,
            transport: match self.transport {
                Transport::Tcp => pcap::Transport::Tcp,
                Transport::Udp => pcap::Transport::Udp,
            },
            end: self.end.map(|end| match end {
                End::First => StreamEnd::First,
                End::Second => StreamEnd::Second,
            }),
            bytes: self.bytes.unwrap_or(if is_whole { 0 } else { SHOWN }),
        }
    }

    /// The protocol's name.
    fn kind(&self) -> &'static str {
        if self.transport == Transport::Tcp { "TCP" } else { "UDP" }
    }
}

pub(super) fn run(args: &FollowArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let mut shown = Shown::new(args)?;
    let mut on_read = |event: ReadEvent<'_>| {
        match event {
            ReadEvent::Stream(ends) => shown.begin(ends),
            ReadEvent::Part(part) => shown.add(&part),
            event => return read_progress::progress(console)(event),
        }
        if shown.text.len() >= CHUNK {
            console.print(&std::mem::take(&mut shown.text));
        }
        if shown.failure.is_some() || !console.is_open() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let followed = follow::run(&args.file, &args.request(), &mut on_read, &stop);
    console.clear();
    let followed = followed?;
    shown.end_line();
    console.print(&shown.text);
    if let Some(failure) = shown.failure {
        return Err(failure);
    }
    let (capture, bytes) = (&followed.capture, followed.bytes);
    let name = report::untrusted::clean(&capture.name);
    if !followed.is_found && !capture.is_interrupted {
        let line = format!("{name} has no {} stream {}", args.kind(), args.stream);
        return Err(Failure::work(format!("{line}; 'pcap conversations' lists them")));
    }
    if let Some((file, path)) = shown.file.take().zip(args.write.as_deref()) {
        file.commit().map_err(Failure::work)?;
        console.say(&format!("{bytes} bytes written to {}", path.display()));
    }
    if followed.is_cut {
        console.say(&format!("{name}: {bytes} bytes are shown; --bytes 0 shows all"));
        return Ok(DONE);
    }
    for note in capture.notes() {
        console.say(&format!("{name}: {note}"));
    }
    Ok(if capture.is_incomplete() { FAILED } else { DONE })
}

/// The view of a stream, as it is collected for printing.
struct Shown<'a> {
    args: &'a FollowArgs,
    file: Option<PendingFile>,
    text: String,
    /// The end whose line is not complete: true for the first one.
    open: Option<bool>,
    /// Bytes of each end so far, in hexadecimal their offsets.
    offsets: [u64; 2],
    failure: Option<Failure>,
}

impl<'a> Shown<'a> {
    fn new(args: &'a FollowArgs) -> Result<Self, Failure> {
        let file = args.write.as_ref().map(|path| PendingFile::create(path)).transpose();
        Ok(Shown {
            args,
            file: file.map_err(Failure::work)?,
            text: String::new(),
            open: None,
            offsets: [0; 2],
            failure: None,
        })
    }

    /// Names the stream.
    fn begin(&mut self, [first, second]: [SocketAddr; 2]) {
        if !self.args.json && self.file.is_none() {
            let (kind, stream) = (self.args.kind(), self.args.stream);
            let _ = writeln!(self.text, "{kind} stream {stream}: {first} > {second}");
        }
    }

    fn add(&mut self, part: &FollowedBytes<'_>) {
        if let Some(file) = &mut self.file {
            if let Err(source) = file.write_all(part.data) {
                let path = self.args.write.as_deref().unwrap_or(&self.args.file).to_path_buf();
                self.failure = Some(Failure::work(WriteError { path, source }));
            }
            return;
        }
        if self.args.json {
            match console::json_line(&part.document(self.args.stream)) {
                Ok(line) => self.text += &line,
                Err(failure) => self.failure = Some(failure),
            }
            return;
        }
        let mark = if part.is_first { '>' } else { '<' };
        if part.missing > 0 {
            self.end_line();
            let _ = writeln!(self.text, "! {mark} {} bytes were not captured", part.missing);
        }
        match self.args.form {
            Form::Ascii => self.ascii(part, mark),
            Form::Hex => self.hexadecimal(part, mark),
            Form::Raw if part.data.is_empty() => {}
            Form::Raw => {
                let _ = writeln!(self.text, "{mark} {}", hexadecimal(part.data));
            }
        }
        let offset = &mut self.offsets[usize::from(!part.is_first)];
        *offset += part.data.len() as u64 + u64::from(part.missing);
    }

    /// A line of each end goes on with its next chunk.
    fn ascii(&mut self, part: &FollowedBytes<'_>, mark: char) {
        if self.open != Some(part.is_first) {
            self.end_line();
        }
        for byte in part.data {
            if self.open.is_none() {
                let _ = write!(self.text, "{mark} ");
                self.open = Some(part.is_first);
            }
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                b'\t' => self.text.push('\t'),
                byte => self.text.push(printable(*byte)),
            }
        }
    }

    fn end_line(&mut self) {
        if self.open.take().is_some() {
            self.text.push('\n');
        }
    }

    fn hexadecimal(&mut self, part: &FollowedBytes<'_>, mark: char) {
        const WIDTH: usize = 16;
        let mut offset = self.offsets[usize::from(!part.is_first)];
        for line in part.data.chunks(WIDTH) {
            let bytes: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
            let text: String = line.iter().map(|byte| printable(*byte)).collect();
            let _ = writeln!(self.text, "{mark} {offset:08x}  {bytes:<48} {text}");
            offset += line.len() as u64;
        }
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
}
