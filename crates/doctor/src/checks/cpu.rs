//! Processors: frequency, interrupts, queues.

use super::{FAST, VERY_FAST, check, pass_or, unread};
use crate::facts::{Cpu, Fact, Facts, Interrupts};
use crate::target::Target;
use record::{Area, Check, Verdict};

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
    let needed = if target.rate >= FAST { "performance" } else { "any but a fixed low one" };
    let governors = match &cpu.governors {
        Fact::Seen(governors) => governors,
        none => return unread(Area::Cpu, ID, none, needed, ESNET),
    };
    // Of intel_pstate and amd-pstate (active) `powersave` is the one that adapts.
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
        .why("a governor that saves power is late to raise the frequency when a burst comes")
        .remedy("the performance governor, until the next boot")
        .command("sudo cpupower frequency-set -g performance")
        .source(ESNET)
}

fn frequency(cpu: &Cpu, target: &Target) -> Check {
    const ID: &str = "cpu.frequency";
    const SOURCE: &str = "Linux cpufreq.rst";
    let (allowed, able) = match (&cpu.allowed_mhz, &cpu.able_mhz) {
        (Fact::Seen(allowed), Fact::Seen(able)) => (*allowed, *able),
        (none @ Fact::Unread { .. }, _) | (_, none) => {
            return unread(Area::Cpu, ID, none, "all that the processor can", SOURCE);
        }
    };
    let fine = allowed.saturating_mul(10) >= able.saturating_mul(9);
    let verdict = pass_or(fine, Verdict::Warn);
    check(Area::Cpu, ID, verdict)
        .seen(format!("up to {allowed} of {able} MHz"))
        .needs(format!("{able} MHz"))
        .why(format!("one core handles one connection, and {} ask for all of it", target.each()))
        .remedy("somebody lowered the limit (thermald, a power profile, tlp)")
        .command(format!("sudo cpupower frequency-set -u {able}MHz"))
        .source(SOURCE)
}

fn load(cpu: &Cpu) -> Check {
    const ID: &str = "cpu.load";
    let (load, online) = match (&cpu.load, &cpu.online) {
        (Fact::Seen(load), Fact::Seen(online)) => (*load, *online),
        (none @ Fact::Unread { .. }, _) => {
            return unread(Area::Cpu, ID, none, "a core to spare", "proc_loadavg(5)");
        }
        (_, none) => return unread(Area::Cpu, ID, none, "a core to spare", "proc_loadavg(5)"),
    };
    // Up to a million processors: exact as a float.
    let busy = load >= online as f64;
    check(Area::Cpu, ID, pass_or(!busy, Verdict::Warn))
        .seen(format!("{load:.1} on {online} processors"))
        .needs("a core to spare")
        .why("a transfer waits for its processor like anybody else")
        .remedy("find out what runs")
        .command("top")
        .source("proc_loadavg(5)")
}

/// Whether one processor handles all interrupts of a fast device.
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
        none => return unread(Area::Cpu, ID, none, "on several processors", SOURCE),
    };
    let sum: u64 = found.by_cpu.iter().fold(0, |sum, one| sum.saturating_add(*one));
    let most = found.by_cpu.iter().max().copied().unwrap_or(0);
    let at = found.by_cpu.iter().position(|count| *count == most).unwrap_or(0);
    let processors = cpu.online.seen().copied().unwrap_or(found.by_cpu.len());
    // As shares of what was handled so far, in floats: counters are large.
    let share = if sum == 0 { 0.0 } else { most as f64 / sum as f64 };
    let alone = processors > 1 && share > 0.9 && sum > 1_000;
    let verdict = match target.rate >= FAST {
        true if alone => Verdict::Warn,
        _ => Verdict::Pass,
    };
    check(Area::Cpu, ID, verdict)
        .seen(format!(
            "lines {}, queues {queues}; processor {at} handled {:.0} %",
            found.lines,
            share * 100.0
        ))
        .needs(if target.rate >= FAST { "spread over processors" } else { "any at this rate" })
        .why("one processor is full at 10 to 20 Gbit/s of packets")
        .remedy("a queue for each processor, and irqbalance or the vendor's set_irq_affinity")
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
        .seen(format!("{drops} packets dropped since boot; {limit} may wait"))
        .needs("no drops")
        .why("packets that one processor hands another wait in a queue that was full")
        .remedy("a longer queue, or interrupts on more processors")
        .command(format!("sudo sysctl -w net.core.netdev_max_backlog={more}"))
        .source(SOURCE)
}

fn threads(cpu: &Cpu) -> Check {
    const ID: &str = "cpu.smt";
    match &cpu.smt {
        Fact::Seen(on) => check(Area::Cpu, ID, pass_or(!on, Verdict::Warn))
            .seen(if *on { "two threads a core" } else { "one thread a core" })
            .needs("one thread a core")
            .why("the second thread takes from the one that carries the connection")
            .remedy("until the next boot")
            .command("echo off | sudo tee /sys/devices/system/cpu/smt/control")
            .source(ESNET),
        none => unread(Area::Cpu, ID, none, "one thread a core", ESNET),
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
        .seen(if through { "passed through" } else { "not passed through at boot" })
        .needs("iommu=pt")
        .why("every packet is mapped for the device and unmapped again otherwise")
        .remedy("add iommu=pt to the kernel's line (GRUB_CMDLINE_LINUX), and boot")
        .source(ESNET)
}
