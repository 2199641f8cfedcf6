//! The rate a device can reach: link speed, USB, PCI Express, Wi-Fi.

use super::{check, pass_or, unread};
use crate::facts::{Device, Fact, Pci, Usb};
use crate::target::Target;
use model::{IpVersion, Payload, WifiStandard};
use record::{Area, Check, Verdict};
use units::{BitRate, percent};

const MEGA: u64 = 1_000_000;

fn mbps(mbps: u32) -> BitRate {
    BitRate::from_bps(u64::from(mbps) * MEGA)
}

pub(super) fn checks(device: &Device, target: &Target) -> Vec<Check> {
    let mut checks = Vec::new();
    match &device.wireless {
        Some(wireless) => checks.push(wifi(device, wireless.signal_dbm.seen().copied(), target)),
        None => checks.extend(speed(device, target)),
    }
    checks.extend(device.usb.as_ref().map(|usb| bus(usb, target)));
    checks.extend(device.pci.as_ref().map(|pci| slot(pci, target)));
    checks
}

/// TCP goodput at a link rate, with full frames of the device's MTU.
fn goodput(line: BitRate, mtu: Option<u32>) -> Option<BitRate> {
    Payload::on_ethernet(mtu.unwrap_or(1_500), IpVersion::Ipv4).goodput(line)
}

fn speed(device: &Device, target: &Target) -> Vec<Check> {
    const SOURCE: &str = "IEEE 802.3; ethtool(8)";
    let needed = target.rate.to_string();
    let Some(now) = device.speed_mbps.seen().map(|now| mbps(*now)) else {
        let why = match (&device.speed_mbps, device.is_hardware) {
            (Fact::Unread { not_readable }, true) => not_readable.clone(),
            (Fact::Unread { not_readable }, _) if device.lower.is_empty() => not_readable.clone(),
            _ => {
                let lower = device.lower.join(", ");
                format!("a virtual device on top of {lower}")
            }
        };
        let draft = check(Area::Nic, "nic.speed", Verdict::Unknown).seen(why).needs(needed);
        return vec![draft.source(SOURCE)];
    };
    let payload = goodput(now, device.mtu.seen().copied());
    let mut why = format!("the link rate is {now}");
    if let Some(payload) = payload {
        why = format!("a {now} link carries {payload} of TCP payload over IPv4");
        let mtu = device.mtu.seen().copied().unwrap_or(1_500);
        if let Some(ipv6) = Payload::on_ethernet(mtu, IpVersion::Ipv6).goodput(now) {
            why += &format!(" and {ipv6} over IPv6: the goodput of a test that saturates it");
        }
    }
    let line = device.nic.line.seen();
    let able = line.and_then(|line| line.able_mbps).map(mbps);
    let peer = line.and_then(|line| line.peer_mbps).map(mbps);
    let fast = now >= target.rate;
    let remedy = match (able, peer) {
        (Some(able), Some(peer)) if able > now && peer > now => {
            format!(
                "both ends support {}: check the cable and the advertised modes",
                able.min(peer)
            )
        }
        (Some(able), Some(peer)) if able > now => {
            format!("this end supports {able}; the link partner offers only {peer}")
        }
        (Some(able), None) if able > now => {
            format!(
                "this end supports {able}: check the switch port, and the cable: {}",
                cable(able)
            )
        }
        _ => "use a faster link, or lower the target".to_owned(),
    };
    let mut checks = vec![
        check(Area::Nic, "nic.speed", pass_or(fast, Verdict::Fail))
            .seen(now.to_string())
            .needs(needed)
            .why(why)
            .remedy(remedy.as_str())
            .source(SOURCE),
    ];
    // Fast enough, but below the device's own speed: the cable or the port limits it.
    if let Some(able) = able.filter(|able| fast && *able > now) {
        checks.push(
            check(Area::Nic, "nic.negotiated", Verdict::Warn)
                .seen(format!("{now} of {able}"))
                .needs(able.to_string())
                .why("the link negotiated less than this end supports")
                .remedy(remedy)
                .source(SOURCE),
        );
    }
    checks.push(match &device.duplex {
        Fact::Seen(duplex) => {
            check(Area::Nic, "nic.duplex", pass_or(duplex == "full", Verdict::Fail))
                .seen(duplex)
                .needs("full")
                .why("at half duplex, ACKs collide with data")
                .remedy("enable autonegotiation at both ends")
                .command(format!("sudo ethtool -s {} autoneg on", device.name))
                .source(SOURCE)
        }
        none => unread(Area::Nic, "nic.duplex", none, "full", SOURCE),
    });
    checks
}

/// The cable that a rate over twisted pairs needs (TIA-568.2-D; IEEE 802.3bz for 2.5 and
/// 5 Gbit/s: "defined use cases and deployment configurations" of Cat 5e and 6, to be
/// qualified by TIA TSB-5021; IEEE 802.3an and TIA TSB-155 for 10 Gbit/s; IEEE 802.3bq for
/// more).
fn cable(rate: BitRate) -> &'static str {
    match rate.bps() {
        0..=1_000_000_000 => "Cat 5e for up to 100 m at 1 Gbit/s, all four pairs connected",
        1_000_000_001..=5_000_000_000 => {
            "Cat 6A for any installation up to 100 m; Cat 5e or 6 only where length, bundling and \
             crosstalk allow it (TIA TSB-5021)"
        }
        5_000_000_001..=10_000_000_000 => {
            "Cat 6A for up to 100 m at 10 Gbit/s; Cat 6 for 37 to 55 m (TIA TSB-155)"
        }
        _ => "Cat 8 for up to 30 m at 25 and 40 Gbit/s; fibre, or a direct-attach cable, beyond",
    }
}

/// The most a USB bus carries: 13 packets of 512 bytes in each of 8000
/// microframes per second (USB 2.0, table 5-10); 8b/10b at 5 Gbit/s, 128b/132b
/// above (USB 3.2, section 6.3).
fn usb_payload(bus: u32) -> BitRate {
    match bus {
        0..=12 => BitRate::from_bps(9_728_000),
        13..=480 => BitRate::from_bps(13 * 512 * 8_000 * 8),
        481..=5_000 => mbps(bus).scaled(0.8),
        _ => mbps(bus).scaled(128.0 / 132.0),
    }
}

fn bus(usb: &Usb, target: &Target) -> Check {
    const SOURCE: &str = "USB 2.0, table 5-10; USB 3.2, section 6.3";
    let Some(bus) = usb.bus_mbps.seen().copied() else {
        return unread(Area::Nic, "nic.usb", &usb.bus_mbps, &target.rate.to_string(), SOURCE);
    };
    let most = usb_payload(bus);
    check(Area::Nic, "nic.usb", pass_or(most >= target.rate, Verdict::Fail))
        .seen(format!("{} on USB at {}", usb.product, mbps(bus)).trim().to_owned())
        .needs(target.rate.to_string())
        .why(format!("USB at {} carries at most {most} of payload", mbps(bus)))
        .remedy(
            "connect it to a USB 3 port without a USB 2 hub or extension in between (lsusb -t \
             shows each device's speed)",
        )
        .source(SOURCE)
}

fn slot(pci: &Pci, target: &Target) -> Check {
    const SOURCE: &str = "PCI Express, section 4.2: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s";
    let Some((now, lanes)) = pci.now.seen().copied() else {
        return unread(Area::Nic, "nic.pcie", &pci.now, &target.rate.to_string(), SOURCE);
    };
    let rate = |(transfers, lanes): (f64, u32)| {
        let share = if transfers > 5.0 { 128.0 / 130.0 } else { 0.8 };
        BitRate::from_bps_f64(transfers * 1e9 * share * f64::from(lanes))
    };
    // With packet-sized transfers, transaction headers take a fifth.
    let most = rate((now, lanes)).scaled(0.8);
    let able = pci.able.seen().copied().map(rate);
    let less = able.is_some_and(|able| able > rate((now, lanes)));
    check(Area::Nic, "nic.pcie", pass_or(most >= target.rate, Verdict::Fail))
        .seen(format!("{lanes} lanes at {now} GT/s"))
        .needs(target.rate.to_string())
        .why(format!(
            "about {most} remains for packets; transaction headers take a fifth of the bus"
        ))
        .remedy(if less {
            "the slot limits the card: move it to a slot with as many lanes"
        } else {
            "use a card with more lanes"
        })
        .source(SOURCE)
}

fn wifi(device: &Device, signal: Option<i32>, target: &Target) -> Check {
    const SOURCE: &str = "nl80211; M3AAWG 2025: 800 of 1201 Mbit/s with 802.11ax";
    let Some(link) = device.nic.wifi.seen() else {
        return check(Area::Nic, "nic.wifi", Verdict::Warn)
            .seen(format!("Wi-Fi, rate unknown: {}", device.nic.wifi.why_not()))
            .needs("a cable")
            .why("the radio channel is shared, and its loss is not the path's")
            .remedy("test with a cable")
            .source(SOURCE);
    };
    let rate = link.rate_bps;
    let left = rate.scaled(model::WIFI_TCP_SHARE);
    let mut seen = format!("Wi-Fi at {rate}, {}, {} MHz", link.standard, link.width_mhz);
    if let Some(streams) = link.streams {
        seen += &format!(", {streams} {}", if streams == 1 { "stream" } else { "streams" });
    }
    if let Some(signal) = signal {
        seen += &format!(", {signal} dBm");
    }
    let mut why = format!(
        "TCP gets at most about {} of the current rate, {left}; the radio channel is shared and \
         lossy",
        percent(model::WIFI_TCP_SHARE)
    );
    let streams = u32::from(link.streams.unwrap_or(1));
    if let Some(standard) = WifiStandard::of(link.standard)
        && let Some(most) = standard.rate(link.width_mhz.into(), streams)
    {
        why += &format!("; at this width and number of streams the rate is at most {most}");
    }
    // Wi-Fi never passes: its rate is momentary.
    let verdict = if left >= target.rate { Verdict::Warn } else { Verdict::Fail };
    check(Area::Nic, "nic.wifi", verdict)
        .seen(seen)
        .needs(format!("a cable, or a {} link", target.rate.scaled(1.0 / model::WIFI_TCP_SHARE)))
        .why(why)
        .remedy(
            "test with a cable, or close to the access point; use 5 or 6 GHz with 80 MHz or more \
             if the channel is narrower",
        )
        .source(SOURCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buses_carry_less_than_they_are_called() {
        assert_eq!(usb_payload(480), BitRate::from_bps(425_984_000));
        assert_eq!(usb_payload(5_000), mbps(4_000));
        assert!(usb_payload(10_000) > mbps(9_600));
        // 2.5 Gbit/s fit USB 3 and no USB 2.
        assert!(usb_payload(5_000) > mbps(2_500) && usb_payload(480) < mbps(2_500));
    }
}
