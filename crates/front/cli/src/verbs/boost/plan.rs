//! `longhaul boost plan`: what would accelerate a transfer, by how much, and why not.

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::ratio::ratio;
use crate::stop;
use crate::verbs::probe_args::seconds;
use clap::{Args, ValueEnum};
use longhaul::boost::plan::{
    self, PlanEvent, PlanRequest, PlanSettings, PlanSource, PlannedFile, PlannedHost, PlannedLink,
};
use longhaul::calc::Congestion;
use longhaul::test::TestEvent;
use record::RoutePrefix;
use report::{terminal, untrusted};
use std::path::{Path, PathBuf};
use units::{BitRate, ByteCount, Rtt};

/// Predict what each way to accelerate a transfer would gain, or why it gains nothing
///
/// TARGET is a file that "longhaul explain" reads, or a host, to which a short test runs. A name
/// that contains a slash or exists is a file. With --link, nothing is measured. Options are listed
/// from the cheapest on: settings of one route, more streams, a copy over UDP, the pair, an edge.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PlanArgs {
    /// Host with longhaul server or iperf3, or a file that explain reads
    #[arg(value_name = "TARGET", required_unless_present = "link", conflicts_with = "link")]
    target: Option<PathBuf>,
    /// Predict for this path instead, such as rate=100mbit,rtt=173ms
    #[arg(long, value_name = "PATH")]
    link: Option<String>,
    /// Window of each connection [default: large enough]
    #[arg(long, short, value_name = "SIZE", help_heading = "Hosts")]
    window: Option<ByteCount>,
    /// Data that the program keeps in flight (SFTP: 2MiB)
    #[arg(long, value_name = "SIZE", requires = "link", help_heading = "Hosts")]
    program_window: Option<ByteCount>,
    /// Sender's congestion control: reno, cubic, bbr
    #[arg(long, short = 'C', value_name = "NAME", visible_alias = "cc", help_heading = "Hosts")]
    #[arg(value_enum, hide_possible_values = true)]
    congestion: Option<CongestionName>,
    /// Parallel connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, help_heading = "Hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: u32,
    /// Data comes from the far host
    #[arg(long, short = 'R', help_heading = "Hosts")]
    reverse: bool,
    /// Port of the test's server
    #[arg(long, short, value_name = "PORT", default_value_t = 5201, help_heading = "Test")]
    port: u16,
    /// Duration of the test, in seconds
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    #[arg(help_heading = "Test")]
    time: f64,
    /// Explain this connection of a file with several
    #[arg(long, value_name = "WHICH", help_heading = "Test")]
    connection: Option<String>,
    /// Bottleneck rate, where file or test do not show it
    #[arg(long, value_name = "RATE", conflicts_with = "link", help_heading = "Options")]
    rate: Option<BitRate>,
    /// Destination of the route settings, such as 192.0.2.0/24
    #[arg(long, value_name = "PREFIX", help_heading = "Options")]
    route: Option<RoutePrefix>,
    /// RTT between a host and its box [default: 0.2ms]
    #[arg(long, value_name = "RTT", help_heading = "Options")]
    lan_rtt: Option<Rtt>,
    /// Payload rate between a host and its box [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Options")]
    lan_rate: Option<BitRate>,
    /// Also predict compression by this ratio: 2.5
    #[arg(long, value_name = "RATIO", value_parser = ratio, help_heading = "Options")]
    compressible: Option<f64>,
    /// Also predict a cache at this RTT from the clients
    #[arg(long, value_name = "RTT", help_heading = "Options")]
    edge_rtt: Option<Rtt>,
    /// Size of a cached object [default: 1MB]
    #[arg(long, value_name = "SIZE", requires = "edge_rtt", help_heading = "Options")]
    object: Option<ByteCount>,
    /// Print the plan as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost plan --link rate=100mbit,rtt=173ms --window 64KiB
  longhaul boost plan --link rate=1gbit,rtt=100ms,loss=0.1% --congestion bbr
  longhaul boost plan HOST                        a test of 10 s, then the plan
  longhaul boost plan trace.pcap --rate 1gbit     its largest TCP streams
  longhaul boost plan iperf3.json --json
  longhaul boost plan --link geo --compressible 2.5 --edge-rtt 4ms";

/// A congestion control with an equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CongestionName {
    Reno,
    Cubic,
    Bbr,
}

impl From<CongestionName> for Congestion {
    fn from(name: CongestionName) -> Self {
        match name {
            CongestionName::Reno => Congestion::Reno,
            CongestionName::Cubic => Congestion::Cubic,
            CongestionName::Bbr => Congestion::Bbr,
        }
    }
}

pub(super) fn run(args: &PlanArgs, console: &mut Console) -> Outcome {
    let request = request(args)?;
    request.check()?;
    let stop = stop::on_signals();
    let mut shown = console.clone();
    let mut on_event = |event: PlanEvent| match event {
        PlanEvent::Test(TestEvent::Interval(interval)) => {
            shown.live(&format!("measuring: {}", interval.arrival_rate.unwrap_or(interval.rate)));
        }
        PlanEvent::Test(TestEvent::Note(note)) => {
            shown.clear();
            shown.say(&untrusted::line(&note, false));
        }
        PlanEvent::Test(_) | PlanEvent::Progress(_) => {}
    };
    let plan = plan::run(&request, &mut on_event, &stop);
    console.clear();
    let plan = plan?;
    let text = match args.json {
        true => console::json(&plan)?,
        false => terminal::boost_plan(&plan, &console.out),
    };
    console.print(&text);
    Ok(DONE)
}

fn request(args: &PlanArgs) -> Result<PlanRequest, Failure> {
    let defaults = PlanSettings::default();
    Ok(PlanRequest {
        source: source(args)?,
        rate: args.rate,
        settings: PlanSettings {
            lan_rtt: args.lan_rtt.unwrap_or(defaults.lan_rtt),
            lan_rate: args.lan_rate,
            compressible: args.compressible,
            edge_rtt: args.edge_rtt,
            object: args.object.unwrap_or(defaults.object),
            route: args.route,
        },
    })
}

fn source(args: &PlanArgs) -> Result<PlanSource, Failure> {
    if let Some(link) = &args.link {
        return Ok(PlanSource::Link(PlannedLink {
            reverse: args.reverse,
            window: args.window,
            program_window: args.program_window,
            congestion: args.congestion.unwrap_or(CongestionName::Cubic).into(),
            streams: args.streams,
            ..PlannedLink::new(link)
        }));
    }
    let target = args.target.as_deref().unwrap_or(Path::new(""));
    if target.exists() || target.components().count() > 1 {
        return Ok(PlanSource::File(PlannedFile {
            file: target.to_owned(),
            connection: args.connection.clone(),
        }));
    }
    let host = target.to_str().ok_or_else(|| Failure::usage("the host name is not UTF-8"))?;
    Ok(PlanSource::Host(PlannedHost {
        port: args.port,
        reverse: args.reverse,
        seconds: args.time,
        streams: args.streams,
        congestion: args.congestion.map(|name| Congestion::from(name).name().to_owned()),
        window: args.window,
        ..PlannedHost::new(host)
    }))
}
