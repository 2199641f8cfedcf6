//! Two hosts, one cable: network namespaces with a veth pair between them,
//! all of which is gone with this process.

use bench_harness::Fallible;
use host::netns::NetNs;
use std::process::{Child, Command, Stdio};

pub(crate) const SERVER: &str = "10.1.0.2";
pub(crate) const CLIENT: &str = "10.1.0.1";

pub(crate) struct Pair {
    hosts: [NetNs; 2],
    /// Keeps the second namespace named by a process, for `ip` to find it.
    keeper: Child,
}

impl Pair {
    pub(crate) fn start() -> Fallible<Self> {
        let hosts = [NetNs::create()?, NetNs::create()?];
        let keeper = hosts[1].run(|| Command::new("sleep").arg("infinity").spawn())??;
        let pair = Pair { hosts, keeper };
        let far = pair.keeper.id().to_string();
        pair.ip(0, &["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &far])?;
        for (end, device, address) in [(0, "near", CLIENT), (1, "far", SERVER)] {
            pair.ip(end, &["address", "add", &format!("{address}/24"), "dev", device])?;
            pair.ip(end, &["link", "set", device, "up"])?;
            pair.ip(end, &["link", "set", "lo", "up"])?;
        }
        Ok(pair)
    }

    /// Starts a program on the client's (0) or the server's host (1).
    pub(crate) fn spawn(&self, host: usize, program: &mut Command) -> Fallible<Child> {
        Ok(self.hosts[host].run(|| program.spawn())??)
    }

    fn ip(&self, host: usize, arguments: &[&str]) -> Fallible<()> {
        let mut ip = Command::new("ip");
        let status = self.spawn(host, ip.args(arguments).stdin(Stdio::null()))?.wait()?;
        if status.success() { Ok(()) } else { Err(format!("ip {}", arguments.join(" ")).into()) }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
