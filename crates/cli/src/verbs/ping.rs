//! `longhaul ping`: round trips to a host, and what they come to.

use super::reach::{Whither, failure, time};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::Args;
use reach::{Event, PingConfig, PingMethod};
use report::terminal::{self, Answer, Answered};
use std::time::Duration;

/// Ask a host again and again whether it is there: round trips, loss, percentiles
///
/// Sends ICMP echoes: over a socket that net.ipv4.ping_group_range opens to
/// users, else over a raw one (CAP_NET_RAW). Where neither is allowed it
/// connects by TCP and says so. Round trips end at the kernel's stamp.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    whither: Whither,
    /// End after so many probes; 0 is until Ctrl-C
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    count: u64,
    /// Time between probes, 1ms or more: 0.2 (seconds), 200ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Bytes of payload in each echo
    #[arg(long, short, value_name = "BYTES", default_value_t = 56)]
    #[arg(conflicts_with = "tcp")]
    size: usize,
    /// An answer after more than this is late; TCP's is 990ms at most
    #[arg(long, short = 'W', value_name = "TIME", default_value = "2s", value_parser = time)]
    timeout: Duration,
    /// Connect by TCP instead, to port 443 or this one; a refusal is an answer
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "443")]
    tcp: Option<u16>,
    /// Class of the packets: 0 to 63, or EF, CS1, AF41
    #[arg(long, value_name = "CLASS", value_parser = class)]
    dscp: Option<u8>,
    /// The same with ECN's bits: the whole byte, 0 to 255
    #[arg(long, value_name = "BYTE", conflicts_with = "dscp")]
    tos: Option<u8>,
    /// Hops that a probe may go
    #[arg(long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Print the summary alone
    #[arg(long, short)]
    quiet: bool,
    /// Print JSON instead, with every round trip
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul ping HOST                       ten probes, a second apart
  longhaul ping HOST -c 1000 -i 10ms -q    a thousand in ten seconds, the figures alone
  longhaul ping HOST --tcp=22              whether a port answers, and how fast
  longhaul ping HOST --json | jq .round_trips.p99_ms

Exit codes: 0 something answered, 1 nothing did, 2 wrong usage.";

/// A class by its number or its name (RFC 2474, 2597, 3246, 8622), as the
/// upper six bits of the byte.
fn class(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_uppercase();
    let digits: Vec<u8> = name.bytes().skip(2).map(|digit| digit.wrapping_sub(b'0')).collect();
    let value = match (name.get(..2), digits.as_slice()) {
        (Some("EF"), []) => Some(46),
        (Some("LE"), []) => Some(1),
        (Some("CS"), [class @ 0..=7]) => Some(class * 8),
        (Some("AF"), [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => text.parse().ok().filter(|value| *value < 64),
    };
    let wrong = || "give 0 to 63, EF, LE, CS0 to CS7, or AF11 to AF43".to_owned();
    value.map(|value| value << 2).ok_or_else(wrong)
}

pub(crate) fn run(args: &PingArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let config = PingConfig {
        host: args.whither.host.clone(),
        family: args.whither.family(),
        method: args.tcp.map_or(PingMethod::IcmpOrTcp, PingMethod::Tcp),
        count: args.count,
        interval: args.interval,
        payload: args.size,
        timeout: args.timeout,
        bind: args.whither.bind,
        tos: args.dscp.or(args.tos),
        ttl: args.ttl,
    };
    let (mut is_tcp, mut answers) = (false, 0u64);
    let mut tell = |event: Event| {
        if let Event::Begun { address, port, notes } = &event {
            is_tcp = port.is_some();
            let style = console.err;
            if !notes.is_empty() {
                console.say(terminal::notes(notes, &style).trim_end());
            }
            if !args.json {
                let what = port.map_or_else(
                    || format!("ICMP echoes of {} bytes", args.size),
                    |port| format!("TCP connects to port {port}"),
                );
                console.print(&format!("Probing {address} with {what}\n"));
            }
            return;
        }
        answers += u64::from(matches!(event, Event::Reply { .. }));
        let (style, rows) = (console.out, !args.quiet && !args.json);
        let Some(row) = row(&event, is_tcp, &style) else { return };
        if rows {
            console.print(&(row + "\n"));
        } else {
            console.live(&format!("{answers} answers"));
        }
    };
    let report = reach::ping(&config, &mut tell, &|| stop.is_raised()).map_err(failure)?;
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(Failure::work)? + "\n"
    } else {
        let gap = if args.quiet { "" } else { "\n" };
        gap.to_owned() + &terminal::round_trips(&report, &console.out)
    };
    console.print(&text);
    Ok(if report.received + report.late > 0 { DONE } else { FAILED })
}

/// The row of an answer; the beginning has none.
fn row(event: &Event, is_tcp: bool, style: &terminal::Style) -> Option<String> {
    match event {
        Event::Begun { .. } => None,
        Event::Reply { number, from, bytes, ttl, rtt, late, duplicate, refused } => {
            let remarks = [(*refused, "refused"), (*late, "late"), (*duplicate, "duplicate")];
            let remarks: Vec<&str> =
                remarks.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect();
            let what = Answered::In {
                rtt_ms: rtt.as_secs_f64() * 1e3,
                bytes: *bytes,
                ttl: *ttl,
                remarks: &remarks,
            };
            let from = from.to_string();
            let answer = Answer { number: *number, from: Some(&from), what };
            Some(terminal::answer(&answer, is_tcp, style))
        }
        Event::Unreached { number, from, why } => {
            let from = from.map(|from| from.to_string());
            let what = Answered::Unreached(why);
            let answer = Answer { number: *number, from: from.as_deref(), what };
            Some(terminal::answer(&answer, is_tcp, style))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_numbers_and_names() {
        // RFC 2597: AF41 is 34, AF13 is 14; RFC 3246: EF is 46.
        for (text, dscp) in
            [("EF", 46), ("ef", 46), ("AF41", 34), ("af13", 14), ("CS1", 8), ("LE", 1), ("63", 63)]
        {
            assert_eq!(class(text), Ok(dscp << 2), "{text}");
        }
        for wrong in ["64", "-1", "CS8", "CS", "AF51", "AF14", "AF4", "AF411", "EFF", "", "é"] {
            assert!(class(wrong).is_err(), "{wrong}");
        }
    }
}
