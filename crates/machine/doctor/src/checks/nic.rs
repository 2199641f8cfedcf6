//! The network device: driver, rings, offloads, pause frames, EEE, errors.

use super::{FAST, VERY_FAST, check, congestion, line, loss_budget, pass_or, unread};
use crate::facts::{Device, Fact, Facts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::{BitRate, percent, share};

const ETHTOOL: &str = "ethtool(8)";
const ESNET: &str = "ESnet fasterdata, NIC tuning; ethtool(8)";

/// Generic USB network drivers, and the vendor id of Realtek, whose chips have a better one.
const GENERIC: [&str; 5] = ["cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset", "rndis_host"];
const REALTEK: &str = "0bda:";

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let device = match &facts.device {
        Fact::Seen(device) => device,
        none => {
            return vec![unread(Area::Nic, "nic.device", none, "a network device", "ip(8)")];
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
        checks.push(errors(facts, device, target));
    }
    checks.push(offloads(device));
    checks.push(queue(facts, device));
    checks.extend(facts.ports.iter().flat_map(|port| below(facts, port, target)));
    checks
}

/// Checks of hardware below the device. Which port of a bridge leads to the far end is not known.
fn below(facts: &Facts, port: &Device, target: &Target) -> Vec<Check> {
    let mut checks = line::checks(port, target);
    checks.extend([
        driver(port),
        rings(port, target),
        pause(port, target),
        errors(facts, port, target),
        offloads(port),
    ]);
    for check in &mut checks {
        check.id = format!("{}.{}", check.id, port.name);
        check.seen = format!("{}: {}", port.name, check.seen);
    }
    checks
}

fn state(device: &Device) -> Check {
    let Some(state) = device.state.seen() else {
        return unread(Area::Nic, "nic.device", &device.state, "up", "ip(8)");
    };
    // Virtual devices report `unknown` and work.
    let verdict = match state.as_str() {
        "up" => Verdict::Pass,
        "unknown" if !device.is_hardware => Verdict::Pass,
        "unknown" => Verdict::Unknown,
        _ => Verdict::Fail,
    };
    check(Area::Nic, "nic.device", verdict)
        .seen(format!("{}: {state} ({})", device.name, device.chosen))
        .needs("up")
        .why("a device that is down sends nothing")
        .remedy("connect the cable and bring the device up")
        .command(format!("sudo ip link set {} up", device.name))
        .source("ip(8)")
}

fn driver(device: &Device) -> Check {
    const SOURCE: &str = "USB CDC 1.2, ECM and NCM subclasses; Linux drivers/net/usb";
    let Some(driver) = device.driver.seen() else {
        return check(Area::Nic, "nic.driver", pass_or(!device.is_hardware, Verdict::Unknown))
            .seen(device.driver.why_not())
            .needs("any")
            .why("this driver is not known to be slow or fast")
            .source(ETHTOOL);
    };
    let generic = GENERIC.contains(&driver.as_str());
    let realtek = device.usb.as_ref().is_some_and(|usb| usb.id.starts_with(REALTEK));
    let (verdict, why) = match driver.as_str() {
        "cdc_ncm" if realtek => (
            Verdict::Warn,
            "NCM aggregates frames and is fast, but reports no duplex and lacks the chip's \
             offloads; r8152 supports this chip",
        ),
        "cdc_ncm" => (Verdict::Pass, "NCM aggregates frames into one USB transfer"),
        _ if generic => (
            Verdict::Warn,
            "ECM and similar drivers move one frame per USB transfer: slower and more CPU load \
             than NCM or the chip's own driver",
        ),
        _ => (Verdict::Pass, "not known to be slow"),
    };
    let remedy = if realtek {
        "this chip has its own driver, r8152: load it and reconnect the adapter"
    } else {
        "use an adapter with its own driver, or with NCM"
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
    // A smaller MTU than Ethernet's belongs to a tunnel.
    let large = target.rate < FAST || mtu >= 8_000 || !device.is_hardware;
    check(Area::Nic, "nic.mtu", pass_or(large, Verdict::Warn))
        .seen(format!("{mtu} bytes"))
        .needs(if target.rate < FAST { "any" } else { "9000, where the whole path supports it" })
        .why(
            "a sixth of the packets costs a sixth of the per-packet work, and the loss budget grows \
             with MSS^2 for Reno (Mathis 1997) and with MSS^(4/3) for CUBIC (RFC 9438)",
        )
        .remedy("set 9000 here, at the far end and on every switch between, or nowhere")
        .command(format!("sudo ip link set {} mtu 9000", device.name))
        .source("ESnet fasterdata, MTU issues")
}

fn rings(device: &Device, target: &Target) -> Check {
    let Some(rings) = device.nic.rings.seen().copied() else {
        return unread(Area::Nic, "nic.rings", &device.nic.rings, "the maximum", ETHTOOL);
    };
    let full = rings.rx >= rings.rx_most && rings.tx >= rings.tx_most;
    let missed = device.counters.get("rx_missed_errors").copied().unwrap_or(0);
    let matters = target.rate >= FAST || missed > 0;
    // ESnet recommends 8192 at 100 Gbit/s; half of that is enough.
    let enough = full || rings.rx >= 4_096;
    let (rx, tx) = (rings.rx_most, rings.tx_most);
    check(Area::Nic, "nic.rings", pass_or(enough || !matters, Verdict::Warn))
        .seen(format!("rx {} of {rx}, tx {} of {tx}; {missed} missed", rings.rx, rings.tx))
        .needs(if matters { format!("rx {rx}, tx {tx}") } else { "any at this rate".to_owned() })
        .why(format!(
            "the rings buffer packets while the CPU is busy: {} entries hold {} at this rate",
            rings.rx,
            wait(rings.rx, target.rate)
        ))
        .remedy("enlarge the rings; this interrupts the link briefly")
        .command(format!("sudo ethtool -G {} rx {rx} tx {tx}", device.name))
        .source(ESNET)
}

/// The time that packets of 1500 bytes take at a rate.
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
        .why("pause frames prevent drops at a switch with small buffers or at a busy host")
        .remedy("enable pause frames in both directions, on the switch too")
        .command(format!("sudo ethtool -A {} rx on tx on", device.name))
        .source(ESNET)
}

fn eee(device: &Device) -> Check {
    let Some(eee) = device.nic.eee.seen().copied() else {
        return unread(Area::Nic, "nic.eee", &device.nic.eee, "off", ETHTOOL);
    };
    check(Area::Nic, "nic.eee", pass_or(!(eee.enabled && eee.active), Verdict::Warn))
        .seen(match (eee.enabled, eee.active) {
            (true, true) => "on, and negotiated with the link partner",
            (true, false) => "on, but not negotiated with the link partner",
            _ => "off",
        })
        .needs("off")
        .why(
            "a link in low-power idle needs about 17 µs at 1 Gbit/s to wake for each burst, and \
             some chips drop the link",
        )
        .remedy("disable Energy-Efficient Ethernet; this interrupts the link briefly")
        .command(format!("sudo ethtool --set-eee {} eee off", device.name))
        .source("IEEE 802.3az, clause 78; ethtool(8)")
}

fn offloads(device: &Device) -> Check {
    const ID: &str = "nic.offloads";
    let Some(offloads) = device.nic.offloads.seen().copied() else {
        return unread(Area::Nic, ID, &device.nic.offloads, "tso, gso and gro on", ETHTOOL);
    };
    // A virtual device has no checksum offload to check.
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
            "with them the kernel handles up to 64 KiB at once instead of single packets; without \
             them, one core saturates at a few Gbit/s",
        )
        .remedy("enable them where the driver supports them, except on capture devices")
        .command(format!("sudo ethtool -K {} {}", device.name, switch.join(" ")))
        .source("Linux segmentation-offloads.rst")
}

/// The device's own qdisc: the sysctl default applies only to devices that come up later.
/// fq paces what BBR sends; on any other host a managed queue of either kind will do.
fn queue(facts: &Facts, device: &Device) -> Check {
    const SOURCE: &str = "tc-fq(8), tc-fq_codel(8); RFC 8290";
    let bbr = congestion(facts) == Some("bbr");
    let needed = if bbr { "fq" } else { "fq_codel, or fq where hosts pace" };
    let Some(qdisc) = device.nic.qdisc.seen() else {
        return unread(Area::Nic, "nic.qdisc", &device.nic.qdisc, needed, SOURCE);
    };
    // `mq` has a child qdisc per hardware queue; `noqueue` and `noop` are no queues.
    let fine = match qdisc.as_str() {
        "fq" | "mq" | "noqueue" | "noop" => true,
        "fq_codel" | "cake" | "fq_pie" => !bbr,
        _ => !device.is_hardware,
    };
    let (why, wanted) = if bbr {
        (
            "BBR paces, and fq releases each packet at its time with less CPU than timers in TCP",
            "fq",
        )
    } else {
        (
            "fq_codel keeps flows apart and limits the delay in this device's queue; a single \
             queue delays every flow behind a bulk transfer",
            "fq_codel",
        )
    };
    check(Area::Nic, "nic.qdisc", pass_or(fine, Verdict::Warn))
        .seen(qdisc)
        .needs(needed)
        .why(why)
        .remedy("replace it now; net.core.default_qdisc applies to devices that come up later")
        .command(format!("sudo tc qdisc replace dev {} root {wanted}", device.name))
        .source(SOURCE)
}

fn errors(facts: &Facts, device: &Device, target: &Target) -> Check {
    const SOURCE: &str = "Linux statistics.rst; ethtool(8)";
    let counter = |name: &str| device.counters.get(name).copied();
    let Some(packets) = counter("rx_packets") else {
        let none = Fact::<()>::unread("this device has no counters");
        return unread(Area::Nic, "nic.errors", &none, "fewer than the loss budget", SOURCE);
    };
    let (bad, missed) =
        (counter("rx_errors").unwrap_or(0), counter("rx_missed_errors").unwrap_or(0));
    let lost = bad.saturating_add(missed);
    let all = packets.saturating_add(lost);
    let share = share(lost, all);
    let budget = loss_budget(facts, target);
    let verdict = match budget {
        _ if lost == 0 => Verdict::Pass,
        Some(budget) if share > budget.ratio => Verdict::Fail,
        _ => Verdict::Warn,
    };
    check(Area::Nic, "nic.errors", verdict)
        .seen(format!("{bad} damaged, {missed} missed, of {all} received ({})", percent(share)))
        .needs(budget.map_or("none".to_owned(), |budget| budget.words()))
        .why("every frame lost here counts as path loss; no setting compensates for it")
        .remedy(
            "damaged: check cable, connector and optics; missed: enlarge the rings, spread \
                 interrupts over more CPUs",
        )
        .command(format!("ethtool -S {}", device.name))
        .source(SOURCE)
}
