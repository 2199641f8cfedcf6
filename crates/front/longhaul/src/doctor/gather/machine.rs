//! Memory and processors.

use super::Root;
use ::doctor::{Cpu, Fact, Memory};
use std::collections::BTreeMap;
use units::ByteCount;

/// `TcpExt` counters of memory pressure.
const COUNTERS: [&str; 5] =
    ["TCPMemoryPressures", "PruneCalled", "RcvPruned", "TCPRcvCollapsed", "TCPAbortOnMemory"];

pub(super) fn memory(root: &Root) -> Memory {
    let page_bytes = host::identity::page_bytes();
    let meminfo = root.text("proc/meminfo");
    let line = |name: &str| -> Fact<ByteCount> {
        let text = match &meminfo {
            Ok(text) => text,
            Err(error) => return Fact::unread(error.to_string()),
        };
        let kib = text.lines().find_map(|line| {
            let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
            value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        });
        kib.map_or_else(
            || Fact::unread(format!("/proc/meminfo has no {name}")),
            |bytes| Fact::Seen(ByteCount::from_bytes(bytes)),
        )
    };
    Memory {
        total: line("MemTotal"),
        available: line("MemAvailable"),
        page_bytes,
        tcp_holds: from(root, "proc/net/sockstat", |text| {
            let line = text.lines().find(|line| line.starts_with("TCP:"))?;
            let pages: u64 = after(line, "mem")?.parse().ok()?;
            Some(ByteCount::from_bytes(pages.checked_mul(page_bytes)?))
        }),
        stalled_percent: from(root, "proc/pressure/memory", |text| {
            let line = text.lines().find(|line| line.starts_with("some"))?;
            let value = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
            value.parse().ok().filter(|share: &f64| (0.0..=100.0).contains(share))
        }),
        tcp_counters: from(root, "proc/net/netstat", |text| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
            let (names, values) = (lines.next()?, lines.next()?);
            let all = names.split_whitespace().zip(values.split_whitespace());
            let ours = all.filter(|(name, _)| COUNTERS.contains(name));
            Some(ours.filter_map(|(n, v)| Some((n.to_owned(), v.parse().ok()?))).collect())
        }),
    }
}

pub(super) fn cpu(root: &Root) -> Cpu {
    let online = root.text("sys/devices/system/cpu/online").map(|text| cpus(&text));
    let mut governors = BTreeMap::new();
    let (mut allowed, mut able, mut driver) = (None, None, None);
    let mut why = "no CPU frequency control on this machine (a virtual machine?)".to_owned();
    for policy in root.names("sys/devices/system/cpu/cpufreq") {
        let file = |name: &str| format!("sys/devices/system/cpu/cpufreq/{policy}/{name}");
        let mhz = |name| root.value::<u64>(&file(name)).seen().map(|khz| khz / 1000);
        match root.text(&file("scaling_governor")) {
            Ok(governor) if policy.starts_with("policy") => {
                *governors.entry(governor).or_insert(0) += 1;
            }
            Err(error) if policy.starts_with("policy") => why = error.to_string(),
            _ => continue,
        }
        if let Some(most) = mhz("scaling_max_freq") {
            allowed = Some(allowed.map_or(most, |least: u64| least.min(most)));
        }
        able = able.max(mhz("cpuinfo_max_freq"));
        driver = driver.or_else(|| root.text(&file("scaling_driver")).ok());
    }
    let none = |why: &str| Fact::unread(why);
    Cpu {
        online: match online {
            Ok(0) => Fact::unread("no CPU is listed as online"),
            Ok(count) => Fact::Seen(count),
            Err(error) => Fact::unread(error.to_string()),
        },
        governors: if governors.is_empty() { none(&why) } else { Fact::Seen(governors) },
        driver: driver.map_or_else(|| Fact::unread(&why), Fact::Seen),
        allowed_mhz: allowed.map_or_else(|| Fact::unread(&why), Fact::Seen),
        able_mhz: able.map_or_else(|| Fact::unread(&why), Fact::Seen),
        smt: root.value::<u8>("sys/devices/system/cpu/smt/active").map(|on| on == 1),
        load: from(root, "proc/loadavg", |text| text.split_whitespace().next()?.parse().ok()),
        backlog_drops: from(root, "proc/net/softnet_stat", |text| {
            // A line for each processor; the second number is what its full
            // queue dropped (net/core/net-procfs.c, softnet_seq_show).
            let dropped =
                |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
            text.lines().map(dropped).try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)))
        }),
    }
}

/// A file's text through a parser that may fail.
fn from<T>(root: &Root, name: &str, read: impl Fn(&str) -> Option<T>) -> Fact<T> {
    match root.text(name) {
        Ok(text) => read(&text)
            .map_or_else(|| Fact::unread(format!("/{name} has an unexpected format")), Fact::Seen),
        Err(error) => Err(error).into(),
    }
}

/// The word after another.
fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()
}

/// The number of CPUs in a list such as `0-3,8`.
fn cpus(list: &str) -> usize {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1).filter(|count| *count <= 1 << 20)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        for (list, count) in [("0-3", 4), ("0", 1), ("0-3,8,10-11", 7), ("", 0), ("3-1", 0)] {
            assert_eq!(cpus(list), count, "{list}");
        }
        assert_eq!(cpus("0-18446744073709551615"), 0);
    }
}
