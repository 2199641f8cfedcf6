//! CPUs: frequency, interrupts, queues.

use super::{FAST, VERY_FAST, check, pass_or, unread};
use crate::facts::{Cpu, Fact, Facts, Interrupts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::{percent, share};

const ESNET: &str = "ESnet fasterdata, 100G tuning";

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let cpu = &facts.cpu;
    let mut checks = vec![governor(cpu, target), frequency(cpu, target), load(cpu)];
    if let Some(device) = facts.device.seen().filter(|device| device.is_hardware) {
        checks.push(spread(&device.interrupts, &device.name, device.rx_queues, cpu, target));
    }
    checks.push(backlog(facts));
    if target.rate >= VERY_FAST {
        checks.push(threads(cpu));
        checks.push(iommu(facts));
    }
    checks
}

fn governor(cpu: &Cpu, target: &Target) -> Check {
    const ID: &str = "cpu.governor";
    let needed = if target.rate >= FAST {
        "performance"
    } else {
        "any that raises the frequency under load"
    };
    let governors = match &cpu.governors {
        Fact::Seen(governors) => governors,
        none => return unread(Area::Cpu, ID, none, needed, ESNET),
    };
    // With intel_pstate and amd-pstate (active), `powersave` adapts to the load.
    let adapts = cpu.driver.seen().is_some_and(|driver| driver.contains("pstate"));
    let all = governors.keys().all(|governor| governor == "performance");
    let slow = governors.keys().any(|governor| governor == "powersave") && !adapts;
    let fine = all || target.rate < FAST && !slow;
    let names: Vec<String> =
        governors.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let driver = cpu.driver.seen().map(|driver| format!(", {driver}")).unwrap_or_default();
    check(Area::Cpu, ID, pass_or(fine, Verdict::Warn))
        .seen(format!("{}{driver}", names.join(", ")))
        .needs(needed)
        .why("a power-saving governor raises the frequency too late for a burst")
        .remedy("select the performance governor; lasts until the next boot")
        .command("sudo cpupower frequency-set -g performance")
        .source(ESNET)
}

fn frequency(cpu: &Cpu, target: &Target) -> Check {
    const ID: &str = "cpu.frequency";
    const SOURCE: &str = "Linux cpufreq.rst";
    let (allowed, able) = match (&cpu.allowed_mhz, &cpu.able_mhz) {
        (Fact::Seen(allowed), Fact::Seen(able)) => (*allowed, *able),
        (none @ Fact::Unread { .. }, _) | (_, none) => {
            return unread(Area::Cpu, ID, none, "the CPU's maximum", SOURCE);
        }
    };
    let fine = allowed.saturating_mul(10) >= able.saturating_mul(9);
    let verdict = pass_or(fine, Verdict::Warn);
    check(Area::Cpu, ID, verdict)
        .seen(format!("up to {allowed} of {able} MHz"))
        .needs(format!("{able} MHz"))
        .why(format!("one core handles one connection, and {} needs all of it", target.each()))
        .remedy("something lowered the limit (thermald, a power profile, tlp): raise it")
        .command(format!("sudo cpupower frequency-set -u {able}MHz"))
        .source(SOURCE)
}

fn load(cpu: &Cpu) -> Check {
    const ID: &str = "cpu.load";
    let (load, online) = match (&cpu.load, &cpu.online) {
        (Fact::Seen(load), Fact::Seen(online)) => (*load, *online),
        (none @ Fact::Unread { .. }, _) => {
            return unread(Area::Cpu, ID, none, "an idle core", "proc_loadavg(5)");
        }
        (_, none) => return unread(Area::Cpu, ID, none, "an idle core", "proc_loadavg(5)"),
    };
    // Up to a million CPUs: exact as a float.
    let busy = load >= online as f64;
    check(Area::Cpu, ID, pass_or(!busy, Verdict::Warn))
        .seen(format!("{load:.1} on {online} CPUs"))
        .needs("an idle core")
        .why("a transfer competes with other programs for CPU time")
        .remedy("find the program that uses the CPU")
        .command("top")
        .source("proc_loadavg(5)")
}

/// Whether one CPU handles all interrupts of a fast device.
fn spread(
    interrupts: &Fact<Interrupts>,
    name: &str,
    queues: usize,
    cpu: &Cpu,
    target: &Target,
) -> Check {
    const ID: &str = "cpu.interrupts";
    const SOURCE: &str = "Linux scaling.rst";
    let found = match interrupts {
        Fact::Seen(found) => found,
        none => return unread(Area::Cpu, ID, none, "on several CPUs", SOURCE),
    };
    let sum: u64 = found.by_cpu.iter().fold(0, |sum, one| sum.saturating_add(*one));
    let most = found.by_cpu.iter().max().copied().unwrap_or(0);
    let at = found.by_cpu.iter().position(|count| *count == most).unwrap_or(0);
    let processors = cpu.online.seen().copied().unwrap_or(found.by_cpu.len());
    // Fractions of all interrupts handled so far.
    let share = share(most, sum);
    let alone = processors > 1 && share > 0.9 && sum > 1_000;
    let verdict = match target.rate >= FAST {
        true if alone => Verdict::Warn,
        _ => Verdict::Pass,
    };
    check(Area::Cpu, ID, verdict)
        .seen(format!("{} IRQs, {queues} queues; CPU {at} handled {}", found.lines, percent(share)))
        .needs(if target.rate >= FAST { "spread over CPUs" } else { "any at this rate" })
        .why("one CPU saturates at 10 to 20 Gbit/s")
        .remedy("use a queue per CPU, and irqbalance or the vendor's set_irq_affinity")
        .command(format!("sudo ethtool -L {name} combined {processors}"))
        .source(SOURCE)
}

fn backlog(facts: &Facts) -> Check {
    const ID: &str = "cpu.backlog";
    const SOURCE: &str = "Linux net/core/net-procfs.c, softnet_seq_show";
    let drops = match &facts.cpu.backlog_drops {
        Fact::Seen(drops) => *drops,
        none => return unread(Area::Cpu, ID, none, "no drops", SOURCE),
    };
    let limit = facts.settings.get("net.core.netdev_max_backlog").and_then(Fact::seen);
    let limit = limit.and_then(|text| text.parse::<u64>().ok()).unwrap_or(1_000);
    let more = limit.saturating_mul(10).min(250_000).max(limit);
    check(Area::Cpu, ID, pass_or(drops == 0, Verdict::Warn))
        .seen(format!("{drops} packets dropped since boot; queue limit {limit}"))
        .needs("no drops")
        .why("the per-CPU input queue (backlog) overflowed")
        .remedy("enlarge the backlog, or spread interrupts over more CPUs")
        .command(format!("sudo sysctl -w net.core.netdev_max_backlog={more}"))
        .source(SOURCE)
}

fn threads(cpu: &Cpu) -> Check {
    const ID: &str = "cpu.smt";
    match &cpu.smt {
        Fact::Seen(on) => check(Area::Cpu, ID, pass_or(!on, Verdict::Warn))
            .seen(if *on { "two threads per core" } else { "one thread per core" })
            .needs("one thread per core")
            .why("the sibling thread slows the one that handles the connection")
            .remedy("disable SMT; lasts until the next boot")
            .command("echo off | sudo tee /sys/devices/system/cpu/smt/control")
            .source(ESNET),
        none => unread(Area::Cpu, ID, none, "one thread per core", ESNET),
    }
}

fn iommu(facts: &Facts) -> Check {
    const ID: &str = "cpu.iommu";
    let line = match &facts.boot_line {
        Fact::Seen(line) => line,
        none => return unread(Area::Cpu, ID, none, "iommu=pt", ESNET),
    };
    let through = line
        .split_whitespace()
        .any(|word| matches!(word, "iommu=pt" | "iommu.passthrough=1" | "intel_iommu=off"));
    check(Area::Cpu, ID, pass_or(through, Verdict::Warn))
        .seen(if through { "passthrough" } else { "no passthrough on the kernel command line" })
        .needs("iommu=pt")
        .why("without it every packet is mapped and unmapped by the IOMMU")
        .remedy("add iommu=pt to the kernel command line (GRUB_CMDLINE_LINUX) and reboot")
        .source(ESNET)
}
