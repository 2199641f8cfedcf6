//! The kernel's settings. `tune` decides their values: its plan for this host
//! lists what is missing, its plan for a host with nothing set lists all that
//! is needed.

use super::{Draft, check, kernel, pass_or};
use crate::facts::{Fact, Facts, Settings};
use crate::target::Target;
use model::{BufferTooLarge, SEND_SHARE};
use record::{Area, Check, PlannedSetting, TunePlan, Verdict};
use std::io;
use tune::{Buffers, Goal};
use units::{ByteCount, Rtt, percent};

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// The settings as gathered, for `tune` to read.
struct Snapshot<'a>(&'a Settings);

impl tune::Settings for Snapshot<'_> {
    fn read(&self, key: &str) -> io::Result<String> {
        match self.0.get(key) {
            Some(Fact::Seen(value)) => Ok(value.clone()),
            Some(Fact::Unread { not_readable }) => Err(io::Error::other(not_readable.clone())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn write(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_write(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// A host with nothing set but the congestion control, on which other settings depend.
struct Bare<'a>(&'a Settings);

impl tune::Settings for Bare<'_> {
    fn read(&self, key: &str) -> io::Result<String> {
        let here = || Snapshot(self.0).read(key);
        match key {
            CONGESTION => return here(),
            // Kernels before 5.6 do not have it.
            "net.ipv4.tcp_no_ssthresh_metrics_save" => drop(here()?),
            _ => {}
        }
        Ok(if key.ends_with("mem") { "0 0 0" } else { "0" }.to_owned())
    }

    fn write(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_write(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The plans of `tune` for this host and for a bare one, and their target: with
/// more streams, where one stream's buffer would be too large.
pub(super) struct Plans {
    pub(super) lacking: TunePlan,
    needed: TunePlan,
    pub(super) target: Target,
    beyond: Option<BufferTooLarge>,
}

pub(super) fn plans(facts: &Facts, target: &Target) -> Option<Plans> {
    let memory = facts.memory.total.seen().copied();
    let make = |target: &Target| {
        let goal = Goal::Target {
            rate: target.rate,
            rtt: target.rtt.unwrap_or(Rtt::ZERO),
            streams: target.streams(),
        };
        let now = tune::advise(&Snapshot(&facts.settings), &goal, None, memory)?;
        Ok((now, tune::advise(&Bare(&facts.settings), &goal, None, memory)?))
    };
    let (made, target, beyond) = match make(target) {
        Err(error @ BufferTooLarge { streams, .. }) => {
            let streams = u32::try_from(streams).unwrap_or(u32::MAX);
            let more = Target { streams, ..target.clone() };
            (make(&more), more, Some(error))
        }
        made => (made, target.clone(), None),
    };
    let (lacking, needed) = made.ok()?;
    Some(Plans { lacking, needed, target, beyond })
}

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let Some(plans) = plans(facts, target) else { return Vec::new() };
    let mut checks = Vec::new();
    if let Some(beyond) = &plans.beyond {
        let streams = plans.target.streams();
        checks.push(
            check(Area::Settings, "streams", Verdict::Fail)
                .seen(target.streams().to_string())
                .needs(format!("{streams} or more"))
                .why(beyond.to_string())
                .remedy(format!("split the rate over {streams} parallel connections"))
                .source("Linux net/ipv4/sysctl_net_ipv4.c: tcp_rmem is int"),
        );
    }
    checks.extend(plans.needed.settings.iter().map(|needed| planned(facts, &plans, needed)));
    if target.rtt.is_none() {
        checks.extend([RMEM, WMEM].map(|key| {
            check(Area::Settings, key, Verdict::Unknown)
                .seen(facts.settings.get(key).and_then(Fact::seen).cloned().unwrap_or_default())
                .why("the RTT is unknown, and the buffer is rate x RTT")
                .remedy("give the RTT")
                .source("RFC 7323, section 1.1")
        }));
    }
    checks.extend(beyond_caches(facts, &plans.target));
    checks.push(congestion(facts, &plans.target));
    checks.extend(others(facts));
    checks
}

/// A setting that a plan may change.
fn planned(facts: &Facts, plans: &Plans, needed: &PlannedSetting) -> Check {
    let key = needed.key.as_str();
    let lacking = plans.lacking.settings.iter().find(|one| one.key == key);
    let left_out = plans.lacking.left_out.iter().find(|one| one.key == key);
    let verdict = match (lacking, left_out) {
        (_, Some(_)) => Verdict::Unknown,
        (None, None) => Verdict::Pass,
        (Some(_), None) => how_bad(facts, &plans.target, key),
    };
    let value = facts.settings.get(key);
    let seen = match left_out {
        Some(left) => value
            .map(Fact::why_not)
            .filter(|why| !why.is_empty())
            .unwrap_or(left.why.as_str())
            .to_owned(),
        None => value.and_then(Fact::seen).cloned().unwrap_or_default(),
    };
    let draft = check(Area::Settings, key, verdict)
        .seen(seen)
        .needs(need(needed))
        .why(match carries(facts, &plans.target, key) {
            Some(carries) if verdict == Verdict::Fail => format!("{carries}; {}", needed.why),
            _ => needed.why.clone(),
        })
        .remedy("apply the plan; longhaul tune rollback reverts it");
    with_plan(draft, &plans.target).source(match key {
        RMEM | WMEM => "RFC 7323, section 1.1; tcp(7)",
        "net.core.default_qdisc" => "tc-fq(8)",
        "net.ipv4.tcp_ecn" => "RFC 3168; RFC 8087; Linux ip-sysctl.rst",
        _ => "tcp(7)",
    })
}

fn with_plan(draft: Draft, target: &Target) -> Draft {
    match target.tune_apply() {
        Some(command) => draft.command(command),
        None => draft,
    }
}

/// The value needed: of three numbers the last.
fn need(needed: &PlannedSetting) -> String {
    let last = needed.planned.rsplit(' ').next().unwrap_or_default();
    match last.parse::<u64>() {
        Ok(bytes) if bytes > 1_024 => format!("{last} ({})", ByteCount::from_bytes(bytes)),
        _ if needed.key.ends_with("tcp_mtu_probing") => "1 or 2".to_owned(),
        _ => last.to_owned(),
    }
}

/// Fails where the target cannot be reached without the setting, warns otherwise.
fn how_bad(facts: &Facts, target: &Target, key: &str) -> Verdict {
    let each = target.each();
    let unscaled = target.window().is_some_and(|window| window > model::UNSCALED_WINDOW);
    let short = match key {
        RMEM | WMEM => rate(facts, target, key).is_some_and(|rate| rate < each),
        "net.ipv4.tcp_window_scaling" => unscaled,
        // Buffers then stay at their initial size.
        "net.ipv4.tcp_moderate_rcvbuf" => {
            let initial = triple(facts, RMEM).map(|[_, initial, _]| initial);
            let allowed = initial.and_then(|bytes| of_buffers(facts, target, bytes, u64::MAX));
            allowed.is_some_and(|rate| rate < each)
        }
        _ => false,
    };
    if short { Verdict::Fail } else { Verdict::Warn }
}

fn triple(facts: &Facts, key: &str) -> Option<[u64; 3]> {
    let text = facts.settings.get(key)?.seen()?;
    let numbers: Option<Vec<u64>> = text.split(' ').map(|n| n.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// The rate that a buffer's limit allows each stream.
fn rate(facts: &Facts, target: &Target, key: &str) -> Option<units::BitRate> {
    let [_, _, most] = triple(facts, key)?;
    match key {
        RMEM => of_buffers(facts, target, most, u64::MAX),
        _ => of_buffers(facts, target, u64::MAX, most),
    }
}

fn of_buffers(facts: &Facts, target: &Target, rmem: u64, wmem: u64) -> Option<units::BitRate> {
    let buffers = Buffers { tcp_rmem: [0, 0, rmem], tcp_wmem: [0, 0, wmem], window_scaling: true };
    tune::allowed_rate(&buffers, &buffers, kernel::window_share(facts), target.rtt?)
}

fn carries(facts: &Facts, target: &Target, key: &str) -> Option<String> {
    let rtt = target.rtt?;
    let [_, _, most] = triple(facts, key)?;
    let (share, what) = match key {
        RMEM => (kernel::window_share(facts), "becomes window"),
        WMEM => (SEND_SHARE, "is in flight"),
        _ => return None,
    };
    let window = ByteCount::from_f64(ByteCount::from_bytes(most).as_f64() * share);
    let rate = rate(facts, target, key)?;
    Some(format!(
        "about {} of {} {what}, and {window} / {rtt} = {rate}",
        percent(share),
        ByteCount::from_bytes(most)
    ))
}

/// Buffers that hold more than the CPU's caches on a path of under 1 ms.
fn beyond_caches(facts: &Facts, target: &Target) -> Option<Check> {
    let (rate, rtt, streams) = (target.rate, target.rtt?, target.streams());
    let (tcp_rmem, tcp_wmem) = (triple(facts, RMEM)?, triple(facts, WMEM)?);
    let buffers = Buffers { tcp_rmem, tcp_wmem, window_scaling: true };
    let all = tune::short_path::beyond_caches(&buffers, rate, rtt, streams)?;
    let found = check(Area::Settings, "buffers on a short path", Verdict::Warn)
        .seen(if streams == 1 { all.to_string() } else { format!("{all} for {streams} streams") })
        .needs("32 MB or less")
        .why(tune::short_path::advice(all, rate, rtt))
        .remedy("limit the buffers of local transfers (-w 1M), not the sysctls")
        .source("measured: guides/large-windows.md");
    Some(found)
}

fn congestion(facts: &Facts, target: &Target) -> Check {
    const ID: &str = CONGESTION;
    const SOURCE: &str = "RFC 9438; RFC 5681, section 3.1; tc-fq(8)";
    let seen = |key: &str| facts.settings.get(key).and_then(Fact::seen);
    let Some(chosen) = seen(ID) else {
        let why = facts.settings.get(ID).map_or("not read", Fact::why_not);
        return check(Area::Settings, ID, Verdict::Unknown)
            .seen(why)
            .needs("cubic, or bbr")
            .source(SOURCE);
    };
    let available = seen("net.ipv4.tcp_available_congestion_control");
    let shown = match available {
        Some(list) => format!("{chosen}, of {list}"),
        None => chosen.clone(),
    };
    let (verdict, why, remedy) = match chosen.as_str() {
        "bbr" => bbr(facts, target),
        "cubic" => (Verdict::Pass, target.cubic_recovery(), ""),
        "htcp" => (
            Verdict::Pass,
            "its window grows faster the longer ago the last loss was".to_owned(),
            "",
        ),
        "reno" => {
            let segments = target.window().map(|w| w.as_f64() / f64::from(target.mss()));
            let back = segments
                .zip(target.rtt)
                .map(|(segments, rtt)| segments / 2.0 * rtt.secs_f64())
                .unwrap_or_default();
            let why = format!(
                "after a loss it grows by one segment per RTT: {back:.0} s to recover the window"
            );
            (
                pass_or(back < 10.0, Verdict::Warn),
                why,
                "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic",
            )
        }
        _ => (
            Verdict::Warn,
            "not designed for long shared paths".to_owned(),
            "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic",
        ),
    };
    let draft = check(Area::Settings, ID, verdict)
        .seen(shown)
        .needs("cubic, or bbr where loss is random")
        .why(why)
        .remedy("choose another; open connections keep theirs");
    if remedy.is_empty() { draft } else { draft.command(remedy) }.source(SOURCE)
}

/// BBR paces; TCP does that itself since Linux 4.13, `fq` does it on any.
fn bbr(facts: &Facts, target: &Target) -> (Verdict, String, &'static str) {
    let remedy = "sudo sysctl -w net.core.default_qdisc=fq";
    // The device's own qdisc counts; where unknown, the default for new devices.
    let own = facts.device.seen().and_then(|device| device.nic.qdisc.seen());
    let fq = own.or(facts.settings.get("net.core.default_qdisc").and_then(Fact::seen));
    let is_fq = fq.is_some_and(|qdisc| qdisc == "fq");
    let short = target.rtt.is_some_and(|rtt| model::is_short_path(target.rate, rtt));
    if short && !is_fq {
        let why =
            "on a path of under 1 ms TCP's timer before each segment of 64 KiB can cost more \
                   CPU time than the data: in a virtual machine CUBIC had 2.2 to 3.3 times the \
                   goodput"
                .to_owned();
        return (Verdict::Warn, why, "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic");
    }
    let why = "BBR depends on pacing; TCP paces itself since Linux 4.13 (ESnet recommends 4.20), \
               before that only the fq qdisc did"
        .to_owned();
    let verdict = match kernel::version(facts) {
        _ if is_fq => Verdict::Pass,
        Some(version) if version < (4, 13) => Verdict::Fail,
        Some(version) if version < (4, 20) => Verdict::Warn,
        _ => Verdict::Pass,
    };
    (verdict, why, remedy)
}

/// Settings that no plan changes; some are shown only with unusual values.
fn others(facts: &Facts) -> Vec<Check> {
    const SOURCE: &str = "Linux ip-sysctl.rst";
    let number = |key: &str| facts.settings.get(key)?.seen()?.parse::<u64>().ok();
    let mut checks = Vec::new();
    let mut add = |key: &str, fine: bool, needs: &str, why: &str, command: &str| {
        let seen = facts.settings.get(key).and_then(Fact::seen).cloned().unwrap_or_default();
        let draft = check(Area::Settings, key, pass_or(fine, Verdict::Warn))
            .seen(seen)
            .needs(needs)
            .why(why)
            .remedy("restore the default")
            .command(format!("sudo sysctl -w {command}"));
        checks.push(draft.source(SOURCE));
    };
    if let Some(low) = number("net.ipv4.tcp_low_latency")
        && kernel::version(facts).is_some_and(|version| version < (4, 14))
    {
        add(
            "net.ipv4.tcp_low_latency",
            low == 0,
            "0",
            "before Linux 4.14 it trades throughput for latency",
            "net.ipv4.tcp_low_latency=0",
        );
    }
    if let Some(unsent) = number("net.ipv4.tcp_notsent_lowat") {
        add(
            "net.ipv4.tcp_notsent_lowat",
            unsent >= 16_384,
            "16384 or more",
            "limits unsent data in the socket; below a few segments the sender idles until the \
             program wakes",
            "net.ipv4.tcp_notsent_lowat=4294967295",
        );
    }
    for key in ["net.core.busy_poll", "net.core.busy_read"] {
        if let Some(spin) = number(key) {
            add(
                key,
                spin == 0,
                "0",
                "a reader busy-polls for this many µs before it sleeps: lower latency, but it \
                 takes CPU time from bulk transfers",
                &format!("{key}=0"),
            );
        }
    }
    if let Some(idle) = number("net.ipv4.tcp_slow_start_after_idle") {
        let why = if idle == 0 {
            "a connection keeps its cwnd after idle periods"
        } else {
            "after an idle period of one RTO a connection re-enters slow start (RFC 2861); bulk \
             transfers are not affected"
        };
        add("net.ipv4.tcp_slow_start_after_idle", true, "0 or 1", why, "");
    }
    checks
}
