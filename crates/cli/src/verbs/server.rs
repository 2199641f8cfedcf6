//! `longhaul server`: the far end of `longhaul test`, and of iperf3.

use crate::console::Console;
use crate::failure::{DONE, Outcome};
use crate::stop;
use crate::verbs::test;
use clap::Args;
use probe::server::{Limits, Server, ServerConfig};
use probe::{ServerEvent, SessionSummary};
use report::terminal;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use units::BitRate;

/// Serve tests, ours and iperf3's
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    /// Port to listen on
    #[arg(long, short, default_value_t = 5201)]
    port: u16,
    /// Serve one test and exit
    #[arg(long, short = '1')]
    one_off: bool,
    /// Address to listen on [all of both IP versions]
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Tests at the same time; further clients are told that it is busy
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_tests: u32,
    /// Connections of one test
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    max_streams: u32,
    /// Longest test, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().duration.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_time: u64,
    /// Show a row a second for every test, not only its end
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul server
  longhaul server -p 5202 --one-off
  longhaul server --max-tests 2 --max-time 60";

pub(crate) fn run(args: &ServerArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let limits = Limits {
        sessions: args.max_tests,
        streams: args.max_streams,
        duration: Duration::from_secs(args.max_time),
        ..Limits::default()
    };
    let config = ServerConfig {
        bind: args.bind,
        port: args.port,
        one_off: args.one_off,
        limits,
        ..ServerConfig::default()
    };
    let server = Server::bind(&config).map_err(test::failure)?;
    console.log(&format!(
        "Listening on {}; at most {} tests at a time, {} s and {} streams each; Ctrl-C ends",
        server.local_addr(),
        limits.sessions,
        limits.duration.as_secs(),
        limits.streams
    ));
    // Sessions tell from threads of their own.
    let console = Mutex::new(console);
    let tell = |event| {
        let mut console = console.lock().unwrap_or_else(PoisonError::into_inner);
        let style = console.out;
        if let Some(line) = line(&event, args.verbose, &style) {
            console.log(&line);
        }
    };
    server.serve(&stop, &tell).map_err(test::failure)?;
    Ok(DONE)
}

fn line(event: &ServerEvent, verbose: bool, style: &terminal::Style) -> Option<String> {
    Some(match event {
        ServerEvent::Started { session, peer, streams, client, sending } => {
            let way = if *sending { "sending" } else { "receiving" };
            let streams = match streams.len() {
                1 => "1 stream".to_owned(),
                count => format!("{count} streams"),
            };
            format!("test {session}: {peer} ({}), {way} over {streams}", printable(client))
        }
        ServerEvent::Interval { session, interval } if verbose => {
            format!("test {session}: {}", terminal::interval_row(&test::row(interval), style))
        }
        ServerEvent::Interval { .. } => return None,
        ServerEvent::Finished { session, summary, .. } => {
            let SessionSummary { bytes, seconds, sending } = *summary;
            let rate = BitRate::from_bps_f64(bytes.as_f64() * 8.0 / seconds.max(1e-3));
            let done = if sending { "sent" } else { "received" };
            format!("test {session}: {done} {bytes} in {seconds:.2} s, {rate}")
        }
        ServerEvent::Failed { session: Some(session), why, .. } => {
            format!("test {session}: {}", printable(why))
        }
        ServerEvent::Failed { session: None, peer, why } | ServerEvent::Refused { peer, why } => {
            format!("{peer}: {}", printable(why))
        }
    })
}

/// What came over the network may hold anything.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
