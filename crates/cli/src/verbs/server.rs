//! `longhaul server`: the far end of `longhaul test`, and of iperf3.

use crate::console::Console;
use crate::failure::{DONE, Outcome};
use crate::stop;
use crate::verbs::test;
use clap::Args;
use probe::ServerEvent;
use probe::server::{Limits, Server, ServerConfig};
use report::terminal;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use units::{BitRate, ByteCount};

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
    let tell = |event: ServerEvent| {
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
        ServerEvent::Started { session, started } => {
            let params = &started.params;
            let way = match (params.bidirectional, params.reverse) {
                (true, _) => "both ways",
                (_, true) => "sending",
                _ => "receiving",
            };
            let kind = if params.udp { "UDP " } else { "" };
            let streams = match started.streams.len() {
                1 => format!("1 {kind}stream"),
                count => format!("{count} {kind}streams"),
            };
            let client = printable(&started.client());
            format!("test {session}: {} ({client}), {way} over {streams}", started.peer)
        }
        ServerEvent::Interval { session, interval } if verbose => {
            format!("test {session}: {}", terminal::interval_row(&test::row(interval), style))
        }
        ServerEvent::Interval { .. } => return None,
        ServerEvent::Finished { session, summary, .. } => {
            let moved = [("sent", summary.sent), ("received", summary.received)];
            let moved = moved.into_iter().filter(|(_, bytes)| *bytes > ByteCount::ZERO);
            let moved: Vec<String> = moved
                .map(|(done, bytes)| {
                    let rate =
                        BitRate::from_bps_f64(bytes.as_f64() * 8.0 / summary.seconds.max(1e-3));
                    format!("{done} {bytes} in {:.2} s, {rate}", summary.seconds)
                })
                .collect();
            let moved =
                if moved.is_empty() { "nothing passed".to_owned() } else { moved.join("; ") };
            format!("test {session}: {moved}")
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
