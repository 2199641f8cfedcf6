//! Windows: netsh, and PowerShell's NetTCPIP and NetAdapter, in a PowerShell that runs as
//! administrator. netsh and the adapter's properties keep their values across restarts.

use super::{Draft, in_flight, link_rate, recipe, wifi_rate, window};
use crate::document::Recipe;
use crate::target::Target;
use record::Area;

/// The upper bound of autotuning: `normal` reaches 16 MiB (the scale factor
/// of 8 over 64 KiB), `experimental` the protocol's 1 GiB (netsh, autotuninglevel).
const NORMAL: u64 = 16 << 20;

/// Saves all properties of the adapters, offloads and EEE among them, in a file of the
/// recipe's own, and restores them.
fn adapter_properties(file: &str) -> [String; 2] {
    [
        format!("Get-NetAdapterAdvancedProperty | Export-Clixml ~\\{file}.before.xml"),
        format!(
            "Import-Clixml ~\\{file}.before.xml | ForEach-Object {{ \
             Set-NetAdapterAdvancedProperty -Name $_.Name -RegistryKeyword $_.RegistryKeyword \
             -RegistryValue $_.RegistryValue }}"
        ),
    ]
}

/// Saves the congestion control of each template, and restores it.
fn providers(file: &str) -> [String; 2] {
    [
        format!(
            "Get-NetTCPSetting | Where-Object CongestionProvider | Select-Object \
             SettingName,CongestionProvider | Export-Csv ~\\{file}.before.csv"
        ),
        format!(
            "Import-Csv ~\\{file}.before.csv | ForEach-Object {{ netsh int tcp set supplemental \
             Template=$($_.SettingName) CongestionProvider=$($_.CongestionProvider) }}"
        ),
    ]
}

const SHOW_PROVIDERS: &str = "Get-NetTCPSetting | Format-Table SettingName,CongestionProvider";
const SHOW_APPLIED: &str =
    "Get-NetTCPConnection -State Established | Group-Object AppliedSetting -NoElement";

pub(super) fn recipes(target: &Target) -> Vec<Recipe> {
    let mut recipes = settings(target);
    recipes.extend(adapter(target));
    recipes.extend(path(target));
    recipes
}

/// A setting of `netsh int tcp set global`.
fn global(id: &str, needed: &str, set: &str, undo: &str) -> Draft {
    recipe(id, Area::Settings, &["netsh int tcp show global"], needed)
        .change(
            &[&format!("netsh int tcp show global > ~\\{id}.before.txt")],
            &[&format!("netsh int tcp set global {set}")],
            &[&format!("netsh int tcp set global {undo}")],
        )
        .kept()
}

fn settings(target: &Target) -> Vec<Recipe> {
    let large = window(target).bytes() > NORMAL;
    let level = if large { "experimental" } else { "normal" };
    let tuning = global(
        "tcp.autotuning",
        &format!("Receive Window Auto-Tuning Level: {level}"),
        &format!("autotuninglevel={level}"),
        "autotuninglevel=normal",
    )
    .why(format!(
        "{}; normal scales by up to 2^8 (16 MiB), experimental by up to 2^14 (1 GiB)",
        in_flight(target)
    ))
    .remark(if large {
        let streams =
            window(target).bytes().div_ceil(NORMAL).saturating_mul(target.streams().into());
        format!(
            "Microsoft recommends experimental for tests only: {streams} streams (-P {streams}) \
             work with normal, the default"
        )
    } else {
        "the default; never use 'disabled', which limits windows to 64 KiB".to_owned()
    })
    .source("netsh interface tcp set global; RFC 7323, section 2");

    let heuristics = recipe(
        "tcp.heuristics",
        Area::Settings,
        &["netsh int tcp show heuristics"],
        "Window Scaling heuristics: disabled",
    )
    .why("when enabled, Windows may lower the autotuning level")
    .change(
        &["netsh int tcp show heuristics > ~\\tcp.heuristics.before.txt"],
        &["netsh int tcp set heuristics disabled"],
        &["netsh int tcp set heuristics default"],
    )
    .kept()
    .source("netsh interface tcp set heuristics");

    let timestamps = global(
        "tcp.timestamps",
        "RFC 1323 Timestamps: enabled (or allowed)",
        "timestamps=enabled",
        "timestamps=default",
    )
    .why(
        "timestamps protect against wrapped sequence numbers, every 3.4 s at 10 Gbit/s (RFC 7323); \
         allowed accepts them where the other end requests them",
    )
    .remark("undo: default, or the saved value")
    .source("netsh interface tcp set global; RFC 7323, section 5");

    let ecn = global(
        "tcp.ecn",
        "ECN Capability: enabled",
        "ecncapability=enabled",
        "ecncapability=default",
    )
    .why("a queue that marks packets instead of dropping them saves retransmissions (RFC 3168)")
    .remark("undo: default, or the saved value")
    .source("netsh interface tcp set global; RFC 3168");
    vec![tuning, heuristics, timestamps, ecn, cubic(target), bbr2()]
}

fn cubic(target: &Target) -> Recipe {
    let why = target.loss_budget_cubic().zip(target.loss_budget()).map_or_else(
        || target.cubic_recovery(),
        |(cubic, reno)| {
            format!(
                "CUBIC sustains the rate below {} loss (RFC 9438), NewReno below {} (Mathis 1997)",
                units::percent(cubic.ratio),
                units::percent(reno)
            )
        },
    );
    let [save, restore] = providers("tcp.congestion");
    recipe(
        "tcp.congestion",
        Area::Settings,
        &[SHOW_PROVIDERS, SHOW_APPLIED],
        "CUBIC for Internet, the template of connections to other networks",
    )
    .why(why)
    .change(
        &[&save],
        &["netsh int tcp set supplemental Template=Internet CongestionProvider=CUBIC"],
        &[&restore],
    )
    .kept()
    .remark("the second command shows which templates open connections use")
    .source("RFC 9438, section 5.1; Get-NetTCPSetting")
}

fn bbr2() -> Recipe {
    let [save, restore] = providers("tcp.bbr2");
    recipe(
        "tcp.bbr2",
        Area::Settings,
        &[SHOW_PROVIDERS, SHOW_APPLIED],
        "no BBR2, except where loss is random and a test shows the gain",
    )
    .why(
        "BBR2 does not slow down at each loss, and may be unfair to other flows. On Windows 11 24H2 \
         it is reported to break connections to local services (127.0.0.1); the reports set every \
         template, and none shows that Internet alone is safe",
    )
    .change(
        &[&save],
        &[
            "netsh int tcp set supplemental Template=Internet CongestionProvider=bbr2",
            "Start-Process iperf3 -ArgumentList '-s','-1'; Start-Sleep 1; iperf3 -c 127.0.0.1 -t 3",
        ],
        &[
            &restore,
            "netsh int tcp set supplemental Template=Internet CongestionProvider=CUBIC",
        ],
    )
    .kept()
    .remark(
        "only Internet: leave Datacenter, Compat and the custom templates as they are. If the \
         second command reports no rate, undo at once, also if a local program stops working. \
         Undo: the saved values, or the second line for the default",
    )
    .source("github.com/2dust/v2rayN/issues/5793; github.com/XTLS/Xray-core/issues/4211")
}

fn adapter(target: &Target) -> Vec<Recipe> {
    let speed = recipe(
        "nic.speed",
        Area::Nic,
        &["Get-NetAdapter | Format-Table Name,LinkSpeed,FullDuplex,DriverDescription"],
        format!("{} and True, or more", target.rate),
    )
    .why(link_rate())
    .source("Get-NetAdapter");

    let wifi = recipe(
        "nic.wifi",
        Area::Nic,
        &["netsh wlan show interfaces"],
        "Radio type, Channel and Band, Receive and Transmit rate",
    )
    .why(wifi_rate())
    .source("netsh wlan; IEEE 802.11ax-2021, clause 27.5");

    let [save, restore] = adapter_properties("nic.offloads");
    let offloads = recipe(
        "nic.offloads",
        Area::Nic,
        &["Get-NetAdapterLso", "Get-NetAdapterRsc", "Get-NetAdapterRss"],
        "enabled",
    )
    .why("with them a core handles many packets at once, and several cores share the load")
    .change(
        &[&save],
        &[
            "Enable-NetAdapterLso -Name '*'",
            "Enable-NetAdapterRsc -Name '*'",
            "Enable-NetAdapterRss -Name '*'",
        ],
        &[&restore],
    )
    .kept()
    .source("PowerShell module NetAdapter");

    let [save, restore] = adapter_properties("nic.eee");
    let power = recipe(
        "nic.eee",
        Area::Nic,
        &["Get-NetAdapterAdvancedProperty | Where-Object DisplayName -match 'Energy|Green|Buffers'"],
        "Energy Efficient Ethernet and Green Ethernet: Disabled",
    )
    .why("a link in low-power idle must wake for each burst (IEEE 802.3az)")
    .change(
        &[&save],
        &["Set-NetAdapterAdvancedProperty -Name '*' -RegistryKeyword '*EEE' -RegistryValue 0"],
        &[&restore],
    )
    .kept()
    .remark(
        "the link restarts. Receive Buffers and Transmit Buffers are the ring sizes: use the \
         maximum at 10 Gbit/s and above",
    )
    .source("Windows standardized keywords for power management (*EEE)");

    let plan = recipe("cpu.power", Area::Cpu, &["powercfg /getactivescheme"], "High performance")
        .why("a power-saving plan raises the frequency too late for a burst")
        .change(
            &["powercfg /getactivescheme > ~\\cpu.power.before.txt"],
            &["powercfg /setactive SCHEME_MIN"],
            &["powercfg /setactive SCHEME_BALANCED"],
        )
        .kept()
        .remark("undo: the default, or the GUID of the saved plan")
        .source("powercfg");
    vec![speed, wifi, offloads, power, plan]
}

fn path(target: &Target) -> Vec<Recipe> {
    let trip = target.rtt.map_or("any".to_owned(), |rtt| format!("{rtt} or less"));
    vec![
        recipe("path.rtt", Area::Path, &["ping -n 10 HOST"], trip)
            .why("a longer RTT needs proportionally larger buffers")
            .source("RFC 7323, section 1.1"),
        recipe("path.mtu", Area::Path, &["ping -f -l 1472 -n 3 HOST"], "three replies")
            .why("1472 bytes plus 28 bytes of headers make an MTU of 1500")
            .remark("use -l 8972 for jumbo frames")
            .source("RFC 1191"),
        recipe(
            "path.load",
            Area::Path,
            &[
                "ping -n 20 HOST",
                "$transfer = Start-Job { curl.exe -s -o NUL URL }; Start-Sleep 3; ping -n 20 HOST; \
                 Stop-Job $transfer",
            ],
            "an average RTT that rises by less than 30 ms",
        )
        .why("RTT under load: shows bufferbloat")
        .remark(
            "in PowerShell. URL: a file that takes at least 25 s to download. For the other \
             direction, upload one: curl.exe -s -T FILE URL",
        )
        .source("DSLReports' grade A: under 30 ms of added delay"),
    ]
}
