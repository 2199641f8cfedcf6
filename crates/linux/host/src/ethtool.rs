//! Properties of a network device reported by its driver (`SIOCETHTOOL`,
//! include/uapi/linux/ethtool.h): rings, offloads, pause frames, EEE and link
//! modes. Only reads; needs no privilege.

use crate::sys;
use record::nic::{Coalescing, Eee, Line, Offloads, Pause, Rings};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// `SIOCGHWTSTAMP` of linux/sockios.h.
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;

/// `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h: every received packet is timestamped.
const ALL_PACKETS: u32 = 1;

/// A request with the `WORDS` words of its struct, of which the kernel writes no more.
#[derive(Clone, Copy)]
struct Request<const WORDS: usize> {
    ioctl: libc::Ioctl,
    /// The first word.
    command: u32,
}

/// A command of `SIOCETHTOOL`. All there are is below: only here the length of a struct is said.
const fn command<const WORDS: usize>(command: u32) -> Request<WORDS> {
    Request { ioctl: SIOCETHTOOL, command }
}

/// `struct ethtool_coalesce`.
const COALESCE: Request<23> = command(0x0e);
/// `struct ethtool_ringparam`.
const RINGPARAM: Request<9> = command(0x10);
/// `struct ethtool_pauseparam`.
const PAUSEPARAM: Request<4> = command(0x12);
/// `struct ethtool_value`, as the next ones.
const RXCSUM: Request<2> = command(0x14);
const TXCSUM: Request<2> = command(0x16);
const TSO: Request<2> = command(0x1e);
const GSO: Request<2> = command(0x23);
const GRO: Request<2> = command(0x2b);
/// `struct ethtool_eee`.
const EEE: Request<10> = command(0x44);
/// `struct ethtool_link_settings` with the longest masks.
const LINK_SETTINGS: Request<{ LINK_HEAD + 3 * MAX_MASK_WORDS }> = command(0x4c);
/// `struct hwtstamp_config`: flags, `tx_type`, `rx_filter`.
const TIMESTAMPS: Request<3> = Request { ioctl: SIOCGHWTSTAMP, command: 0 };

/// Words of `struct ethtool_link_settings` before its masks.
const LINK_HEAD: usize = 12;
/// Maximum length of one mask in words: the count is a signed byte.
const MAX_MASK_WORDS: usize = 127;

/// Ring sizes of a device.
///
/// # Errors
/// As for all functions of this module: `Unsupported` if the driver does not
/// report it, `NotFound` if there is no such device, `InvalidInput` if the name
/// is not valid; otherwise the system error.
pub fn rings(device: &str) -> io::Result<Rings> {
    let [_, rx_most, _, _, tx_most, rx, _, _, tx] = RINGPARAM.ask(device)?;
    Ok(Rings { rx, rx_most, tx, tx_most })
}

/// Pause frame settings of a device.
///
/// # Errors
/// As [`rings`].
pub fn pause(device: &str) -> io::Result<Pause> {
    let [_, negotiated, rx, tx] = PAUSEPARAM.ask(device)?;
    Ok(Pause { negotiated: negotiated != 0, rx: rx != 0, tx: tx != 0 })
}

/// Offload settings of a device; `None` for those that it does not report.
///
/// # Errors
/// As [`rings`], if it reports none of them.
pub fn offloads(device: &str) -> io::Result<Offloads> {
    let value = |request: Request<2>| request.ask(device).map(|[_, on]| on != 0);
    Ok(Offloads {
        gso: Some(value(GSO)?),
        rx_checksum: value(RXCSUM).ok(),
        tx_checksum: value(TXCSUM).ok(),
        tso: value(TSO).ok(),
        gro: value(GRO).ok(),
    })
}

/// Energy-Efficient Ethernet settings of a device.
///
/// # Errors
/// As [`rings`].
pub fn eee(device: &str) -> io::Result<Eee> {
    let [_, _, _, _, active, enabled, _, timer, _, _] = EEE.ask(device)?;
    Ok(Eee { enabled: enabled != 0, active: active != 0, sleeps_after_us: timer })
}

/// Interrupt coalescing of a device.
///
/// # Errors
/// As [`rings`].
pub fn coalescing(device: &str) -> io::Result<Coalescing> {
    let words = COALESCE.ask(device)?;
    Ok(Coalescing { rx_us: words[1], rx_adaptive: words[10] != 0 })
}

/// Speeds of both ends of a link.
///
/// # Errors
/// As [`rings`].
pub fn line(device: &str) -> io::Result<Line> {
    // With no room for masks, the kernel answers with their length in words, negated
    // (ethtool.h, "handshake").
    let first = LINK_SETTINGS.ask(device)?;
    let reported = i8::from_ne_bytes([first[3].to_ne_bytes()[3]]);
    let words = usize::from(reported.unsigned_abs());
    if reported >= 0 || words > MAX_MASK_WORDS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut lengths = LINK_SETTINGS.words();
    lengths[3] = u32::from_ne_bytes([0, 0, 0, reported.unsigned_abs()]);
    let filled = LINK_SETTINGS.call(device, lengths)?;
    let mask = |index: usize| &filled[LINK_HEAD + index * words..][..words];
    let negotiated = filled[2].to_ne_bytes()[3] != 0;
    Ok(Line {
        able_mbps: fastest(mask(0)),
        offered_mbps: fastest(mask(1)),
        peer_mbps: fastest(mask(2)),
        negotiated,
    })
}

/// Fastest mode of a mask, Mbit/s (`enum ethtool_link_mode_bit_indices`).
fn fastest(mask: &[u32]) -> Option<u32> {
    let bits = mask.iter().enumerate().flat_map(|(word, bits)| {
        (0..32usize).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 32 + bit)
    });
    bits.filter_map(speed_of).max()
}

/// Speed of a mode, Mbit/s; `None` for bits that are not speeds.
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

/// Whether the adapter timestamps every received packet, as set by hwstamp_ctl(8) or a PTP
/// daemon.
///
/// # Errors
/// As [`rings`].
pub fn timestamps_all(device: &str) -> io::Result<bool> {
    let [_, _, received] = TIMESTAMPS.ask(device)?;
    Ok(received == ALL_PACKETS)
}

impl<const WORDS: usize> Request<WORDS> {
    const fn words(self) -> [u32; WORDS] {
        const { assert!(WORDS > 0, "a request has its command") }
        let mut words = [0; WORDS];
        words[0] = self.command;
        words
    }

    fn ask(self, device: &str) -> io::Result<[u32; WORDS]> {
        self.call(device, self.words())
    }

    /// Passes `words` to the driver, and returns what it has made of them.
    fn call(self, device: &str, mut words: [u32; WORDS]) -> io::Result<[u32; WORDS]> {
        let mut request: libc::ifreq = sys::zeroed();
        let name = device.as_bytes();
        // The last byte stays zero: it terminates the name.
        if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
        // SAFETY: the request names the device and points to words of ours that live across the
        // call. They are as many as the kernel's struct of this request has, by the type of the
        // constants above, which are all requests there are.
        let code = unsafe { libc::ioctl(socket.as_raw_fd(), self.ioctl, &raw mut request) };
        sys::check(code).map(|_| words).map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EINVAL) => io::ErrorKind::Unsupported.into(),
            Some(libc::ENODEV) => io::ErrorKind::NotFound.into(),
            _ => error,
        })
    }
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
    fn invalid_device_names_are_refused() {
        for name in ["", "no-such-device", "a-name-that-is-too-long", "a\0b"] {
            assert!(rings(name).is_err() && offloads(name).is_err() && line(name).is_err());
        }
    }

    #[test]
    fn the_fastest_mode_counts() {
        // 100baseT/Full, 1000baseT/Full, Autoneg, TP and 2500baseT/Full.
        assert_eq!(fastest(&[1 << 3 | 1 << 5 | 1 << 6 | 1 << 7, 1 << (47 - 32)]), Some(2_500));
        assert_eq!(fastest(&[1 << 6 | 1 << 7, 0, 0]), None);
        assert_eq!(fastest(&[u32::MAX; MAX_MASK_WORDS]), Some(400_000));
    }
}
