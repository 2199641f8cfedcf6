//! Rate, standard, channel width and spatial streams of a Wi-Fi link as reported by its
//! driver (nl80211, include/uapi/linux/nl80211.h; generic netlink, genetlink.h). Needs no
//! privilege.

use crate::netlink::Netlink;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use record::nic::WifiLink;
use std::io;
use units::BitRate;

/// The generic netlink controller, which resolves family names (`GENL_ID_CTRL`).
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const GET_STATION: u8 = 17;
const DEVICE: u16 = 3;
const STATION: u16 = 21;
const STATION_SENDS: u16 = 8;
const RATE: u16 = 1;
const RATE_32: u16 = 5;
/// The standards, newest first: the attribute of the MCS that only it has, that of the
/// streams, and its name (`enum nl80211_rate_info`).
const STANDARDS: [(u16, u16, &str); 3] =
    [(19, 20, "802.11be (Wi-Fi 7)"), (13, 14, "802.11ax (Wi-Fi 6)"), (6, 7, "802.11ac (Wi-Fi 5)")];
/// The MCS of 802.11n: eight for each number of streams (IEEE 802.11-2020, clause 19.5).
const HT_MCS: u16 = 2;
/// Flags of the channel's width, MHz, the widest first; without any it is 20.
const WIDTHS: [(u16, u16); 7] =
    [(18, 320), (10, 160), (9, 160), (8, 80), (3, 40), (11, 10), (12, 5)];

/// `NLM_F_REQUEST` and `NLM_F_DUMP` (netlink.h).
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// Message types of netlink itself.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Length of a netlink header, and of both headers, bytes.
const HEADER: usize = 16;
const BOTH: usize = HEADER + 4;

/// Maximum number of messages in a response; a station has one.
const MAX_MESSAGES: usize = 64;

/// How a Wi-Fi device sends to its access point at this moment.
///
/// # Errors
/// `NotFound` if the kernel has no Wi-Fi, the device is not a Wi-Fi device, or it
/// is not associated; otherwise the system error.
pub fn link(device: &str) -> io::Result<WifiLink> {
    let index = Netlink::open()?.index(device)?;
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let name = attribute(FAMILY_NAME, b"nl80211\0");
    let answers = ask(&socket, CONTROLLER, GET_FAMILY, REQUEST, &name)?;
    let family = answers.iter().find_map(|answer| find(answer, FAMILY_ID)?.try_into().ok());
    let family = u16::from_ne_bytes(family.ok_or(io::ErrorKind::NotFound)?);
    let which = attribute(DEVICE, &index.to_ne_bytes());
    let stations = ask(&socket, family, GET_STATION, REQUEST | DUMP, &which)?;
    let links = stations.iter().filter_map(|station| station_link(station));
    links.max_by_key(|link| link.rate_bps).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The link in a station's attributes.
pub(crate) fn station_link(station: &[u8]) -> Option<WifiLink> {
    let rate_bps = rate(station)?;
    let sends = find(find(station, STATION)?, STATION_SENDS)?;
    let byte = |kind| find(sends, kind).and_then(|value| value.first()).copied();
    let newest = STANDARDS.iter().find(|(mcs, ..)| byte(*mcs).is_some());
    let (standard, streams) = match (newest, byte(HT_MCS)) {
        (Some((_, streams, name)), _) => (*name, byte(*streams)),
        (None, Some(mcs)) => ("802.11n (Wi-Fi 4)", Some(mcs / 8 + 1)),
        (None, None) => ("802.11a, b or g", None),
    };
    let width = WIDTHS.iter().find(|(flag, _)| find(sends, *flag).is_some());
    Some(WifiLink { rate_bps, standard, width_mhz: width.map_or(20, |(_, width)| *width), streams })
}

/// The rate in a station's attributes, which is in units of 100 kbit/s.
pub(crate) fn rate(station: &[u8]) -> Option<BitRate> {
    let sends = find(find(station, STATION)?, STATION_SENDS)?;
    let wide =
        find(sends, RATE_32).and_then(|value| Some(u32::from_ne_bytes(value.try_into().ok()?)));
    let narrow = || {
        let value = find(sends, RATE)?;
        Some(u32::from(u16::from_ne_bytes(value.try_into().ok()?)))
    };
    let units = wide.or_else(narrow).filter(|units| *units > 0)?;
    Some(BitRate::from_bps(u64::from(units) * 100_000))
}

/// Sends a request; returns the attributes of each message of the response.
fn ask(
    socket: &Socket,
    family: u16,
    command: u8,
    flags: u16,
    attributes: &[u8],
) -> io::Result<Vec<Vec<u8>>> {
    let mut message = Vec::with_capacity(BOTH + attributes.len());
    let length = u32::try_from(BOTH + attributes.len()).unwrap_or_default();
    message.extend(length.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    socket.send(&message, 0)?;
    let mut answers = Vec::new();
    while answers.len() < MAX_MESSAGES {
        let (received, _) = socket.recv_from_full()?;
        if take(&received, &mut answers)? || flags & DUMP == 0 {
            return Ok(answers);
        }
    }
    Ok(answers)
}

/// Takes the messages of one datagram; returns whether they were the last ones.
pub(crate) fn take(mut datagram: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(header) = datagram.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = datagram.get(..length).filter(|_| length >= HEADER) else { break };
        match u16::from_ne_bytes([header[4], header[5]]) {
            DONE => return Ok(true),
            ERROR => {
                let code = message.get(HEADER..HEADER + 4).and_then(|code| code.try_into().ok());
                return match code.map_or(0, i32::from_ne_bytes) {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(code.saturating_abs())),
                };
            }
            _ => answers.push(message.get(BOTH..).unwrap_or_default().to_vec()),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// An attribute: length, type, value, padded to a multiple of four.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or_default();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The first attribute of a type. The two highest bits of a type are flags.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let [a, b, c, d] = *attributes.get(..4)?.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = attributes.get(4..length)?;
        if u16::from_ne_bytes([c, d]) & 0x3fff == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A station with these rates in units of 100 kbit/s.
    fn station(narrow: u16, wide: Option<u32>) -> Vec<u8> {
        station_with(narrow, wide, &[])
    }

    /// The same with further attributes of the rate.
    fn station_with(narrow: u16, wide: Option<u32>, more: &[(u16, &[u8])]) -> Vec<u8> {
        let mut rate = attribute(RATE, &narrow.to_ne_bytes());
        rate.extend(wide.map(|wide| attribute(RATE_32, &wide.to_ne_bytes())).unwrap_or_default());
        rate.extend(more.iter().flat_map(|(kind, value)| attribute(*kind, value)));
        let info = [attribute(7, &[200]), attribute(STATION_SENDS | 0x8000, &rate)].concat();
        [attribute(DEVICE, &[3, 0, 0, 0]), attribute(STATION, &info)].concat()
    }

    #[test]
    fn the_wider_rate_counts() {
        assert_eq!(rate(&station(8_667, None)), Some(BitRate::from_bps(866_700_000)));
        assert_eq!(rate(&station(0, Some(24_019))), Some(BitRate::from_bps(2_401_900_000)));
        assert_eq!(rate(&station(0, None)), None);
        assert_eq!(rate(&attribute(STATION, &[1])), None);
    }

    #[test]
    fn standard_width_and_streams_of_each_generation() {
        let link = |more: &[(u16, &[u8])]| {
            let link = station_link(&station_with(0, Some(12_010), more)).unwrap();
            (link.standard, link.width_mhz, link.streams)
        };
        // 802.11ax, MCS 11, two streams, 80 MHz.
        assert_eq!(link(&[(13, &[11]), (14, &[2]), (8, &[])]), ("802.11ax (Wi-Fi 6)", 80, Some(2)));
        assert_eq!(link(&[(6, &[9]), (7, &[3]), (10, &[])]), ("802.11ac (Wi-Fi 5)", 160, Some(3)));
        assert_eq!(link(&[(19, &[13]), (20, &[2]), (18, &[])]).1, 320);
        // MCS 15 of 802.11n is the last with two streams.
        assert_eq!(link(&[(2, &[15]), (3, &[])]), ("802.11n (Wi-Fi 4)", 40, Some(2)));
        assert_eq!(link(&[]), ("802.11a, b or g", 20, None));
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic() {
        let whole = station(8_667, Some(1));
        for cut in 0..whole.len() {
            let _ = (rate(&whole[..cut]), station_link(&whole[..cut]));
        }
        for byte in 0..=u8::MAX {
            for length in 0..64 {
                let _ =
                    (station_link(&vec![byte; length]), take(&vec![byte; length], &mut Vec::new()));
            }
        }
    }

    #[test]
    fn other_devices_have_no_wifi_rate() {
        assert!(link("lo").is_err() && link("no-such-device").is_err());
    }
}
