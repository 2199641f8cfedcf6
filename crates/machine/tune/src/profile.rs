//! Host profiles.
//!
//! The values are those of ESnet's fasterdata for data transfer hosts on wide
//! area networks, by rate and RTT.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, Rtt};

/// Bytes per socket for control messages and zero-copy notifications; ESnet's
/// value for 100 Gbit/s.
const OPTMEM_100G: ByteCount = ByteCount::from_bytes(1 << 20);

const MIB: u64 = 1 << 20;

/// A host profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// One transfer at a time, 1 Gbit/s, up to 200 ms.
    Workstation,
    /// Many clients, 10 Gbit/s together, up to 100 ms.
    Server,
    /// A data transfer node: 10 Gbit/s, up to 200 ms.
    DataTransferNode10g,
    /// A data transfer node: 40 Gbit/s, up to 50 ms.
    DataTransferNode40g,
    /// A data transfer node: 100 Gbit/s, with maximum buffers.
    DataTransferNode100g,
}

/// A profile's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// `net.core.rmem_max` and `wmem_max`.
    pub(crate) core: ByteCount,
    /// The third number of `tcp_rmem` and `tcp_wmem`.
    pub(crate) tcp: ByteCount,
}

impl Profile {
    /// All profiles, the smallest first.
    pub const ALL: [Profile; 5] = [
        Profile::Workstation,
        Profile::Server,
        Profile::DataTransferNode10g,
        Profile::DataTransferNode40g,
        Profile::DataTransferNode100g,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Workstation => "workstation",
            Profile::Server => "server",
            Profile::DataTransferNode10g => "data-transfer-node-10g",
            Profile::DataTransferNode40g => "data-transfer-node-40g",
            Profile::DataTransferNode100g => "data-transfer-node-100g",
        }
    }

    /// A short description.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Profile::Workstation => "one transfer at a time, 1 Gbit/s up to 200 ms",
            Profile::Server => "many clients, 10 Gbit/s together up to 100 ms",
            Profile::DataTransferNode10g => "10 Gbit/s up to 200 ms",
            Profile::DataTransferNode40g => "40 Gbit/s up to 50 ms",
            Profile::DataTransferNode100g => "100 Gbit/s, the largest possible buffers",
        }
    }

    /// Its target rate.
    #[must_use]
    pub const fn rate(self) -> BitRate {
        BitRate::from_bps(match self {
            Profile::Workstation => 1_000_000_000,
            Profile::Server | Profile::DataTransferNode10g => 10_000_000_000,
            Profile::DataTransferNode40g => 40_000_000_000,
            Profile::DataTransferNode100g => 100_000_000_000,
        })
    }

    /// Its maximum RTT.
    #[must_use]
    pub const fn rtt(self) -> Rtt {
        Rtt::from_micros(match self {
            Profile::Workstation | Profile::DataTransferNode10g => 200_000,
            Profile::Server | Profile::DataTransferNode100g => 100_000,
            Profile::DataTransferNode40g => 50_000,
        })
    }

    /// How many connections share the rate.
    #[must_use]
    pub const fn streams(self) -> u32 {
        match self {
            Profile::Workstation => 1,
            Profile::DataTransferNode10g => 2,
            Profile::DataTransferNode40g | Profile::DataTransferNode100g => 8,
            Profile::Server => 100,
        }
    }

    /// ESnet's buffers; `None` where they are computed from rate and RTT.
    pub(crate) const fn table(self) -> Option<Table> {
        let (core, tcp) = match self {
            Profile::Workstation => return None,
            Profile::Server => (256 * MIB, 128 * MIB),
            Profile::DataTransferNode10g | Profile::DataTransferNode40g => (512 * MIB, 256 * MIB),
            // One byte less than 2 GiB: the settings are `int`. Half of it is
            // TCP's, as in the other rows.
            Profile::DataTransferNode100g => ((1 << 31) - 1, 1 << 30),
        };
        Some(Table { core: ByteCount::from_bytes(core), tcp: ByteCount::from_bytes(tcp) })
    }

    /// The minimum `net.core.optmem_max`, where it matters.
    pub(crate) const fn optmem(self) -> Option<ByteCount> {
        match self {
            Profile::DataTransferNode100g => Some(OPTMEM_100G),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_distinct_names() {
        for (index, profile) in Profile::ALL.iter().enumerate() {
            assert!(Profile::ALL[..index].iter().all(|other| other.name() != profile.name()));
        }
    }

    #[test]
    fn tcp_autotuning_gets_half_of_the_socket_limit() {
        for profile in Profile::ALL {
            let Some(Table { core, tcp }) = profile.table() else { continue };
            assert_eq!(core.bytes().div_ceil(2), tcp.bytes());
            assert!(core.bytes() <= i32::MAX as u64);
        }
    }
}
