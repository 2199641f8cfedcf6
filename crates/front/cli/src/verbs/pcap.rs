//! `longhaul pcap`: the contents of a capture file.

mod expert;
mod files_document;
mod follow;
mod handshake;
mod io;
mod merge;
mod packets;
mod page;
mod streams;

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::read_progress;
use crate::stop;
use capture::endpoints::Endpoint;
use clap::{Args, Subcommand, ValueEnum};
use files_document::{FilesDocument, Streamed};
use longhaul::pcap::document::conversations::{
    self as documents, ConversationsFile, EndpointsFile,
};
use longhaul::pcap::document::{Files as FilesOf, HierarchyFile};
use longhaul::pcap::table::TableOutput;
use longhaul::pcap::tables;
use longhaul::pcap::{
    self, Capture, ConversationLayer, ConversationRows, EndpointRows, Rules, not_listed,
};
use report::terminal::{self, CaptureSummary, ConversationRow};
use report::untrusted::clean;
use std::path::PathBuf;

/// Show the contents of a capture: hosts, conversations, protocols
///
/// Reads pcap and pcapng, plain or compressed with gzip or zstd. Counts and
/// names match Wireshark's.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PcapArgs {
    #[command(subcommand)]
    view: Option<View>,
    #[command(flatten)]
    summary: page::SummaryArgs,
    /// Align two captures of one transfer, like 'pcap merge'
    #[arg(long)]
    merge: bool,
    /// With --merge: one clock timestamped both captures
    #[arg(long, requires = "merge")]
    same_clock: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap trace.pcap                     summary, top conversations
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

Exit codes: 0 read, 1 a file could not be read to its end, 2 usage error.";

/// The view to show.
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
    /// Show the conversations, most bytes first
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
    /// Write the CSV rows to a Parquet file
    #[arg(long, value_name = "OUT", conflicts_with_all = ["csv", "json"])]
    parquet: Option<OutputPath>,
}

impl Files {
    /// Returns true if every row is wanted, for other programs.
    fn is_whole(&self) -> bool {
        self.csv || self.json || self.parquet.is_some()
    }

    /// Returns true if rows go to a table.
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
    layer: LayerArg,
    /// Rows to show; 0 for all [default: 25; all with --csv or --json]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Layer whose addresses make a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayerArg {
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

/// The version of Wireshark whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RulesArg {
    /// Wireshark 3.7 to 4.0
    #[value(name = "wireshark-4.0")]
    Wireshark40,
    /// Wireshark 4.4
    #[value(name = "wireshark-4.4")]
    Wireshark44,
}

impl From<RulesArg> for Rules {
    fn from(rules: RulesArg) -> Self {
        match rules {
            RulesArg::Wireshark40 => Rules::Wireshark40,
            RulesArg::Wireshark44 => Rules::Wireshark44,
        }
    }
}

/// Rows of a table on a terminal, and of conversations in a summary.
const ROWS: usize = 25;
const TOP: usize = 5;

/// Rows of a table in text at most: a line takes some kilobytes until it is printed.
const MAX_TEXT_ROWS: usize = 50_000;

/// The text with the file's name above it, and notes below.
fn headed(capture: &Capture, text: &str) -> String {
    let notes: String = capture.notes().iter().map(|note| format!("{note}\n")).collect();
    format!("{}\n{text}{notes}", clean(&capture.name))
}

pub(crate) fn run(args: &PcapArgs, console: &mut Console) -> Outcome {
    match &args.view {
        None if args.merge => merge::run(&args.summary.files, args.same_clock, console),
        None => page::run(&args.summary, console),
        Some(View::Summary(args)) => page::run(args, console),
        Some(View::Hierarchy(files)) => each(files, console, &Shown::Hierarchy),
        Some(View::Conversations(listed)) => {
            each(&listed.files, console, &Shown::Conversations(listed))
        }
        Some(View::Endpoints(listed)) => each(&listed.files, console, &Shown::Endpoints(listed)),
        Some(View::Streams(args)) => streams::run(args, console),
        Some(View::Handshake(args)) => handshake::run(args, console),
        Some(View::Packets(args)) => packets::run(args, console),
        Some(View::Follow(args)) => follow::run(args, console),
        Some(View::Expert(args)) => expert::run(args, console),
        Some(View::Io(args)) => io::run(args, console),
        Some(View::Merge(args)) => merge::run(&args.files, args.same_clock, console),
    }
}

/// The view of each file.
enum Shown<'a> {
    Summary,
    Hierarchy,
    Conversations(&'a Listed),
    Endpoints(&'a Listed),
}

/// Reads each file and shows it; the exit code is that of the worst one.
fn each(files: &Files, console: &mut Console, shown: &Shown<'_>) -> Outcome {
    let stop = stop::on_signals();
    let mut code = DONE;
    let mut table = files.table();
    let mut document = FilesDocument::new(shown.schema());
    let mut is_first = true;
    for path in &files.files {
        let read = pcap::read(path, &mut read_progress::progress(console), &stop);
        console.clear();
        let capture = match read {
            Ok(capture) => capture,
            Err(problem) => {
                console::complain(&Failure::from(problem).to_string());
                code = FAILED;
                continue;
            }
        };
        if capture.is_incomplete() {
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
        finish(table, console)?;
    }
    Ok(code)
}

impl Shown<'_> {
    /// For the terminal.
    fn text(&self, capture: &Capture, console: &Console) -> String {
        let (style, conversations) = (&console.out, &capture.conversations);
        match self {
            Shown::Summary => {
                let (layer, rows) = pcap::top(conversations);
                let shown: Vec<ConversationRow> = rows.iter(TOP).collect();
                let summary = CaptureSummary {
                    name: &capture.name,
                    file: &capture.file,
                    overview: &capture.overview,
                    top: (&format!("{} conversations", layer.name()), &shown, rows.len()),
                    notes: &capture.notes(),
                };
                terminal::capture_summary(&summary, style)
            }
            Shown::Hierarchy => {
                headed(capture, &terminal::capture_hierarchy(&capture.hierarchy.rows(), style))
            }
            Shown::Conversations(listed) => {
                let all = ConversationRows::of(conversations, listed.layer());
                let title = format!("{} conversations", listed.layer().name());
                let shown: Vec<ConversationRow> = all.iter(listed.most()).collect();
                let first_ns = conversations.first_ns().unwrap_or(0);
                let count = all.len();
                let text = terminal::capture_conversations(&title, &shown, count, first_ns, style);
                headed(capture, &text)
            }
            Shown::Endpoints(listed) => {
                let all = EndpointRows::of(conversations, listed.layer());
                let title = format!("{} endpoints", listed.layer().name());
                let shown: Vec<Endpoint> = all.iter(listed.most()).collect();
                let table = terminal::capture_endpoints(&title, &shown, all.len(), style);
                let note = not_listed(&title, all.left_out());
                headed(capture, &(table + &note.map_or(String::new(), |note| note + "\n")))
            }
        }
    }

    /// Columns and rows, of the CSV and the Parquet file.
    fn write_table(
        &self,
        capture: &Capture,
        to: &mut TableOutput<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let print = &mut |text: &str| console.print(text);
        let conversations = &capture.conversations;
        Ok(match self {
            Shown::Summary => to.add(tables::summary(capture), print),
            Shown::Hierarchy => to.add(tables::hierarchy(capture), print),
            Shown::Conversations(listed) => {
                let all = ConversationRows::of(conversations, listed.layer());
                to.add(tables::conversations(capture, all.iter(listed.most())), print)
            }
            Shown::Endpoints(listed) => {
                let all = EndpointRows::of(conversations, listed.layer());
                to.add(tables::endpoints(capture, all.iter(listed.most())), print)
            }
        }?)
    }

    /// Schema of the JSON document.
    const fn schema(&self) -> &'static str {
        match self {
            Shown::Summary => FilesOf::<()>::SUMMARY,
            Shown::Hierarchy => FilesOf::<()>::HIERARCHY,
            Shown::Conversations(_) => FilesOf::<()>::CONVERSATIONS,
            Shown::Endpoints(_) => FilesOf::<()>::ENDPOINTS,
        }
    }

    /// The file's object in it.
    fn write_json(
        &self,
        capture: &Capture,
        to: &mut FilesDocument,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match self {
            Shown::Summary => to.add(&pcap::summary(capture), console),
            Shown::Hierarchy => to.add(&HierarchyFile::new(capture), console),
            Shown::Conversations(listed) => {
                let all = ConversationRows::of(&capture.conversations, listed.layer());
                let rows = documents::conversations(capture, all.iter(listed.most()));
                let (layer, rows) = (listed.layer(), Streamed::new(rows));
                to.add(&ConversationsFile::new(capture, layer, all.left_out(), rows), console)
            }
            Shown::Endpoints(listed) => {
                let all = EndpointRows::of(&capture.conversations, listed.layer());
                let rows = all.iter(listed.most()).map(documents::Endpoint::from);
                let (layer, rows) = (listed.layer(), Streamed::new(rows));
                to.add(&EndpointsFile::new(capture, layer, all.left_out(), rows), console)
            }
        }
    }
}

impl Listed {
    fn layer(&self) -> ConversationLayer {
        match self.layer {
            LayerArg::Tcp => ConversationLayer::Tcp,
            LayerArg::Udp => ConversationLayer::Udp,
            LayerArg::Ip => ConversationLayer::Ip,
            LayerArg::Ethernet => ConversationLayer::Ethernet,
        }
    }

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

/// Completes a table.
fn finish(table: TableOutput<'_>, console: &mut Console) -> Result<(), Failure> {
    if let Some((rows, path)) = table.finish(&mut |text| console.print(text))? {
        console.say(&format!("{rows} rows written to {}", path.display()));
    }
    Ok(())
}
