//! What a network device's driver tells of it (`SIOCETHTOOL`,
//! include/uapi/linux/ethtool.h): rings, offloads, pause frames, energy saving
//! and what the line could carry. Only reads, needs no privilege.

use crate::sys;
use serde::Serialize;
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

const GCOALESCE: u32 = 0x0e;
const GRINGPARAM: u32 = 0x10;
const GPAUSEPARAM: u32 = 0x12;
const GRXCSUM: u32 = 0x14;
const GTXCSUM: u32 = 0x16;
const GTSO: u32 = 0x1e;
const GGSO: u32 = 0x23;
const GGRO: u32 = 0x2b;
const GEEE: u32 = 0x44;
const GLINKSETTINGS: u32 = 0x4c;

/// Words of `struct ethtool_link_settings` before its masks.
const LINK_HEAD: usize = 12;
/// The most words that one mask can have: their number is a signed byte.
const MOST_WORDS: usize = 127;

/// Places for packets between kernel and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Packets that can wait for the kernel.
    pub rx: u32,
    /// The most that can be set.
    pub rx_most: u32,
    /// Packets that can wait for the device.
    pub tx: u32,
    /// The most that can be set.
    pub tx_most: u32,
}

/// Pause frames (IEEE 802.3, annex 31B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Whether both ends agree on them by themselves.
    pub negotiated: bool,
    /// Whether the device obeys them.
    pub rx: bool,
    /// Whether it sends them.
    pub tx: bool,
}

/// What the device, or the kernel in its place, does with trains of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Offloads {
    /// Checksums on the way in.
    pub rx_checksum: Option<bool>,
    /// Checksums on the way out.
    pub tx_checksum: Option<bool>,
    /// Cuts TCP's trains into packets.
    pub tso: Option<bool>,
    /// Trains as far as the driver (the kernel's own cutting).
    pub gso: Option<bool>,
    /// Joins packets into trains.
    pub gro: Option<bool>,
}

/// Energy-Efficient Ethernet (IEEE 802.3az).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether both ends agreed on it.
    pub active: bool,
    /// How long after the last packet the line falls asleep, µs.
    pub sleeps_after_us: u32,
}

/// How interrupts are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Coalescing {
    /// The longest that a packet that came waits for its interrupt, µs.
    pub rx_us: u32,
    /// Whether the driver adapts that to the traffic.
    pub rx_adaptive: bool,
}

/// What the line could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The fastest that this end can do, Mbit/s.
    pub able_mbps: Option<u32>,
    /// The fastest that this end offers.
    pub offered_mbps: Option<u32>,
    /// The fastest that the far end of the cable offers; `None` where it has not said.
    pub peer_mbps: Option<u32>,
    /// Whether the speed was negotiated.
    pub negotiated: bool,
}

/// The rings of a device.
///
/// # Errors
/// `Unsupported` where the driver does not tell, `NotFound` where there is no
/// such device, `InvalidInput` for what cannot be a name; otherwise the
/// system's own. So do all functions here.
pub fn rings(device: &str) -> io::Result<Rings> {
    let [_, rx_most, _, _, tx_most, rx, _, _, tx] = ask(device, GRINGPARAM)?;
    Ok(Rings { rx, rx_most, tx, tx_most })
}

/// Whether a device pauses.
///
/// # Errors
/// As [`rings`].
pub fn pause(device: &str) -> io::Result<Pause> {
    let [_, negotiated, rx, tx] = ask(device, GPAUSEPARAM)?;
    Ok(Pause { negotiated: negotiated != 0, rx: rx != 0, tx: tx != 0 })
}

/// What a device does with trains; each is `None` where it does not tell.
///
/// # Errors
/// As [`rings`]: it tells none of them.
pub fn offloads(device: &str) -> io::Result<Offloads> {
    let value = |command| -> io::Result<bool> {
        let [_, on] = ask(device, command)?;
        Ok(on != 0)
    };
    Ok(Offloads {
        gso: Some(value(GGSO)?),
        rx_checksum: value(GRXCSUM).ok(),
        tx_checksum: value(GTXCSUM).ok(),
        tso: value(GTSO).ok(),
        gro: value(GGRO).ok(),
    })
}

/// Whether a line sleeps between packets.
///
/// # Errors
/// As [`rings`].
pub fn eee(device: &str) -> io::Result<Eee> {
    let [_, _, _, _, active, enabled, _, timer, _, _] = ask(device, GEEE)?;
    Ok(Eee { enabled: enabled != 0, active: active != 0, sleeps_after_us: timer })
}

/// How a device gathers interrupts.
///
/// # Errors
/// As [`rings`].
pub fn coalescing(device: &str) -> io::Result<Coalescing> {
    let words: [u32; 23] = ask(device, GCOALESCE)?;
    Ok(Coalescing { rx_us: words[1], rx_adaptive: words[10] != 0 })
}

/// What both ends of a line can do.
///
/// # Errors
/// As [`rings`].
pub fn line(device: &str) -> io::Result<Line> {
    const ROOM: usize = LINK_HEAD + 3 * MOST_WORDS;
    // Asked without room for masks, the kernel answers how many words they
    // have, as a negative number (ethtool.h, "handshake").
    let first: [u32; ROOM] = ask(device, GLINKSETTINGS)?;
    let told = i8::from_ne_bytes([first[3].to_ne_bytes()[3]]);
    let words = usize::from(told.unsigned_abs());
    if told >= 0 || words > MOST_WORDS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut filled = [0u32; ROOM];
    filled[0] = GLINKSETTINGS;
    filled[3] = u32::from_ne_bytes([0, 0, 0, told.unsigned_abs()]);
    call(device, &mut filled)?;
    let mask = |index: usize| &filled[LINK_HEAD + index * words..][..words];
    let negotiated = filled[2].to_ne_bytes()[3] != 0;
    Ok(Line {
        able_mbps: fastest(mask(0)),
        offered_mbps: fastest(mask(1)),
        peer_mbps: fastest(mask(2)),
        negotiated,
    })
}

/// The fastest of a mask's modes, Mbit/s (`enum ethtool_link_mode_bit_indices`).
fn fastest(mask: &[u32]) -> Option<u32> {
    let bits = mask.iter().enumerate().flat_map(|(word, bits)| {
        (0..32usize).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 32 + bit)
    });
    bits.filter_map(speed_of).max()
}

/// What a mode carries, Mbit/s; `None` of bits that are no speeds.
fn speed_of(bit: usize) -> Option<u32> {
    Some(match bit {
        0 | 1 | 99 => 10,
        2 | 3 | 67 | 90 | 91 => 100,
        4 | 5 | 17 | 41 | 68 => 1_000,
        15 | 47 => 2_500,
        48 => 5_000,
        12 | 18..=20 | 42..=46 => 10_000,
        21 | 22 => 20_000,
        31..=33 => 25_000,
        23..=26 => 40_000,
        34 | 35 | 40 | 52..=56 => 50_000,
        27..=30 => 56_000,
        36..=39 | 57..=61 | 75..=79 => 100_000,
        62..=66 | 80..=84 => 200_000,
        69..=73 | 85..=89 => 400_000,
        _ => return None,
    })
}

fn ask<const N: usize>(device: &str, command: u32) -> io::Result<[u32; N]> {
    let mut words = [0u32; N];
    words[0] = command;
    call(device, &mut words)?;
    Ok(words)
}

fn call(device: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: zeros are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = device.as_bytes();
    // One byte stays zero: it ends the name.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    // SAFETY: the request names the device and points to words of ours that
    // live across the call; each command above comes with room for the whole
    // struct that the kernel writes for it.
    let code = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    sys::check(code).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) => io::ErrorKind::Unsupported.into(),
        Some(libc::ENODEV) => io::ErrorKind::NotFound.into(),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_offloads_and_no_rings() {
        assert_eq!(offloads("lo").unwrap().gso, Some(true));
        assert!(rings("lo").is_err() && pause("lo").is_err() && eee("lo").is_err());
        let _ = (coalescing("lo"), line("lo"));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "no-such-device", "a-name-that-is-too-long", "a\0b"] {
            assert!(rings(name).is_err() && offloads(name).is_err() && line(name).is_err());
        }
    }

    #[test]
    fn the_fastest_mode_counts() {
        // 100baseT/Full, 1000baseT/Full, Autoneg, TP and 2500baseT/Full.
        assert_eq!(fastest(&[1 << 3 | 1 << 5 | 1 << 6 | 1 << 7, 1 << (47 - 32)]), Some(2_500));
        assert_eq!(fastest(&[1 << 6 | 1 << 7, 0, 0]), None);
        assert_eq!(fastest(&[u32::MAX; MOST_WORDS]), Some(400_000));
    }
}
