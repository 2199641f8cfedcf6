//! `longhaul pcap`: what is in a capture file.

pub(super) mod analysis;
mod document;
mod expert;
mod files_document;
mod follow;
mod handshake;
mod io;
mod io_bins;
mod merge;
mod packet_file;
mod packets;
mod page;
mod reading;
mod rows;
mod streams;
mod table;
mod tables;

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use capture::conversations::Conversations;
use capture::dissect::FlowKey;
use capture::endpoints::Endpoint;
use capture::{ChunkedList, Conversation};
use clap::{Args, Subcommand, ValueEnum};
use files_document::FilesDocument;
use reading::Capture;
use report::terminal::{self, CaptureSummary, ConversationRow};
use rows::{ConversationRows, EndpointRows, MAX_TEXT_ROWS};
use std::path::PathBuf;
use table::TableOutput;

/// Show what is in a capture: hosts, conversations, protocols
///
/// Reads pcap and pcapng, plain or compressed with gzip or zstd. Counts and
/// names are Wireshark's.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PcapArgs {
    #[command(subcommand)]
    view: Option<View>,
    #[command(flatten)]
    summary: page::SummaryArgs,
    /// Align two captures of one transfer, as 'pcap merge'
    #[arg(long)]
    merge: bool,
    /// With --merge: both captures have the times of one clock
    #[arg(long, requires = "merge")]
    same_clock: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap trace.pcap                     what it is, top conversations
  longhaul pcap *.pcapng.gz                    several files, one after another
  tcpdump -w - -i eth0 -c 1000 | longhaul pcap -
  longhaul pcap trace.pcap --html trace.html   graphs of the largest TCP streams
  longhaul pcap hierarchy trace.pcap           like tshark -z io,phs
  longhaul pcap conversations trace.pcap --type udp
  longhaul pcap conversations trace.pcap --csv > flows.csv
  longhaul pcap endpoints trace.pcap --type ip --json
  longhaul pcap packets trace.pcap --parquet packets.parquet
  longhaul pcap streams trace.pcap             what slowed each transfer down
  longhaul pcap handshake trace.pcap --stream 3
  longhaul pcap packets trace.pcap tcp.analysis.retransmission
  longhaul pcap packets trace.pcap udp -w udp.pcap
  longhaul pcap follow trace.pcap 3            what both ends of a stream sent
  longhaul pcap expert trace.pcap --severity warning
  longhaul pcap io trace.pcap tcp udp          a graph of bits per interval
  longhaul pcap merge client.pcap server.pcap  delays and losses between both ends

Exit codes: 0 read, 1 a file could not be read to its end, 2 wrong usage.";

/// What to show.
#[derive(Debug, Subcommand)]
enum View {
    /// Show format, time, rate, drops and top conversations (default)
    #[command(after_help = "\
Examples:
  longhaul pcap summary trace.pcap
  longhaul pcap summary trace.pcap --html trace.html")]
    Summary(page::SummaryArgs),
    /// Show frames and bytes of each protocol
    #[command(after_help = "\
Examples:
  longhaul pcap hierarchy trace.pcap
  longhaul pcap hierarchy trace.pcap --csv")]
    Hierarchy(Files),
    /// Show the conversations, those with most bytes first
    #[command(after_help = "\
Examples:
  longhaul pcap conversations trace.pcap --type udp
  longhaul pcap conversations trace.pcap --csv > flows.csv")]
    Conversations(Listed),
    /// Show what each address sent and received
    #[command(after_help = "\
Examples:
  longhaul pcap endpoints trace.pcap --type ip --json")]
    Endpoints(Listed),
    /// Show TCP streams, worst first: goodput, retransmissions, RTT, limit
    #[command(after_help = "\
Examples:
  longhaul pcap streams trace.pcap
  longhaul pcap streams trace.pcap --json")]
    Streams(streams::StreamsArgs),
    /// Show SYN, SYN-ACK and ACK of TCP streams: options, scale, window
    #[command(after_help = "\
Examples:
  longhaul pcap handshake trace.pcap --stream 3")]
    Handshake(handshake::HandshakeArgs),
    Packets(packets::PacketsArgs),
    Follow(follow::FollowArgs),
    Expert(expert::ExpertArgs),
    Io(io::IoArgs),
    /// Align two captures of one transfer: one-way delays, losses, changes
    Merge(merge::MergeArgs),
}

#[derive(Debug, Args)]
struct Files {
    /// Capture files; '-' for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the rows of the CSV to a Parquet file
    #[arg(long, value_name = "OUT", conflicts_with_all = ["csv", "json"])]
    parquet: Option<OutputPath>,
}

impl Files {
    /// Whether every row is wanted, for other programs.
    fn is_whole(&self) -> bool {
        self.csv || self.json || self.parquet.is_some()
    }

    /// Whether rows go to a table.
    fn is_table(&self) -> bool {
        self.csv || self.parquet.is_some()
    }

    /// Where these rows go.
    fn table(&self) -> TableOutput<'_> {
        TableOutput::new(self.parquet.as_deref())
    }
}

#[derive(Debug, Args)]
struct Listed {
    #[command(flatten)]
    files: Files,
    /// Layer: tcp, udp, ip, ethernet
    #[arg(long = "type", short = 't', value_enum, value_name = "LAYER", default_value = "tcp")]
    #[arg(hide_possible_values = true)]
    layer: ConversationLayer,
    /// Rows to show; 0 for all [default: 25, with --csv or --json all]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Layer whose addresses make a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConversationLayer {
    /// TCP streams
    Tcp,
    /// UDP ports
    Udp,
    /// IP addresses of both versions
    #[value(alias = "ipv4", alias = "ipv6")]
    Ip,
    /// Ethernet addresses
    #[value(alias = "eth")]
    Ethernet,
}

impl ConversationLayer {
    fn name(self) -> &'static str {
        match self {
            ConversationLayer::Tcp => "TCP",
            ConversationLayer::Udp => "UDP",
            ConversationLayer::Ip => "IP",
            ConversationLayer::Ethernet => "Ethernet",
        }
    }
}

/// Rows of a table on a terminal, and of conversations in a summary.
const ROWS: usize = 25;
const TOP: usize = 5;

pub(crate) fn run(args: &PcapArgs, console: &mut Console) -> Outcome {
    match &args.view {
        None if args.merge => merge::run(&args.summary.files, args.same_clock, console),
        None => page::run(&args.summary, console),
        Some(View::Summary(args)) => page::run(args, console),
        Some(View::Hierarchy(files)) => each(files, console, &Hierarchy),
        Some(View::Conversations(listed)) => each(&listed.files, console, &ConversationsOf(listed)),
        Some(View::Endpoints(listed)) => each(&listed.files, console, &EndpointsOf(listed)),
        Some(View::Streams(args)) => streams::run(args, console),
        Some(View::Handshake(args)) => handshake::run(args, console),
        Some(View::Packets(args)) => packets::run(args, console),
        Some(View::Follow(args)) => follow::run(args, console),
        Some(View::Expert(args)) => expert::run(args, console),
        Some(View::Io(args)) => io::run(args, console),
        Some(View::Merge(args)) => merge::run(&args.files, args.same_clock, console),
    }
}

/// What is shown of each file.
trait Shown {
    /// For the terminal.
    fn text(&self, capture: &Capture, console: &Console) -> String;
    /// Columns and rows, of the CSV and the Parquet file.
    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure>;
    /// Schema of the JSON document.
    fn schema(&self) -> &'static str;
    /// The file's object in it.
    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure>;
}

/// Reads each file and shows it; the exit code is that of the worst one.
fn each(files: &Files, console: &mut Console, shown: &dyn Shown) -> Outcome {
    let stop = stop::on_signals();
    let mut code = DONE;
    let mut table = files.table();
    let mut document = FilesDocument::new(shown.schema());
    let mut is_first = true;
    for path in &files.files {
        let capture = match reading::read(path, &stop, console) {
            Ok(capture) => capture,
            Err(line) => {
                console.clear();
                console::complain(&line);
                code = FAILED;
                continue;
            }
        };
        if capture.broken.is_some() || capture.is_interrupted {
            code = FAILED;
        }
        if files.json {
            shown.write_json(&capture, &mut document, console)?;
        } else if files.is_table() {
            shown.write_table(&capture, &mut table, console)?;
        } else {
            let text = shown.text(&capture, console);
            let between = if is_first { "" } else { "\n" };
            console.print(&format!("{between}{text}"));
            is_first = false;
        }
        if files.is_whole() {
            for note in capture.notes() {
                console.say(&format!("{}: {note}", capture.name));
            }
        }
        if capture.is_interrupted {
            break;
        }
    }
    if files.json {
        document.finish(console);
    } else {
        table.finish(console)?;
    }
    Ok(code)
}

struct Summary;

impl Shown for Summary {
    fn text(&self, capture: &Capture, console: &Console) -> String {
        let (layer, rows) = top(&capture.conversations);
        let shown: Vec<ConversationRow> = rows.iter(TOP).collect();
        terminal::capture_summary(
            &CaptureSummary {
                name: &capture.name,
                file: &capture.file,
                overview: &capture.overview,
                top: (&format!("{} conversations", layer.name()), &shown, rows.len()),
                notes: &capture.notes(),
            },
            &console.out,
        )
    }

    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        to.add(tables::summary(capture), console)
    }

    fn schema(&self) -> &'static str {
        "longhaul.pcap/1"
    }

    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (layer, rows) = top(&capture.conversations);
        let shown: Vec<ConversationRow> = rows.iter(TOP).collect();
        to.add(document::summary(capture, layer.name(), &shown), None, console)
    }
}

/// The conversations of the highest layer that has any.
fn top(conversations: &Conversations) -> (ConversationLayer, ConversationRows<'_>) {
    use ConversationLayer::{Ethernet, Ip, Tcp, Udp};
    fn bytes(flows: &ChunkedList<Conversation<FlowKey>>) -> u64 {
        flows.iter().map(|flow| flow.traffic.bytes()).sum()
    }
    let (tcp, udp) = (bytes(conversations.tcp()), bytes(conversations.udp()));
    let layers = [if tcp >= udp { Tcp } else { Udp }, Ip].into_iter();
    let mut each = layers.map(|layer| (layer, ConversationRows::of(conversations, layer)));
    let found = each.find(|(_, rows)| rows.len() > 0);
    found.unwrap_or_else(|| (Ethernet, ConversationRows::of(conversations, Ethernet)))
}

struct Hierarchy;

impl Shown for Hierarchy {
    fn text(&self, capture: &Capture, console: &Console) -> String {
        capture.headed(&terminal::capture_hierarchy(&capture.hierarchy.rows(), &console.out))
    }

    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        to.add(tables::hierarchy(capture), console)
    }

    fn schema(&self) -> &'static str {
        "longhaul.pcap-hierarchy/1"
    }

    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure> {
        to.add(document::hierarchy(capture), None, console)
    }
}

impl Listed {
    /// Rows to show.
    fn most(&self) -> usize {
        let is_whole = self.files.is_whole();
        let most = match self.rows.unwrap_or(if is_whole { 0 } else { ROWS }) {
            0 => usize::MAX,
            most => most,
        };
        if is_whole { most } else { most.min(MAX_TEXT_ROWS) }
    }
}

struct ConversationsOf<'a>(&'a Listed);

impl Shown for ConversationsOf<'_> {
    fn text(&self, capture: &Capture, console: &Console) -> String {
        let all = ConversationRows::of(&capture.conversations, self.0.layer);
        let title = format!("{} conversations", self.0.layer.name());
        let shown: Vec<ConversationRow> = all.iter(self.0.most()).collect();
        let first_ns = capture.conversations.first_ns().unwrap_or(0);
        capture.headed(&terminal::capture_conversations(
            &title,
            &shown,
            all.len(),
            first_ns,
            &console.out,
        ))
    }

    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let all = ConversationRows::of(&capture.conversations, self.0.layer);
        to.add(tables::conversations(capture, all.iter(self.0.most())), console)
    }

    fn schema(&self) -> &'static str {
        "longhaul.pcap-conversations/1"
    }

    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure> {
        const LIST: &str = "conversations";
        let all = ConversationRows::of(&capture.conversations, self.0.layer);
        let object = document::listed(capture, self.0.layer.name(), LIST, all.left_out());
        let rows = document::rows(capture, all.iter(self.0.most()));
        to.add(object, Some((LIST, Box::new(rows))), console)
    }
}

struct EndpointsOf<'a>(&'a Listed);

impl Shown for EndpointsOf<'_> {
    fn text(&self, capture: &Capture, console: &Console) -> String {
        let all = EndpointRows::of(&capture.conversations, self.0.layer);
        let title = format!("{} endpoints", self.0.layer.name());
        let shown: Vec<Endpoint> = all.iter(self.0.most()).collect();
        let table = terminal::capture_endpoints(&title, &shown, all.len(), &console.out);
        let note = reading::not_listed(&title, all.left_out());
        capture.headed(&(table + &note.map_or(String::new(), |note| note + "\n")))
    }

    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let all = EndpointRows::of(&capture.conversations, self.0.layer);
        to.add(tables::endpoints(capture, all.iter(self.0.most())), console)
    }

    fn schema(&self) -> &'static str {
        "longhaul.pcap-endpoints/1"
    }

    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure> {
        const LIST: &str = "endpoints";
        let all = EndpointRows::of(&capture.conversations, self.0.layer);
        let object = document::listed(capture, self.0.layer.name(), LIST, all.left_out());
        let rows = all.iter(self.0.most()).map(|row| document::endpoint(&row));
        to.add(object, Some((LIST, Box::new(rows))), console)
    }
}
