//! A path as other emulators take it: Linux netem, macOS' Network Link Conditioner, and
//! clumsy for Windows. What a tool cannot express is listed, never dropped silently.

use crate::{PathDirection, PathSpec};
use link::{Loss, Queue};
use units::{BitRate, LossRatio};

/// Ethernet's header, which netem counts in a packet's length and a path's rate does not
/// (tc-netem(8), PACKETOVERHEAD).
const ETHERNET_HEADER: i64 = 14;

/// The rate that sizes netem's limit where a path has none.
const UNLIMITED: BitRate = BitRate::from_bps(10_000_000_000);

/// clumsy's largest rate, KB/s of 1024 bytes (`BANDWIDTH_MAX` in its bandwidth.c).
const CLUMSY_MAX_KB_S: u64 = 99_999;

/// The packets that clumsy delays at most; it releases 800 of them early when they are
/// more (`KEEP_AT_MOST` in its lag.c).
const CLUMSY_PACKETS: f64 = 2_000.0;

/// An emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulator {
    /// Linux: tc-netem(8).
    Netem,
    /// macOS: the preference pane of Apple's additional tools for Xcode.
    LinkConditioner,
    /// Windows: clumsy 0.3.
    Clumsy,
}

/// A path for an emulator.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EmulatorSettings {
    /// Commands, or the fields of a profile, each on a line.
    pub lines: Vec<String>,
    /// How the emulated path differs from the one here.
    pub differs: Vec<String>,
}

/// The path at its start, for another emulator.
#[must_use]
pub fn for_emulator(path: &PathSpec, emulator: Emulator) -> EmulatorSettings {
    let mut settings = match emulator {
        Emulator::Netem => netem(path),
        Emulator::LinkConditioner => link_conditioner(path),
        Emulator::Clumsy => clumsy(path),
    };
    if path.has_schedule() {
        settings
            .differs
            .push("changes over time are omitted: these are its initial settings".into());
    }
    for (name, direction) in ["up", "down"].into_iter().zip(path.directions()) {
        let left =
            direction.effects().into_iter().filter(|effect| !has(emulator, direction, effect));
        settings.differs.extend(left.map(|effect| format!("{name}: no {effect}")));
        if !matches!(direction.config().queue, Queue::DropTail(_)) && direction.rate().is_some() {
            settings.differs.push(format!(
                "{name}: a drop-tail queue instead of {}",
                direction.queue_in_words()
            ));
        }
    }
    settings
}

/// Whether an emulator has an effect, as `PathDirection::effects` words it.
fn has(emulator: Emulator, direction: &PathDirection, effect: &str) -> bool {
    if effect.starts_with("loss ") {
        return match direction.config().loss {
            Loss::Bernoulli(_) => true,
            Loss::GilbertElliott(_) => emulator == Emulator::Netem,
            Loss::None | Loss::List(_) | Loss::DataList(_) => false,
        };
    }
    match emulator {
        Emulator::Netem => effect.ends_with(" duplicated") || effect.ends_with(" corrupted"),
        Emulator::LinkConditioner => false,
        Emulator::Clumsy => effect.ends_with(" duplicated"),
    }
}

/// Milliseconds with up to three places.
fn millis(direction: &PathDirection) -> String {
    decimal(direction.delay().millis_f64(), 3)
}

fn decimal(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn percent(ratio: LossRatio) -> String {
    decimal(ratio.fraction() * 100.0, 6)
}

/// Packets in the delay line and in the queue, which netem's limit counts together.
fn packets(path: &PathSpec, direction: &PathDirection) -> u64 {
    let rate = direction.rate().unwrap_or(UNLIMITED);
    let delayed = rate.as_f64() * direction.delay().secs_f64() / 8.0;
    let bytes = delayed + direction.queue_bytes().as_f64();
    let packets = (bytes / f64::from(path.mtu().max(1))).ceil();
    units::ByteCount::from_f64(packets).bytes().max(1)
}

/// `netem` on the device of each end, which delays and loses what that end sends.
fn netem(path: &PathSpec) -> EmulatorSettings {
    let directions = path.directions();
    // ACKs of the faster direction are as many packets in the other one.
    let limit = directions.iter().map(|direction| packets(path, direction)).max().unwrap_or(1);
    let overhead = i64::from(path.overhead()) - ETHERNET_HEADER;
    let mut lines = Vec::new();
    for (end, direction) in ["client", "server"].into_iter().zip(directions) {
        lines.push(format!("# {end}, whose device is DEV"));
        // netem draws for each buffer that it is handed, and TCP hands over whole trains.
        lines.push("sudo ip link set dev DEV gso_max_segs 1".to_owned());
        let mut command = "sudo tc qdisc replace dev DEV root netem".to_owned();
        if let Some(rate) = direction.rate() {
            command += &format!(" rate {}bit {overhead}", rate.bps());
        }
        command += &format!(" delay {}ms", millis(direction));
        let config = direction.config();
        match &config.loss {
            Loss::Bernoulli(loss) => command += &format!(" loss {}%", percent(*loss)),
            Loss::GilbertElliott(model) => {
                let [p, r, bad, good] = [model.p, model.r, model.bad, model.good]
                    .map(|share| decimal(share.fraction() * 100.0, 6));
                command += &format!(" loss gemodel {p}% {r}% {bad}% {good}%");
            }
            Loss::None | Loss::List(_) | Loss::DataList(_) => {}
        }
        for (share, name) in [(config.duplicate, "duplicate"), (config.corrupt, "corrupt")] {
            if share != LossRatio::NONE {
                command += &format!(" {name} {}%", percent(share));
            }
        }
        lines.push(format!("{command} limit {limit}"));
    }
    lines.push("# to undo, at both ends".to_owned());
    lines.push("sudo tc qdisc del dev DEV root".to_owned());
    lines.push("sudo ip link set dev DEV gso_max_segs 65535".to_owned());
    EmulatorSettings { lines, differs: Vec::new() }
}

/// The fields of a profile, on the client: downlink is what it receives.
fn link_conditioner(path: &PathSpec) -> EmulatorSettings {
    let [up, down] = path.directions();
    let mut differs = vec!["the queue's size cannot be set".to_owned()];
    let lines = [("Downlink", down), ("Uplink", up)].map(|(name, direction)| {
        let rate = match direction.rate() {
            Some(rate) if rate.bps() >= 1_000_000 => {
                format!("{} Mbps", decimal(rate.as_f64() / 1e6, 3))
            }
            Some(rate) => format!("{} Kbps", decimal(rate.as_f64() / 1e3, 3)),
            None => "empty".to_owned(),
        };
        let loss = match direction.config().loss {
            Loss::Bernoulli(loss) => percent(loss),
            _ => "0".to_owned(),
        };
        let delay = direction.delay().millis_f64();
        if delay.fract() != 0.0 {
            differs
                .push(format!("{name}: delays are whole milliseconds; here {}", millis(direction)));
        }
        format!("{name}: Bandwidth {rate}, Packets Dropped {loss} %, Delay {delay:.0} ms")
    });
    EmulatorSettings { lines: lines.into(), differs }
}

/// One clumsy for each direction, on the client.
fn clumsy(path: &PathSpec) -> EmulatorSettings {
    let mut differs = vec![
        "no queue: packets above the rate are dropped at once".to_owned(),
        "rates count in KB/s of 1024 bytes, delays in whole milliseconds".to_owned(),
        "alpha quality by its own page, and it lags packets longer than set: measure the RTT first"
            .to_owned(),
    ];
    let filters = ["outbound and ip.DstAddr == HOST", "inbound and ip.SrcAddr == HOST"];
    let mut lines = Vec::new();
    for ((filter, name), direction) in
        filters.into_iter().zip(["up", "down"]).zip(path.directions())
    {
        let mut command = format!("clumsy.exe --filter \"{filter}\"");
        let delay = direction.delay().millis_f64();
        if delay >= 0.5 {
            command += &format!(" --lag on --lag-time {delay:.0}");
        }
        if let Loss::Bernoulli(loss) = direction.config().loss {
            command += &format!(" --drop on --drop-chance {}", decimal(loss.fraction() * 100.0, 2));
        }
        if direction.config().duplicate != LossRatio::NONE {
            let chance = decimal(direction.config().duplicate.fraction() * 100.0, 2);
            command += &format!(" --duplicate on --duplicate-count 2 --duplicate-chance {chance}");
        }
        if let Some(rate) = direction.rate() {
            let most = CLUMSY_PACKETS * f64::from(path.mtu()) * 8.0
                / direction.delay().secs_f64().max(1e-3);
            if rate.as_f64() > most {
                differs.push(format!(
                    "{name}: it delays at most 2000 packets, {} at this delay; others pass early",
                    BitRate::from_bps_f64(most)
                ));
            }
            match rate.bps() / 8 / 1_024 {
                kb @ 1..=CLUMSY_MAX_KB_S => {
                    command += &format!(" --bandwidth on --bandwidth-bandwidth {kb}");
                }
                _ => differs.push(format!("{name}: no rate limit; its maximum is 819 Mbit/s")),
            }
        }
        lines.push(command);
    }
    EmulatorSettings { lines, differs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(path: &str, emulator: Emulator) -> EmulatorSettings {
        for_emulator(&path.parse().unwrap(), emulator)
    }

    #[test]
    fn netem_delays_each_direction_at_its_sender() {
        let netem = settings("rate=100mbit,rtt=173ms,loss=1%", Emulator::Netem);
        let commands: Vec<&String> =
            netem.lines.iter().filter(|line| line.contains(" netem ")).collect();
        // Half of the BDP of 2.1625 MB is delayed, and a whole one queued: 3 243 750 bytes.
        let wanted = "sudo tc qdisc replace dev DEV root netem rate 100000000bit -14 delay 86.5ms \
                      loss 1% limit 2163";
        assert_eq!(commands, [wanted, wanted]);
        assert_eq!(3_243_750_u64.div_ceil(1_500), 2_163);
        assert_eq!(netem.lines.iter().filter(|line| line.ends_with("gso_max_segs 1")).count(), 2);
        assert_eq!(netem.differs, [""; 0]);
        // Framing that the path counts: 38 bytes, of which netem sees 14.
        let framed = settings("rate=2.5gbit,rtt=15ms,overhead=38", Emulator::Netem);
        assert!(framed.lines[2].contains("rate 2500000000bit 24 delay 7.5ms"), "{framed:?}");
    }

    #[test]
    fn the_faster_direction_sizes_both_limits() {
        let geo = settings("up.rate=3mbit,down.rate=250mbit,rtt=600ms", Emulator::Netem);
        let limits: Vec<&str> =
            geo.lines.iter().filter_map(|line| line.rsplit_once("limit ")).map(|x| x.1).collect();
        // 250 Mbit/s x 0.3 s and a queue of 250 Mbit/s x 0.6 s.
        assert_eq!(limits, ["18750", "18750"]);
    }

    #[test]
    fn what_a_tool_lacks_is_listed() {
        let path = "rate=20mbit,rtt=50ms,jitter=5ms,queue=codel,@5s.rate=2mbit";
        for emulator in [Emulator::Netem, Emulator::LinkConditioner, Emulator::Clumsy] {
            let text = settings(path, emulator).differs.join("\n");
            for lacks in ["up: no jitter", "down: no jitter", "drop-tail", "changes over time"] {
                assert!(text.contains(lacks), "{emulator:?}: {lacks} in {text}");
            }
        }
        let bursty = settings("rate=20mbit,rtt=50ms,loss=ge:1%:30%", Emulator::Netem);
        assert!(bursty.lines[2].contains("loss gemodel 1% 30% 100% 0%"), "{bursty:?}");
        let lost = settings("rate=20mbit,rtt=50ms,loss=ge:1%:30%", Emulator::Clumsy);
        assert!(lost.differs.iter().any(|one| one.contains("no loss")), "{lost:?}");
    }

    #[test]
    fn profiles_of_the_other_two() {
        let mac = settings("up.rate=384kbit,down.rate=1.5mbit,rtt=50ms", Emulator::LinkConditioner);
        assert_eq!(
            mac.lines,
            [
                "Downlink: Bandwidth 1.5 Mbps, Packets Dropped 0 %, Delay 25 ms",
                "Uplink: Bandwidth 384 Kbps, Packets Dropped 0 %, Delay 25 ms"
            ]
        );
        let windows = settings("rate=100mbit,delay=50ms,loss=1%", Emulator::Clumsy);
        // 100 Mbit/s are 12207 KB/s of 1024 bytes.
        assert_eq!(
            windows.lines[0],
            "clumsy.exe --filter \"outbound and ip.DstAddr == HOST\" --lag on --lag-time 50 \
             --drop on --drop-chance 1 --bandwidth on --bandwidth-bandwidth 12207"
        );
        let fast = settings("rate=1gbit,rtt=200ms", Emulator::Clumsy);
        assert!(fast.differs.iter().any(|one| one.contains("819 Mbit/s")), "{fast:?}");
        // 2000 x 1500 bytes in 0.1 s.
        assert!(fast.differs.iter().any(|one| one.contains("240 Mbit/s")), "{fast:?}");
    }

    #[test]
    fn every_named_path_has_settings_for_every_tool() {
        for path in crate::PATHS {
            for emulator in [Emulator::Netem, Emulator::LinkConditioner, Emulator::Clumsy] {
                let settings = settings(path.spec, emulator);
                assert!(settings.lines.len() >= 2, "{}: {settings:?}", path.name);
            }
        }
    }
}
