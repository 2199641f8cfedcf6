//! Rate, standard, channel width and spatial streams of a Wi-Fi link as reported by its
//! driver (nl80211, include/uapi/linux/nl80211.h; generic netlink, genetlink.h). Needs no
//! privilege.

use crate::netlink::Netlink;
use crate::netlink_message::{attribute, find, message, messages, open, text};
use netlink_sys::{Socket, protocols::NETLINK_GENERIC};
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

/// Length of `struct genlmsghdr`, bytes.
const HEADER: usize = 4;

/// Maximum number of messages in a response; a station has one.
const MAX_MESSAGES: usize = 64;

/// How a Wi-Fi device sends to its access point at this moment.
///
/// # Errors
/// `NotFound` if the kernel has no Wi-Fi, the device is not a Wi-Fi device, or it
/// is not associated; otherwise the system error.
pub fn link(device: &str) -> io::Result<WifiLink> {
    let index = Netlink::open()?.index(device)?;
    let socket = open(NETLINK_GENERIC)?;
    let answers = ask(&socket, CONTROLLER, GET_FAMILY, 0, text(FAMILY_NAME, "nl80211"))?;
    let family = answers.iter().find_map(|answer| find(answer, FAMILY_ID)?.try_into().ok());
    let family = u16::from_ne_bytes(family.ok_or(io::ErrorKind::NotFound)?);
    let which = attribute(DEVICE, &index.to_ne_bytes());
    let stations = ask(&socket, family, GET_STATION, libc::NLM_F_DUMP, which)?;
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
    flags: libc::c_int,
    attribute: Vec<u8>,
) -> io::Result<Vec<Vec<u8>>> {
    let flags = libc::NLM_F_REQUEST | flags;
    socket.send(&message(family, flags, 0, &[command, 1, 0, 0], &[attribute]), 0)?;
    let mut answers = Vec::new();
    while answers.len() < MAX_MESSAGES {
        let (received, _) = socket.recv_from_full()?;
        if take(&received, &mut answers)? || flags & libc::NLM_F_DUMP == 0 {
            return Ok(answers);
        }
    }
    Ok(answers)
}

/// Takes the messages of one datagram; returns whether they were the last ones.
pub(crate) fn take(datagram: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    for message in messages(datagram) {
        let message = message?;
        match message.acknowledgement() {
            _ if message.is_done() => return Ok(true),
            Some(answer) => return answer.map(|()| true),
            None => answers.push(message.body.get(HEADER..).unwrap_or_default().to_vec()),
        }
    }
    Ok(false)
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
