//! A plan for a host's goal, from its present settings.

use crate::apply::shown;
use crate::profile::Profile;
use crate::short_path;
use crate::unchanged::unchanged_by;
use crate::{Buffers, Settings, allowed_rate};
use model::{BufferTarget, BufferTooLarge, INITIAL_WINDOW_SHARE, MAX_BUFFER, SEND_SHARE};
use record::{MemoryCost, PlannedSetting, SkippedSetting, TUNE_PLAN_SCHEMA, TunePlan};
use serde::{Deserialize, Serialize};
use std::io;
use units::{BitRate, ByteCount, Rtt, percent};

/// The congestion control of new connections.
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// The goal of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Sustain a rate at an RTT, over a number of connections.
    Target {
        /// The rate of all connections together.
        rate: BitRate,
        /// The round trip.
        rtt: Rtt,
        /// Connections that share it; 0 counts as 1.
        streams: u32,
    },
    /// The settings of a profile.
    Profile(Profile),
}

impl Goal {
    fn target(&self) -> BufferTarget {
        let (rate, rtt, streams) = match *self {
            Goal::Target { rate, rtt, streams } => (rate, rtt, streams.max(1)),
            Goal::Profile(profile) => (profile.rate(), profile.rtt(), profile.streams()),
        };
        BufferTarget { rate, rtt, queue: ByteCount::from_bytes(0), streams }
    }

    fn text(&self) -> String {
        let BufferTarget { rate, rtt, streams, .. } = self.target();
        match self {
            Goal::Target { .. } if streams > 1 => format!("{rate} over {rtt}, {streams} streams"),
            Goal::Target { .. } => format!("{rate} over {rtt}"),
            Goal::Profile(profile) => format!("{}: {}", profile.name(), profile.about()),
        }
    }
}

/// Plans for a host: never lowers a value, and keeps those that suffice.
/// `congestion` is the congestion control to set, `memory` the machine's
/// memory.
///
/// Only reads.
///
/// # Errors
/// Where one connection's buffer would be too large.
pub fn advise(
    settings: &dyn Settings,
    goal: &Goal,
    congestion: Option<&str>,
    memory: Option<ByteCount>,
) -> Result<TunePlan, BufferTooLarge> {
    let target = goal.target();
    let mut draft = Draft { settings, changes: Vec::new(), left_out: Vec::new() };
    let [receive, send] = buffers(&mut draft, goal, &target)?;
    switches(&mut draft);
    connection_start(&mut draft);
    if let Some(name) = congestion {
        congestion_control(&mut draft, name);
    }
    queue_discipline(&mut draft);
    let (now, then) = (present(settings), planned(settings, receive, send));
    let carries = |buffers: Option<&Buffers>| {
        buffers.and_then(|b| allowed_rate(b, b, INITIAL_WINDOW_SHARE, target.rtt))
    };
    let memory = cost(settings, &target, then.as_ref(), memory);
    let mut notes = notes(&draft, &memory);
    let (rate, rtt) = (target.rate, target.rtt);
    let beyond = |buffers| short_path::beyond_caches(buffers, rate, rtt, target.streams);
    if let Some(all) = now.as_ref().and_then(beyond) {
        notes.push(short_path::advice(all, rate, rtt));
    }
    let unchanged = unchanged_by(&draft.changes);
    Ok(TunePlan {
        schema: TUNE_PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        goal: goal.text(),
        settings: draft.changes,
        left_out: draft.left_out,
        unchanged,
        carries_now_bps: carries(now.as_ref()),
        carries_then_bps: carries(then.as_ref()),
        memory,
        notes,
    })
}

/// A plan under construction.
struct Draft<'a> {
    settings: &'a dyn Settings,
    changes: Vec<PlannedSetting>,
    left_out: Vec<SkippedSetting>,
}

impl Draft<'_> {
    /// The value of a setting; an unavailable one is skipped, with the reason.
    fn now(&mut self, key: &str) -> Option<String> {
        match self.settings.read(key) {
            Ok(value) => Some(value),
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => {
                        "not present in this kernel or network namespace".to_owned()
                    }
                    _ => format!("cannot read it: {error}"),
                };
                self.skip(key, why);
                None
            }
        }
    }

    fn skip(&mut self, key: &str, why: String) {
        self.left_out.push(SkippedSetting { key: key.to_owned(), why });
    }

    fn change(&mut self, key: &str, now: String, planned: String, why: String, risk: &str) {
        let (key, risk) = (key.to_owned(), risk.to_owned());
        self.changes.push(PlannedSetting { key, now, planned, why, risk });
    }

    /// Raises one number, or the last of three.
    fn raise(&mut self, key: &str, most: ByteCount, why: String, risk: &str) {
        let Some(now) = self.now(key) else { return };
        let numbers: Option<Vec<u64>> = now.split(' ').map(|n| n.parse().ok()).collect();
        let Some(mut numbers) = numbers else {
            return self.skip(key, format!("unexpected value '{}'", shown(&now)));
        };
        if numbers.pop().is_none_or(|last| last >= most.bytes()) {
            return;
        }
        // Keep the minimum and initial values, unless above the maximum.
        let kept = numbers.iter().map(|n| format!("{} ", n.min(&most.bytes())));
        let planned = format!("{}{}", kept.collect::<String>(), most.bytes());
        self.change(key, now, planned, why, risk);
    }

    /// Sets a value that differs now, unless `fine` accepts it.
    fn set(&mut self, key: &str, to: &str, fine: impl Fn(&str) -> bool, why: &str, risk: &str) {
        let Some(now) = self.now(key) else { return };
        if now != to && !fine(&now) {
            self.change(key, now, to.to_owned(), why.to_owned(), risk);
        }
    }
}

/// Raises the maximum buffers; returns those of TCP, receive and send.
fn buffers(
    draft: &mut Draft<'_>,
    goal: &Goal,
    target: &BufferTarget,
) -> Result<[ByteCount; 2], BufferTooLarge> {
    const RISK: &str = "a stalled peer can make a connection hold that much memory";
    let table = match goal {
        Goal::Profile(profile) => profile.table(),
        Goal::Target { .. } => None,
    };
    let (receive, send, core, whys) = match table {
        Some(table) => {
            let why = |share: f64, what| from_table(target, table.tcp, share, what);
            let whys = [
                why(INITIAL_WINDOW_SHARE, "becomes window"),
                why(SEND_SHARE, "holds payload in flight"),
            ];
            (table.tcp, table.tcp, table.core, whys)
        }
        None => {
            let receive = target.buffer(INITIAL_WINDOW_SHARE)?;
            let send = target.buffer(SEND_SHARE)?;
            let whys = [
                target.explain(INITIAL_WINDOW_SHARE, receive, "becomes window"),
                target.explain(SEND_SHARE, send, "holds payload in flight"),
            ];
            (receive, send, receive.max(send), whys)
        }
    };
    let [receive_why, send_why] = whys;
    draft.raise("net.ipv4.tcp_rmem", receive, receive_why, RISK);
    draft.raise("net.ipv4.tcp_wmem", send, send_why, RISK);
    for (key, option, tcp) in [
        ("net.core.rmem_max", "SO_RCVBUF", "tcp_rmem"),
        ("net.core.wmem_max", "SO_SNDBUF", "tcp_wmem"),
    ] {
        let why = format!(
            "the limit for programs that set {option} (iperf3 -w), regardless of {tcp}: {core}"
        );
        draft.raise(key, core, why, "any program can request that much, also for UDP");
    }
    if let Goal::Profile(profile) = goal
        && let Some(optmem) = profile.optmem()
    {
        let why = format!(
            "zero-copy sending (MSG_ZEROCOPY) keeps its notifications there, and the default is \
             too small at {}: {optmem} (ESnet, 100G)",
            target.rate
        );
        draft.raise("net.core.optmem_max", optmem, why, "memory per socket that uses it");
    }
    Ok([receive, send])
}

fn from_table(target: &BufferTarget, buffer: ByteCount, share: f64, what: &str) -> String {
    let &BufferTarget { rate, rtt, streams, .. } = target;
    let window = model::share_of_buffer(buffer, share).min(model::MAX_WINDOW);
    let mut text = format!("{rate} x {rtt} = {} in flight", model::bdp(rate, rtt));
    if streams > 1 {
        let each = target.stream_window();
        text += &format!(", {each} for each of {streams} connections");
    }
    let share = percent(share);
    text += &format!("; ESnet's value is {buffer}, of which about {share} {what}: {window}");
    if let Some(carries) = model::window_rate(window, rtt) {
        text += &format!(", {carries} for one connection");
    }
    text
}

/// Required for long paths; on by default in every kernel.
fn switches(draft: &mut Draft<'_>) {
    let on = |now: &str| now != "0";
    draft.set(
        "net.ipv4.tcp_window_scaling",
        "1",
        on,
        "without it windows stay below 64 KiB (RFC 7323)",
        "none, except with broken middleboxes",
    );
    draft.set(
        "net.ipv4.tcp_timestamps",
        "1",
        on,
        "protects against wrapped sequence numbers (4 GiB, 3.4 s at 10 Gbit/s) and measures the \
         RTT (RFC 7323)",
        "12 bytes per packet",
    );
    draft.set(
        "net.ipv4.tcp_sack",
        "1",
        on,
        "without it only one loss is repaired per RTT (RFC 2018)",
        "none known since 2019's kernel fixes",
    );
    draft.set(
        "net.ipv4.tcp_moderate_rcvbuf",
        "1",
        on,
        "without it receive buffers stay at their initial size",
        "none",
    );
}

/// How connections start and send.
fn connection_start(draft: &mut Draft<'_>) {
    const WHY: &str = "otherwise the ssthresh of a connection with losses is reused for the next \
                       ones to that host, which then leave slow start too early (ip-sysctl.rst)";
    // Linux 5.6 and later (commit 65e6d90168f3) cache no ssthresh unless told to; the other
    // cached metrics do no harm.
    const SSTHRESH: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";
    if draft.settings.read(SSTHRESH).is_ok() {
        draft.set(SSTHRESH, "1", |_| false, WHY, "none: it is the kernel's default");
    } else {
        let risk = "each connection measures the RTT anew";
        draft.set("net.ipv4.tcp_no_metrics_save", "1", |_| false, WHY, risk);
    }
    draft.set(
        "net.ipv4.tcp_mtu_probing",
        "1",
        // 2: always probe.
        |now| now == "2",
        "prevents stalls where a router silently drops large packets (PMTU black hole, RFC 4821)",
        "packets may be smaller for a while after bursts of loss",
    );
    draft.set(
        "net.ipv4.tcp_ecn",
        "1",
        // 3 and 4 request ECN too, with accurate feedback (RFC 9768).
        |now| matches!(now, "3" | "4"),
        "requests ECN: a queue then marks packets instead of dropping them, which saves a \
         retransmission (RFC 3168, RFC 8087); the default 2 only accepts it",
        "a few middleboxes drop SYNs that request ECN; the first retransmission, after 1 s, is \
         sent without (tcp_ecn_fallback)",
    );
}

/// fq only where the sender paces: its place is the host that runs BBR. Elsewhere
/// fq_codel keeps the queue of the own uplink short.
fn queue_discipline(draft: &mut Draft<'_>) {
    let planned = draft.changes.iter().find(|one| one.key == CONGESTION);
    let used = match planned {
        Some(one) => one.planned.clone(),
        None => draft.settings.read(CONGESTION).unwrap_or_default(),
    };
    if used.trim() != "bbr" {
        return;
    }
    draft.set(
        "net.core.default_qdisc",
        "fq",
        |_| false,
        "BBR paces, and fq releases each packet at its time with less CPU than timers in TCP \
         (tc-fq(8)); devices that are up keep their qdisc (tc qdisc replace dev DEV root fq)",
        "unlike fq_codel, fq does not limit the queueing delay of traffic that is not paced: not \
         for routers and workstations",
    );
}

fn congestion_control(draft: &mut Draft<'_>, name: &str) {
    let name = name.trim();
    let list = draft.settings.read("net.ipv4.tcp_available_congestion_control");
    let available = list.unwrap_or_default();
    if !available.split(' ').any(|one| one == name) {
        let why = format!(
            "{} is not available (available: {available}); load the module if there is one: \
             modprobe tcp_{}",
            shown(name),
            shown(name)
        );
        return draft.skip(CONGESTION, why);
    }
    let why = match name {
        "bbr" => {
            "requested: BBR paces by the measured rate and RTT and does not back off at each loss \
             (Cardwell et al. 2016)"
        }
        _ => "requested",
    };
    let risk = match name {
        "bbr" => "unfair to CUBIC connections in shallow queues",
        _ => "open connections keep theirs",
    };
    draft.set(CONGESTION, name, |_| false, why, risk);
}

/// The present buffers.
fn present(settings: &dyn Settings) -> Option<Buffers> {
    let triple = |key| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> =
            settings.read(key).ok()?.split(' ').map(|n| n.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    Some(Buffers {
        tcp_rmem: triple("net.ipv4.tcp_rmem")?,
        tcp_wmem: triple("net.ipv4.tcp_wmem")?,
        window_scaling: settings.read("net.ipv4.tcp_window_scaling").is_ok_and(|on| on != "0"),
    })
}

/// The planned buffers.
fn planned(settings: &dyn Settings, receive: ByteCount, send: ByteCount) -> Option<Buffers> {
    let mut buffers = present(settings)?;
    buffers.tcp_rmem[2] = buffers.tcp_rmem[2].max(receive.bytes());
    buffers.tcp_wmem[2] = buffers.tcp_wmem[2].max(send.bytes());
    buffers.window_scaling = true;
    Some(buffers)
}

fn cost(
    settings: &dyn Settings,
    target: &BufferTarget,
    then: Option<&Buffers>,
    machine: Option<ByteCount>,
) -> MemoryCost {
    let both = |b: &Buffers| ByteCount::from_bytes(b.tcp_rmem[2].saturating_add(b.tcp_wmem[2]));
    let per_connection_bytes = then.map_or(MAX_BUFFER.times(2), both);
    let tcp_mem = settings.read("net.ipv4.tcp_mem").unwrap_or_default();
    let pages = |index| -> Option<ByteCount> {
        let pages: u64 = tcp_mem.split(' ').nth(index)?.parse().ok()?;
        Some(ByteCount::from_bytes(pages.saturating_mul(host::identity::page_bytes())))
    };
    MemoryCost {
        per_connection_bytes,
        connections: target.streams,
        together_bytes: per_connection_bytes.times(u64::from(target.streams)),
        pressure_bytes: pages(1),
        limit_bytes: pages(2),
        machine_bytes: machine,
    }
}

fn notes(draft: &Draft<'_>, memory: &MemoryCost) -> Vec<String> {
    let mut notes = Vec::new();
    if memory.pressure_bytes.is_some_and(|pressure| memory.together_bytes > pressure) {
        notes.push(
            "with all these buffers full the kernel would shrink windows (tcp_mem): raise \
             tcp_mem, add memory, or use fewer connections"
                .to_owned(),
        );
    }
    if memory.machine_bytes.is_some_and(|all| memory.per_connection_bytes.bytes() > all.bytes() / 4)
    {
        notes.push("one connection can take more than a quarter of this machine's memory".into());
    }
    if !draft.changes.is_empty() {
        notes.push("open connections keep their window scale".to_owned());
        notes.push("the other host needs buffers of the same size".to_owned());
    }
    notes
}
