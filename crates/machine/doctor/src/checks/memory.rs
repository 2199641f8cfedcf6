//! Memory for the buffers that a target needs.

use super::{check, pass_or, settings, unread};
use crate::facts::{Fact, Facts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::ByteCount;

const SOURCE: &str = "tcp(7), tcp_mem";

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(plans) = settings::plans(facts, target).filter(|_| target.rtt.is_some()) {
        checks.push(tcp_mem(facts, &plans));
        checks.push(machine(facts, &plans));
    }
    checks.push(short(facts));
    checks.push(waiting(facts));
    checks
}

/// The windows of all streams: a full window of payload occupies one of the two ends' buffers.
fn window(plans: &settings::Plans) -> ByteCount {
    let windows = plans.target.window().unwrap_or(ByteCount::ZERO);
    windows.times(u64::from(plans.target.streams()))
}

fn tcp_mem(facts: &Facts, plans: &settings::Plans) -> Check {
    const ID: &str = "net.ipv4.tcp_mem";
    let cost = &plans.lacking.memory;
    let (together, needed) = (cost.together_bytes, window(plans));
    let (Some(pressure), Some(limit)) = (cost.pressure_bytes, cost.limit_bytes) else {
        let why = facts.settings.get(ID).map(Fact::why_not).filter(|why| !why.is_empty());
        return check(Area::Memory, ID, Verdict::Unknown)
            .seen(why.unwrap_or("unexpected format"))
            .needs(together.to_string())
            .source(SOURCE);
    };
    let verdict = match () {
        () if needed.times(2) > limit => Verdict::Fail,
        () if together > pressure => Verdict::Warn,
        () => Verdict::Pass,
    };
    let pages = together.times(2).bytes().div_ceil(facts.memory.page_bytes.max(1));
    check(Area::Memory, ID, verdict)
        .seen(format!("pressure at {}, limit {}", pressure.decimal(), limit.decimal()))
        .needs(format!(
            "{} with all buffers full, {} of payload",
            together.decimal(),
            needed.decimal()
        ))
        .why("the limit for all TCP connections together; near it the kernel shrinks windows")
        .remedy("add memory, use fewer streams, or raise tcp_mem")
        .command(format!(
            "sudo sysctl -w net.ipv4.tcp_mem='{} {} {pages}'",
            pages / 2,
            pages / 4 * 3
        ))
        .source(SOURCE)
}

fn machine(facts: &Facts, plans: &settings::Plans) -> Check {
    const ID: &str = "memory.available";
    let available = match &facts.memory.available {
        Fact::Seen(available) => *available,
        none => return unread(Area::Memory, ID, none, "room for the buffers", "proc_meminfo(5)"),
    };
    let (together, needed) = (plans.lacking.memory.together_bytes, window(plans).times(2));
    let verdict = match () {
        () if needed > available => Verdict::Fail,
        () if together > available => Verdict::Warn,
        () => Verdict::Pass,
    };
    check(Area::Memory, ID, verdict)
        .seen(available.decimal())
        .needs(format!("{} with all buffers full", together.decimal()))
        .why("full buffers take memory from everything else")
        .remedy("stop other programs, add memory, or use fewer streams")
        .source("proc_meminfo(5)")
}

/// Whether TCP ran short of memory since boot.
fn short(facts: &Facts) -> Check {
    const ID: &str = "memory.tcp";
    let counters = match &facts.memory.tcp_counters {
        Fact::Seen(counters) => counters,
        none => {
            return unread(
                Area::Memory,
                ID,
                none,
                "no memory pressure",
                "proc(5), /proc/net/netstat",
            );
        }
    };
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    let (pressed, pruned) = (count("TCPMemoryPressures"), count("RcvPruned"));
    let holds = facts.memory.tcp_holds.seen().map(|held| format!("{} in use; ", held.decimal()));
    check(Area::Memory, ID, pass_or(pressed == 0 && pruned == 0, Verdict::Warn))
        .seen(format!(
            "{}memory pressure {pressed} times since boot, {pruned} packets pruned",
            holds.unwrap_or_default()
        ))
        .needs("no memory pressure")
        .why("under memory pressure TCP shrinks windows and discards received segments")
        .remedy("raise tcp_mem, or find the connections that use it")
        .command("ss -tmi")
        .source("Linux include/uapi/linux/snmp.h")
}

fn waiting(facts: &Facts) -> Check {
    const ID: &str = "memory.pressure";
    const SOURCE: &str = "Linux psi.rst";
    match &facts.memory.stalled_percent {
        Fact::Seen(share) => check(Area::Memory, ID, pass_or(*share < 10.0, Verdict::Warn))
            .seen(format!("{share:.1} % of the last 10 s"))
            .needs("below 10 %")
            .why("programs that stall on memory do not read their sockets")
            .remedy("find the program that uses the memory")
            .command("top -o %MEM")
            .source(SOURCE),
        none => unread(Area::Memory, ID, none, "below 10 %", SOURCE),
    }
}
