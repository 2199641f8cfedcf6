//! The far end of a pair's path: a host of the lab, or this machine.

use super::LabEvent;
use super::session::failed;
use crate::{Fault, Field, Problem};
use host::nat::Masquerade;
use host::sysctl;
use lab::{Lab, relay};
use std::net::{IpAddr, Ipv4Addr};
use topology::Plan;

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
    pub(super) fn adapt(self, plan: &mut Plan) {
        if self == FarHost::Own {
            return;
        }
        "machine".clone_into(&mut plan.hosts[FAR].name);
        if self == FarHost::Nat {
            for (host, address) in plan.hosts.iter_mut().zip(NAT) {
                host.ipv4 = address;
            }
        }
    }

    /// Checks that this machine forwards, where it is to.
    pub(super) fn check(self) -> Result<(), Problem> {
        if self == FarHost::Nat
            && sysctl::read("net.ipv4.ip_forward").is_ok_and(|value| value.trim() != "1")
        {
            let problem = format!(
                "{} requires IP forwarding, which is disabled on this machine; enable it with: \
                 sysctl -w net.ipv4.ip_forward=1",
                Field::Nat
            );
            return Err(Problem::new(Fault::Host, problem));
        }
        Ok(())
    }

    /// Index of the host that is the machine itself.
    pub(super) const fn index(self) -> Option<usize> {
        match self {
            FarHost::Nat => Some(FAR),
            FarHost::Own | FarHost::Relay => None,
        }
    }

    /// Starts the relay or masquerading; masquerading lasts as long as the value returned.
    pub(super) fn open(
        self,
        lab: &Lab,
        on_event: &mut dyn FnMut(LabEvent),
    ) -> Result<Option<Masquerade>, Problem> {
        match self {
            FarHost::Own => Ok(None),
            FarHost::Relay => {
                let ports = relay::start(lab.server()).map_err(failed)?;
                on_event(LabEvent::MachineRelayed { ports });
                Ok(None)
            }
            FarHost::Nat => {
                let rules = Masquerade::start(TABLE, &[(IpAddr::from(NAT[0]), 32)]);
                let rules = rules.map_err(|error| {
                    let problem = format!(
                        "{} requires root and nf_tables with table owners (Linux 5.12): {error}",
                        Field::Nat
                    );
                    Problem::new(Fault::Host, problem)
                })?;
                on_event(LabEvent::MachineForwards);
                Ok(Some(rules))
            }
        }
    }
}
