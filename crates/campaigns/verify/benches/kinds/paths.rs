//! The paths and what is sent over them. Each effect has two, of which one is held out.

use crate::traffic::Traffic::{self, Bulk, Bursts, Connections, Thin};
use std::time::Duration;

/// Whether the rules of `tcp-analysis` were adjusted on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Development,
    HeldOut,
}

/// A path with its traffic.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) set: Set,
    pub(crate) name: &'static str,
    /// In the syntax of `--link`.
    pub(crate) link: &'static str,
    pub(crate) congestion: &'static str,
    pub(crate) traffic: Traffic,
    pub(crate) seconds: u64,
    /// Of both hosts.
    pub(crate) sysctls: &'static [(&'static str, &'static str)],
}

impl Path {
    const fn of(set: Set, name: &'static str, link: &'static str, traffic: Traffic) -> Self {
        Path { set, name, link, congestion: "cubic", traffic, seconds: 6, sysctls: &[] }
    }

    const fn with(self, congestion: &'static str) -> Self {
        Path { congestion, ..self }
    }

    const fn set(self, sysctls: &'static [(&'static str, &'static str)]) -> Self {
        Path { sysctls, ..self }
    }
}

const fn develop(name: &'static str, link: &'static str, traffic: Traffic) -> Path {
    Path::of(Set::Development, name, link, traffic)
}

const fn hold_out(name: &'static str, link: &'static str, traffic: Traffic) -> Path {
    Path::of(Set::HeldOut, name, link, traffic)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const NO_SACK: &[(&str, &str)] = &[("net.ipv4.tcp_sack", "0")];
const NO_TIMESTAMPS: &[(&str, &str)] = &[("net.ipv4.tcp_timestamps", "0")];
const NEITHER: &[(&str, &str)] = &[("net.ipv4.tcp_sack", "0"), ("net.ipv4.tcp_timestamps", "0")];
const ECN: &[(&str, &str)] = &[("net.ipv4.tcp_ecn", "1")];

/// All of them.
pub(crate) const PATHS: [Path; 50] = [
    develop("loss", "rate=20mbit,rtt=40ms,loss=1%", Bulk(1)),
    hold_out("loss-2", "rate=30mbit,rtt=70ms,loss=0.5%", Bulk(2)),
    develop("heavy-loss", "rate=20mbit,rtt=40ms,loss=5%", Bulk(4)),
    hold_out("heavy-loss-2", "rate=20mbit,rtt=25ms,loss=8%", Bulk(3)),
    develop("ge", "rate=20mbit,rtt=40ms,loss=ge:0.5%:20%", Bulk(1)),
    hold_out("ge-2", "rate=30mbit,rtt=60ms,loss=ge:0.3%:10%", Bulk(2)),
    develop("queue", "rate=20mbit,rtt=40ms,queue=1bdp", Bulk(2)),
    hold_out("queue-2", "rate=40mbit,rtt=30ms,queue=30p", Bulk(3)),
    develop("bursts", "rate=20mbit,rtt=40ms,bursts=20p@1s", Bulk(1)),
    hold_out("bursts-2", "rate=20mbit,rtt=80ms,bursts=60p@1500ms", Bulk(1)),
    develop("outage", "rate=20mbit,rtt=40ms,blackhole=1s@2500ms", Bulk(2)),
    hold_out("outage-2", "rate=20mbit,rtt=60ms,blackhole=300ms@1500ms", Bulk(2)),
    develop("reorder", "rate=20mbit,rtt=40ms,reorder=1%:5ms", Bulk(1)),
    hold_out("reorder-2", "rate=20mbit,rtt=60ms,reorder=0.5%:10ms", Bulk(1)),
    develop("reorder-strong", "rate=20mbit,rtt=20ms,reorder=2%:30ms", Bulk(1)),
    hold_out("reorder-strong-2", "rate=20mbit,rtt=40ms,reorder=1%:50ms", Bulk(1)),
    develop("overtaking", "rate=20mbit,rtt=40ms,jitter=5ms,overtake=yes", Bulk(1)),
    hold_out("overtaking-2", "rate=20mbit,rtt=80ms,jitter=10ms,overtake=yes", Bulk(1)),
    develop("policer", "rate=50mbit,rtt=30ms,police=10mbit:64KiB", Bulk(1)),
    hold_out("policer-2", "rate=50mbit,rtt=60ms,police=20mbit:32KiB", Bulk(2)),
    develop(
        "tails",
        "rate=20mbit,rtt=40ms,loss=5%",
        Bursts { streams: 16, bytes: 20_000, pause: ms(400) },
    ),
    hold_out(
        "tails-2",
        "rate=20mbit,rtt=80ms,loss=8%",
        Bursts { streams: 20, bytes: 12_000, pause: ms(600) },
    ),
    develop(
        "short",
        "rate=20mbit,rtt=30ms,loss=5%",
        Connections { streams: 8, bytes: 30_000, pause: ms(20) },
    ),
    hold_out(
        "short-2",
        "rate=20mbit,rtt=60ms,loss=6%",
        Connections { streams: 12, bytes: 8_000, pause: ms(30) },
    ),
    develop("no-sack", "rate=20mbit,rtt=40ms,loss=1%", Bulk(2)).set(NO_SACK),
    hold_out("no-sack-2", "rate=20mbit,rtt=60ms,loss=2%,queue=1bdp", Bulk(3)).set(NO_SACK),
    develop("no-timestamps", "rate=20mbit,rtt=40ms,loss=2%", Bulk(2)).set(NO_TIMESTAMPS),
    hold_out("no-timestamps-2", "rate=20mbit,rtt=60ms,loss=ge:0.5%:20%", Bulk(2))
        .set(NO_TIMESTAMPS),
    develop("neither", "rate=20mbit,rtt=40ms,loss=1%", Bulk(2)).set(NEITHER),
    hold_out("neither-2", "rate=20mbit,rtt=30ms,queue=30p", Bulk(2)).set(NEITHER),
    develop("bbr", "rate=20mbit,rtt=40ms,loss=1%", Bulk(1)).with("bbr"),
    hold_out("bbr-2", "rate=20mbit,rtt=60ms,loss=3%,queue=1bdp", Bulk(2)).with("bbr"),
    develop("bbr-policer", "rate=50mbit,rtt=30ms,police=10mbit:64KiB", Bulk(1)).with("bbr"),
    hold_out("bbr-queue", "rate=20mbit,rtt=40ms,queue=30p", Bulk(2)).with("bbr"),
    develop("reno", "rate=20mbit,rtt=40ms,loss=1%", Bulk(2)).with("reno"),
    hold_out("reno-2", "rate=20mbit,rtt=60ms,queue=1bdp,loss=0.5%", Bulk(2)).with("reno"),
    develop("everything", "rate=20mbit,rtt=40ms,loss=1%,reorder=1%:5ms,duplicate=1%", Bulk(3)),
    hold_out("everything-2", "rate=20mbit,rtt=60ms,loss=2%,reorder=1%:8ms,duplicate=1%", Bulk(2)),
    develop("ack-loss", "rate=20mbit,rtt=40ms,up.loss=1%,down.loss=20%", Bulk(2)),
    hold_out("ack-loss-2", "rate=20mbit,rtt=60ms,up.loss=2%,down.loss=40%", Bulk(2)),
    develop(
        "delay-spike",
        "rate=20mbit,rtt=40ms,@1s.rtt=800ms,@1300ms.rtt=40ms,repeat=2s",
        Bulk(2),
    ),
    hold_out(
        "delay-spike-2",
        "rate=20mbit,rtt=60ms,@1s.rtt=600ms,@1200ms.rtt=60ms,repeat=1800ms",
        Bulk(2),
    ),
    develop("thin", "rate=20mbit,rtt=60ms,loss=4%", Thin { streams: 6, bytes: 400, every: ms(30) }),
    hold_out(
        "thin-2",
        "rate=20mbit,rtt=40ms,loss=6%",
        Thin { streams: 6, bytes: 300, every: ms(100) },
    ),
    develop("near", "rate=40mbit,rtt=4ms,loss=1%,queue=50p", Bulk(2)),
    hold_out("near-2", "rate=40mbit,rtt=8ms,loss=2%,queue=50p", Bulk(2)),
    develop("far", "rate=20mbit,rtt=300ms,loss=1%", Bulk(4)),
    hold_out("far-2", "rate=20mbit,rtt=200ms,loss=2%", Bulk(4)),
    develop("ecn", "rate=20mbit,rtt=40ms,queue=codel,ecn=yes,loss=1%", Bulk(2)).set(ECN),
    hold_out("ecn-2", "rate=20mbit,rtt=30ms,queue=fq_codel,ecn=yes,loss=2%", Bulk(3)).set(ECN),
];
