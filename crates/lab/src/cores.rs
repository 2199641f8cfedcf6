//! Which cores carry packets that the kernel holds, and which process what arrives at the hosts.
//!
//! The thread that lets such a packet go would run the TCP of the host that receives it before
//! the next one goes, and while TCP recovers from thousands of losses, that takes longer than the
//! packet is on the link. So a device of a host passes packets on to other cores (receive packet
//! steering, Documentation/networking/scaling.rst), where they wait as in the ring of a network
//! card, and the threads that carry packets stay off those.

use host::{cpu, random, sysctl};
use std::io;

/// Devices that are created in a network namespace from here on pass the packets they receive to
/// the cores of this mask.
const STEERING: &str = "net.core.rps_default_mask";

/// With so many cores each direction has one of its own.
const MANY: usize = 4;

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

    /// Tells the devices that will be created in the calling thread's network namespace.
    pub(crate) fn steer(&self) -> io::Result<()> {
        sysctl::write(STEERING, &self.mask())
    }

    /// The kernel's notation of a set of cores: 32 to a group, the highest group first.
    fn mask(&self) -> String {
        let groups = self.hosts.iter().max().map_or(1, |most| most / 32 + 1);
        let group = |number: u32| {
            let of_group = self.hosts.iter().filter(|core| *core / 32 == number);
            let bits = of_group.fold(0_u32, |bits, core| bits | 1 << (core % 32));
            format!("{bits:08x}")
        };
        (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
    }
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
    fn a_mask_has_a_bit_for_each_core() {
        let mask = |hosts: &[u32]| Cores { drivers: vec![0], hosts: hosts.to_vec() }.mask();
        assert_eq!(mask(&[1]), "00000002");
        assert_eq!(mask(&[0, 3, 32, 63]), "80000001,00000009");
        assert_eq!(mask(&[65]), "00000002,00000000,00000000");
    }
}
