//! Labelled causes, and their configuration.

use crate::KEPT;
use crate::hosts::Pair;
use bench_harness::Fallible;
use record::{Limit, Measurement, Remedy};
use units::{BitRate, ByteCount};

/// A known limit.
pub(crate) struct Cause {
    pub(crate) name: &'static str,
    limit: Limit,
    link: &'static str,
    seconds: f64,
    /// Commands that are run on the client and on the server beforehand.
    commands: [&'static str; 2],
    change: fn(&mut Pair),
    /// Whether the finding may use the lab's path report. A policer is only identified on an
    /// unknown path.
    known: bool,
}

const NONE: [&str; 2] = ["", ""];
const TUNED: [&str; 2] = [
    "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 67108864\"",
    "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 67108864\"",
];

const fn cause(name: &'static str, limit: Limit, link: &'static str, seconds: f64) -> Cause {
    Cause { name, limit, link, seconds, commands: TUNED, change: |_| (), known: true }
}

pub(crate) const ALL: [Cause; 15] = [
    Cause {
        commands: [TUNED[0], "sysctl -w net.ipv4.tcp_rmem=\"4096 65536 131072\""],
        ..cause("receive window", Limit::ReceiveWindow, "rate=100mbit,rtt=100ms", 15.0)
    },
    Cause {
        commands: [
            "sysctl -w net.ipv4.tcp_rmem=\"4096 65536 262144\"",
            "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 67108864\"",
        ],
        change: |pair| pair.config.direction = record::Direction::Reverse,
        ..cause("receive window, reversed", Limit::ReceiveWindow, "rate=100mbit,rtt=100ms", 15.0)
    },
    Cause {
        commands: [TUNED[0], "sysctl -w net.ipv4.tcp_rmem=\"4096 65536 131072\""],
        change: |pair| pair.config.streams = 4,
        ..cause("receive window, 4 streams", Limit::ReceiveWindow, "rate=100mbit,rtt=100ms", 15.0)
    },
    Cause {
        commands: [TUNED[0], "sysctl -w net.ipv4.tcp_rmem=\"4096 65536 131072\""],
        ..cause(
            "receive window, then loss",
            Limit::ReceiveWindow,
            "rate=100mbit,rtt=200ms,loss=0.001%",
            20.0,
        )
    },
    Cause {
        commands: ["sysctl -w net.ipv4.tcp_wmem=\"4096 16384 65536\"", TUNED[1]],
        ..cause("send buffer", Limit::SendBuffer, "rate=100mbit,rtt=200ms", 20.0)
    },
    Cause {
        commands: [
            "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 524288\"",
            "sysctl -w net.ipv4.tcp_rmem=\"4096 65536 131072\"",
        ],
        ..cause(
            "receive window, then send buffer",
            Limit::ReceiveWindow,
            "rate=100mbit,rtt=100ms",
            15.0,
        )
    },
    Cause {
        change: |pair| pair.config.window = Some(ByteCount::from_bytes(128 << 10)),
        ..cause("window asked with -w", Limit::ReceiveWindow, "rate=100mbit,rtt=100ms", 10.0)
    },
    Cause {
        change: |pair| pair.config.rate = Some(BitRate::from_bps(20_000_000)),
        ..cause("rate asked with -b", Limit::Application, "rate=100mbit,rtt=50ms", 10.0)
    },
    Cause {
        change: |pair| pair.config.fq_rate = Some(BitRate::from_bps(20_000_000)),
        ..cause("pacing", Limit::Pacing, "rate=100mbit,rtt=50ms", 10.0)
    },
    cause("loss of 0.1 %", Limit::Loss, "rate=100mbit,rtt=50ms,loss=0.1%", 30.0),
    cause("loss of 1 %", Limit::Loss, "rate=100mbit,rtt=50ms,loss=1%", 30.0),
    cause("loss of 5 %", Limit::Loss, "rate=50mbit,rtt=100ms,loss=5%", 30.0),
    cause("shallow queue", Limit::ShallowQueue, "rate=100mbit,rtt=100ms,queue=20p", 30.0),
    cause("short test", Limit::Ramp, "rate=100mbit,rtt=200ms", 1.5),
    Cause {
        known: false,
        commands: NONE,
        ..cause("policer", Limit::Policer, "rate=200mbit,rtt=20ms,police=50mbit:500KB", 20.0)
    },
];

/// Sets the cause up and checks each remedy against its prediction.
pub(crate) fn hold(cause: &Cause) -> Fallible<()> {
    let mut pair = Pair::new(cause.link, cause.seconds)?;
    for (commands, command) in pair.commands.iter_mut().zip(cause.commands) {
        commands.extend((!command.is_empty()).then(|| command.to_owned()));
    }
    (cause.change)(&mut pair);
    let measurement = pair.measure()?;
    let seen = |m: Measurement| if cause.known { m } else { Measurement { path: None, ..m } };
    let valid = measurement.path.as_ref().is_some_and(|path| path.valid);
    let finding = diagnose::explain(&seen(measurement));
    let right = finding.limit == Some(cause.limit);
    let limit = finding.limit.map_or("nothing", Limit::name);
    println!(
        "{:<46} {:>11} {:>11} {:>11}  {}",
        cause.name,
        short(finding.throughput_bps),
        "",
        "",
        match (right, valid) {
            (true, true) => format!("{limit}, as made"),
            (true, false) => format!("{limit}, as made; not valid"),
            (false, _) => format!("NOT KEPT: found {limit}: {}", finding.sentence),
        }
    );
    for remedy in &finding.remedies {
        applied(&pair, remedy, finding.throughput_bps)?;
    }
    Ok(())
}

fn applied(pair: &Pair, remedy: &Remedy, before: BitRate) -> Fallible<()> {
    let measurement = pair.with(remedy)?.measure()?;
    let valid = measurement.path.as_ref().is_some_and(|path| path.valid);
    let finding = diagnose::explain(&measurement);
    let now = finding.throughput_bps;
    let verdict = match remedy.expects_bps {
        None => "nothing promised".to_owned(),
        Some(expected) => {
            let gain = now.as_f64() - before.as_f64();
            let share = gain / (expected.as_f64() - before.as_f64());
            let kept = if share >= KEPT { "kept" } else { "NOT KEPT" };
            format!("{kept}: {:.1} % of the gain", share * 100.0)
        }
    };
    let expected = remedy.expects_bps.map_or_else(String::new, short);
    let doubt = if valid { "" } else { "; not valid" };
    println!(
        "  {:<44} {:>11} {expected:>11} {:>11}  {verdict}{doubt} ({})",
        cut(&remedy.command.to_string()),
        "",
        short(now),
        finding.limit.map_or("nothing", Limit::name)
    );
    Ok(())
}

fn cut(text: &str) -> String {
    text.chars().take(44).collect()
}

/// Without the space before the unit, for a column.
pub(crate) fn short(rate: BitRate) -> String {
    format!("{:.2} Mbit", rate.as_f64() / 1e6)
}
