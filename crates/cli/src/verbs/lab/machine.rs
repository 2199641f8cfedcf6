//! `--far-end machine`: the machine itself behind the path.

use crate::failure::Failure;
use clap::ValueEnum;
use host::nat::Masquerade;
use host::sysctl;
use lab::{Lab, relay};
use std::net::{IpAddr, Ipv4Addr};
use topology::Plan;

/// What is at the far end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FarEnd {
    /// A host of the lab's own
    Server,
    /// This machine
    Machine,
}

/// Place of the far host in a pair's plan.
const FAR: usize = 1;

/// Addresses of a path that ends among the machine's own devices: the range
/// kept for measurements (RFC 2544), which no network routes.
const NAT: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// The name of our table of rules.
const TABLE: &str = "longhaul";

/// How the far host is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FarHost {
    /// As any other.
    Own,
    /// As any other, with a relay to the machine's services.
    Relay,
    /// It is the machine, which passes on to its network.
    Nat,
}

impl FarHost {
    /// Changes the pair's plan as the far end asks.
    pub(super) fn of(end: FarEnd, nat: bool, plan: &mut Plan) -> Result<Self, Failure> {
        let far = match (end, nat) {
            (FarEnd::Server, false) => return Ok(FarHost::Own),
            (FarEnd::Server, true) => {
                return Err(Failure::usage("--nat goes with --far-end machine"));
            }
            (FarEnd::Machine, false) => FarHost::Relay,
            (FarEnd::Machine, true) => FarHost::Nat,
        };
        "machine".clone_into(&mut plan.hosts[FAR].name);
        if far == FarHost::Nat {
            if sysctl::read("net.ipv4.ip_forward").is_ok_and(|value| value.trim() != "1") {
                return Err(Failure::usage(
                    "--nat needs a machine that forwards, and this one does not; a lab changes no \
                     setting of the machine: sysctl net.ipv4.ip_forward=1 does",
                ));
            }
            for (host, address) in plan.hosts.iter_mut().zip(NAT) {
                host.ipv4 = address;
            }
        }
        Ok(far)
    }

    /// The host of the plan that is the machine itself.
    pub(super) const fn place(self) -> Option<usize> {
        match self {
            FarHost::Nat => Some(FAR),
            FarHost::Own | FarHost::Relay => None,
        }
    }

    /// Opens what is behind the far host; it is open while what this gives lives.
    pub(super) fn open(self, lab: &Lab) -> Result<Option<Masquerade>, Failure> {
        match self {
            FarHost::Own => Ok(None),
            FarHost::Relay => {
                let ports = relay::start(lab.server()).map_err(Failure::work)?;
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                let open = if ports.is_empty() { "none yet".to_owned() } else { ports.join(", ") };
                eprintln!(
                    "lab: this machine is the host `machine`; its TCP ports are relayed as they open: {open}"
                );
                Ok(None)
            }
            FarHost::Nat => {
                let rules = Masquerade::start(TABLE, &[(IpAddr::from(NAT[0]), 32)]);
                let rules = rules.map_err(|error| {
                    Failure::usage(format!(
                        "--nat needs root and a kernel with nf_tables since Linux 5.12: {error}"
                    ))
                })?;
                eprintln!(
                    "lab: this machine is the host `machine`, and its network is behind it; names need a resolver that the client reaches"
                );
                Ok(Some(rules))
            }
        }
    }
}
