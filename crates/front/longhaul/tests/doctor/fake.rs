//! A host in a temporary folder.

use doctor::{Fact, Facts, Nic, Target};
use longhaul::doctor::{Asked, Root, gather};
use record::{Check, Verdict};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Files of a server that is fit for 10 Gbit/s over 100 ms.
const SERVER: [(&str, &str); 42] = [
    ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
    ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt\n"),
    ("proc/loadavg", "0.10 0.20 0.30 1/200 4242\n"),
    ("proc/meminfo", "MemTotal:       131072000 kB\nMemAvailable:   120000000 kB\n"),
    ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
    ("proc/net/sockstat", "sockets: used 10\nTCP: inuse 3 orphan 0 tw 0 alloc 4 mem 17\n"),
    (
        "proc/net/netstat",
        "TcpExt: PruneCalled RcvPruned TCPMemoryPressures\nTcpExt: 0 0 0\nIpExt: A\nIpExt: 1\n",
    ),
    ("proc/net/softnet_stat", "0a 00000000 00000000\n0b 00000000 00000000\n"),
    (
        "proc/net/route",
        "Iface Destination Gateway Flags RefCnt Use Metric Mask\n\
         eth0 00000000 0100A8C0 0003 0 0 100 00000000\n",
    ),
    (
        "proc/interrupts",
        "  CPU0 CPU1\n 24: 5000 10 PCI-MSI eth0-TxRx-0\n 25: 9 5000 x eth0-TxRx-1\n",
    ),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t536870912\n"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t536870912\n"),
    ("proc/sys/net/ipv4/tcp_mem", "6000000\t8000000\t12000000\n"),
    ("proc/sys/net/core/rmem_max", "536870912\n"),
    ("proc/sys/net/core/wmem_max", "536870912\n"),
    ("proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
    ("proc/sys/net/ipv4/tcp_timestamps", "1\n"),
    ("proc/sys/net/ipv4/tcp_sack", "1\n"),
    ("proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
    ("proc/sys/net/ipv4/tcp_no_metrics_save", "1\n"),
    ("proc/sys/net/ipv4/tcp_mtu_probing", "1\n"),
    ("proc/sys/net/core/default_qdisc", "fq_codel\n"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n"),
    ("proc/sys/net/ipv4/tcp_ecn", "1\n"),
    ("proc/sys/net/ipv4/tcp_adv_win_scale", "1\n"),
    ("proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n"),
    ("proc/sys/net/ipv4/tcp_notsent_lowat", "4294967295\n"),
    ("proc/sys/net/core/busy_poll", "0\n"),
    ("proc/sys/net/core/busy_read", "0\n"),
    ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "3600000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "3600000\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/speed", "10000\n"),
    ("sys/class/net/eth0/duplex", "full\n"),
    ("sys/class/net/eth0/mtu", "9000\n"),
    ("sys/class/net/eth0/statistics/rx_packets", "1000000\n"),
];

/// A host.
pub(crate) struct Host {
    folder: TempDir,
    pub(crate) nic: Nic,
    pub(crate) asked: Asked,
}

impl Host {
    /// One of which nothing can be seen.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Host { folder, nic: Nic::unread("no driver"), asked: Asked::default() }
    }

    pub(crate) fn server() -> Self {
        let host = Host::bare();
        for (name, text) in SERVER {
            host.write(name, text.as_bytes());
        }
        host.driver("eth0", "mlx5_core")
    }

    /// The files of a server, by name.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SERVER.iter().map(|(name, _)| *name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        self.write(name, text.as_bytes());
        self
    }

    pub(crate) fn set(self, key: &str, value: &str) -> Self {
        let file = format!("proc/sys/{}", key.replace('.', "/"));
        self.with(&file, value)
    }

    pub(crate) fn without(self, name: &str) -> Self {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        self
    }

    /// Gives a device hardware with a driver.
    pub(crate) fn driver(self, device: &str, driver: &str) -> Self {
        let folder = self.path(&format!("sys/class/net/{device}/device"));
        fs::create_dir_all(&folder).unwrap();
        let _ = fs::remove_file(folder.join("driver"));
        std::os::unix::fs::symlink(Path::new("/drivers").join(driver), folder.join("driver"))
            .unwrap();
        self
    }

    pub(crate) fn facts(&self) -> Facts {
        let nic = |_: &str| self.nic.clone();
        gather(&Root::at(self.folder.path()), &self.asked, &nic)
    }

    pub(crate) fn checks(&self, target: &Target) -> Vec<Check> {
        doctor::examine(&self.facts(), target)
    }
}

pub(crate) fn target(rate: &str, rtt: &str) -> Target {
    Target {
        rate: rate.parse().unwrap(),
        rate_from: "asked".to_owned(),
        rtt: Some(rtt.parse().unwrap()),
        rtt_from: "asked".to_owned(),
        streams: 1,
        mss: None,
    }
}

/// The check of that name.
pub(crate) fn one<'a>(checks: &'a [Check], id: &str) -> &'a Check {
    checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no {id}: {checks:#?}"))
}

pub(crate) fn verdict(checks: &[Check], id: &str) -> Verdict {
    one(checks, id).verdict
}

/// The names of the checks that came out so.
pub(crate) fn ids(checks: &[Check], verdict: Verdict) -> Vec<&str> {
    checks.iter().filter(|c| c.verdict == verdict).map(|c| c.id.as_str()).collect()
}

pub(crate) fn seen<T>(value: T) -> Fact<T> {
    Fact::Seen(value)
}
