//! A near and a far box, each on the host of its application, with an emulated path between them. What
//! five hosts need besides, two more emulated links, costs a second core at 1 Gbit/s.

use crate::LONGHAUL;
use crate::lab::{goodput, test};
use crate::relay::{Chain, roomy, start, wait_for};
use bench_harness::Fallible;
use lab::{Lab, LabHost, Options};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use topology::Plan;

/// Ports of the lanes and of the target, and the one that the near side forwards to the target.
const LANES: u16 = 7425;
pub(crate) const TARGET: u16 = 5201;
pub(crate) const FORWARDED: u16 = 5301;

/// The hosts.
pub(crate) struct Sites {
    lab: Lab,
}

impl Sites {
    /// Runs `work` over a path with buffers of several BDPs, and says why its emulation was not valid, if
    /// it was not.
    pub(crate) fn over<T>(
        path: &str,
        congestion: &str,
        work: impl FnOnce(&Self) -> Fallible<T>,
    ) -> Fallible<(T, Option<String>)> {
        Self::with_buffers(path, congestion, "4096 131072 134217728", work)
    }

    /// The same with such `tcp_rmem` and `tcp_wmem`.
    pub(crate) fn with_buffers<T>(
        path: &str,
        congestion: &str,
        buffers: &str,
        work: impl FnOnce(&Self) -> Fallible<T>,
    ) -> Fallible<(T, Option<String>)> {
        let buffers =
            ["tcp_rmem", "tcp_wmem"].map(|name| (format!("net.ipv4.{name}"), buffers.to_owned()));
        let plan = Plan::pair(path.parse()?, congestion, &buffers, false);
        let sites = Sites { lab: Lab::start(&plan, Options::default())? };
        sites.lab.begin();
        let result = work(&sites)?;
        Ok((result, sites.lab.finish()?.into_path().reasons.into_iter().next()))
    }

    pub(crate) fn near(&self) -> &LabHost {
        self.lab.client()
    }

    pub(crate) fn far(&self) -> &LabHost {
        self.lab.server()
    }

    /// A program on a host, which listens on a port before this returns.
    pub(crate) fn start(host: &LabHost, command: &mut Command, port: u16) -> Fallible<Child> {
        host.namespace.run(|| {
            let child = start(command)?;
            wait_for(port)?;
            Ok(child)
        })?
    }

    /// Goodput in Mbit/s of a flow from near to the forwarded port.
    pub(crate) fn forwarded(&self, seconds: u32, omit: u32) -> Fallible<f64> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("result");
        let command = test(&format!("127.0.0.1 -p {FORWARDED}"), seconds, omit, &file);
        let mut client = Command::new("sh");
        client.args(["-c", &command]).stdin(Stdio::null());
        let output = self.near().namespace.run(|| client.output())??;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{LONGHAUL} test failed: {text}").into());
        }
        Ok(goodput(&file)? / 1e6)
    }

    /// A pair with these flags at the near and at the far box.
    pub(crate) fn boxes(&self, flags: [&[&str]; 2]) -> Fallible<Chain> {
        let (address, [near, far]) = (self.far().ipv4, flags);
        let target = format!("{address}:{TARGET}");
        let listen = format!("0.0.0.0:{LANES}");
        let mut box_far = roomy();
        box_far.args(["boost", "far", "-l", &listen, "--allow", &target]).args(far);
        let mut chain = Chain { port: FORWARDED, programs: Vec::new() };
        chain.programs.push(Self::start(self.far(), &mut box_far, LANES)?);
        let (lanes, forward) = (format!("{address}:{LANES}"), format!("{FORWARDED}:{target}"));
        let mut box_near = roomy();
        box_near.args(["boost", "near", "--far", &lanes, "-L", &forward]).args(near);
        chain.programs.push(Self::start(self.near(), &mut box_near, FORWARDED)?);
        Ok(chain)
    }

    /// Two haproxies that splice.
    pub(crate) fn haproxies(&self, folder: &Path) -> Fallible<Chain> {
        let address = self.far().ipv4;
        let mut chain = Chain { port: FORWARDED, programs: Vec::new() };
        let ends = [
            (self.far(), LANES, format!("0.0.0.0:{LANES}"), format!("127.0.0.1:{TARGET}")),
            (
                self.near(),
                FORWARDED,
                format!("127.0.0.1:{FORWARDED}"),
                format!("{address}:{LANES}"),
            ),
        ];
        for (host, port, listen, target) in ends {
            let file = folder.join(format!("haproxy.{port}"));
            let text = format!(
                "defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n \
                 timeout server 60s\n option splice-auto\n\
                 listen a\n bind {listen}\n server b {target}\n"
            );
            std::fs::write(&file, text)?;
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(&file);
            chain.programs.push(Self::start(host, &mut command, port)?);
        }
        Ok(chain)
    }
}
