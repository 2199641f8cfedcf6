//! The network device: driver, rings, offloads, pause frames, sleep, errors.

use super::{FAST, VERY_FAST, check, line, pass_or, percent, unread};
use crate::facts::{Device, Fact, Facts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::BitRate;

const ETHTOOL: &str = "ethtool(8)";
const ESNET: &str = "ESnet fasterdata, NIC tuning; ethtool(8)";

/// Drivers of USB's generic classes, and the one that is better for the chips
/// of Realtek (vendor 0bda).
const GENERIC: [&str; 5] = ["cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset", "rndis_host"];
const REALTEK: &str = "0bda:";

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let device = match &facts.device {
        Fact::Seen(device) => device,
        none => {
            return vec![unread(
                Area::Nic,
                "nic.device",
                none,
                "the device that carries it",
                "ip(8)",
            )];
        }
    };
    let mut checks = vec![state(device)];
    if device.name == "lo" {
        return checks;
    }
    checks.extend(line::checks(device, target));
    checks.push(driver(device));
    checks.push(mtu(device, target));
    if device.is_hardware {
        checks.push(rings(device, target));
        checks.push(pause(device, target));
        checks.push(eee(device));
        checks.push(errors(device, target));
    }
    checks.push(offloads(device));
    checks.push(queue(device));
    checks
}

fn state(device: &Device) -> Check {
    let Some(state) = device.state.seen() else {
        return unread(Area::Nic, "nic.device", &device.state, "up", "ip(8)");
    };
    // Devices of software do not know, and carry all the same.
    let verdict = match state.as_str() {
        "up" => Verdict::Pass,
        "unknown" if !device.is_hardware => Verdict::Pass,
        "unknown" => Verdict::Unknown,
        _ => Verdict::Fail,
    };
    check(Area::Nic, "nic.device", verdict)
        .seen(format!("{}: {state} ({})", device.name, device.chosen))
        .needs("up")
        .why("a device that is not up carries nothing")
        .remedy("plug the cable in and bring it up")
        .command(format!("sudo ip link set {} up", device.name))
        .source("ip(8)")
}

fn driver(device: &Device) -> Check {
    const SOURCE: &str = "USB CDC 1.2, ECM and NCM subclasses; Linux drivers/net/usb";
    let Some(driver) = device.driver.seen() else {
        return check(Area::Nic, "nic.driver", pass_or(!device.is_hardware, Verdict::Unknown))
            .seen(device.driver.why_not())
            .needs("any")
            .why("nothing is known of it that would help or harm")
            .source(ETHTOOL);
    };
    let generic = GENERIC.contains(&driver.as_str());
    let realtek = device.usb.as_ref().is_some_and(|usb| usb.id.starts_with(REALTEK));
    let (verdict, why) = match driver.as_str() {
        "cdc_ncm" if realtek => (
            Verdict::Warn,
            "NCM gathers frames and is quick, but it knows neither the line's duplex nor the \
             chip's offloads; r8152 is made for this chip",
        ),
        "cdc_ncm" => (Verdict::Pass, "NCM gathers frames into one transfer of USB"),
        _ if generic => (
            Verdict::Warn,
            "ECM and its like move one frame a transfer of USB: slower, and more work for the \
             processor than NCM or the chip's own driver",
        ),
        _ => (Verdict::Pass, "no driver that is known to be slow"),
    };
    let remedy = if realtek {
        "the chip has a driver of its own, r8152: load it and plug the adapter in again"
    } else {
        "an adapter with a driver of its own, or with NCM"
    };
    let draft = check(Area::Nic, "nic.driver", verdict)
        .seen(driver)
        .needs("the chip's own driver, or NCM")
        .why(why)
        .remedy(remedy);
    if realtek { draft.command("sudo modprobe r8152") } else { draft }.source(SOURCE)
}

fn mtu(device: &Device, target: &Target) -> Check {
    let Some(mtu) = device.mtu.seen().copied() else {
        return unread(Area::Nic, "nic.mtu", &device.mtu, "1500 or more", ETHTOOL);
    };
    // Below Ethernet's own it is a tunnel's, which has its reasons.
    let large = target.rate < FAST || mtu >= 8_000 || !device.is_hardware;
    check(Area::Nic, "nic.mtu", pass_or(large, Verdict::Warn))
        .seen(format!("{mtu} bytes"))
        .needs(if target.rate < FAST { "any" } else { "9000, where all of the way has it" })
        .why(
            "six times fewer packets are six times less work, and Mathis' loss budget grows with \
             the square of the segment",
        )
        .remedy("9000 on this device, on the far end's and on all switches between, or on none")
        .command(format!("sudo ip link set {} mtu 9000", device.name))
        .source("ESnet fasterdata, MTU issues")
}

fn rings(device: &Device, target: &Target) -> Check {
    let Some(rings) = device.nic.rings.seen().copied() else {
        return unread(Area::Nic, "nic.rings", &device.nic.rings, "as large as it can", ETHTOOL);
    };
    let full = rings.rx >= rings.rx_most && rings.tx >= rings.tx_most;
    let missed = device.counters.get("rx_missed_errors").copied().unwrap_or(0);
    let matters = target.rate >= FAST || missed > 0;
    // ESnet asks for 8192 at 100 Gbit/s; what has half of that has no need.
    let enough = full || rings.rx >= 4_096;
    let (rx, tx) = (rings.rx_most, rings.tx_most);
    check(Area::Nic, "nic.rings", pass_or(enough || !matters, Verdict::Warn))
        .seen(format!("rx {} of {rx}, tx {} of {tx}; {missed} missed", rings.rx, rings.tx))
        .needs(if matters { format!("rx {rx}, tx {tx}") } else { "any at this rate".to_owned() })
        .why(format!(
            "packets that come while the processor is elsewhere wait there: {} hold {} of this rate",
            rings.rx,
            wait(rings.rx, target.rate)
        ))
        .remedy("larger rings; the device is down for a moment")
        .command(format!("sudo ethtool -G {} rx {rx} tx {tx}", device.name))
        .source(ESNET)
}

/// How long packets of 1500 bytes take at a rate, in words.
fn wait(packets: u32, rate: BitRate) -> String {
    let bytes = units::ByteCount::from_bytes(u64::from(packets) * 1_538);
    units::Rtt::from_secs(rate.time_for(bytes).as_secs_f64()).to_string()
}

fn pause(device: &Device, target: &Target) -> Check {
    let Some(pause) = device.nic.pause.seen().copied() else {
        return unread(Area::Nic, "nic.pause", &device.nic.pause, "any", ETHTOOL);
    };
    let word = |on| if on { "on" } else { "off" };
    let fine = target.rate < VERY_FAST || pause.rx && pause.tx;
    check(Area::Nic, "nic.pause", pass_or(fine, Verdict::Warn))
        .seen(format!("rx {}, tx {}", word(pause.rx), word(pause.tx)))
        .needs(if target.rate < VERY_FAST { "any at this rate" } else { "on" })
        .why("a switch next door with small queues, or a busy host, then loses nothing")
        .remedy("pause frames both ways, at the switch too")
        .command(format!("sudo ethtool -A {} rx on tx on", device.name))
        .source(ESNET)
}

fn eee(device: &Device) -> Check {
    let Some(eee) = device.nic.eee.seen().copied() else {
        return unread(Area::Nic, "nic.eee", &device.nic.eee, "off", ETHTOOL);
    };
    check(Area::Nic, "nic.eee", pass_or(!(eee.enabled && eee.active), Verdict::Warn))
        .seen(match (eee.enabled, eee.active) {
            (true, true) => "on, and agreed on with the other end",
            (true, false) => "on, and not agreed on with the other end",
            _ => "off",
        })
        .needs("off")
        .why(
            "a line that sleeps between packets wakes for each burst: about 17 µs at 1 Gbit/s, and some \
             chips lose the link over it",
        )
        .remedy("Energy-Efficient Ethernet off; the link goes down for a moment")
        .command(format!("sudo ethtool --set-eee {} eee off", device.name))
        .source("IEEE 802.3az, clause 78; ethtool(8)")
}

fn offloads(device: &Device) -> Check {
    const ID: &str = "nic.offloads";
    let Some(offloads) = device.nic.offloads.seen().copied() else {
        return unread(Area::Nic, ID, &device.nic.offloads, "tso, gso and gro on", ETHTOOL);
    };
    // A device of software has no checksums to check.
    let of_hardware = |on: Option<bool>| on.filter(|_| device.is_hardware);
    let all = [
        ("rx", of_hardware(offloads.rx_checksum)),
        ("tx", of_hardware(offloads.tx_checksum)),
        ("tso", offloads.tso),
        ("gso", offloads.gso),
        ("gro", offloads.gro),
    ];
    let off: Vec<&str> =
        all.iter().filter(|(_, on)| *on == Some(false)).map(|(name, _)| *name).collect();
    let on: Vec<&str> =
        all.iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| *name).collect();
    let seen = match off.as_slice() {
        [] => format!("{} on", on.join(", ")),
        off => format!("{} off", off.join(", ")),
    };
    let switch: Vec<String> = off.iter().map(|name| format!("{name} on")).collect();
    check(Area::Nic, ID, pass_or(off.is_empty(), Verdict::Warn))
        .seen(seen)
        .needs("all on")
        .why(
            "with them the kernel handles trains of up to 64 KiB instead of each packet; without, \
             a core is full at a few Gbit/s",
        )
        .remedy("on, where the driver has them; a device for captures may want them off")
        .command(format!("sudo ethtool -K {} {}", device.name, switch.join(" ")))
        .source("Linux segmentation-offloads.rst")
}

/// The device's own queue discipline: the default counts only for devices that
/// come up later.
fn queue(device: &Device) -> Check {
    const SOURCE: &str = "tc-fq(8); ESnet fasterdata, Linux tuning";
    let Some(qdisc) = device.nic.qdisc.seen() else {
        return unread(Area::Nic, "nic.qdisc", &device.nic.qdisc, "fq", SOURCE);
    };
    // `mq` has one beneath it for each queue; `noqueue` and `noop` are no queues.
    let fine = matches!(qdisc.as_str(), "fq" | "mq" | "noqueue" | "noop") || !device.is_hardware;
    check(Area::Nic, "nic.qdisc", pass_or(fine, Verdict::Warn))
        .seen(qdisc)
        .needs("fq")
        .why("paced packets do not overrun the queues of slower links in bursts")
        .remedy("at once; net.core.default_qdisc is for devices that come up later")
        .command(format!("sudo tc qdisc replace dev {} root fq", device.name))
        .source(SOURCE)
}

fn errors(device: &Device, target: &Target) -> Check {
    const SOURCE: &str = "Linux statistics.rst; ethtool(8)";
    let counter = |name: &str| device.counters.get(name).copied();
    let Some(packets) = counter("rx_packets") else {
        let none = Fact::<()>::unread("the device has no counters");
        return unread(Area::Nic, "nic.errors", &none, "fewer than the loss budget", SOURCE);
    };
    let (bad, missed) =
        (counter("rx_errors").unwrap_or(0), counter("rx_missed_errors").unwrap_or(0));
    let lost = bad.saturating_add(missed);
    let all = packets.saturating_add(lost).max(1);
    let share = lost as f64 / all as f64;
    let budget = target.loss_budget();
    let verdict = match budget {
        _ if lost == 0 => Verdict::Pass,
        Some(budget) if share > budget => Verdict::Fail,
        _ => Verdict::Warn,
    };
    check(Area::Nic, "nic.errors", verdict)
        .seen(format!("{bad} damaged, {missed} missed, of {all} received ({})", percent(share)))
        .needs(budget.map_or("none".to_owned(), |budget| format!("below {}", percent(budget))))
        .why("frames that this host loses are losses of the path: no setting makes up for them")
        .remedy("damaged: cable, plug, optics; missed: larger rings, interrupts on more processors")
        .command(format!("ethtool -S {}", device.name))
        .source(SOURCE)
}
