//! Network devices of many kinds.

use crate::fake::{Host, ids, one, seen, target, verdict};
use record::Verdict::{Fail, Pass, Unknown, Warn};
use record::nic::{Eee, Line, Offloads, Pause, Rings, WifiLink};
use units::BitRate;

/// A laptop with an adapter for 2.5 Gbit/s on USB: a Realtek chip, 0bda:8156.
fn adapter(driver: &str, bus: &str, vendor: &str) -> Host {
    let host = Host::server().without("sys/class/net/eth0");
    host.with("sys/class/net/enx0/operstate", "up")
        .with("sys/class/net/enx0/speed", "2500")
        .with("sys/class/net/enx0/duplex", "full")
        .with("sys/class/net/enx0/mtu", "1500")
        // Above the network device is the USB device, whose speed is the bus'.
        .with("sys/class/net/enx0/device/idVendor", vendor)
        .with("sys/class/net/enx0/device/idProduct", "8156")
        .with("sys/class/net/enx0/device/product", "USB 10/100/1G/2.5G LAN")
        .with("sys/class/net/enx0/device/speed", bus)
        .with("proc/net/route", "Iface Destination\nenx0 00000000 0100A8C0 0003 0 0 100 00000000\n")
        .driver("enx0", driver)
}

#[test]
fn usb_adapters_have_a_bus_and_a_driver() {
    let goal = target("2gbit", "50ms");
    let checks = adapter("cdc_ncm", "5000", "0bda").checks(&goal);
    assert_eq!(verdict(&checks, "nic.usb"), Pass, "{checks:#?}");
    let driver = one(&checks, "nic.driver");
    assert_eq!((driver.verdict, driver.seen.as_str()), (Warn, "cdc_ncm"));
    assert!(driver.remedy.contains("r8152"), "{driver:?}");
    // In a port of USB 2 the same adapter is a slow one.
    let checks = adapter("cdc_ncm", "480", "0bda").checks(&goal);
    let usb = one(&checks, "nic.usb");
    assert!(usb.verdict == Fail && usb.why.contains("426 Mbit/s"), "{usb:?}");
    // Another maker's NCM is what to look for, ECM what to avoid.
    let another = |driver| verdict(&adapter(driver, "5000", "1234").checks(&goal), "nic.driver");
    assert_eq!((another("cdc_ncm"), another("cdc_ether")), (Pass, Warn));
    assert_eq!(another("r8152"), Pass);
    let odd = adapter("r8152", "fast", "0bda").checks(&goal);
    assert_eq!(verdict(&odd, "nic.usb"), Unknown);
}

#[test]
fn a_laptop_on_wifi() {
    let laptop = |rate: Option<u64>| {
        let mut host = Host::server()
            .without("sys/class/net/eth0")
            .with("sys/class/net/wlan0/operstate", "up")
            .with("sys/class/net/wlan0/mtu", "1500")
            .with("sys/class/net/wlan0/uevent", "DEVTYPE=wlan\nINTERFACE=wlan0\n")
            .with("proc/net/wireless", "Inter-|\n face |\n wlan0: 0000   58.  -52.  -256 0 0\n")
            .with("proc/net/route", "x\nwlan0 00000000 01 0003 0 0 600 00000000\n")
            .driver("wlan0", "iwlwifi");
        if let Some(rate) = rate {
            host.nic.wifi = seen(WifiLink {
                rate_bps: BitRate::from_bps(rate),
                standard: "802.11ax (Wi-Fi 6)",
                width_mhz: 80,
                streams: Some(2),
            });
        }
        host
    };
    let at = |rate, goal: &str| {
        let checks = laptop(rate).checks(&target(goal, "50ms"));
        one(&checks, "nic.wifi").clone()
    };
    let slow = at(Some(1_201_000_000), "1gbit");
    assert!(slow.verdict == Fail && slow.seen.contains("-52 dBm"), "{slow:?}");
    assert!(slow.why.contains("801 Mbit/s"), "{slow:?}");
    assert!(slow.seen.contains("802.11ax (Wi-Fi 6), 80 MHz, 2 streams"), "{slow:?}");
    // 980 tones x 10 bit x 5/6 x 2 / 13.6 us.
    assert!(slow.why.contains("at most 1.2 Gbit/s"), "{slow:?}");
    // Air never passes.
    assert_eq!(at(Some(1_201_000_000), "500mbit").verdict, Warn);
    assert_eq!(at(None, "500mbit").verdict, Warn);
    let facts = laptop(Some(600_000_000)).facts();
    assert_eq!(doctor::link_rate(&facts), Some(BitRate::from_bps(600_000_000)));
    assert_eq!(doctor::link_rate(&laptop(None).facts()), None);
}

#[test]
fn a_slow_link_names_the_end_that_limits_it() {
    let with = |able, peer| {
        let mut host = Host::server().with("sys/class/net/eth0/speed", "1000");
        let line = Line { able_mbps: able, offered_mbps: able, peer_mbps: peer, negotiated: true };
        host.nic.line = seen(line);
        host
    };
    let speed = |host: &Host| one(&host.checks(&target("2.5gbit", "50ms")), "nic.speed").clone();
    let cable = speed(&with(Some(2_500), Some(2_500)));
    assert!(cable.verdict == Fail && cable.remedy.contains("both ends support 2.5 Gbit/s"));
    // 9000 bytes less headers, of 9038 on the wire.
    assert!(cable.why.contains("990 Mbit/s"), "{cable:?}");
    assert!(speed(&with(Some(2_500), Some(1_000))).remedy.contains("offers only 1 Gbit/s"));
    let unknown = speed(&with(Some(2_500), None)).remedy;
    assert!(unknown.contains("cable: Cat 6A") && unknown.contains("TSB-5021"), "{unknown}");
    assert!(speed(&with(Some(1_000), Some(10_000))).remedy.contains("faster link"));
    // Fast enough for what is asked, and still not what it could be.
    let checks = with(Some(2_500), Some(2_500)).checks(&target("900mbit", "50ms"));
    assert_eq!((verdict(&checks, "nic.speed"), verdict(&checks, "nic.negotiated")), (Pass, Warn));
    let half = Host::server().with("sys/class/net/eth0/duplex", "half");
    assert_eq!(verdict(&half.checks(&target("1gbit", "50ms")), "nic.duplex"), Fail);
    let down = Host::server().with("sys/class/net/eth0/operstate", "down");
    assert_eq!(verdict(&down.checks(&target("1gbit", "50ms")), "nic.device"), Fail);
}

#[test]
fn drivers_tell_rings_offloads_pause_and_sleep() {
    let mut host = Host::server();
    host.nic.rings = seen(Rings { rx: 512, rx_most: 8_192, tx: 512, tx_most: 8_192 });
    host.nic.pause = seen(Pause { negotiated: true, rx: false, tx: false });
    host.nic.eee = seen(Eee { enabled: true, active: true, sleeps_after_us: 10 });
    host.nic.offloads = seen(Offloads {
        rx_checksum: Some(true),
        tx_checksum: Some(true),
        tso: Some(false),
        gso: Some(true),
        gro: None,
    });
    let fast = host.checks(&target("100gbit", "10ms"));
    for id in ["nic.rings", "nic.pause", "nic.eee", "nic.offloads"] {
        assert_eq!(verdict(&fast, id), Warn, "{:?}", one(&fast, id));
    }
    assert_eq!(
        one(&fast, "nic.rings").command,
        Some("sudo ethtool -G eth0 rx 8192 tx 8192".into())
    );
    assert_eq!(one(&fast, "nic.offloads").command, Some("sudo ethtool -K eth0 tso on".into()));
    // At 1 Gbit/s neither rings nor pause frames matter.
    let slow = host.checks(&target("1gbit", "10ms"));
    assert_eq!((verdict(&slow, "nic.rings"), verdict(&slow, "nic.pause")), (Pass, Pass));
    // A ring that overflowed matters at any rate.
    let missed = host.with("sys/class/net/eth0/statistics/rx_missed_errors", "12");
    let missed = missed.checks(&target("1gbit", "10ms"));
    assert_eq!(verdict(&missed, "nic.rings"), Warn);
}

#[test]
fn frames_lost_by_the_host_are_held_against_the_budget() {
    let at = |errors: &str, rate: &str| {
        let host = Host::server()
            .with("sys/class/net/eth0/statistics/rx_errors", errors)
            .with("sys/class/net/eth0/statistics/rx_packets", "1000000");
        verdict(&host.checks(&target(rate, "100ms")), "nic.errors")
    };
    // 10 Mbit/s over 100 ms bears 0.02 %, 10 Gbit/s 2e-10.
    assert_eq!((at("0", "10gbit"), at("10", "10mbit"), at("10", "10gbit")), (Pass, Warn, Fail));
}

#[test]
fn a_card_in_a_narrow_slot() {
    let slot = |speed: &str, width: &str| {
        let file = |name: &str| format!("sys/class/net/eth0/device/{name}");
        let host = Host::server()
            .with(&file("current_link_speed"), speed)
            .with(&file("current_link_width"), width)
            .with(&file("max_link_speed"), "8.0 GT/s PCIe")
            .with(&file("max_link_width"), "8");
        one(&host.checks(&target("10gbit", "10ms")), "nic.pcie").clone()
    };
    assert_eq!(slot("8.0 GT/s PCIe", "8").verdict, Pass);
    let narrow = slot("2.5 GT/s PCIe", "1");
    assert!(
        narrow.verdict == Fail && narrow.remedy.contains("the slot limits the card"),
        "{narrow:?}"
    );
    assert_eq!(slot("Unknown", "x").verdict, Unknown);
}

#[test]
fn a_driver_that_nobody_knows_tells_nothing_and_harms_nothing() {
    let host = Host::server().driver("eth0", "frobnicate_net");
    let checks = host.checks(&target("1gbit", "50ms"));
    assert_eq!(one(&checks, "nic.driver").seen, "frobnicate_net");
    assert_eq!((ids(&checks, Fail).len(), ids(&checks, Warn).len()), (0, 0), "{checks:#?}");
    for id in ["nic.rings", "nic.pause", "nic.eee", "nic.offloads"] {
        let check = one(&checks, id);
        assert_eq!((check.verdict, check.seen.as_str()), (Unknown, "no driver"));
    }
}

#[test]
fn the_ports_of_a_bridge_are_examined() {
    let bridge = |members: &[(&str, &str, &str)]| {
        let mut host = Host::server()
            .without("sys/class/net/eth0")
            .with("sys/class/net/br0/operstate", "up")
            .with("sys/class/net/br0/mtu", "1500")
            .with("sys/class/net/br0/uevent", "DEVTYPE=bridge")
            // A guest's device, which is no hardware.
            .with("sys/class/net/br0/lower_tap0/operstate", "up")
            .with("sys/class/net/tap0/operstate", "up")
            .with("proc/net/route", "x\nbr0 00000000 01 0003 0 0 600 00000000\n");
        for (name, speed, duplex) in members {
            let file = |what: &str| format!("sys/class/net/{name}/{what}");
            host = host
                .with(&format!("sys/class/net/br0/lower_{name}/operstate"), "up")
                .with(&file("operstate"), "up")
                .with(&file("speed"), speed)
                .with(&file("duplex"), duplex)
                .with(&file("mtu"), "1500")
                .with(&file("statistics/rx_packets"), "1000")
                .with(&file("statistics/rx_errors"), "100")
                .driver(name, "e1000e");
        }
        host
    };
    let goal = target("1gbit", "50ms");
    let checks = bridge(&[("eno1", "100", "half"), ("eno2", "1000", "full")]).checks(&goal);
    let slow = one(&checks, "nic.speed.eno1");
    assert!(slow.verdict == Fail && slow.seen.starts_with("eno1: 100 Mbit/s"), "{slow:?}");
    assert_eq!(verdict(&checks, "nic.duplex.eno1"), Fail);
    assert_eq!(verdict(&checks, "nic.errors.eno1"), Fail);
    assert_eq!(verdict(&checks, "nic.speed.eno2"), Pass);
    assert!(!checks.iter().any(|check| check.id.contains("tap0")), "{checks:#?}");
    // A VLAN on a bond on two ports; and devices that name each other.
    let loops = bridge(&[])
        .with("sys/class/net/br0/lower_bond0/operstate", "up")
        .with("sys/class/net/bond0/lower_br0/operstate", "up")
        .with("sys/class/net/bond0/lower_eno9/operstate", "up")
        .with("sys/class/net/eno9/operstate", "up")
        .with("sys/class/net/eno9/speed", "10")
        .driver("eno9", "igb");
    assert_eq!(verdict(&loops.checks(&goal), "nic.speed.eno9"), Fail);
    let many: Vec<String> = (0..50).map(|port| format!("eno{port}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "1000", "full")).collect();
    let checks = bridge(&many).checks(&goal);
    let ports = checks.iter().filter(|check| check.id.starts_with("nic.speed.")).count();
    assert_eq!(ports, doctor::MAX_PORTS);
}
