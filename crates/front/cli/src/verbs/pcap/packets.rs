//! `longhaul pcap packets`: the packets of a capture, all or those that pass a display
//! filter; or one of them with its fields and bytes.

use super::RulesArg;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::read_progress;
use crate::stop;
use clap::Args;
use longhaul::pcap::document::packets::Packet;
use longhaul::pcap::table::{self, Cell, ParquetTable};
use longhaul::pcap::{PacketsRequest, ReadEvent, packets, tables};
use packet_fields::{Field, PacketView, Summary, detail};
use parquet_file::ColumnType;
use report::terminal::{self, PacketRow, PacketTable};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Show packets, or those that match a display filter
///
/// One line per packet, as in Wireshark's packet list. Filters have Wireshark's
/// syntax and fields; --fields lists them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PacketsArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE", required_unless_present = "fields")]
    file: Option<PathBuf>,
    /// Display filter; several words are joined by spaces
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Packets to show; 0 for all [default: 0]
    #[arg(long, short = 'n', value_name = "N", hide_default_value = true, default_value = "0")]
    rows: u64,
    /// Show the fields and bytes of packet N
    #[arg(long, value_name = "N", conflicts_with = "filter")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    packet: Option<u64>,
    /// List the fields and protocols that filters support
    #[arg(long, conflicts_with_all = ["packet", "csv", "json"])]
    fields: bool,
    /// Print this field as a CSV column; repeatable
    #[arg(long = "field", short = 'e', value_name = "FIELD", conflicts_with_all = ["packet", "json"])]
    columns: Vec<String>,
    /// Version of Wireshark whose analysis rules apply
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    rules: RulesArg,
    /// Print CSV
    #[arg(long, conflicts_with_all = ["json", "packet"])]
    csv: bool,
    /// Print JSON, one document per line
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the CSV rows to a Parquet file
    #[arg(long, value_name = "OUT", conflicts_with_all = ["csv", "json", "packet", "fields"])]
    parquet: Option<OutputPath>,
    /// Write these packets to a capture file, in FILE's format
    #[arg(long, short = 'w', value_name = "OUT")]
    #[arg(conflicts_with_all = ["columns", "csv", "json", "parquet", "fields"])]
    write: Option<OutputPath>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap packets trace.pcap -n 20
  longhaul pcap packets trace.pcap tcp.analysis.retransmission
  longhaul pcap packets trace.pcap 'ip.addr == 10.0.0.0/8 && tcp.port in {80, 8000..8080}'
  longhaul pcap packets trace.pcap 'tcp.stream == 3 and tcp.analysis.ack_rtt > 0.2'
  longhaul pcap packets trace.pcap --packet 17
  longhaul pcap packets trace.pcap udp --csv > udp.csv
  longhaul pcap packets trace.pcap -e frame.number -e tcp.analysis.bytes_in_flight
  longhaul pcap packets trace.pcap tcp --parquet tcp.parquet
  longhaul pcap packets trace.pcap 'tcp.stream == 3' -w stream.pcap
  tcpdump -U -w - | longhaul pcap packets - 'tcp.flags.syn == 1'
  longhaul pcap packets --fields

Exit codes: 0 read, 1 the file could not be read to its end or has no such
packet, 2 usage error.";

/// Bytes of output that are collected before they are written.
const CHUNK: usize = 32 * 1024;

pub(super) fn run(args: &PacketsArgs, console: &mut Console) -> Outcome {
    let Some(path) = args.file.as_deref().filter(|_| !args.fields) else {
        console.print(&terminal::field_list(&style(console)));
        return Ok(DONE);
    };
    let request = PacketsRequest {
        filter: args.filter.join(" "),
        packet: args.packet,
        rows: args.rows,
        rules: args.rules.into(),
        write: args.write.as_deref().map(Path::to_path_buf),
    };
    request.check()?;
    let columns: Vec<Field> =
        args.columns.iter().map(|name| column(name)).collect::<Result<_, _>>()?;
    let stop = stop::on_signals();
    let mut list = List::new(args, columns, path, console)?;
    let mut on_read = |event: ReadEvent<'_>| {
        match event {
            ReadEvent::Packet(view) => list.add(view, console),
            ReadEvent::Pause => list.pause(console),
            event => return read_progress::progress(console)(event),
        }
        if list.failure.is_some() || !console.is_open() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let read = packets::run(path, &request, &mut on_read, &stop);
    console.clear();
    list.print_rest(console);
    if let Some(failure) = list.failure {
        return Err(failure);
    }
    let read = read.map_err(Failure::work)?;
    if let Some((file, path)) = list.parquet.take().zip(args.parquet.as_deref()) {
        file.finish()?;
        console.say(&format!("{} rows written to {}", read.shown, path.display()));
    }
    if let Some(path) = &args.write {
        console.say(&format!("{} packets written to {}", read.shown, path.display()));
    }
    let capture = &read.capture;
    let name = report::untrusted::clean(&capture.name);
    if read.shown == 0 && !capture.is_interrupted {
        let packets = capture.overview.packets;
        if let Some(number) = args.packet {
            let line = format!("{name} has no packet {number}; it has {packets}");
            return Err(Failure::work(line));
        }
        console.say(&format!("{name}: none of {packets} packets matches the filter"));
    }
    // A list that ends early does not depend on what comes after it.
    if read.is_full {
        return Ok(DONE);
    }
    for note in capture.notes() {
        console.say(&format!("{name}: {note}"));
    }
    Ok(if capture.is_incomplete() { FAILED } else { DONE })
}

/// The style of standard output; lines are as long as they are where they are read by other
/// programs.
fn style(console: &Console) -> terminal::Style {
    let mut style = console.out;
    if !std::io::stdout().is_terminal() {
        style.width = usize::MAX;
    }
    style
}

/// A field by its name.
fn column(name: &str) -> Result<Field, Failure> {
    Field::from_name(name).ok_or_else(|| {
        let hint = match packet_fields::field::nearest(name) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => "'pcap packets --fields' lists them".to_owned(),
        };
        Failure::usage(format!("--field {name}: no such field; {hint}"))
    })
}

/// The form of the output.
enum Form {
    Lines(PacketTable),
    /// CSV or Parquet.
    Rows,
    /// Only these fields, as CSV or Parquet.
    Fields(Vec<Field>),
    Json,
    Detail,
}

/// Output, as it is collected for writing.
struct List {
    form: Form,
    /// Where rows go that are not printed.
    parquet: Option<ParquetTable>,
    text: String,
    summary: Summary,
    style: terminal::Style,
    with_layers: bool,
    /// True if each batch is written at once: the capture may be growing.
    is_live: bool,
    has_rows: bool,
    failure: Option<Failure>,
}

impl List {
    fn new(
        args: &PacketsArgs,
        columns: Vec<Field>,
        path: &Path,
        console: &Console,
    ) -> Result<Self, Failure> {
        let style = style(console);
        let table = PacketTable::new(&style);
        let is_table = args.csv || args.parquet.is_some();
        let create = |out: &OutputPath| {
            let columns = match &columns[..] {
                [] => tables::PACKETS.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect(),
                fields => {
                    let name = |it: &Field| (it.description().name.to_owned(), ColumnType::Text);
                    fields.iter().map(name).collect()
                }
            };
            ParquetTable::create(out, columns)
        };
        let parquet = args.parquet.as_ref().map(create).transpose()?;
        let (form, text) = match (args.json, is_table, args.packet) {
            (true, ..) => (Form::Json, String::new()),
            _ if !columns.is_empty() => {
                let names: Vec<&str> = columns.iter().map(|it| it.description().name).collect();
                let header = format!("{}\n", names.join(","));
                (Form::Fields(columns), header)
            }
            (_, true, _) => (Form::Rows, table::header(tables::PACKETS)),
            (_, _, Some(_)) => (Form::Detail, String::new()),
            _ => {
                let header = table.header();
                (Form::Lines(table), header)
            }
        };
        let is_printed = parquet.is_none() && args.write.is_none();
        let text = if is_printed { text } else { String::new() };
        Ok(List {
            form,
            parquet,
            text,
            summary: Summary::default(),
            style,
            with_layers: args.packet.is_some(),
            is_live: path == Path::new("-"),
            has_rows: false,
            failure: None,
        })
    }

    fn add(&mut self, view: &PacketView<'_>, console: &mut Console) {
        self.has_rows = true;
        self.failure = self.row(view).err();
        if self.text.len() >= CHUNK {
            self.print(console);
        }
    }

    fn row(&mut self, view: &PacketView<'_>) -> Result<(), Failure> {
        self.summary.fill(view);
        let row = PacketRow {
            number: view.packet.number,
            time_ns: view.since_first_ns,
            length: view.packet.original_len,
            summary: &self.summary,
        };
        match &mut self.form {
            Form::Lines(table) => table.row(&row, &mut self.text),
            Form::Rows => {
                let cells = tables::packet(&row, view);
                put(&cells, &mut self.parquet, &mut self.text)?;
            }
            Form::Fields(columns) => {
                let cells = tables::fields(columns, view);
                put(&cells, &mut self.parquet, &mut self.text)?;
            }
            Form::Json => {
                let document = Packet::new(view, &self.summary, self.with_layers);
                self.text += &console::json_line(&document)?;
            }
            Form::Detail => {
                let reassembled = view.is_reassembled().then_some(view.packet.data);
                let layers = detail::layers(view);
                let frame = view.packet.frame;
                self.text += &terminal::packet_detail(&layers, frame, reassembled, &self.style);
            }
        }
        Ok(())
    }

    /// Shows the packets so far: the next one may not arrive for a long time.
    fn pause(&mut self, console: &mut Console) {
        if self.is_live && !self.text.is_empty() {
            self.print(console);
        }
    }

    fn print(&mut self, console: &mut Console) {
        console.print(&self.text);
        self.text.clear();
    }

    fn print_rest(&mut self, console: &mut Console) {
        if self.has_rows || matches!(self.form, Form::Rows | Form::Fields(_)) {
            console.print(&self.text);
        }
        self.text.clear();
    }
}

/// Puts a row into the Parquet file, or into the text as CSV.
fn put(row: &[Cell], file: &mut Option<ParquetTable>, text: &mut String) -> Result<(), Failure> {
    match file {
        Some(file) => Ok(file.row(row)?),
        None => {
            table::csv_row(row, text);
            Ok(())
        }
    }
}
