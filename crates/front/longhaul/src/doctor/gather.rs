//! Reads the facts of a host below a root directory, in tests a synthetic one.
//! A fact that cannot be read holds the reason; the rest is read all the same.

mod device;
mod machine;
mod route;

pub(crate) use route::default_devices;

use ::doctor::{Fact, Facts, Nic, Settings};
use host::{ethtool, netlink::Netlink, wifi};
use std::cell::RefCell;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tune::Goal;
use units::{BitRate, Rtt};

/// Bytes read of a file at most: /proc/interrupts of 512 CPUs is 1 MB.
const MAX: u64 = 4 << 20;

/// Settings that are checked here and not planned by `tune`.
const KEYS: [&str; 12] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_notsent_lowat",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    // A plan reads it only where BBR is in use.
    "net.core.default_qdisc",
];

/// The directory used as `/`.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

/// The input of [`gather`].
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The device, where the user gave one.
    pub device: Option<String>,
    /// The interface of the far end's link-local address.
    pub zone: Option<String>,
    /// The far end, which selects the device by its route.
    pub to: Option<IpAddr>,
}

impl Root {
    /// The machine's own.
    #[must_use]
    pub fn machine() -> Self {
        Root(PathBuf::from("/"))
    }

    /// Another directory.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Root(folder.to_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file's text, trimmed.
    fn text(&self, name: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(self.path(name))?.take(MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file's text as a value.
    fn value<T: std::str::FromStr>(&self, name: &str) -> Fact<T> {
        match self.text(name) {
            Ok(text) => match text.parse() {
                Ok(value) => Fact::Seen(value),
                Err(_) => Fact::unread(format!("it reads '{}'", short(&text))),
            },
            Err(error) => Err(error).into(),
        }
    }

    /// The names in a folder, in order; none where it cannot be read.
    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let name =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        names
    }
}

/// The beginning of a text of unknown length.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// All facts of a host. `nic` queries a device's driver ([`this_nic`]).
#[must_use]
pub fn gather(root: &Root, asked: &Asked, nic: &dyn Fn(&str) -> Nic) -> Facts {
    let device = device::device(root, asked, nic);
    Facts {
        kernel: root.text("proc/sys/kernel/osrelease").into(),
        boot_line: root.text("proc/cmdline").into(),
        settings: settings(root),
        may_set: may_set(root),
        memory: machine::memory(root),
        cpu: machine::cpu(root),
        ports: device.seen().map_or_else(Vec::new, |above| device::ports(root, above, nic)),
        device,
        path: None,
        disk: None,
    }
}

/// Settings that a device's driver reports, in the network namespace of the calling thread.
#[must_use]
pub fn this_nic(device: &str) -> Nic {
    Nic {
        rings: ethtool::rings(device).into(),
        pause: ethtool::pause(device).into(),
        offloads: ethtool::offloads(device).into(),
        eee: ethtool::eee(device).into(),
        coalescing: ethtool::coalescing(device).into(),
        line: ethtool::line(device).into(),
        qdisc: Netlink::open().and_then(|kernel| kernel.queue_discipline(device)).into(),
        wifi: wifi::link(device).into(),
    }
}

/// The settings that `tune` reads for a plan, and those of [`KEYS`].
fn settings(root: &Root) -> Settings {
    let read = Recorder { root, seen: RefCell::default() };
    // A plan reads the same settings for every target.
    let (rate, rtt) = (BitRate::from_bps(1_000_000), Rtt::from_micros(1_000));
    let _ = tune::advise(&read, &Goal::Target { rate, rtt, streams: 1 }, None, None);
    for key in KEYS {
        let _ = tune::Settings::read(&read, key);
    }
    read.seen.into_inner()
}

/// Reads settings and records them.
struct Recorder<'a> {
    root: &'a Root,
    seen: RefCell<Settings>,
}

impl tune::Settings for Recorder<'_> {
    fn read(&self, key: &str) -> io::Result<String> {
        let text = self.root.text(&file(key)).map(|text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ")
        });
        let kept = match &text {
            Ok(text) => Fact::Seen(text.clone()),
            Err(error) => Fact::from(Err(io::Error::from(error.kind()))),
        };
        self.seen.borrow_mut().insert(key.to_owned(), kept);
        text
    }

    fn write(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_write(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn file(key: &str) -> String {
    format!("proc/sys/{}", key.replace('.', "/"))
}

/// Returns true if this user may change settings: the kernel decides when the file is
/// opened; nothing is written.
fn may_set(root: &Root) -> Fact<bool> {
    let file = root.path(&file("net.ipv4.tcp_rmem"));
    match std::fs::OpenOptions::new().write(true).open(file) {
        Ok(_) => Fact::Seen(true),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            Fact::unread("/proc/sys is mounted read-only, as in a container")
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Fact::unread("only root may change them")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::unread("/proc/sys/net does not exist here")
        }
        Err(error) => Fact::unread(error.to_string()),
    }
}
