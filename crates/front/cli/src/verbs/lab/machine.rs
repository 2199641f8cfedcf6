//! `--far-end machine`: this machine at the far end of the path.

use crate::console;
use crate::failure::Failure;
use clap::ValueEnum;
use host::nat::Masquerade;
use host::sysctl;
use lab::{Lab, relay};
use std::net::{IpAddr, Ipv4Addr};
use topology::Plan;

/// The far end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FarEnd {
    /// A host of the lab
    Server,
    /// This machine
    Machine,
}

/// Index of the far host in the plan of a pair.
const FAR: usize = 1;

/// Addresses of a path that ends at a device of the machine: from the range for
/// benchmarking (RFC 2544), which no network routes.
const NAT: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// Name of the nf_tables table.
const TABLE: &str = "longhaul";

/// Kind of the far host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FarHost {
    /// A lab host.
    Own,
    /// A lab host that relays to the machine's TCP services.
    Relay,
    /// The machine, which forwards to its network.
    Nat,
}

impl FarHost {
    /// Adapts the plan of a pair to the far end.
    pub(super) fn of(end: FarEnd, nat: bool, plan: &mut Plan) -> Result<Self, Failure> {
        let far = match (end, nat) {
            (FarEnd::Server, false) => return Ok(FarHost::Own),
            (FarEnd::Server, true) => {
                return Err(Failure::usage("--nat requires --far-end machine"));
            }
            (FarEnd::Machine, false) => FarHost::Relay,
            (FarEnd::Machine, true) => FarHost::Nat,
        };
        "machine".clone_into(&mut plan.hosts[FAR].name);
        if far == FarHost::Nat {
            if sysctl::read("net.ipv4.ip_forward").is_ok_and(|value| value.trim() != "1") {
                return Err(Failure::usage(
                    "--nat requires IP forwarding, which is disabled on this machine; enable it with: \
                     sysctl -w net.ipv4.ip_forward=1",
                ));
            }
            for (host, address) in plan.hosts.iter_mut().zip(NAT) {
                host.ipv4 = address;
            }
        }
        Ok(far)
    }

    /// Index of the host that is the machine itself.
    pub(super) const fn place(self) -> Option<usize> {
        match self {
            FarHost::Nat => Some(FAR),
            FarHost::Own | FarHost::Relay => None,
        }
    }

    /// Starts the relay or masquerading; masquerading lasts as long as the value returned.
    pub(super) fn open(self, lab: &Lab) -> Result<Option<Masquerade>, Failure> {
        match self {
            FarHost::Own => Ok(None),
            FarHost::Relay => {
                let ports = relay::start(lab.server()).map_err(Failure::work)?;
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                let open = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
                console::note(&format!(
                    "lab: this machine is the host `machine`; its TCP ports are relayed as they open (open now: {open})"
                ));
                Ok(None)
            }
            FarHost::Nat => {
                let rules = Masquerade::start(TABLE, &[(IpAddr::from(NAT[0]), 32)]);
                let rules = rules.map_err(|error| {
                    Failure::usage(format!(
                        "--nat requires root and nf_tables with table owners (Linux 5.12): {error}"
                    ))
                })?;
                console::note(
                    "lab: this machine is the host `machine` and forwards to its network; DNS needs a resolver that the client can reach",
                );
                Ok(Some(rules))
            }
        }
    }
}
