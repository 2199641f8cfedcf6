//! macOS: sysctl(8), launchd.plist(5), pmset(1), networkQuality(8), ping(8).
//!
//! Limits and defaults are those of the published sources (apple-oss-distributions/xnu,
//! versions 4570 to 11417, which are macOS 10.13 to 15).

use super::{Draft, in_flight, link_rate, recipe, wifi_rate, window};
use crate::document::Recipe;
use crate::target::Target;
use record::Area;
use units::ByteCount;

const MIB: u64 = 1 << 20;

/// Default of `autorcvbufmax` and `autosndbufmax` with 4 GB of memory or more
/// (`tcp_init` in bsd/netinet/tcp_subr.c, since XNU 7195).
const AUTO_DEFAULT: ByteCount = ByteCount::from_bytes(4 * MIB);

/// The mbuf pool by memory: GB and MiB (`ncl_table` in bsd/kern/uipc_mbuf.c).
const POOLS: [(u64, u64); 4] = [(4, 96), (8, 128), (16, 256), (32, 512)];

/// The largest pool that the boot argument `ncl` reaches, 2 GiB (`MAX_MBUF_POOL` in
/// bsd/dev/unix_startup.c).
const MAX_POOL: u64 = 2048;

/// A cluster, bytes (`MCLSHIFT` 11).
const CLUSTER: u64 = 2_048;

/// `kern.ipc.maxsockbuf` may be one 16th of the pool (`high_sb_max` in `mbinit`).
const fn most_socket_buffer(pool_mib: u64) -> ByteCount {
    ByteCount::from_bytes(pool_mib * MIB / 16)
}

/// The shift that XNU offers: the smallest from 3 on with which 64 KiB hold
/// `autorcvbufmax` (`tcp_set_max_rwinscale` in bsd/netinet/tcp_subr.c).
fn offered_shift(autorcvbufmax: ByteCount) -> u8 {
    (3..model::MAX_SHIFT)
        .find(|shift| 65_536_u64 << shift >= autorcvbufmax.bytes())
        .unwrap_or(model::MAX_SHIFT)
}

pub(super) fn recipes(target: &Target) -> Vec<Recipe> {
    // The window plus a quarter for overhead.
    let buffer = ByteCount::from_bytes(window(target).bytes().saturating_mul(5) / 4)
        .rounded_up_to(MIB)
        .max(AUTO_DEFAULT);
    let mut recipes = vec![largest_buffer(target, buffer)];
    for (key, what) in [
        ("net.inet.tcp.autorcvbufmax", "upper bound of receive buffer autotuning"),
        ("net.inet.tcp.autosndbufmax", "upper bound of send buffer autotuning"),
    ] {
        recipes.push(
            sysctl(
                key,
                format!("{} ({buffer}) or more", buffer.bytes()),
                &buffer.bytes().to_string(),
            )
            .why(format!("{what}: {}; the default is {}", in_flight(target), AUTO_DEFAULT.bytes()))
            .remark("without effect above kern.ipc.maxsockbuf")
            .source(
                "XNU 11417, bsd/netinet/tcp_subr.c: tcp_init; bsd/kern/uipc_socket2.c: sbreserve",
            ),
        );
    }
    recipes.push(window_scale(buffer));
    recipes.extend(ecn());
    recipes.extend(power());
    recipes.extend(adapter(target));
    recipes.extend(path(target));
    recipes
}

/// A setting: inspected, saved in a file, set, set at boot by a launch daemon, restored.
/// `value` may be a shell expression without quotes.
fn sysctl(key: &str, needed: impl Into<String>, value: &str) -> Draft {
    let daemon = format!("/Library/LaunchDaemons/local.{key}");
    recipe(key, Area::Settings, &[&format!("sysctl {key}")], needed)
        .change(
            &[&format!("echo {key}=$(sysctl -n {key}) > ~/{key}.before")],
            &[&format!("sudo sysctl -w {key}={value}")],
            &[
                &format!("sudo sysctl -w $(cat ~/{key}.before)"),
                &format!("sudo rm -f {daemon}.plist"),
            ],
        )
        .at_boot(&[
            &format!("sudo defaults write {daemon} Label local.{key}"),
            &format!(
                "sudo defaults write {daemon} ProgramArguments -array /usr/sbin/sysctl \
                 {key}=$(sysctl -n {key})"
            ),
            &format!("sudo defaults write {daemon} RunAtLoad -bool true"),
        ])
}

fn largest_buffer(target: &Target, buffer: ByteCount) -> Recipe {
    const KEY: &str = "kern.ipc.maxsockbuf";
    const LIMIT: &str = "$(( $(sysctl -n kern.ipc.nmbclusters) * 128 ))";
    let by_memory: Vec<String> = POOLS
        .map(|(memory, pool)| format!("{} from {memory} GB", most_socket_buffer(pool)))
        .to_vec();
    let usual = most_socket_buffer(POOLS[POOLS.len() - 1].1);
    let mut remark = String::new();
    if buffer > usual {
        let streams =
            buffer.bytes().div_ceil(usual.bytes()).saturating_mul(target.streams().into());
        remark += &format!(
            "{buffer} exceeds {usual}: use {streams} streams, which need no more than that"
        );
        let pool = buffer.bytes().saturating_mul(16).div_ceil(MIB);
        remark += &if pool <= MAX_POOL {
            format!(
                ". One stream needs a pool of {} (sudo nvram boot-args=ncl={}, after noting the \
                 current ones: nvram boot-args), a restart, and System Integrity Protection off; \
                 the kernel may then wire that much memory for network buffers",
                ByteCount::from_bytes(pool * MIB),
                pool * MIB / CLUSTER
            )
        } else {
            format!(
                ". One stream cannot have that: the largest pool, {}, allows {}",
                ByteCount::from_bytes(MAX_POOL * MIB),
                most_socket_buffer(MAX_POOL)
            )
        };
        if let Some(rate) = target.rtt.and_then(|rtt| model::window_rate(usual, rtt)) {
            remark += &format!(". With {usual} one stream gets at most {rate}");
        }
    }
    let want = buffer.bytes();
    let mut draft = sysctl(KEY, format!("{want} ({buffer}), or the limit"), LIMIT).why(format!(
        "upper bound of every socket buffer, including autotuned ones. The kernel rejects values \
         above kern.ipc.nmbclusters x 128, a 16th of the mbuf pool: {}",
        by_memory.join(", ")
    ));
    draft.0.inspect.push(format!("echo limit: {LIMIT}"));
    draft.remark(remark).source(
        "XNU 11417, bsd/kern/uipc_mbuf.c: mbinit, ncl_table; bsd/kern/uipc_socket2.c: \
         sysctl_sb_max, sbreserve; bsd/dev/unix_startup.c",
    )
}

fn window_scale(buffer: ByteCount) -> Recipe {
    const KEY: &str = "net.inet.tcp.win_scale_factor";
    recipe(
        KEY,
        Area::Settings,
        &[
            &format!("sysctl {KEY}"),
            "sudo tcpdump -c 1 'tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn'",
        ],
        "any: leave it at 3",
    )
    .why(format!(
        "only the minimum shift that is offered: the kernel raises it until 64 KiB x 2^shift holds \
         autorcvbufmax, which is {} for {buffer} and {} by default. It raises no window by itself",
        offered_shift(buffer),
        offered_shift(AUTO_DEFAULT)
    ))
    .remark("the SYN of a new connection shows the shift as wscale")
    .source("XNU 2050 to 11417: tcp_set_max_rwinscale")
}

fn ecn() -> Vec<Recipe> {
    const WHY: &str = "a queue that marks packets instead of dropping them saves retransmissions \
                       (RFC 3168)";
    let mut recipes = vec![
        sysctl("net.inet.tcp.ecn", "1", "1")
            .why(format!(
                "{WHY}. Kernels after XNU 11417 (macOS 15): one setting for both directions, 1 by \
                 default"
            ))
            .remark(
                "if sysctl reports an unknown oid, use the next two. Newer kernels still have \
                 ecn_initiate_out, which changes this same setting, and no ecn_negotiate_in",
            )
            .source("XNU after 11417, bsd/netinet/tcp_output.c: tcp_ecn"),
    ];
    for (key, which) in [
        ("net.inet.tcp.ecn_initiate_out", "connections that this host opens"),
        ("net.inet.tcp.ecn_negotiate_in", "connections that it accepts"),
    ] {
        recipes.push(
            sysctl(key, "1, up to macOS 15", "1")
                .why(format!(
                    "{WHY}. XNU 1228 to 11417 (Mac OS X 10.5 to macOS 15): for {which}; the \
                     default since XNU 4570 (10.13) is 2, which leaves it to each interface, and 0 \
                     before"
                ))
                .source("XNU 1228 to 11417, bsd/netinet/tcp_output.c: tcp_set_ecn"),
        );
    }
    recipes
}

fn power() -> Vec<Recipe> {
    vec![
        recipe(
            "cpu.power",
            Area::Cpu,
            &["pmset -g custom"],
            "lowpowermode 0 (or powermode 0 or 2)",
        )
        .why("Low Power Mode caps the frequency of the CPU, which a single stream depends on")
        .change(
            &["pmset -g custom > ~/cpu.power.before"],
            &["sudo pmset -a lowpowermode 0"],
            &["cat ~/cpu.power.before", "sudo pmset -b lowpowermode 1"],
        )
        .kept()
        .remark("undo: the second line only where the saved settings show 1 for the battery")
        .source("pmset(1)"),
        recipe(
            "cpu.sleep",
            Area::Cpu,
            &["pmset -g assertions", "pmset -g | grep -w sleep"],
            "no sleep during a test",
        )
        .why("idle sleep ends transfers that run unattended")
        .change(
            &["pmset -g custom > ~/cpu.sleep.before"],
            &["caffeinate -i -s -t 3600 &"],
            &["kill %%"],
        )
        .at_boot(&["sudo pmset -c sleep 0"])
        .remark(
            "caffeinate needs no undo: it ends after an hour; -s holds on AC power only. To \
                 undo the setting at boot: sudo pmset -c sleep MINUTES, of ~/cpu.sleep.before",
        )
        .source("caffeinate(8), pmset(1)"),
        recipe(
            "nic.eee",
            Area::Nic,
            &["networksetup -listallhardwareports", "networksetup -getmedia Ethernet"],
            "no energy-efficient-ethernet in the active media",
        )
        .why("a link in low-power idle must wake for each burst (IEEE 802.3az)")
        .change(
            &["networksetup -getmedia Ethernet > ~/nic.eee.before"],
            &[
                "networksetup -listvalidmedia Ethernet",
                "sudo networksetup -setmedia Ethernet MEDIA",
            ],
            &["sudo networksetup -setmedia Ethernet autoselect"],
        )
        .kept()
        .remark(
            "replace Ethernet with the port's name, and MEDIA with the list's fastest without \
             energy-efficient-ethernet, as in 2500baseT full-duplex flow-control",
        )
        .source("networksetup(8)"),
    ]
}

fn adapter(target: &Target) -> Vec<Recipe> {
    vec![
        recipe(
            "nic.driver",
            Area::Nic,
            &["system_profiler SPEthernetDataType SPUSBDataType"],
            format!("com.apple.driver.usb.cdc.ncm for an adapter on USB; {} or more", target.rate),
        )
        .why("an adapter with ECM (cdc.ecm) moves one frame per USB transfer; no setting changes that")
        .remark("an adapter's USB speed is not its link speed: 'Up to 5 Gb/s' may be a 1 Gbit/s link")
        .source("USB CDC 1.2, subclasses ECM and NCM"),
        recipe(
            "nic.speed",
            Area::Nic,
            &["ifconfig en0 | grep media"],
            format!("{} full-duplex or more", target.rate),
        )
        .why(link_rate())
        .source("ifconfig(8)"),
        recipe(
            "nic.wifi",
            Area::Nic,
            &["system_profiler SPAirPortDataType", "sudo wdutil info"],
            "PHY mode, channel width (80 or 160 MHz), NSS 2 or more",
        )
        .why(wifi_rate())
        .remark("the same: hold Option and click the Wi-Fi symbol")
        .source("IEEE 802.11ax-2021, clause 27.5"),
    ]
}

fn path(target: &Target) -> Vec<Recipe> {
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    vec![
        recipe("path.rtt", Area::Path, &["ping -c 10 HOST"], trip)
            .why("a longer RTT needs proportionally larger buffers")
            .source("RFC 7323, section 1.1"),
        recipe("path.mtu", Area::Path, &["ping -D -s 1472 -c 3 HOST"], "three replies")
            .why("1472 bytes plus 28 bytes of headers make an MTU of 1500")
            .source("RFC 1191; ping(8)"),
        path_jumbo(),
        recipe("path.load", Area::Path, &["networkQuality -v"], "High")
            .why("RTT under load: shows bufferbloat")
            .source("networkQuality(8)"),
    ]
}

/// Larger echoes than a raw socket may send.
fn path_jumbo() -> Recipe {
    recipe(
        "path.mtu-jumbo",
        Area::Path,
        &[
            "before=$(sysctl -n net.inet.raw.maxdgram)",
            "sudo sysctl -w net.inet.raw.maxdgram=16384",
            "ping -D -s 8972 -c 3 HOST",
            "sudo sysctl -w net.inet.raw.maxdgram=$before",
        ],
        "three replies, where jumbo frames are wanted",
    )
    .why(
        "a raw socket sends at most 8192 bytes, headers included with -D: ping -s 8972 fails on \
             every path, and -s 8164 is the maximum. 8972 bytes plus 28 bytes of headers make an MTU of 9000",
    )
    .remark("the last line restores the limit: only this test needs it raised")
    .source("XNU 11417, bsd/netinet/raw_ip.c: rip_sendspace; ping(8)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_limits_follow_from_the_pool() {
        let limits = POOLS.map(|(_, pool)| most_socket_buffer(pool).bytes() / MIB);
        assert_eq!(limits, [6, 8, 16, 32]);
        for (_, pool) in POOLS {
            // nmbclusters << (MCLSHIFT - 4), as the command computes it.
            assert_eq!(pool * MIB / CLUSTER * 128, most_socket_buffer(pool).bytes());
        }
        assert_eq!(most_socket_buffer(MAX_POOL).bytes(), 128 * MIB);
    }

    #[test]
    fn the_shift_holds_the_largest_buffer() {
        let mib = |mib: u64| offered_shift(ByteCount::from_bytes(mib * MIB));
        assert_eq!([mib(0), mib(4), mib(5), mib(64), mib(80), mib(4096)], [3, 6, 7, 10, 11, 14]);
    }
}
