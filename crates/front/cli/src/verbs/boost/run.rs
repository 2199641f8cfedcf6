//! `longhaul boost run`: a program in a network of its own.

use crate::console;
use crate::failure::{FAILED, Failure, Outcome};
use crate::inside;
use crate::output_path::OutputPath;
use clap::{ArgGroup, Args, ValueEnum};
use longhaul::boost::program::{self, NameServer, ProgramRequest};
use longhaul::boost::{BoostEvent, BoxSettings, ConnectionCount};
use report::untrusted;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::{BitRate, ByteCount};

/// Run a program whose TCP connections go through a pair of boxes
///
/// CMD runs in a network namespace of its own, where near accepts its connections to any address
/// and carries them to far, which connects to the target. Neither root nor a change to CMD is
/// needed. UDP is refused, so that QUIC falls back to TCP, except for DNS, which far's name server
/// answers (--dns). Connections to loopback addresses stay in the namespace. CMD uses the terminal;
/// messages of boost go to standard error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("boxes").required(true).args(["far", "solo"])))]
pub(super) struct RunArgs {
    #[command(flatten)]
    boxes: ProgramArgs,
    /// Serve Prometheus metrics at http://127.0.0.1:PORT/metrics
    ///
    /// ADDRESS:PORT listens on another address.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    metrics: Option<SocketAddr>,
    /// Goodput without the boxes, for the time saved in boost status
    ///
    /// As boost plan or boost verify printed it.
    #[arg(long, value_name = "RATE")]
    direct_rate: Option<BitRate>,
    /// Write what was carried to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Program to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost run --far HOST --key-file near.key -- rclone copy data remote:
  longhaul boost run --far HOST --key-file near.key --cc bbr -- git clone URL
  longhaul boost run --far 127.0.0.1 --insecure --dns near -- curl -O URL
  longhaul boost run --solo -- curl -O https://example.com/file

Exit code: that of CMD; 2 if CMD or its network could not start, 1 if the far box
cannot be reached.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DnsSide {
    Far,
    Near,
}

/// The boxes of a program.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct ProgramArgs {
    /// Far box: HOST or HOST:PORT [default port: 7425]
    #[arg(long, value_name = "HOST")]
    far: Option<String>,
    /// Read the key of this box from FILE (see boost pair)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// Do not encrypt connections to the far box
    #[arg(long)]
    insecure: bool,
    /// Use no far box: this host connects to the targets
    ///
    /// Helps where only the window of CMD is short: a download with a small receive buffer.
    #[arg(long, conflicts_with_all = ["far", "key_file", "insecure"])]
    solo: bool,
    /// Name server that answers CMD: far, near
    ///
    /// `far` is that of the far box, so that names resolve where connections are made; `near` is
    /// whichever server CMD asks, from this host. With --solo always `near`.
    #[arg(long, value_name = "SIDE", value_enum, default_value = "far")]
    #[arg(hide_possible_values = true)]
    dns: DnsSide,
    /// Boost these ports only, without nf_tables; refuse others
    #[arg(long, value_name = "PORT,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Congestion control between the boxes [default: the system's]
    #[arg(long, short = 'C', value_name = "NAME", visible_alias = "cc")]
    congestion: Option<String>,
    /// Buffers between the boxes [default: autotuned]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<ByteCount>,
    /// Compress with zstd what gains by it, if far does as well
    #[arg(long, conflicts_with = "solo")]
    compress: bool,
    /// Carry all flows over one session, resumed if connections break
    #[arg(long, conflicts_with = "solo")]
    mux: bool,
    /// Connections of --mux [default: auto: more if buffers are capped]
    #[arg(long, value_name = "N", requires = "mux")]
    connections: Option<ConnectionCount>,
    /// Carry it over UDT, if UDP reaches the far box
    #[arg(long, requires = "mux")]
    udt: bool,
    /// Connections to the far box kept ready
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    lanes: u32,
}

impl ProgramArgs {
    pub(super) fn request(&self, command: &[OsString]) -> ProgramRequest {
        ProgramRequest {
            far: self.far.clone(),
            command: command.to_vec(),
            name_server: match self.dns {
                DnsSide::Far => NameServer::Far,
                DnsSide::Near => NameServer::Near,
            },
            ports: self.port.clone(),
            lanes: self.lanes,
            mux: self.mux,
            udt: self.udt,
            direct_rate: None,
            connections: self.connections.and_then(ConnectionCount::number),
            settings: BoxSettings {
                key_files: self.key_file.iter().cloned().collect(),
                insecure: self.insecure,
                congestion: self.congestion.clone(),
                buffer: self.buffer,
                compress: self.compress,
                ..BoxSettings::default()
            },
        }
    }
}

pub(super) fn run(args: &RunArgs) -> Outcome {
    let mut request = args.boxes.request(&args.command);
    request.settings.metrics = args.metrics;
    request.direct_rate = args.direct_rate;
    request.check()?;
    inside::sandbox(|| {
        let document = program::run(&request, &mut say)?;
        if let Some(file) = &args.report {
            store::write(file, console::json_line(&document)?.as_bytes()).map_err(Failure::work)?;
        }
        Ok(document.program.map_or(FAILED, |program| program.exit_code))
    })
}

/// Says why a connection of the program failed: the program itself sees a RST at most.
fn say(event: BoostEvent) {
    let text = match event {
        BoostEvent::Warning { text } => format!("warning: {text}"),
        BoostEvent::Flow(flow) => match flow.why {
            Some(why) if flow.end != "reset" => format!("{}: {why}", flow.target),
            _ => return,
        },
        BoostEvent::FarUnreachable { far, why } => format!("cannot reach the far box {far}: {why}"),
        BoostEvent::UdtBlocked { far, why } => format!("no UDT to the far box {far}: {why}"),
        BoostEvent::FarReached { far } => format!("the far box {far} is reached again"),
        BoostEvent::HeldBack { count } => format!("{count} further connections failed"),
        BoostEvent::Listening { .. }
        | BoostEvent::Refused { .. }
        | BoostEvent::SeveralConnections { .. }
        | BoostEvent::Draining { .. } => return,
    };
    console::note(&untrusted::line(&format!("boost: {text}"), false));
}
