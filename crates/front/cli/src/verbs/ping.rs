//! `longhaul ping`: RTT, loss and percentiles.

use super::probe_args::{Destination, time};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::stop;
use clap::Args;
use longhaul::ping::{self, PingEvent as Event, PingMethod, PingRequest};
use report::terminal::{self, PingReply, ReplyKind};
use std::time::Duration;

/// Send echo requests and report RTT, loss and percentiles
///
/// Sends ICMP echo requests over an unprivileged socket (net.ipv4.ping_group_range)
/// or a raw one (CAP_NET_RAW). If neither is permitted, it opens TCP connections
/// instead, with a note. RTTs are measured with kernel timestamps.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    destination: Destination,
    /// Number of probes; 0 for no limit
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    count: u64,
    /// Interval between probes, at least 1ms
    ///
    /// In seconds, or with a unit: 0.2, 200ms.
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Bytes of payload per echo request
    #[arg(long, short, value_name = "BYTES", default_value_t = 56)]
    #[arg(conflicts_with = "tcp")]
    size: usize,
    /// Time after which a reply is late
    ///
    /// At most 990ms with TCP: the kernel retransmits a SYN after a second.
    #[arg(long, short = 'W', value_name = "TIME", default_value = "2s", value_parser = time)]
    timeout: Duration,
    /// Open TCP connections instead [default: port 443]
    ///
    /// An RST counts as a reply: the port is closed, but the host is up.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "443")]
    tcp: Option<u16>,
    /// DSCP: 0 to 63, or a name such as EF, CS1, AF41
    #[arg(long, value_name = "CLASS", value_parser = longhaul::ping::dscp)]
    dscp: Option<u8>,
    /// TOS byte, including the ECN bits: 0 to 255
    #[arg(long, value_name = "BYTE", conflicts_with = "dscp")]
    tos: Option<u8>,
    /// TTL or hop limit of the packets
    #[arg(long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Print only the summary
    #[arg(long, short)]
    quiet: bool,
    /// Print JSON, with the RTT of every probe
    #[arg(long, short = 'J')]
    json: bool,
}

impl PingArgs {
    /// Splits `HOST:PORT`, which asks for connections to that port.
    pub(crate) fn split_port(&mut self) -> Result<(), Failure> {
        host_port::split(&mut self.destination.host, &mut self.tcp)
    }
}

const EXAMPLES: &str = "\
Examples:
  longhaul ping HOST                       ten probes, one per second
  longhaul ping HOST -c 1000 -i 10ms -q    1000 probes in 10 s, only the summary
  longhaul ping HOST --tcp=22              RTT of TCP connections to a port
  longhaul ping HOST --json | jq .round_trips.p99_ms

Exit codes: 0 a reply arrived, 1 no reply, 2 usage error.";

pub(crate) fn run(args: &PingArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let request = PingRequest {
        host: args.destination.host.clone(),
        family: args.destination.family(),
        method: args.tcp.map_or(PingMethod::IcmpOrTcp, PingMethod::Tcp),
        count: args.count,
        interval: args.interval,
        payload: args.size,
        timeout: args.timeout,
        waits_for_errors: true,
        bind: args.destination.bind,
        tos: args.dscp.or(args.tos),
        ttl: args.ttl,
    };
    let (mut is_tcp, mut replies) = (false, 0u64);
    let mut on_event = |event: Event| {
        if let Event::Started { address, port, notes } = &event {
            is_tcp = port.is_some();
            let style = console.err;
            if !notes.is_empty() {
                console.say(terminal::notes(notes, &style).trim_end());
            }
            if !args.json {
                let what = port.map_or_else(
                    || format!("ICMP echo requests of {} bytes", args.size),
                    |port| format!("TCP connections to port {port}"),
                );
                console.print(&format!("Probing {address} with {what}\n"));
            }
            return;
        }
        replies += u64::from(matches!(event, Event::Reply { .. }));
        let (style, lines) = (console.out, !args.quiet && !args.json);
        let Some(line) = line(&event, is_tcp, &style) else { return };
        if lines {
            console.print(&(line + "\n"));
        } else {
            console.live(&format!("{replies} replies"));
        }
    };
    let report = ping::run(&request, &mut on_event, &stop)?;
    let text = if args.json {
        console::json(&report)?
    } else {
        let gap = if args.quiet { "" } else { "\n" };
        gap.to_owned() + &terminal::ping_summary(&report, &console.out)
    };
    console.print(&text);
    Ok(if report.received + report.late > 0 { DONE } else { FAILED })
}

/// The line for a reply or an error.
fn line(event: &Event, is_tcp: bool, style: &terminal::Style) -> Option<String> {
    match event {
        Event::Started { .. } => None,
        Event::Reply { number, from, bytes, ttl, rtt, late, duplicate, refused } => {
            let remarks = [(*refused, "refused"), (*late, "late"), (*duplicate, "duplicate")];
            let remarks: Vec<&str> =
                remarks.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect();
            let what = ReplyKind::Echo {
                rtt_ms: rtt.as_secs_f64() * 1e3,
                bytes: *bytes,
                ttl: *ttl,
                remarks: &remarks,
            };
            let from = from.to_string();
            let answer = PingReply { number: *number, from: Some(&from), what };
            Some(terminal::ping_reply(&answer, is_tcp, style))
        }
        Event::Unreachable { number, from, reason } => {
            let from = from.map(|from| from.to_string());
            let what = ReplyKind::Unreachable(reason);
            let answer = PingReply { number: *number, from: from.as_deref(), what };
            Some(terminal::ping_reply(&answer, is_tcp, style))
        }
    }
}
