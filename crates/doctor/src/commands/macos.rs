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
    // The window plus a quarter for overhead.
    let buffer = ByteCount::from_bytes(window(target).bytes().saturating_mul(5) / 4)
        .rounded_up_to(MIB)
        .max(ByteCount::from_bytes(4 * MIB));
    let shift = model::window_scale(window(target));
    let mut recipes = Vec::new();
    for (key, what) in [
        ("net.inet.tcp.autorcvbufmax", "upper bound of receive buffer autotuning"),
        ("net.inet.tcp.autosndbufmax", "upper bound of send buffer autotuning"),
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
    one.why = "upper bound of a socket's buffers, whatever the two above allow".to_owned();
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
        "the initial shift: 64 KiB x 2^{scale} covers {}; the default is 3, 512 KiB",
        window(target)
    );
    one.set = vec![format!("sudo sysctl -w {key}={scale}")];
    recipes.push(one);

    let key = "net.inet.tcp.rfc1323";
    let mut one = recipe(key, Area::Settings, &format!("sysctl {key}"), "1, where it exists");
    one.why = "window scaling and timestamps; without them windows stay below 64 KiB".to_owned();
    one.remark = "on by default: leave it on, and net.inet.tcp.sack as well".to_owned();
    recipes.push(one);

    let mut one = recipe(
        "net.inet.tcp.ecn_initiate_out",
        Area::Settings,
        "sysctl net.inet.tcp.ecn_initiate_out net.inet.tcp.ecn_negotiate_in",
        "1 and 1",
    );
    one.why = "a queue that marks packets instead of dropping them avoids retransmissions (RFC \
               3168)"
        .to_owned();
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
    one.why = "adapters with ECM (cdc.ecm) are slower than those with NCM; no setting changes that"
        .to_owned();
    one.remark = "an adapter's USB speed is not its link speed: 'Up to 5 Gb/s' may be a 1 Gbit/s \
         link"
        .to_owned();
    recipes.push(one);

    let mut one = recipe(
        "nic.speed",
        Area::Nic,
        "networksetup -listallhardwareports; ifconfig en0 | grep media",
        format!("{} full-duplex or more", target.rate),
    );
    one.why = "the link rate is the upper bound; over Wi-Fi TCP gets at most two thirds of \
               it"
    .to_owned();
    one.remark = "hold Option and click the Wi-Fi symbol for its Tx rate".to_owned();
    recipes.push(one);

    recipes.extend(path(target));
    recipes
}

fn path(target: &Target) -> Vec<Recipe> {
    let mut mtu = recipe("path.mtu", Area::Path, "ping -D -s 1472 -c 3 HOST", "three replies");
    mtu.why = "1472 bytes plus 28 of headers are an MTU of 1500; a smaller path MTU passes fewer"
        .to_owned();
    mtu.remark = "use -s 8972 for jumbo frames".to_owned();
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    let mut rtt = recipe("path.rtt", Area::Path, "ping -c 10 HOST", trip);
    rtt.why = "a longer RTT needs proportionally larger buffers".to_owned();
    let mut load = recipe("path.load", Area::Path, "networkQuality -v", "High");
    load.why = "RTT under load: shows bufferbloat".to_owned();
    vec![rtt, mtu, load]
}
