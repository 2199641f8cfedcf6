//! `longhaul pcap follow`: what both ends of a TCP stream or UDP conversation sent, in order.

use super::reading::{self, Dissected, Tables};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use capture::dissect::{Direction, FlowKey};
use clap::{Args, ValueEnum};
use packet_fields::follow::{Chunk, TcpFollower};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use store::{PendingFile, WriteError};

/// Show what both ends of a stream sent, in order
///
/// As Wireshark's "Follow Stream". '>' begins the lines of the end that sent
/// first, '<' those of the other, '!' reports bytes that were not captured.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FollowArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its number: tcp.stream, or udp.stream with --type udp
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
    /// Show one end: first (that sent first), second
    #[arg(long, value_enum, value_name = "END", hide_possible_values = true)]
    end: Option<End>,
    /// Bytes to show; 0 for all [default: 1000000, with -w and -J all]
    #[arg(long, short = 'n', value_name = "N")]
    bytes: Option<u64>,
    /// Print JSON, one document per line
    #[arg(long, short = 'J', conflicts_with = "form")]
    json: bool,
    /// Write the bytes as they were sent to a file
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

'pcap conversations FILE' lists the streams. A control character is shown as '.'.

Exit codes: 0 read, 1 the file could not be read to its end or has no such
stream, 2 wrong usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// TCP streams
    Tcp,
    /// UDP conversations
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text, with '.' for what is none
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

/// Bytes that are shown unless more are asked for.
const SHOWN: u64 = 1_000_000;

/// Bytes of output that are collected before they are printed.
const CHUNK: usize = 32 * 1024;

pub(super) fn run(args: &FollowArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let tables = Tables::of_reading();
    let mut shown = Shown::new(args)?;
    let mut follower = TcpFollower::default();
    let read = reading::read_packets(&args.file, &tables, &stop, console, |found, console| {
        let at = (found.packet.number, found.packet.time_ns);
        match args.transport {
            Transport::Tcp => {
                if let (Some(segment), Some(stream)) = (found.segment, found.stream)
                    && stream.number == args.stream
                {
                    shown.begin(&segment.key, segment.direction, found.packet.time_ns);
                    follower.add(at, segment, &mut |chunk| shown.add(chunk));
                }
            }
            Transport::Udp => datagram(found, args.stream, &mut shown),
        }
        if shown.text.len() >= CHUNK {
            console.print(&std::mem::take(&mut shown.text));
        }
        let is_enough = shown.is_cut || shown.failure.is_some() || !console.is_open();
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let capture = read.map_err(Failure::work)?;
    follower.finish(&mut |chunk| shown.add(chunk));
    shown.end_line();
    console.print(&shown.text);
    if let Some(failure) = shown.failure {
        return Err(failure);
    }
    let name = report::untrusted::clean(&capture.name);
    let kind = if args.transport == Transport::Tcp { "TCP" } else { "UDP" };
    if shown.key.is_none() && !capture.is_interrupted {
        let line = format!("{name} has no {kind} stream {}", args.stream);
        return Err(Failure::work(format!("{line}; 'pcap conversations' lists them")));
    }
    if let Some((file, path)) = shown.file.take().zip(args.write.as_deref()) {
        file.commit().map_err(Failure::work)?;
        console.say(&format!("{} bytes written to {}", shown.bytes, path.display()));
    }
    if shown.is_cut {
        console.say(&format!("{name}: {} bytes are shown; --bytes 0 shows all", shown.bytes));
        return Ok(DONE);
    }
    for note in capture.notes() {
        console.say(&format!("{name}: {note}"));
    }
    Ok(if capture.broken.is_some() || capture.is_interrupted { FAILED } else { DONE })
}

/// Shows a datagram of that UDP conversation.
fn datagram(found: &Dissected<'_>, stream: u32, shown: &mut Shown<'_>) {
    let Some(place) = found.layers.transport() else { return };
    let data = found.packet.data;
    let key = found.layers.conversation(place, data);
    let Some((key, direction)) = key else { return };
    if found.conversations.udp_stream(&key) != Some(stream) {
        return;
    }
    let Some((_, layer)) = found.layers.get(place) else { return };
    let from = layer.start as usize + layer.header_len as usize;
    let rest = data.get(from..).unwrap_or_default();
    let length = layer.payload_len as usize;
    let captured = rest.get(..length).unwrap_or(rest);
    let (packet, time_ns) = (found.packet.number, found.packet.time_ns);
    shown.begin(&key, direction, time_ns);
    shown.add(Chunk { direction, packet, time_ns, data: captured, missing: 0 });
    let missing = length.saturating_sub(captured.len());
    if missing > 0 {
        // A datagram has at most 64 KiB.
        shown.add(Chunk { direction, packet, time_ns, data: &[], missing: missing as u32 });
    }
}

/// What is shown of a stream, as it is collected for printing.
struct Shown<'a> {
    args: &'a FollowArgs,
    file: Option<PendingFile>,
    /// The stream, who sent first, and when.
    key: Option<(FlowKey, Direction, u64)>,
    text: String,
    /// The end whose line is not complete.
    open: Option<Direction>,
    /// Bytes of each end so far, in hexadecimal their offsets.
    offsets: [u64; 2],
    bytes: u64,
    most: u64,
    is_cut: bool,
    failure: Option<Failure>,
}

impl<'a> Shown<'a> {
    fn new(args: &'a FollowArgs) -> Result<Self, Failure> {
        let file = args.write.as_ref().map(|path| PendingFile::create(path)).transpose();
        let is_whole = args.write.is_some() || args.json;
        let most = args.bytes.unwrap_or(if is_whole { 0 } else { SHOWN });
        Ok(Shown {
            args,
            file: file.map_err(Failure::work)?,
            key: None,
            text: String::new(),
            open: None,
            offsets: [0; 2],
            bytes: 0,
            most: if most == 0 { u64::MAX } else { most },
            is_cut: false,
            failure: None,
        })
    }

    /// Notes the first packet of the stream.
    fn begin(&mut self, key: &FlowKey, direction: Direction, time_ns: u64) {
        if self.key.is_some() {
            return;
        }
        self.key = Some((*key, direction, time_ns));
        if self.args.json || self.file.is_some() {
            return;
        }
        let [first, second] =
            [direction, direction.reverse()].map(|side| super::analysis::end(key, side));
        let kind = if self.args.transport == Transport::Tcp { "TCP" } else { "UDP" };
        let _ = writeln!(self.text, "{kind} stream {}: {first} > {second}", self.args.stream);
    }

    fn add(&mut self, mut chunk: Chunk<'_>) {
        let Some((_, first, _)) = self.key else { return };
        let is_first = chunk.direction == first;
        let is_left_out = match self.args.end {
            Some(End::First) => !is_first,
            Some(End::Second) => is_first,
            None => false,
        };
        if is_left_out || self.is_cut {
            return;
        }
        let left = self.most - self.bytes;
        if chunk.data.len() as u64 > left {
            self.is_cut = true;
            chunk.data = chunk.data.get(..left as usize).unwrap_or_default();
        }
        self.bytes += chunk.data.len() as u64;
        if let Some(file) = &mut self.file {
            if let Err(source) = file.write_all(chunk.data) {
                let path = self.args.write.as_deref().unwrap_or(&self.args.file).to_path_buf();
                self.failure = Some(Failure::work(WriteError { path, source }));
            }
            return;
        }
        if self.args.json {
            return self.document(&chunk, is_first);
        }
        let mark = if is_first { '>' } else { '<' };
        if chunk.missing > 0 {
            self.end_line();
            let _ = writeln!(self.text, "! {mark} {} bytes were not captured", chunk.missing);
        }
        match self.args.form {
            Form::Ascii => self.ascii(&chunk, mark),
            Form::Hex => self.hexadecimal(&chunk, mark, is_first),
            Form::Raw if chunk.data.is_empty() => {}
            Form::Raw => {
                let _ = writeln!(self.text, "{mark} {}", digits(chunk.data));
            }
        }
        let offset = &mut self.offsets[usize::from(!is_first)];
        *offset += chunk.data.len() as u64 + u64::from(chunk.missing);
    }

    /// A line of each end goes on with its next chunk.
    fn ascii(&mut self, chunk: &Chunk<'_>, mark: char) {
        if self.open != Some(chunk.direction) {
            self.end_line();
        }
        for byte in chunk.data {
            if self.open.is_none() {
                let _ = write!(self.text, "{mark} ");
                self.open = Some(chunk.direction);
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

    fn hexadecimal(&mut self, chunk: &Chunk<'_>, mark: char, is_first: bool) {
        const WIDTH: usize = 16;
        let mut offset = self.offsets[usize::from(!is_first)];
        for line in chunk.data.chunks(WIDTH) {
            let bytes: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
            let text: String = line.iter().map(|byte| printable(*byte)).collect();
            let _ = writeln!(self.text, "{mark} {offset:08x}  {bytes:<48} {text}");
            offset += line.len() as u64;
        }
    }

    fn document(&mut self, chunk: &Chunk<'_>, is_first: bool) {
        let begun_ns = self.key.map_or(0, |(_, _, time_ns)| time_ns);
        let document = json!({
            "schema": "longhaul.pcap-follow/1",
            "stream": self.args.stream,
            "end": if is_first { "first" } else { "second" },
            "packet": chunk.packet,
            "time_s": chunk.time_ns.wrapping_sub(begun_ns).cast_signed() as f64 / 1e9,
            "bytes": chunk.data.len(),
            "missing_bytes": chunk.missing,
            "data": digits(chunk.data),
        });
        match console::json_line(&document) {
            Ok(line) => self.text += &line,
            Err(failure) => self.failure = Some(failure),
        }
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Formatting into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
