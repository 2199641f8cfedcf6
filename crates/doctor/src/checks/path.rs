//! The way to the far end: round trip, packets' size, and what a handshake says.

use super::{check, pass_or, percent, unread};
use crate::facts::{Fact, Facts, Mtu, PathFacts, Shook};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::{ByteCount, Rtt};

/// The shift that Linux offers with its default of 6 MiB in `tcp_rmem`
/// (`tcp_select_initial_window` in net/ipv4/tcp_output.c).
const LINUX_SHIFT: u8 = 7;

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let Some(path) = &facts.path else { return Vec::new() };
    let mut checks = vec![round_trip(path, target), loss(path, target), mtu(facts, path)];
    match &path.handshake {
        Fact::Seen(shook) => {
            checks.push(window_scale(facts, path, shook, target));
            checks.extend(options(facts, shook));
            checks.push(segment(facts, path, shook));
        }
        none => checks.push(
            check(Area::Path, "path.window-scale", Verdict::Unknown)
                .seen(none.why_not())
                .needs(needed_scale(target))
                .why("only a handshake shows what middleboxes leave of TCP's options")
                .remedy("start a server there, or name a port that answers with --port")
                .command("longhaul server")
                .source("RFC 7323, section 2"),
        ),
    }
    checks
}

fn round_trip(path: &PathFacts, target: &Target) -> Check {
    const SOURCE: &str = "RFC 7323, section 1.1";
    let Fact::Seen(rtt) = &path.rtt_ns else {
        // Where the round trip was told, a host that keeps silent may be there.
        let verdict = if target.rtt.is_none() { Verdict::Fail } else { Verdict::Unknown };
        return check(Area::Path, "path.rtt", verdict)
            .seen(format!("{} to {}", path.rtt_ns.why_not(), path.address))
            .needs("an answer")
            .why("the round trip says how much is in flight")
            .remedy("check the address, or give --rtt")
            .source(SOURCE);
    };
    // A tenth longer than asked and the buffers are a tenth too small.
    let asked = target.rtt.unwrap_or(*rtt);
    let fits = rtt.secs_f64() <= asked.secs_f64() * 1.1;
    let how = match path.method.as_str() {
        "icmp" => "echoes",
        "tcp" => "TCP connects",
        _ => "a handshake",
    };
    check(Area::Path, "path.rtt", pass_or(fits, Verdict::Warn))
        .seen(format!("{rtt} by {how}"))
        .needs(if target.rtt == Some(*rtt) { "any".to_owned() } else { format!("{asked}") })
        .why(format!("{} x {rtt} = {} in flight", target.rate, model::bdp(target.rate, *rtt)))
        .remedy("hold the host against the round trip that the path has: leave --rtt out")
        .source(SOURCE)
}

fn loss(path: &PathFacts, target: &Target) -> Check {
    const SOURCE: &str = "Mathis et al. 1997, equation 3";
    let budget = target
        .loss_budget()
        .map_or_else(|| "no loss".to_owned(), |budget| format!("below {}", percent(budget)));
    let answered = path.lost < path.sent;
    let verdict = match (path.lost, answered) {
        (0, _) => Verdict::Pass,
        (_, true) => Verdict::Warn,
        // Echoes are often thrown away where everything else passes.
        (_, false) => Verdict::Unknown,
    };
    let many = target.loss_budget().map_or(10_000.0, |budget| (10.0 / budget).clamp(1e3, 1e5));
    check(Area::Path, "path.loss", verdict)
        .seen(format!("{} of {} probes lost", path.lost, path.sent))
        .needs(budget)
        .why(format!(
            "with segments of {} bytes more random loss keeps a Reno-like connection below its \
             rate; {} probes show only the worst of it",
            target.mss(),
            path.sent
        ))
        .remedy("ask more often")
        .command(format!("longhaul ping {} -c {many:.0} -i 10ms -q", path.address))
        .source(SOURCE)
}

fn mtu(facts: &Facts, path: &PathFacts) -> Check {
    const ID: &str = "path.mtu";
    const SOURCE: &str = "RFC 1191; RFC 4821; echoes that may not be cut";
    const WHY: &str = "larger packets carry more for the same work, and those too large must be \
                       answered by whoever drops them, or connections stall";
    let Fact::Seen(found) = &path.mtu else {
        return unread(Area::Path, ID, &path.mtu, "the device's MTU", SOURCE);
    };
    let Mtu { tried, arrived, told, sent } = found;
    let Some(arrived) = *arrived else {
        return check(Area::Path, ID, Verdict::Unknown)
            .seen("no echo came back, of whatever size")
            .needs(format!("{tried} bytes, as the device has"))
            .why(WHY)
            .source(SOURCE);
    };
    let probing = facts.settings.get("net.ipv4.tcp_mtu_probing").and_then(Fact::seen);
    let probes = probing.is_some_and(|value| value == "1" || value == "2");
    let (seen, verdict) = match told {
        _ if arrived >= *tried => (format!("{arrived} bytes"), Verdict::Pass),
        Some((by, mtu)) if arrived >= *mtu => {
            (format!("{arrived} bytes, as {by} tells"), Verdict::Pass)
        }
        _ => (
            format!("{arrived} bytes; larger ones vanish without a word"),
            if probes { Verdict::Warn } else { Verdict::Fail },
        ),
    };
    let draft = check(Area::Path, ID, verdict)
        .seen(format!("{seen} ({sent} echoes)"))
        .needs(format!("{tried} bytes, as the device has, or an answer to what is larger"))
        .why(WHY)
        .remedy("let connections find the size out, or lower the device's MTU");
    let device = facts.device.seen().map(|device| device.name.as_str());
    match (probes, device) {
        (true, Some(device)) => draft.command(format!("sudo ip link set {device} mtu {arrived}")),
        _ => draft.command("sudo sysctl -w net.ipv4.tcp_mtu_probing=1"),
    }
    .source(SOURCE)
}

fn needed_scale(target: &Target) -> String {
    match target.window().map(model::window_scale) {
        Some(Ok(0)) => "any".to_owned(),
        Some(Ok(shift)) => format!("{shift} or more"),
        Some(Err(error)) => error.to_string(),
        None => "as the far end offers".to_owned(),
    }
}

fn window_scale(facts: &Facts, path: &PathFacts, shook: &Shook, target: &Target) -> Check {
    let rtt = target.rtt.or(path.rtt_ns.seen().copied()).unwrap_or(Rtt::ZERO);
    let most = if shook.window_scale {
        ByteCount::from_bytes(65_535 << shook.peer_shift.min(model::MAX_SHIFT))
    } else {
        model::UNSCALED_WINDOW
    };
    let rate = model::window_rate(most, rtt);
    let fits = target.window().is_none_or(|window| window <= most);
    let offered = own(facts, "net.ipv4.tcp_window_scaling");
    let remains = rate.map_or_else(String::new, |rate| format!(": {most} / {rtt} = {rate}"));
    let (seen, why) = if shook.window_scale {
        let (theirs, ours) = (shook.peer_shift, shook.own_shift);
        (
            format!("{theirs} from the far end, {ours} from here (port {})", shook.port),
            format!(
                "with {theirs} the far end can announce {most} at most{remains}. Linux offers \
                 {LINUX_SHIFT} with its default buffers and more with larger ones: less comes \
                 from small buffers there, or from a middlebox that rewrites it"
            ),
        )
    } else if offered {
        (
            "none: the option did not come back".to_owned(),
            format!(
                "the far end does not scale, or a middlebox took the option out: no window is over \
                 64 KiB{remains}"
            ),
        )
    } else {
        (
            "none: this host did not offer it".to_owned(),
            format!("net.ipv4.tcp_window_scaling is off: no window is over 64 KiB{remains}"),
        )
    };
    check(Area::Path, "path.window-scale", pass_or(fits, Verdict::Fail))
        .seen(seen)
        .needs(needed_scale(target))
        .why(why)
        .remedy(if shook.window_scale {
            "run longhaul doctor on the far end; where it finds its buffers large enough, a \
             middlebox on the way lowers the scale"
        } else {
            "look at the SYNs at both ends; where they differ, the firewall or router between \
             them has to leave RFC 7323's options alone"
        })
        .command(format!(
            "sudo tcpdump -ni any 'tcp[tcpflags] & tcp-syn != 0 and port {}'",
            shook.port
        ))
        .source("RFC 7323, section 2")
}

/// Whether a switch of ours is on; where it was not read, it is.
fn own(facts: &Facts, key: &str) -> bool {
    facts.settings.get(key).and_then(Fact::seen).is_none_or(|value| value != "0")
}

fn options(facts: &Facts, shook: &Shook) -> [Check; 2] {
    let one = |id, held: bool, key, why, source| {
        let seen = match (held, own(facts, key)) {
            (true, _) => "agreed on",
            (false, true) => "offered, and not agreed on",
            (false, false) => "not offered by this host",
        };
        check(Area::Path, id, pass_or(held, Verdict::Warn))
            .seen(seen)
            .needs("agreed on")
            .why(why)
            .remedy(
                "the far end has it off, or a middlebox takes it out: compare SYNs at both ends",
            )
            .source(source)
    };
    [
        one(
            "path.sack",
            shook.sack,
            "net.ipv4.tcp_sack",
            "without selective acknowledgements one loss is repaired in each round trip",
            "RFC 2018",
        ),
        one(
            "path.timestamps",
            shook.timestamps,
            "net.ipv4.tcp_timestamps",
            "without timestamps sequence numbers that wrap cannot be told apart",
            "RFC 7323, section 3",
        ),
    ]
}

fn segment(facts: &Facts, path: &PathFacts, shook: &Shook) -> Check {
    let headers = if path.address.contains(':') { 60 } else { 40 };
    let device = facts.device.seen().and_then(|device| device.mtu.seen()).copied();
    let carried = path.mtu.seen().and_then(|mtu| mtu.arrived).or(device);
    let room = carried.map(|mtu| mtu.saturating_sub(headers));
    let fits = room.is_none_or(|room| shook.segment_bytes + 60 >= room);
    check(Area::Path, "path.segment", pass_or(fits, Verdict::Warn))
        .seen(format!("{} bytes", shook.segment_bytes))
        .needs(room.map_or_else(|| "as large as the way carries".into(), |r| format!("{r} bytes")))
        .why("somebody announced smaller segments than the way carries: more packets, and less loss is borne")
        .remedy("the far end's MTU is smaller, or a router clamps the MSS (a tunnel, a VPN, PPPoE)")
        .source("RFC 9293, section 3.7.1")
}
