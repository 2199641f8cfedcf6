//! macOS: sysctl(8), networkQuality(8), ping(8), system_profiler(8).

use super::{in_flight, recipe, window};
use crate::target::Target;
use record::{Area, Recipe};
use units::ByteCount;

const MIB: u64 = 1 << 20;

/// Kept at boot by macOS releases that read it; those with System Integrity
/// Protection may not.
const KEPT: &str = "to keep it, the same line without 'sudo sysctl -w' in /etc/sysctl.conf; where \
                    System Integrity Protection ignores that file, a launch daemon";

pub(super) fn recipes(target: &Target) -> Vec<Recipe> {
    // As much as a quarter more than the window: the rest of a buffer is overhead.
    let buffer = ByteCount::from_bytes(window(target).bytes().saturating_mul(5) / 4)
        .rounded_up_to(MIB)
        .max(ByteCount::from_bytes(4 * MIB));
    let shift = model::window_scale(window(target));
    let mut recipes = Vec::new();
    for (key, what) in [
        ("net.inet.tcp.autorcvbufmax", "receive buffers grow by themselves up to it"),
        ("net.inet.tcp.autosndbufmax", "send buffers grow by themselves up to it"),
    ] {
        let mut one = recipe(
            key,
            Area::Settings,
            &format!("sysctl {key}"),
            format!("{} ({buffer}) or more", buffer.bytes()),
        );
        one.why = format!("{what}: {}; the default is 4194304", in_flight(target));
        one.set = vec![format!("sudo sysctl -w {key}={}", buffer.bytes())];
        one.remark = KEPT.to_owned();
        recipes.push(one);
    }
    let most = buffer.times(2);
    let mut one = recipe(
        "kern.ipc.maxsockbuf",
        Area::Settings,
        "sysctl kern.ipc.maxsockbuf",
        format!("{} ({most}) or more", most.bytes()),
    );
    one.why = "no socket's buffers may be larger, whatever the two above say".to_owned();
    one.set = vec![format!("sudo sysctl -w kern.ipc.maxsockbuf={}", most.bytes())];
    recipes.push(one);

    let needed = match &shift {
        Ok(shift) => format!("{shift} or more"),
        Err(error) => error.to_string(),
    };
    let scale = shift.unwrap_or(model::MAX_SHIFT);
    let key = "net.inet.tcp.win_scale_factor";
    let mut one = recipe(key, Area::Settings, &format!("sysctl {key}"), needed);
    one.why = format!(
        "the shift it begins with: 64 KiB x 2^{scale} holds {}; the default is 3, 512 KiB",
        window(target)
    );
    one.set = vec![format!("sudo sysctl -w {key}={scale}")];
    recipes.push(one);

    let key = "net.inet.tcp.rfc1323";
    let mut one = recipe(key, Area::Settings, &format!("sysctl {key}"), "1, where it exists");
    one.why = "window scaling and timestamps; without them no window is over 64 KiB".to_owned();
    one.remark = "on by default: leave it on, and net.inet.tcp.sack as well".to_owned();
    recipes.push(one);

    let mut one = recipe(
        "net.inet.tcp.ecn_initiate_out",
        Area::Settings,
        "sysctl net.inet.tcp.ecn_initiate_out net.inet.tcp.ecn_negotiate_in",
        "1 and 1",
    );
    one.why = "a queue that marks instead of dropping costs no packet (RFC 3168)".to_owned();
    one.set = vec![
        "sudo sysctl -w net.inet.tcp.ecn_initiate_out=1".to_owned(),
        "sudo sysctl -w net.inet.tcp.ecn_negotiate_in=1".to_owned(),
    ];
    recipes.push(one);

    let mut one = recipe(
        "nic.driver",
        Area::Nic,
        "system_profiler SPEthernetDataType",
        format!("com.apple.driver.usb.cdc.ncm for an adapter on USB; {} or more", target.rate),
    );
    one.why = "adapters with ECM (cdc.ecm) are slower than those with NCM, and no setting helps"
        .to_owned();
    one.remark =
        "an adapter's USB speed is no line speed: 'Up to 5 Gb/s' may be a 1 Gbit/s line".to_owned();
    recipes.push(one);

    let mut one = recipe(
        "nic.speed",
        Area::Nic,
        "networksetup -listallhardwareports; ifconfig en0 | grep media",
        format!("{} full-duplex or more", target.rate),
    );
    one.why = "a line carries no more; over Wi-Fi at best two thirds of the link's rate".to_owned();
    one.remark = "hold Option and click the Wi-Fi symbol for its Tx rate".to_owned();
    recipes.push(one);

    recipes.extend(path(target));
    recipes
}

fn path(target: &Target) -> Vec<Recipe> {
    let mut mtu = recipe("path.mtu", Area::Path, "ping -D -s 1472 -c 3 HOST", "three answers");
    mtu.why = "1472 bytes and 28 of headers are an MTU of 1500; fewer pass where the way is \
               narrower"
        .to_owned();
    mtu.remark = "-s 8972 asks for jumbo frames".to_owned();
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    let mut rtt = recipe("path.rtt", Area::Path, "ping -c 10 HOST", trip);
    rtt.why = "a longer round trip needs buffers as much larger".to_owned();
    let mut load = recipe("path.load", Area::Path, "networkQuality -v", "High");
    load.why = "round trips under load: how bloated the path's queues are".to_owned();
    vec![rtt, mtu, load]
}
