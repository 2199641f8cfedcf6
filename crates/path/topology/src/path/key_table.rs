//! Every key of a path: the one table that parsing, messages, help and
//! documentation are made from.

use super::discipline::{self, DISCIPLINES};
use super::key::{Key, Target};

/// A key, what it does and an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathKey {
    /// The name before `=`.
    pub name: &'static str,
    /// Its effect, other forms of its value, and the default in brackets. An option
    /// of the queue has its default in `DISCIPLINES`.
    about: &'static str,
    /// `KEY=VALUE`, valid, and other than the default.
    pub example: &'static str,
    pub(super) target: Target,
}

impl PathKey {
    const fn new(
        name: &'static str,
        target: Target,
        example: &'static str,
        about: &'static str,
    ) -> Self {
        PathKey { name, about, example, target }
    }

    const fn of(key: Key, name: &'static str, example: &'static str, about: &'static str) -> Self {
        PathKey::new(name, Target::Direction(key), example, about)
    }

    /// Its effect, other forms of its value, and the default in brackets; for an
    /// option of the queue with the disciplines that have it.
    #[must_use]
    pub fn about(&self) -> String {
        match self.target {
            Target::Direction(key) if key.is_queue_option() => option_help(key, self.about),
            Target::Direction(Key::Queue) => {
                self.about.replace("{disciplines}", &discipline::names().join(", "))
            }
            _ => self.about.to_owned(),
        }
    }

    /// Returns true if it is an option of the queue: valid beside a discipline that has it.
    #[must_use]
    pub fn is_queue_option(&self) -> bool {
        matches!(self.target, Target::Direction(key) if key.is_queue_option())
    }
}

impl Key {
    pub(super) fn name(self) -> &'static str {
        let row = KEYS.iter().find(|row| row.target == Target::Direction(self));
        row.map_or("", |row| row.name)
    }
}

/// Every key. A variant of `Key` that is missing here is never constructed,
/// which the compiler reports.
pub const KEYS: [PathKey; 39] = [
    PathKey::of(
        Key::Rate,
        "rate",
        "rate=100mbit",
        "bottleneck rate, counting IP bytes; or unlimited, or trace:FILE (mahimahi format)",
    ),
    PathKey::of(
        Key::Burst,
        "burst",
        "burst=64KiB",
        "token bucket size: bytes sent back to back after a pause [none]",
    ),
    PathKey::new(
        "rtt",
        Target::Rtt,
        "rtt=173ms",
        "round-trip time without serialisation and queueing, half in each direction",
    ),
    PathKey::of(Key::Delay, "delay", "delay=86ms", "one-way delay, instead of rtt"),
    PathKey::of(
        Key::Jitter,
        "jitter",
        "jitter=5ms",
        "delay variation, normal distribution; or uniform:5ms, exponential:5ms, pareto:5ms [none]",
    ),
    PathKey::of(Key::Overtake, "overtake", "overtake=yes", "let jitter reorder packets [no]"),
    PathKey::of(
        Key::Loss,
        "loss",
        "loss=0.1%",
        "random loss per packet of MTU size; or ge:P:R[:BAD[:GOOD]] (Gilbert-Elliott), \
         list:3+7+10-20 (packet numbers), data:3+7+10-20 (of data packets), \
         replay:FILE[:LINK] (drops of a packet log) [none]",
    ),
    PathKey::of(
        Key::Bursts,
        "bursts",
        "bursts=10p@5s",
        "lose 10 packets in a row every 5 s [none]",
    ),
    PathKey::of(
        Key::Blackhole,
        "blackhole",
        "blackhole=2s@7s",
        "lose all packets during the last 2 s of every 7 s [none]",
    ),
    PathKey::of(
        Key::Reorder,
        "reorder",
        "reorder=1%:5ms",
        "delay 1 % of the packets by another 5 ms, so that later packets overtake them [none]",
    ),
    PathKey::of(
        Key::Duplicate,
        "duplicate",
        "duplicate=0.1%",
        "share of packets delivered twice [none]",
    ),
    PathKey::of(
        Key::Corrupt,
        "corrupt",
        "corrupt=0.01%",
        "share of packets delivered with a flipped bit [none]",
    ),
    PathKey::of(
        Key::WindowScale,
        "window-scale",
        "window-scale=strip",
        "middlebox that strips the TCP window scale option from SYNs, or sets its shift count, \
         0 to 14 [none]",
    ),
    PathKey::of(
        Key::Mtu,
        "mtu",
        "mtu=1400",
        "largest IP packet of the hosts' devices; up.mtu= and down.mtu= silently drop longer \
         packets on the link (PMTUD black hole) [1500]",
    ),
    PathKey::of(
        Key::Police,
        "police",
        "police=10mbit:64KiB",
        "policer: drop what exceeds this rate and burst [none]",
    ),
    PathKey::of(
        Key::UdpPolice,
        "udp.police",
        "udp.police=10mbit:64KiB",
        "policer of UDP packets only; tcp.police= likewise [none]",
    ),
    PathKey::of(
        Key::UdpBlackhole,
        "udp.blackhole",
        "udp.blackhole=yes",
        "drop every UDP packet [no]",
    ),
    PathKey::of(
        Key::TcpPolice,
        "tcp.police",
        "tcp.police=10mbit:64KiB",
        "policer of TCP packets only [none]",
    ),
    PathKey::of(
        Key::TcpBlackhole,
        "tcp.blackhole",
        "tcp.blackhole=yes",
        "drop every TCP packet [no]",
    ),
    PathKey::of(
        Key::Queue,
        "queue",
        "queue=1000p",
        "drop-tail queue of this size: 1bdp, 1000p, 2MiB or 250ms; or a discipline: \
         {disciplines} [drop-tail]",
    ),
    PathKey::of(Key::Limit, "limit", "limit=2000p", "size of the queue"),
    PathKey::of(Key::Mark, "mark", "mark=20p", "mark ECN-capable packets above this queue length"),
    PathKey::of(Key::Target, "target", "target=20ms", "target queueing delay"),
    PathKey::of(
        Key::Interval,
        "interval",
        "interval=200ms",
        "time above the target before the first drop",
    ),
    PathKey::of(Key::Ecn, "ecn", "ecn=yes", "mark ECN-capable packets instead of dropping them"),
    PathKey::of(Key::Flows, "flows", "flows=64", "number of flow queues"),
    PathKey::of(Key::Quantum, "quantum", "quantum=300", "bytes that a flow sends in one round"),
    PathKey::of(Key::Min, "min", "min=20p", "average queue length where random drops begin"),
    PathKey::of(
        Key::Max,
        "max",
        "max=60p",
        "average queue length where the drop probability reaches probability=",
    ),
    PathKey::of(Key::Probability, "probability", "probability=5%", "drop probability at max="),
    PathKey::of(Key::Weight, "weight", "weight=10", "the average covers 2^weight packets"),
    PathKey::of(
        Key::Update,
        "update",
        "update=30ms",
        "time between two updates of the drop probability",
    ),
    PathKey::of(Key::MaxBurst, "max-burst", "max-burst=50ms", "burst that passes without drops"),
    PathKey::of(
        Key::Step,
        "step",
        "step=500us",
        "queueing delay above which L4S packets are marked",
    ),
    PathKey::of(
        Key::Coupling,
        "coupling",
        "coupling=3",
        "marks of L4S packets by the square root of the classic drop probability",
    ),
    PathKey::of(
        Key::ClassicShare,
        "classic-share",
        "classic-share=25%",
        "least share of the rate for classic packets",
    ),
    PathKey::new(
        "overhead",
        Target::Overhead,
        "overhead=38",
        "framing bytes counted on each packet; Ethernet has 38 [0]",
    ),
    PathKey::new("seed", Target::Seed, "seed=7", "repeat a run's random draws [new for each run]"),
    PathKey::new(
        "repeat",
        Target::Repeat,
        "repeat=30s",
        "start the @ changes over every 30 s [none]",
    ),
];

/// Where the second column of [`key_help`] begins.
const INDENT: usize = 26;

/// Columns of [`key_help`].
const COLUMNS: usize = 80;

/// The table for a help text: an example a line, and beside it what the key does.
#[must_use]
pub fn key_help() -> String {
    let mut text = String::new();
    for (options, heading) in [
        (
            false,
            "Keys of a link, for both directions; up. (client to server) or down. before a key \
             limits it to one, @5s. before that applies it 5 s after the start, and none as a \
             value turns an effect off:",
        ),
        (true, "Options of the queue discipline:"),
    ] {
        text += &wrapped(heading, 0);
        for key in KEYS.iter().filter(|key| key.is_queue_option() == options) {
            let about = wrapped(&key.about(), INDENT);
            text += &format!("  {:width$}{}", key.example, about.trim_start(), width = INDENT - 2);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// The help of an option: the disciplines that have it, what it does, its defaults.
fn option_help(key: Key, about: &str) -> String {
    let having: Vec<(&str, &str)> =
        DISCIPLINES.iter().filter_map(|entry| Some((entry.name, entry.default_of(key)?))).collect();
    // The first default stands for every discipline that is not named with its own.
    let mut defaults: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, default) in &having {
        match defaults.iter_mut().find(|(known, _)| known == default) {
            Some((_, names)) => names.push(name),
            None => defaults.push((default, vec![name])),
        }
    }
    let (first, others) =
        defaults.split_first().map_or(("none", &[][..]), |(first, others)| (first.0, others));
    let others: String = others
        .iter()
        .map(|(default, names)| format!("; {}: {default}", names.join(", ")))
        .collect();
    let names = if having.len() == DISCIPLINES.len() {
        "any discipline".to_owned()
    } else {
        having.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    format!("{names}: {about} [{first}{others}]")
}

/// Lines of at most [`COLUMNS`] columns, each indented by `indent`.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, String::len);
        if last > 0 && indent + last + 1 + word.len() > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}
