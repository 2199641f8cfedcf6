//! Which cores carry packets that the kernel holds, and which process what arrives at the hosts.
//!
//! The thread that lets such a packet go would run the TCP of the host that receives it before
//! the next one goes, and while TCP recovers from thousands of losses, that takes longer than the
//! packet is on the link. So a device of a host passes packets on to other cores (receive packet
//! steering, Documentation/networking/scaling.rst), where they wait as in the ring of a network
//! card, and the threads that carry packets stay off those.
//!
//! Programs may use every core, as long as links are slow. From [`BUSY`] on they stay off the cores
//! that carry packets, too: without a preemptible kernel a thread of real-time priority waits until
//! a program's system call ends, and a sender that paces gets its timers, and with them all of its
//! sending, on the core on which it last ran (docs/design/emulation.md has the measurements).

use host::cpu::{self, Confinement};
use host::{random, sysctl};
use std::io;
use topology::{PathSpec, Plan};
use units::BitRate;

/// Devices that are created in a network namespace from here on pass the packets they receive to
/// the cores of this mask.
const STEERING: &str = "net.core.rps_default_mask";

/// With so many cores each direction has one of its own.
const MANY: usize = 4;

/// Rate of all links together at which a thread that carries their packets needs a third of a core.
const BUSY: BitRate = BitRate::from_bps(5_000_000_000);

/// The cores of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cores {
    /// One for each thread that carries packets.
    pub(crate) drivers: Vec<u32>,
    hosts: Vec<u32>,
}

impl Cores {
    /// Divides the cores that this process may use; `None` if there is only one. Which of them
    /// carry packets is random, as several labs may run at once.
    pub(crate) fn divide() -> Option<Self> {
        Cores::divided(cpu::allowed().ok()?, random::seed())
    }

    fn divided(mut cores: Vec<u32>, draw: u64) -> Option<Self> {
        let count = cores.len();
        if count < 2 {
            return None;
        }
        let first = draw % u64::try_from(count).ok()?;
        cores.rotate_left(usize::try_from(first).ok()?);
        let hosts = cores.split_off(if count < MANY { 1 } else { 2 });
        Some(Cores { drivers: cores, hosts })
    }

    /// Whether devices of the calling thread's network namespace can be told to pass packets on.
    pub(crate) fn can_steer() -> bool {
        sysctl::may_write(STEERING).is_ok()
    }

    /// Tells the devices that will be created in the calling thread's network namespace, that of
    /// host number `host`. It has one of the cores: with several, the kernel would choose by a hash
    /// that packets of a train that the link has cut do not share with the others of their flow,
    /// and reorder them.
    pub(crate) fn steer(&self, host: usize) -> io::Result<()> {
        match self.hosts.get(host % self.hosts.len().max(1)) {
            Some(core) => sysctl::write(STEERING, &mask(*core)),
            None => Ok(()),
        }
    }

    /// Keeps the calling thread, and the programs that it starts, off the cores that carry the
    /// packets of fast links; `None` where links are slow, now and after the changes of the plan.
    pub(crate) fn confine_programs(&self, plan: &Plan) -> Option<Confinement> {
        let of_link = |link| plan.paths_of(link).filter_map(fastest).max();
        let rates = (0..plan.links.len()).filter_map(of_link);
        let is_busy = rates.map(BitRate::bps).fold(0, u64::saturating_add) >= BUSY.bps();
        // Without it the lab works, and its report says how late packets were.
        is_busy.then(|| Confinement::begin(&self.hosts).ok()).flatten()
    }
}

/// The kernel's notation of a set of one core: 32 to a group, the highest group first.
fn mask(core: u32) -> String {
    let rest = (0..core / 32).map(|_| ",00000000").collect::<String>();
    format!("{:08x}{rest}", 1_u32 << (core % 32))
}

/// The rate of the faster direction; `None` if it is unlimited.
fn fastest(path: &PathSpec) -> Option<BitRate> {
    path.rate().max(path.down_rate())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_core_has_both_tasks() {
        assert_eq!(Cores::divided(vec![3], 0), None);
        for (cores, drivers) in [(2, 1), (3, 1), (4, 2), (64, 2)] {
            for draw in [0, 1, 7, u64::MAX] {
                let Cores { drivers: carrying, hosts } =
                    Cores::divided((0..cores).collect(), draw).unwrap();
                assert_eq!(carrying.len(), drivers);
                let mut all = [carrying, hosts].concat();
                all.sort_unstable();
                assert_eq!(all, (0..cores).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn programs_stay_off_the_cores_of_fast_links_only() {
        let confines = |spec: &str| {
            let plan = Plan::pair(spec.parse().unwrap(), "cubic", &[], false);
            let cores = Cores { drivers: vec![], hosts: cpu::allowed().unwrap() };
            cores.confine_programs(&plan).is_some()
        };
        assert!(confines("rate=5gbit,rtt=1ms"));
        assert!(confines("rate=1gbit,down.rate=10gbit,rtt=1ms"));
        assert!(!confines("rate=4.9gbit,rtt=1ms"));
        assert!(!confines("rate=unlimited,rtt=1ms"));
    }

    #[test]
    fn a_mask_has_the_bit_of_its_core() {
        assert_eq!(mask(1), "00000002");
        assert_eq!(mask(31), "80000000");
        assert_eq!(mask(65), "00000002,00000000,00000000");
    }
}
