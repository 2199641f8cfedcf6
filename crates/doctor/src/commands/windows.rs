//! Windows: netsh, and PowerShell's NetTCPIP and NetAdapter.

use super::{in_flight, recipe, window};
use crate::target::Target;
use record::{Area, Recipe};

/// The upper bound of autotuning: `normal` reaches 16 MiB (the scale factor
/// of 8 over 64 KiB), `experimental` the protocol's 1 GiB (netsh, autotuninglevel).
const NORMAL: u64 = 16 << 20;

pub(super) fn recipes(target: &Target) -> Vec<Recipe> {
    let mut recipes = settings(target);
    recipes.extend(adapter(target));
    recipes.extend(path(target));
    recipes
}

fn settings(target: &Target) -> Vec<Recipe> {
    let large = window(target).bytes() > NORMAL;
    let level = if large { "experimental" } else { "normal" };
    let mut tuning = recipe(
        "tcp.autotuning",
        Area::Settings,
        "netsh int tcp show global",
        format!("Receive Window Auto-Tuning Level: {level}"),
    );
    tuning.why = format!(
        "{}; normal scales by up to 2^8 (16 MiB), experimental by up to 2^14 (1 GiB)",
        in_flight(target)
    );
    tuning.set = vec![format!("netsh int tcp set global autotuninglevel={level}")];
    tuning.remark = if large {
        "Microsoft recommends experimental for tests only: several streams work with \
         normal"
            .to_owned()
    } else {
        "the default; never use 'disabled', which limits windows to 64 KiB".to_owned()
    };

    let mut heuristics = recipe(
        "tcp.heuristics",
        Area::Settings,
        "netsh int tcp show heuristics",
        "Window Scaling heuristics: disabled",
    );
    heuristics.why = "when enabled, Windows may lower the autotuning level".to_owned();
    heuristics.set = vec!["netsh int tcp set heuristics disabled".to_owned()];

    let mut options = recipe(
        "tcp.options",
        Area::Settings,
        "Get-NetTCPSetting | Format-List SettingName,Timestamps,ScalingHeuristics",
        "Timestamps: Enabled (or Allowed)",
    );
    options.why = "timestamps protect against wrapped sequence numbers, every 3.4 s at 10 Gbit/s \
                   (RFC 7323)"
        .to_owned();
    options.set = vec!["netsh int tcp set global timestamps=enabled".to_owned()];

    let mut ecn =
        recipe("tcp.ecn", Area::Settings, "netsh int tcp show global", "ECN Capability: enabled");
    ecn.why = "a queue that marks packets instead of dropping them avoids retransmissions (RFC \
               3168)"
        .to_owned();
    ecn.set = vec!["netsh interface tcp set global ecncapability=enabled".to_owned()];

    let mut congestion = recipe(
        "tcp.congestion",
        Area::Settings,
        "Get-NetTCPSetting | Select SettingName,CongestionProvider",
        "CUBIC; BBR2 where loss is random",
    );
    congestion.why = target.loss_budget().map_or_else(
        || "recovers a large window within seconds after a loss".to_owned(),
        |budget| {
            format!(
                "CUBIC sustains the rate below {} loss (Mathis); BBR2 does not slow down at each \
                 loss, and is unfair to other flows",
                units::percent(budget)
            )
        },
    );
    congestion.set = ["Internet", "InternetCustom"]
        .map(|template| {
            format!("netsh int tcp set supplemental Template={template} CongestionProvider=CUBIC")
        })
        .to_vec();
    congestion.remark = "for BBR2 on Windows 11 use CongestionProvider=bbr2 with the templates \
                         Internet, Datacenter, Compat, DatacenterCustom, InternetCustom; \
                         to revert: CUBIC, and NewReno for Compat"
        .to_owned();
    vec![tuning, heuristics, options, ecn, congestion]
}

fn adapter(target: &Target) -> Vec<Recipe> {
    let mut speed = recipe(
        "nic.speed",
        Area::Nic,
        "Get-NetAdapter | Format-Table Name,LinkSpeed,FullDuplex,DriverDescription",
        format!("{} and True, or more", target.rate),
    );
    speed.why =
        "the link rate is the upper bound; over Wi-Fi TCP gets at most two thirds of it".to_owned();
    speed.remark = "netsh wlan show interfaces shows Wi-Fi rates".to_owned();

    let mut offloads = recipe(
        "nic.offloads",
        Area::Nic,
        "Get-NetAdapterLso; Get-NetAdapterRsc; Get-NetAdapterRss",
        "enabled",
    );
    offloads.why = "with them a core handles many packets at once, and several cores share the \
         load"
        .to_owned();
    offloads.set = vec![
        "Enable-NetAdapterLso -Name '*'".to_owned(),
        "Enable-NetAdapterRsc -Name '*'".to_owned(),
        "Enable-NetAdapterRss -Name '*'".to_owned(),
    ];

    let mut power = recipe(
        "nic.eee",
        Area::Nic,
        "Get-NetAdapterAdvancedProperty | Where DisplayName -match 'Energy|Green|Flow|Buffers'",
        "Energy Efficient Ethernet and Green Ethernet: Disabled",
    );
    power.why = "a link in low-power idle must wake for each burst".to_owned();
    power.set = vec![
        "Set-NetAdapterAdvancedProperty -DisplayName 'Energy*Ethernet' -DisplayValue 'Disabled'"
            .to_owned(),
    ];
    power.remark =
        "Receive Buffers and Transmit Buffers are the ring sizes: use the maximum at 10 Gbit/s \
         and above"
            .to_owned();

    let mut plan = recipe("cpu.power", Area::Cpu, "powercfg /getactivescheme", "High performance");
    plan.why = "a power-saving plan raises the frequency too late for a burst".to_owned();
    plan.set = vec!["powercfg /setactive SCHEME_MIN".to_owned()];
    vec![speed, offloads, power, plan]
}

fn path(target: &Target) -> Vec<Recipe> {
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    let mut rtt = recipe("path.rtt", Area::Path, "ping -n 10 HOST", trip);
    rtt.why = "a longer RTT needs proportionally larger buffers".to_owned();
    let mut mtu = recipe("path.mtu", Area::Path, "ping -f -l 1472 -n 3 HOST", "three replies");
    mtu.why = "1472 bytes plus 28 of headers are an MTU of 1500".to_owned();
    mtu.remark = "use -l 8972 for jumbo frames".to_owned();
    vec![rtt, mtu]
}
