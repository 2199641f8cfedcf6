//! `longhaul boost plan`: what would accelerate a transfer, by how much, and why not.

use crate::congestion_name::CongestionName;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::ratio::ratio;
use crate::stop;
use crate::verbs::probe_args::seconds;
use clap::Args;
use longhaul::boost::plan::{
    self, PlanEvent, PlanRequest, PlanSettings, PlanSource, PlannedLink, PlannedTarget,
};
use longhaul::calc::Congestion;
use longhaul::test::TestEvent;
use record::RoutePrefix;
use report::{terminal, untrusted};
use std::path::PathBuf;
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
    /// Window of each connection [default: Linux's 4 MiB]
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
    #[arg(long, short = 'P', value_name = "N", help_heading = "Hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: Option<u32>,
    /// Data comes from the far host
    #[arg(long, short = 'R', help_heading = "Hosts")]
    reverse: bool,
    /// Port of the test's server [default: 5201]
    #[arg(long, short, value_name = "PORT", conflicts_with = "link", help_heading = "Test")]
    port: Option<u16>,
    /// Duration of the test, in seconds [default: 10]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    #[arg(conflicts_with = "link", help_heading = "Test")]
    time: Option<f64>,
    /// Explain this connection of a file with several
    #[arg(long, value_name = "WHICH", conflicts_with = "link", help_heading = "Test")]
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
        congestion: args.congestion.map(Congestion::from),
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
    let congestion = args.congestion.map(Congestion::from);
    if let Some(link) = &args.link {
        return Ok(PlanSource::Link(PlannedLink {
            reverse: args.reverse,
            window: args.window,
            program_window: args.program_window,
            congestion: congestion.unwrap_or(Congestion::Cubic),
            streams: args.streams.unwrap_or(1),
            ..PlannedLink::new(link)
        }));
    }
    let target = PlannedTarget {
        target: args.target.clone().unwrap_or_default(),
        connection: args.connection.clone(),
        port: args.port,
        reverse: args.reverse,
        seconds: args.time,
        streams: args.streams,
        congestion,
        window: args.window,
    };
    Ok(target.source()?)
}
