//! Two hosts whose devices are connected by nothing but a copy: the maximum throughput
//! on this host.

use bench_harness::Fallible;
use host::netlink::{Netlink, Route};
use host::netns::NetNs;
use host::sysctl;
use host::tun::{self, Tun};
use host::wait::{self, EventFd};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const ADDRESSES: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];

pub(crate) struct Pair {
    pub(crate) hosts: [NetNs; 2],
    /// Number of buffers copied from the first to the second.
    copied: Arc<AtomicU64>,
    stop: Arc<EventFd>,
    copying: Vec<std::thread::JoinHandle<io::Result<()>>>,
}

impl Pair {
    pub(crate) fn start() -> Fallible<Self> {
        let (mut hosts, mut devices) = (Vec::new(), Vec::new());
        for address in ADDRESSES {
            let namespace = NetNs::create()?;
            devices.push(Arc::new(namespace.run(|| connect(address))??));
            hosts.push(namespace);
        }
        let stop = Arc::new(EventFd::new()?);
        let copied = Arc::new(AtomicU64::new(0));
        let copying = [(0, 1), (1, 0)]
            .map(|(from, to)| {
                let count = Arc::new(AtomicU64::new(0));
                let count = if from == 0 { Arc::clone(&copied) } else { count };
                let (from, to) = (Arc::clone(&devices[from]), Arc::clone(&devices[to]));
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || copy(&from, &to, &stop, &count))
            })
            .into();
        let hosts = hosts.try_into().map_err(|_| "two hosts")?;
        Ok(Pair { hosts, copied, stop, copying })
    }

    /// Ends it; returns the number of buffers copied from the first to the second.
    pub(crate) fn finish(self) -> Fallible<u64> {
        self.stop.set();
        for thread in self.copying {
            thread.join().map_err(|_| "a copying thread died")??;
        }
        Ok(self.copied.load(Ordering::Relaxed))
    }
}

fn connect(address: Ipv4Addr) -> Fallible<Tun> {
    let tun = Tun::create("bare0")?;
    let netlink = Netlink::open()?;
    let device = netlink.index("bare0")?;
    // The same ring size as in the lab.
    netlink.bring_up(device, Some(1500), Some(10_000))?;
    netlink.add_address(device, IpAddr::V4(address))?;
    netlink.add_routes([Route {
        device,
        prefix: Ipv4Addr::UNSPECIFIED.into(),
        length: 0,
        source: Some(address.into()),
        congestion: Some("cubic"),
    }])?;
    for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        sysctl::write(key, "4096 131072 67108864")?;
    }
    Ok(tun)
}

fn copy(from: &Tun, to: &Tun, stop: &EventFd, copied: &AtomicU64) -> io::Result<()> {
    wait::precise_timers();
    let mut buffer = vec![0; tun::MAX_READ];
    while !stop.is_set() {
        match from.receive(&mut buffer) {
            // A full receiver drops, as a wire would.
            Ok(length) => {
                let _ = to.send(&[IoSlice::new(&buffer[..length])]);
                copied.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait::readable([stop.as_fd(), from.as_fd()], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
