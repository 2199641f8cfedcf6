//! The path to the far end: RTT, MTU, and the TCP options of a handshake.

use super::{check, loss_budget, pass_or, unread};
use crate::facts::{Fact, Facts, HandshakeFacts, Mtu, PathFacts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::{ByteCount, Rtt};

/// The shift that Linux offers with its default of 6 MiB in `tcp_rmem`
/// (`tcp_select_initial_window` in net/ipv4/tcp_output.c).
const LINUX_SHIFT: u8 = 7;

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let Some(path) = &facts.path else { return Vec::new() };
    let mut checks = vec![round_trip(path, target), loss(facts, path, target), mtu(facts, path)];
    match &path.handshake {
        Fact::Seen(handshake) => {
            checks.push(window_scale(facts, path, handshake, target));
            checks.extend(options(facts, handshake));
            checks.push(segment(facts, path, handshake));
        }
        none => checks.push(
            check(Area::Path, "path.window-scale", Verdict::Unknown)
                .seen(none.why_not())
                .needs(needed_scale(target))
                .why("only a handshake shows which TCP options middleboxes pass")
                .remedy("start a server there, or name an open port")
                .command("longhaul server")
                .source("RFC 7323, section 2"),
        ),
    }
    checks
}

fn round_trip(path: &PathFacts, target: &Target) -> Check {
    const SOURCE: &str = "RFC 7323, section 1.1";
    let Fact::Seen(rtt) = &path.rtt_ns else {
        // With a given RTT, a host that does not answer may still be reachable.
        let verdict = if target.rtt.is_none() { Verdict::Fail } else { Verdict::Unknown };
        return check(Area::Path, "path.rtt", verdict)
            .seen(format!("{} to {}", path.rtt_ns.why_not(), path.address))
            .needs("a reply")
            .why("the RTT determines how much data is in flight")
            .remedy("check the address, or give the RTT")
            .source(SOURCE);
    };
    // An RTT a tenth longer makes the buffers a tenth too small.
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
        .remedy("check against the measured RTT: give none")
        .source(SOURCE)
}

fn loss(facts: &Facts, path: &PathFacts, target: &Target) -> Check {
    const SOURCE: &str = "RFC 9438, section 5.1; Mathis et al. 1997, equation 3; ACM Queue 14(5)";
    let budget = loss_budget(facts, target);
    let needed = budget.map_or_else(|| "no loss".to_owned(), |budget| budget.words());
    let answered = path.lost < path.sent;
    let verdict = match (path.lost, answered) {
        (0, _) => Verdict::Pass,
        (_, true) => Verdict::Warn,
        // ICMP echoes are often filtered where other traffic passes.
        (_, false) => Verdict::Unknown,
    };
    let many = budget.map_or(10_000.0, |budget| (10.0 / budget.ratio).clamp(1e3, 1e5));
    check(Area::Path, "path.loss", verdict)
        .seen(format!("{} of {} probes lost", path.lost, path.sent))
        .needs(needed)
        .why(format!(
            "with an MSS of {} bytes, a higher random loss keeps this host's congestion control \
             below the rate; {} probes detect only heavy loss",
            target.mss(),
            path.sent
        ))
        .remedy("send more probes")
        .command(format!("longhaul ping {} -c {many:.0} -i 10ms -q", path.address))
        .source(SOURCE)
}

fn mtu(facts: &Facts, path: &PathFacts) -> Check {
    const ID: &str = "path.mtu";
    const SOURCE: &str = "RFC 1191; RFC 4821; echoes with the DF bit";
    const WHY: &str = "larger packets cost less per byte; a router that drops a packet as too \
                       large must report it (ICMP), or connections stall";
    let Fact::Seen(found) = &path.mtu else {
        return unread(Area::Path, ID, &path.mtu, "the device's MTU", SOURCE);
    };
    let Mtu { tried, arrived, told, sent } = found;
    let Some(arrived) = *arrived else {
        return check(Area::Path, ID, Verdict::Unknown)
            .seen("no reply to echoes of any size")
            .needs(format!("{tried} bytes, the device's MTU"))
            .why(WHY)
            .source(SOURCE);
    };
    let probing = facts.settings.get("net.ipv4.tcp_mtu_probing").and_then(Fact::seen);
    let probes = probing.is_some_and(|value| value == "1" || value == "2");
    let (seen, verdict) = match told {
        _ if arrived >= *tried => (format!("{arrived} bytes"), Verdict::Pass),
        Some((by, mtu)) if arrived >= *mtu => {
            (format!("{arrived} bytes, as reported by {by}"), Verdict::Pass)
        }
        _ => (
            format!("{arrived} bytes; larger packets are silently dropped"),
            if probes { Verdict::Warn } else { Verdict::Fail },
        ),
    };
    let draft = check(Area::Path, ID, verdict)
        .seen(format!("{seen} ({sent} echoes)"))
        .needs(format!("{tried} bytes, the device's MTU, or an ICMP error for larger packets"))
        .why(WHY)
        .remedy("enable MTU probing, or lower the device's MTU");
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
        None => "any".to_owned(),
    }
}

fn window_scale(
    facts: &Facts,
    path: &PathFacts,
    handshake: &HandshakeFacts,
    target: &Target,
) -> Check {
    let rtt = target.rtt.or(path.rtt_ns.seen().copied()).unwrap_or(Rtt::ZERO);
    let most = if handshake.window_scale {
        ByteCount::from_bytes(65_535 << handshake.peer_shift.min(model::MAX_SHIFT))
    } else {
        model::UNSCALED_WINDOW
    };
    let rate = model::window_rate(most, rtt);
    let fits = target.window().is_none_or(|window| window <= most);
    let offered = own(facts, "net.ipv4.tcp_window_scaling");
    let remains = rate.map_or_else(String::new, |rate| format!(": {most} / {rtt} = {rate}"));
    let (seen, why) = if handshake.window_scale {
        let (theirs, ours) = (handshake.peer_shift, handshake.own_shift);
        (
            format!("{theirs} from the far end, {ours} from this host (port {})", handshake.port),
            format!(
                "with {theirs} the far end can advertise at most {most}{remains}. Linux offers \
                 {LINUX_SHIFT} with default buffers and more with larger ones: a lower value \
                 means small buffers there or a middlebox that rewrites it"
            ),
        )
    } else if offered {
        (
            "none: the SYN-ACK lacks the option".to_owned(),
            format!(
                "the far end does not use window scaling, or a middlebox strips the option: \
                 windows stay below 64 KiB{remains}"
            ),
        )
    } else {
        (
            "none: this host did not offer it".to_owned(),
            format!("net.ipv4.tcp_window_scaling is off: windows stay below 64 KiB{remains}"),
        )
    };
    check(Area::Path, "path.window-scale", pass_or(fits, Verdict::Fail))
        .seen(seen)
        .needs(needed_scale(target))
        .why(why)
        .remedy(if handshake.window_scale {
            "run longhaul doctor on the far end; if its buffers are large enough, a middlebox on \
             the path lowers the scale"
        } else {
            "compare the SYNs at both ends; if they differ, configure the firewall or router \
             between them to pass RFC 7323 options"
        })
        .command(format!(
            "sudo tcpdump -ni any 'tcp[tcpflags] & tcp-syn != 0 and port {}'",
            handshake.port
        ))
        .source("RFC 7323, section 2")
}

/// Returns true if one of this host's settings is on; taken as on where it was not read.
fn own(facts: &Facts, key: &str) -> bool {
    facts.settings.get(key).and_then(Fact::seen).is_none_or(|value| value != "0")
}

fn options(facts: &Facts, handshake: &HandshakeFacts) -> [Check; 2] {
    let one = |id, held: bool, key, why, source| {
        let seen = match (held, own(facts, key)) {
            (true, _) => "negotiated",
            (false, true) => "offered, not negotiated",
            (false, false) => "not offered by this host",
        };
        check(Area::Path, id, pass_or(held, Verdict::Warn))
            .seen(seen)
            .needs("negotiated")
            .why(why)
            .remedy(
                "disabled at the far end, or stripped by a middlebox: compare the SYNs at both \
                 ends",
            )
            .source(source)
    };
    [
        one(
            "path.sack",
            handshake.sack,
            "net.ipv4.tcp_sack",
            "without selective acknowledgements only one loss is repaired per RTT",
            "RFC 2018",
        ),
        one(
            "path.timestamps",
            handshake.timestamps,
            "net.ipv4.tcp_timestamps",
            "without timestamps wrapped sequence numbers are ambiguous",
            "RFC 7323, section 3",
        ),
    ]
}

fn segment(facts: &Facts, path: &PathFacts, handshake: &HandshakeFacts) -> Check {
    let headers = if path.address.contains(':') { 60 } else { 40 };
    let device = facts.device.seen().and_then(|device| device.mtu.seen()).copied();
    let carried = path.mtu.seen().and_then(|mtu| mtu.arrived).or(device);
    let room = carried.map(|mtu| mtu.saturating_sub(headers));
    let fits = room.is_none_or(|room| handshake.segment_bytes + 60 >= room);
    check(Area::Path, "path.segment", pass_or(fits, Verdict::Warn))
        .seen(format!("{} bytes", handshake.segment_bytes))
        .needs(room.map_or_else(|| "the path MTU minus headers".into(), |r| format!("{r} bytes")))
        .why("the negotiated MSS is below the path MTU: more packets, and a smaller loss budget")
        .remedy(
            "the far end's MTU is smaller, or a router clamps the MSS (tunnel, VPN, PPPoE): \
                 check both",
        )
        .source("RFC 9293, section 3.7.1")
}
