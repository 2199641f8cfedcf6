//! Linux, for another host: the plan of `tune` for a host with the kernel's defaults, and
//! what `doctor` checks on this one.

use super::{link_rate, recipe, wifi_rate};
use crate::document::Recipe;
use crate::target::Target;
use record::{Area, PlannedSetting};
use std::io;
use tune::Goal;
use units::Rtt;

/// The file that keeps the settings; systemd-sysctl(8) reads it at boot.
const BOOT_FILE: &str = "/etc/sysctl.d/90-network.conf";

/// A host with the kernel's defaults (Linux 6.x, more than 4 GB of memory).
struct Stock;

impl tune::Settings for Stock {
    fn read(&self, key: &str) -> io::Result<String> {
        let value = match key {
            "net.ipv4.tcp_rmem" => "4096 131072 6291456",
            "net.ipv4.tcp_wmem" => "4096 16384 4194304",
            "net.core.rmem_max" | "net.core.wmem_max" => "212992",
            "net.ipv4.tcp_ecn" => "2",
            "net.ipv4.tcp_no_metrics_save" | "net.ipv4.tcp_mtu_probing" => "0",
            "net.ipv4.tcp_congestion_control" => "cubic",
            "net.ipv4.tcp_no_ssthresh_metrics_save"
            | "net.ipv4.tcp_window_scaling"
            | "net.ipv4.tcp_timestamps"
            | "net.ipv4.tcp_sack"
            | "net.ipv4.tcp_moderate_rcvbuf" => "1",
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(value.to_owned())
    }

    fn write(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_write(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

pub(super) fn recipes(target: &Target) -> Vec<Recipe> {
    let mut recipes = settings(target);
    recipes.extend(device(target));
    recipes.extend(path(target));
    recipes
}

fn settings(target: &Target) -> Vec<Recipe> {
    let goal =
        |streams| Goal::Target { rate: target.rate, rtt: target.rtt.unwrap_or(Rtt::ZERO), streams };
    let plan = tune::advise(&Stock, &goal(target.streams()), None, None);
    // With more streams where one stream's buffer would be too large.
    let plan = plan.or_else(|error| {
        let streams = u32::try_from(error.streams).unwrap_or(u32::MAX);
        tune::advise(&Stock, &goal(streams), None, None)
    });
    let mut recipes: Vec<Recipe> =
        plan.iter().flat_map(|plan| plan.settings.iter().map(sysctl)).collect();
    recipes.push(congestion(target));
    recipes
}

fn sysctl(planned: &PlannedSetting) -> Recipe {
    let PlannedSetting { key, planned, why, risk, .. } = planned;
    let or_more = if key.ends_with("mem") || key.ends_with("_max") { " or more" } else { "" };
    recipe(key, Area::Settings, &[&format!("sysctl {key}")], format!("{planned}{or_more}"))
        .why(why.as_str())
        .change(
            &[&format!("sysctl {key} > ~/{key}.before")],
            &[&format!("sudo sysctl -w {key}='{planned}'")],
            &[
                &format!("sudo sysctl -p ~/{key}.before"),
                &format!("sudo sed -i '/^{key} /d' {BOOT_FILE}"),
            ],
        )
        .at_boot(&[&format!("echo '{key} = {planned}' | sudo tee -a {BOOT_FILE}")])
        .remark(format!("risk: {risk}"))
        .source("tcp(7); Linux ip-sysctl.rst; sysctl.d(5)")
}

fn congestion(target: &Target) -> Recipe {
    const KEY: &str = "net.ipv4.tcp_congestion_control";
    let why = target.loss_budget_cubic().map_or_else(
        || target.cubic_recovery(),
        |budget| {
            format!(
                "CUBIC sustains the rate below {} loss (RFC 9438) and {}; BBR delivers what is \
                 not lost",
                units::percent(budget.ratio),
                target.cubic_recovery()
            )
        },
    );
    recipe(
        KEY,
        Area::Settings,
        &["sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_available_congestion_control"],
        "cubic; bbr where loss is random",
    )
    .why(why)
    .remark("with bbr: net.core.default_qdisc=fq too; without it keep fq_codel")
    .source("RFC 9438, section 5.1; ACM Queue 14(5)")
}

fn device(target: &Target) -> Vec<Recipe> {
    let rate = target.rate;
    vec![
        recipe(
            "nic.speed",
            Area::Nic,
            &["ip -br link", "ethtool DEV"],
            format!("{rate}, full duplex, or more"),
        )
        .why(link_rate())
        .source("ethtool(8)"),
        recipe("nic.wifi", Area::Nic, &["iw dev DEV link"], "the bitrate's MCS, width and NSS")
            .why(wifi_rate())
            .source("iw(8); IEEE 802.11ax-2021, clause 27.5"),
        recipe("nic.offloads", Area::Nic, &["ethtool -k DEV"], "tso, gso and gro on")
            .why("with them the kernel handles up to 64 KiB at once instead of single packets")
            .change(
                &["ethtool -k DEV > ~/DEV.offloads.before"],
                &["sudo ethtool -K DEV tso on gso on gro on"],
                &[
                    "sudo ethtool -K DEV tso off gso off gro off",
                    "sudo crontab -l | grep -v 'ethtool -K DEV' | sudo crontab -",
                ],
            )
            .at_boot(&["(sudo crontab -l; echo '@reboot ethtool -K DEV tso on gso on gro on') | \
                        sudo crontab -"])
            .remark("they are on by default: undo only those that were off before")
            .source("Linux segmentation-offloads.rst; crontab(5)"),
        recipe("nic.eee", Area::Nic, &["ethtool --show-eee DEV"], "disabled")
            .why("a link in low-power idle must wake for each burst (IEEE 802.3az)")
            .change(
                &["ethtool --show-eee DEV > ~/DEV.eee.before"],
                &["sudo ethtool --set-eee DEV eee off"],
                &[
                    "sudo ethtool --set-eee DEV eee on",
                    "sudo crontab -l | grep -v 'ethtool --set-eee DEV' | sudo crontab -",
                ],
            )
            .at_boot(&["(sudo crontab -l; echo '@reboot ethtool --set-eee DEV eee off') | \
                        sudo crontab -"])
            .source("ethtool(8); crontab(5)"),
        recipe("nic.errors", Area::Nic, &["ip -s link show DEV"], "no errors, none missed")
            .why("every frame lost here counts as path loss; no setting compensates for it")
            .source("Linux statistics.rst"),
        recipe(
            "cpu.governor",
            Area::Cpu,
            &["cpupower frequency-info -p", "powerprofilesctl get"],
            "performance, at 10 Gbit/s and above",
        )
        .why("a power-saving governor raises the frequency too late for a burst")
        .change(
            &["cpupower frequency-info -p > ~/governor.before"],
            &["sudo cpupower frequency-set -g performance"],
            &["sudo cpupower frequency-set -g schedutil"],
        )
        .at_boot(&["sudo systemctl enable cpupower"])
        .remark(
            "undo: the saved governor. cpupower.service sets the governor of its configuration \
             (/etc/default/cpupower), where the distribution has it",
        )
        .source("cpupower-frequency-set(1)"),
    ]
}

fn path(target: &Target) -> Vec<Recipe> {
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    vec![
        recipe("path.rtt", Area::Path, &["ping -c 10 HOST"], trip)
            .why("a longer RTT needs proportionally larger buffers")
            .source("RFC 7323, section 1.1"),
        recipe("path.mtu", Area::Path, &["ping -M do -s 1472 -c 3 HOST"], "three replies")
            .why("1472 bytes plus 28 bytes of headers make an MTU of 1500")
            .remark("use -s 8972 for jumbo frames")
            .source("RFC 1191; ping(8)"),
    ]
}
