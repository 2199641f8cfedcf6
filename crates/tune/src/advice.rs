//! What a host needs for a goal, as a plan: from its settings as they are.

use crate::plan::{self, Target};
use crate::profile::Profile;
use crate::{MAX_BUFFER, PlanError, SEND_SHARE, Settings, allowed_rate};
use crate::{apply::shown, plan::Buffers};
use model::INITIAL_WINDOW_SHARE;
use record::{LeftOut, MemoryCost, PlannedSetting, TUNE_PLAN_SCHEMA, TunePlan};
use std::io;
use units::{BitRate, ByteCount, Rtt};

/// What a host shall be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Carry a rate over a round trip, over so many connections.
    Target {
        /// The rate of all connections together.
        rate: BitRate,
        /// The round trip.
        rtt: Rtt,
        /// Connections that share it; 0 counts as 1.
        streams: u32,
    },
    /// Be of a kind.
    Profile(Profile),
}

impl Goal {
    fn target(&self) -> Target {
        let (rate, rtt, streams) = match *self {
            Goal::Target { rate, rtt, streams } => (rate, rtt, streams.max(1)),
            Goal::Profile(profile) => (profile.rate(), profile.rtt(), profile.streams()),
        };
        Target { rate, rtt, queue: ByteCount::from_bytes(0), streams }
    }

    fn words(&self) -> String {
        let Target { rate, rtt, streams, .. } = self.target();
        match self {
            Goal::Target { .. } if streams > 1 => format!("{rate} over {rtt}, {streams} streams"),
            Goal::Target { .. } => format!("{rate} over {rtt}"),
            Goal::Profile(profile) => format!("{}: {}", profile.name(), profile.about()),
        }
    }
}

/// Plans for a host as it is: nothing is lowered, what suffices is left alone.
/// `congestion` is a congestion control to change to; `memory` the machine's.
///
/// Only reads.
///
/// # Errors
/// Where the goal is beyond what one connection's buffer can hold.
pub fn advise(
    settings: &dyn Settings,
    goal: &Goal,
    congestion: Option<&str>,
    memory: Option<ByteCount>,
) -> Result<TunePlan, PlanError> {
    let target = goal.target();
    let mut draft = Draft { settings, changes: Vec::new(), left_out: Vec::new() };
    let [receive, send] = buffers(&mut draft, goal, &target)?;
    switches(&mut draft);
    manners(&mut draft, goal);
    if let Some(name) = congestion {
        congestion_control(&mut draft, name);
    }
    let (now, then) = (present(settings), planned(settings, receive, send));
    let carries = |buffers: Option<Buffers>| {
        buffers.and_then(|b| allowed_rate(&b, &b, INITIAL_WINDOW_SHARE, target.rtt))
    };
    let memory = cost(settings, &target, then.as_ref(), memory);
    let notes = notes(&draft, &memory);
    Ok(TunePlan {
        schema: TUNE_PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        goal: goal.words(),
        settings: draft.changes,
        left_out: draft.left_out,
        carries_now_bps: carries(now),
        carries_then_bps: carries(then),
        memory,
        notes,
    })
}

/// A plan being made.
struct Draft<'a> {
    settings: &'a dyn Settings,
    changes: Vec<PlannedSetting>,
    left_out: Vec<LeftOut>,
}

impl Draft<'_> {
    /// The value of a setting; one that cannot be had is left out, with a line.
    fn now(&mut self, key: &str) -> Option<String> {
        match self.settings.read(key) {
            Ok(value) => Some(value),
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => {
                        "this kernel or network namespace does not have it".to_owned()
                    }
                    _ => format!("it cannot be read: {error}"),
                };
                self.leave_out(key, why);
                None
            }
        }
    }

    fn leave_out(&mut self, key: &str, why: String) {
        self.left_out.push(LeftOut { key: key.to_owned(), why });
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
            return self.leave_out(key, format!("it reads '{}', no number", shown(&now)));
        };
        if numbers.pop().is_none_or(|last| last >= most.bytes()) {
            return;
        }
        // The least and the initial value stay; neither may be over the most.
        let kept = numbers.iter().map(|n| format!("{} ", n.min(&most.bytes())));
        let planned = format!("{}{}", kept.collect::<String>(), most.bytes());
        self.change(key, now, planned, why, risk);
    }

    /// Sets a word or a number where it is another now.
    fn set(&mut self, key: &str, to: &str, fine: impl Fn(&str) -> bool, why: &str, risk: &str) {
        let Some(now) = self.now(key) else { return };
        if now != to && !fine(&now) {
            self.change(key, now, to.to_owned(), why.to_owned(), risk);
        }
    }
}

/// The largest buffers; gives those of TCP, receive and send.
fn buffers(
    draft: &mut Draft<'_>,
    goal: &Goal,
    target: &Target,
) -> Result<[ByteCount; 2], PlanError> {
    const RISK: &str = "a peer that stalls can make a connection hold that much memory";
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
            let receive = plan::buffer(target, INITIAL_WINDOW_SHARE)?;
            let send = plan::buffer(target, SEND_SHARE)?;
            let whys = [
                plan::why(target, INITIAL_WINDOW_SHARE, receive, "becomes window"),
                plan::why(target, SEND_SHARE, send, "holds payload in flight"),
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
            "programs that set {option} themselves (iperf3 -w) get no more than this, whatever \
             {tcp} allows: {core}"
        );
        draft.raise(key, core, why, "any program may ask for that much, for UDP too");
    }
    if let Goal::Profile(profile) = goal
        && let Some(optmem) = profile.optmem()
    {
        let why = format!(
            "sending without copying (MSG_ZEROCOPY) keeps notes there, and at {} it runs out of \
             the default: {optmem} (ESnet, 100G)",
            target.rate
        );
        draft.raise("net.core.optmem_max", optmem, why, "memory of each socket that uses it");
    }
    Ok([receive, send])
}

fn from_table(target: &Target, buffer: ByteCount, share: f64, what: &str) -> String {
    let &Target { rate, rtt, streams, .. } = target;
    let window = ByteCount::from_f64(buffer.as_f64() * share).min(model::MAX_WINDOW);
    let mut text = format!("{rate} x {rtt} = {} in flight", model::bdp(rate, rtt));
    if streams > 1 {
        let each = model::per_stream(model::window_for(rate, rtt), streams);
        text += &format!(", {each} for each of {streams} connections");
    }
    text += &format!(
        "; ESnet's value is {buffer}, of which about {:.0} % {what}: {window}",
        share * 100.0
    );
    if let Some(carries) = model::window_rate(window, rtt) {
        text += &format!(", {carries} for one connection");
    }
    text
}

/// What long paths cannot do without, and every kernel has on by default.
fn switches(draft: &mut Draft<'_>) {
    let on = |now: &str| now != "0";
    draft.set(
        "net.ipv4.tcp_window_scaling",
        "1",
        on,
        "without it no window is over 64 KiB (RFC 7323)",
        "none but with broken middleboxes",
    );
    draft.set(
        "net.ipv4.tcp_timestamps",
        "1",
        on,
        "they guard against sequence numbers that wrap, 4 GiB or 3.4 s at 10 Gbit/s, and time \
         each round trip (RFC 7323)",
        "12 bytes of each packet",
    );
    draft.set(
        "net.ipv4.tcp_sack",
        "1",
        on,
        "without it one loss is repaired in each round trip (RFC 2018)",
        "none known since the kernels of 2019",
    );
    draft.set(
        "net.ipv4.tcp_moderate_rcvbuf",
        "1",
        on,
        "without it receive buffers stay at their initial size",
        "none",
    );
}

/// How connections begin and send.
fn manners(draft: &mut Draft<'_>, goal: &Goal) {
    draft.set(
        "net.ipv4.tcp_no_metrics_save",
        "1",
        |_| false,
        "a connection that met loss leaves its ssthresh to the next ones to that host, which \
         then leave slow start too early (tcp(7))",
        "round trips are learnt anew by each connection",
    );
    draft.set(
        "net.ipv4.tcp_mtu_probing",
        "1",
        // 2 probes always.
        |now| now == "2",
        "where a router drops large packets without a word, a connection with jumbo frames \
         stalls for ever; with it the size is found out (RFC 4821)",
        "after bursts of loss packets may shrink for a while",
    );
    let paced = match goal {
        Goal::Profile(Profile::Workstation | Profile::Server) => "of all its connections",
        _ => "of its few large ones",
    };
    draft.set(
        "net.core.default_qdisc",
        "fq",
        |_| false,
        &format!(
            "a host that paces the packets {paced} does not overrun the queues of slower links \
             in bursts; devices that are up keep theirs (tc qdisc replace dev DEV root fq)"
        ),
        "a device that comes up later has no other queue discipline of its own",
    );
}

fn congestion_control(draft: &mut Draft<'_>, name: &str) {
    const KEY: &str = "net.ipv4.tcp_congestion_control";
    let name = name.trim();
    let list = draft.settings.read("net.ipv4.tcp_available_congestion_control");
    let available = list.unwrap_or_default();
    if !available.split(' ').any(|one| one == name) {
        let why = format!(
            "{} is not among {available}; where the kernel has it as a module: modprobe tcp_{}",
            shown(name),
            shown(name)
        );
        return draft.leave_out(KEY, why);
    }
    let why = match name {
        "bbr" => {
            "asked for: BBR paces by the rate and round trip that it measures and does not halve \
             at each loss (Cardwell et al. 2016)"
        }
        _ => "asked for",
    };
    let risk = match name {
        "bbr" => "in shallow queues it takes more than its share from CUBIC's connections",
        _ => "connections that are open keep theirs",
    };
    draft.set(KEY, name, |_| false, why, risk);
}

/// The buffers as they are.
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

/// The buffers as they will be.
fn planned(settings: &dyn Settings, receive: ByteCount, send: ByteCount) -> Option<Buffers> {
    let mut buffers = present(settings)?;
    buffers.tcp_rmem[2] = buffers.tcp_rmem[2].max(receive.bytes());
    buffers.tcp_wmem[2] = buffers.tcp_wmem[2].max(send.bytes());
    buffers.window_scaling = true;
    Some(buffers)
}

fn cost(
    settings: &dyn Settings,
    target: &Target,
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
            "with all these buffers full the kernel would shrink windows (tcp_mem): more memory, \
             or fewer connections at a time"
                .to_owned(),
        );
    }
    if memory.machine_bytes.is_some_and(|all| memory.per_connection_bytes.bytes() > all.bytes() / 4)
    {
        notes.push("one connection may take more than a quarter of this machine's memory".into());
    }
    if !draft.changes.is_empty() {
        notes.push("connections that are open keep the window scale they began with".to_owned());
        notes.push("both ends count: the other host needs buffers as large".to_owned());
    }
    notes
}
