//! `test --ndt7` and `--rpm`: servers of other speed tests.

use super::TestArgs;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::{stop, test_report};
use clap::Args;
use longhaul::ndt7::{self, Ndt7Event, Ndt7Request};
use longhaul::responsiveness::{self, ResponsivenessEvent, ResponsivenessRequest};
use longhaul::test::Family;
use report::terminal;

/// Options of tests with longhaul's and iperf3's servers.
const OF_SERVERS: [&str; 36] = [
    "port",
    "udp",
    "udt",
    "time",
    "bytes",
    "parallel",
    "window",
    "autotuning",
    "bitrate",
    "yes",
    "congestion",
    "bidir",
    "bind",
    "omit",
    "length",
    "interval",
    "pcap",
    "mss",
    "nodelay",
    "tos",
    "mptcp",
    "zerocopy",
    "no_zerocopy",
    "skip_rx_copy",
    "no_segmentation",
    "no_coalescing",
    "dont_fragment",
    "device",
    "token",
    "token_file",
    "latency",
    "brief",
    "repeat",
    "compare",
    "decide",
    "find_rate",
];

/// Flags for servers that are not longhaul's or iperf3's.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers of other speed tests")]
pub(crate) struct SpeedTestArgs {
    /// HOST is an ndt7 server, or its URL
    ///
    /// Downloads, then uploads, for 10 s each, as ndt7's clients do. With -R, it only downloads; a
    /// URL that ends in /ndt/v7/upload or /ndt/v7/download selects one test. HOST alone is
    /// wss://HOST; ws:// is without TLS. --save and --html need one test.
    #[arg(long, group = "other_server", conflicts_with_all = OF_SERVERS)]
    ndt7: bool,
    /// HOST is a responsiveness server, or its URL
    ///
    /// Measures round trips per minute in a download, then in an upload (with -R only in a
    /// download), each until the result is stable, at most for 20 s
    /// (draft-ietf-ippm-responsiveness-09). HOST alone is https://HOST/.well-known/nq.
    #[arg(long, group = "other_server", conflicts_with_all = OF_SERVERS)]
    #[arg(conflicts_with_all = ["save", "html", "each"])]
    rpm: bool,
    /// Accept any certificate of such a server
    #[arg(long, requires = "other_server")]
    insecure: bool,
}

impl SpeedTestArgs {
    pub(super) fn is_given(&self) -> bool {
        self.ndt7 || self.rpm
    }
}

pub(super) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    if args.other.rpm { rpm(args, console) } else { ndt7(args, console) }
}

fn ndt7(args: &TestArgs, console: &mut Console) -> Outcome {
    let request = Ndt7Request {
        download_only: args.reverse,
        family: Family::from_flags(args.ipv4, args.ipv6),
        insecure: args.other.insecure,
        ..Ndt7Request::new(&args.host)
    };
    let is_stored = args.save.is_some() || args.forms.html.is_some();
    if is_stored && request.tests()?.len() > 1 {
        let error =
            "--save and --html are for one test: add -R, or give a URL that ends in /upload";
        return Err(Failure::usage(error));
    }
    test_report::check_writable(args.save.as_deref())?;
    test_report::check_writable(args.forms.html.as_deref())?;
    let mut on_event = |event| {
        if let Ndt7Event::Progress { test, t_s, rate, .. } = event {
            console.live(&format!("{} {t_s:.1} s: {rate}", test.name()));
        }
    };
    let document = ndt7::run(&request, &mut on_event, &stop::on_signals())?;
    console.clear();
    if args.forms.json {
        console.print(&console::json(&document)?);
    }
    for (one, transfer) in document.tests.iter().zip(document.transfers()) {
        let measurement = transfer.measurement;
        match args.forms.json {
            true => test_report::write_page(console, &measurement, None, None, &args.forms)?,
            false => {
                console.print(&format!("{}: {}\n", one.test.name(), one.rate_bps));
                test_report::print(console, &measurement, &args.forms, &measurement.notes)?;
            }
        }
        if let Some(file) = &args.save {
            store::save(file, &measurement).map_err(Failure::work)?;
        }
    }
    Ok(DONE)
}

fn rpm(args: &TestArgs, console: &mut Console) -> Outcome {
    let request = ResponsivenessRequest {
        download_only: args.reverse,
        family: Family::from_flags(args.ipv4, args.ipv6),
        insecure: args.other.insecure,
        ..ResponsivenessRequest::new(&args.host)
    };
    let mut on_event = |event| {
        if let ResponsivenessEvent::Interval { direction, t_s, rate, rpm, .. } = event {
            let rpm = rpm.map_or_else(|| "-".to_owned(), |rpm| format!("{rpm:.0}"));
            console.live(&format!("{} {t_s:.0} s: {rate}, {rpm} RPM", direction.name()));
        }
    };
    let document = responsiveness::run(&request, &mut on_event, &stop::on_signals())?;
    console.clear();
    if args.forms.json {
        console.print(&console::json(&document)?);
        return Ok(DONE);
    }
    for one in &document.directions {
        let finding = terminal::finding(&one.finding, &console.out);
        console.print(&format!("{}\n{finding}\n", one.sentence));
    }
    Ok(DONE)
}
