//! One network device, from `/sys/class/net`.

use super::{Asked, Root, route};
use ::doctor::{Device, Fact, Interrupts, MAX_PORTS, Nic, Pci, Usb, Wireless};
use std::collections::BTreeMap;

/// Counters worth knowing (Documentation/ABI/testing/sysfs-class-net-statistics).
const COUNTERS: [&str; 9] = [
    "rx_packets",
    "tx_packets",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "rx_crc_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
];

/// Devices that are looked at below another one: a bridge of virtual machines has hundreds.
const MAX_BELOW: usize = 64;

/// The number of folders above a device's in which its USB device is looked for.
const LEVELS: usize = 6;

pub(super) fn device(root: &Root, asked: &Asked, nic: &dyn Fn(&str) -> Nic) -> Fact<Device> {
    let known = root.names("sys/class/net");
    let (name, chosen) = if let Some(name) = &asked.device {
        (name.clone(), "selected in the request".to_owned())
    } else if let Some(name) = &asked.zone {
        (name.clone(), "the interface of the address".to_owned())
    } else if let Some(name) = route::device(root, asked.to) {
        let on_route = asked.to.is_some();
        let why = if on_route { "on the route to the far end" } else { "the default route" };
        (name, why.to_owned())
    } else {
        return Fact::unread(if known.is_empty() {
            "no network device found".to_owned()
        } else {
            format!("no route selects a device: name a device, one of {}", known.join(", "))
        });
    };
    if name.contains('/') || name.starts_with('.') || !known.contains(&name) {
        return Fact::unread(format!(
            "no device '{}'; available: {}",
            super::short(&name),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ));
    }
    Fact::Seen(read(root, name, chosen, nic))
}

/// The hardware below a device that is up, through bonds and VLANs.
pub(super) fn ports(root: &Root, above: &Device, nic: &dyn Fn(&str) -> Nic) -> Vec<Device> {
    let mut names = above.lower.clone();
    let mut found: Vec<Device> = Vec::new();
    let mut next = 0;
    while next < names.len() && next < MAX_BELOW && found.len() < MAX_PORTS {
        let name = names[next].clone();
        next += 1;
        let port = read(root, name, format!("below {}", above.name), nic);
        for lower in &port.lower {
            if !names.contains(lower) {
                names.push(lower.clone());
            }
        }
        if port.is_hardware && port.state.seen().is_some_and(|state| state == "up") {
            found.push(port);
        }
    }
    found
}

fn read(root: &Root, name: String, chosen: String, nic: &dyn Fn(&str) -> Nic) -> Device {
    let file = |what: &str| format!("sys/class/net/{name}/{what}");
    let is_hardware = root.path(&file("device")).exists();
    let kind = root.text(&file("uevent")).ok().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).map(str::to_owned)
    });
    let is_wireless = kind.as_deref() == Some("wlan")
        || ["phy80211", "wireless"].iter().any(|mark| root.path(&file(mark)).exists());
    let names = root.names(&file(""));
    let counter = |counter: &&str| {
        let value = root.value::<u64>(&file(&format!("statistics/{counter}")));
        Some(((*counter).to_owned(), *value.seen()?))
    };
    Device {
        chosen,
        state: root.text(&file("operstate")).into(),
        is_hardware,
        lower: names.iter().filter_map(|n| n.strip_prefix("lower_")).map(str::to_owned).collect(),
        speed_mbps: if is_hardware || names.iter().any(|name| name.starts_with("lower_")) {
            speed(root, &file("speed"))
        } else {
            // TUN and veth devices report a meaningless speed.
            Fact::unread("a virtual device has no link rate")
        },
        duplex: match root.text(&file("duplex")) {
            Ok(duplex) if duplex == "unknown" => Fact::unread("not reported by the driver"),
            Err(error) if is_silence(&error) => Fact::unread("not reported by the driver"),
            duplex => duplex.into(),
        },
        mtu: root.value(&file("mtu")),
        driver: driver(root, &file("device/driver")),
        rx_queues: root.names(&file("queues")).iter().filter(|n| n.starts_with("rx-")).count(),
        counters: COUNTERS.iter().filter_map(counter).collect::<BTreeMap<_, _>>(),
        usb: usb(root, &name),
        pci: pci(root, &name),
        wireless: is_wireless.then(|| wireless(root, &name)),
        interrupts: interrupts(root, &name),
        nic: nic(&name),
        kind,
        name,
    }
}

/// Without a link a driver reports -1, its unsigned form, or nothing.
fn speed(root: &Root, file: &str) -> Fact<u32> {
    match root.text(file) {
        Ok(text) => match text.parse::<i64>() {
            Ok(mbps @ 1..=10_000_000) => Fact::Seen(u32::try_from(mbps).unwrap_or_default()),
            _ => Fact::unread("not reported by the driver"),
        },
        Err(error) if is_silence(&error) => Fact::unread("not reported by the driver"),
        Err(error) => Err(error).into(),
    }
}

/// EINVAL: the device is down, or has no such thing.
fn is_silence(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::InvalidInput
}

/// The driver's name: the link's last part, or the file's text in a made-up tree.
fn driver(root: &Root, file: &str) -> Fact<String> {
    match std::fs::read_link(root.path(file)) {
        Ok(to) => to.file_name().map_or_else(
            || Fact::unread("the driver link is broken"),
            |name| Fact::Seen(name.to_string_lossy().into_owned()),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Fact::unread("none: a virtual device")
        }
        Err(error) => Err(error).into(),
    }
}

/// The USB device above the network device: the folder with a bus speed.
fn usb(root: &Root, name: &str) -> Option<Usb> {
    let mut folder = format!("sys/class/net/{name}/device");
    for _ in 0..LEVELS {
        if root.path(&format!("{folder}/idVendor")).is_file() {
            let text = |what: &str| root.text(&format!("{folder}/{what}")).unwrap_or_default();
            return Some(Usb {
                // Low speed is 1.5 Mbit/s: no whole number, and no network.
                bus_mbps: root.value(&format!("{folder}/speed")),
                id: super::short(&format!("{}:{}", text("idVendor"), text("idProduct"))),
                product: super::short(&text("product")),
            });
        }
        folder += "/..";
    }
    None
}

fn pci(root: &Root, name: &str) -> Option<Pci> {
    let file = |what: &str| format!("sys/class/net/{name}/device/{what}");
    if !root.path(&file("current_link_speed")).is_file() {
        return None;
    }
    let pair = |which: &str| {
        // "8.0 GT/s PCIe"
        let speed = root.text(&file(&format!("{which}_link_speed"))).ok()?;
        let speed: f64 = speed.split_whitespace().next()?.parse().ok()?;
        let width = root.value::<u32>(&file(&format!("{which}_link_width")));
        let width = *width.seen()?;
        (speed > 0.0 && speed < 1_000.0 && (1..=64).contains(&width)).then_some((speed, width))
    };
    let fact = |which| pair(which).map_or_else(|| Fact::unread("not reported"), Fact::Seen);
    Some(Pci { now: fact("current"), able: fact("max") })
}

fn wireless(root: &Root, name: &str) -> Wireless {
    // Inter-| sta-|   Quality        |   Discarded packets …: a line for each
    // device, `wlan0: 0000   58.  -52.  -256 …`; the third number is the signal.
    let signal = root.text("proc/net/wireless").ok().and_then(|text| {
        let line = text.lines().find_map(|line| {
            line.trim_start().strip_prefix(name)?.strip_prefix(':').map(str::to_owned)
        })?;
        let dbm: f64 = line.split_whitespace().nth(2)?.trim_end_matches('.').parse().ok()?;
        (dbm.abs() < 200.0).then(|| dbm.round() as i32)
    });
    Wireless {
        signal_dbm: signal.map_or_else(|| Fact::unread("not reported by the driver"), Fact::Seen),
    }
}

/// The interrupts of a device: those its PCI device lists, else those that
/// carry its name in `/proc/interrupts`.
fn interrupts(root: &Root, name: &str) -> Fact<Interrupts> {
    let text = match root.text("proc/interrupts") {
        Ok(text) => text,
        Err(error) => return Err(error).into(),
    };
    // A virtio device's are those of the PCI device above it.
    let own: Vec<String> = ["device", "device/.."]
        .iter()
        .map(|above| root.names(&format!("sys/class/net/{name}/{above}/msi_irqs")))
        .find(|names| !names.is_empty())
        .unwrap_or_default();
    let cpus = text.lines().next().map_or(0, |line| line.split_whitespace().count());
    let mut found = Interrupts { lines: 0, by_cpu: vec![0; cpus] };
    for line in text.lines().skip(1) {
        let Some((number, rest)) = line.trim_start().split_once(':') else { continue };
        let named =
            || rest.split_whitespace().any(|word| belongs(word.trim_end_matches(','), name));
        if !own.iter().any(|irq| irq == number) && !named() {
            continue;
        }
        found.lines += 1;
        for (sum, word) in found.by_cpu.iter_mut().zip(rest.split_whitespace()) {
            let Ok(count) = word.parse::<u64>() else { break };
            *sum = sum.saturating_add(count);
        }
    }
    if found.lines == 0 {
        return Fact::unread("no interrupt is named after it");
    }
    Fact::Seen(found)
}

/// `eth0`, `eth0-TxRx-0`, `eth0-rx-1`, `i40e-eth0-TxRx-0`.
fn belongs(word: &str, name: &str) -> bool {
    word == name
        || word.strip_prefix(name).is_some_and(|rest| rest.starts_with(['-', ':', '@']))
        || word.split('-').any(|part| part == name)
}
