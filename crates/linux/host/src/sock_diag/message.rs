//! Messages of sock_diag (`linux/netlink.h`, `linux/sock_diag.h`,
//! `linux/inet_diag.h`). Every length is checked before use.

use super::Connection;
use crate::tcp_info::{MemInfo, TcpInfo};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_OVERRUN: u16 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x1 | 0x300;

/// `struct nlmsghdr`.
const HEAD: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// `struct inet_diag_msg`.
const ANSWER: usize = 72;

const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_BBRINFO: u16 = 16;

/// Requested extensions. VEGASINFO is the only one by which BBR's state can be
/// requested in eight bits (`bbr_get_info` in Linux's `tcp_bbr.c`).
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1)
    | 1 << (INET_DIAG_VEGASINFO - 1)
    | 1 << (INET_DIAG_CONG - 1)
    | 1 << (INET_DIAG_SKMEMINFO - 1);

/// State of BBR (`struct tcp_bbr_info`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bbr {
    /// Estimated bottleneck bandwidth, byte/s.
    pub bandwidth: u64,
    /// Minimum RTT of the last ten seconds, µs.
    pub min_rtt_us: u32,
    /// Pacing rate over bandwidth.
    pub pacing_gain: f64,
    /// Congestion window over the estimated BDP.
    pub cwnd_gain: f64,
}

/// BBR's gains are in 256ths (`BBR_UNIT`).
const BBR_UNIT: f64 = 256.0;

/// A request to dump the TCP sockets of a family in these states.
pub(super) fn request(family: i32, states: u32, sequence: u32) -> [u8; HEAD + REQUEST] {
    let mut bytes = [0; HEAD + REQUEST];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    put(0, &((HEAD + REQUEST) as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_DUMP.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(HEAD, &[u8::try_from(family).unwrap_or_default(), libc::IPPROTO_TCP as u8, EXTENSIONS]);
    put(HEAD + 4, &states.to_ne_bytes());
    // The rest selects one socket; zeros select all.
    bytes
}

/// Passes on the connections of one read; returns whether the dump is complete.
pub(crate) fn parse(
    mut bytes: &[u8],
    sequence: u32,
    visit: &mut impl FnMut(&Connection<'_>),
) -> io::Result<bool> {
    let senseless = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is cut off");
    if bytes.is_empty() {
        return Err(senseless());
    }
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0).ok_or_else(senseless)? as usize;
        let (kind, of) = (u16_at(bytes, 4), u32_at(bytes, 8));
        let body = bytes.get(HEAD..length).ok_or_else(senseless)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        if of != Some(sequence) {
            continue;
        }
        match kind {
            Some(SOCK_DIAG_BY_FAMILY) => {
                if let Some(connection) = connection(body) {
                    visit(&connection);
                }
            }
            // Both carry an error as a negative number, or zero.
            Some(kind @ (NLMSG_DONE | NLMSG_ERROR)) => {
                let code = u32_at(body, 0).map_or(0, u32::cast_signed);
                if code < 0 {
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                if kind == NLMSG_DONE {
                    return Ok(true);
                }
            }
            Some(NLMSG_OVERRUN) => return Err(io::Error::from_raw_os_error(libc::ENOBUFS)),
            _ => {}
        }
    }
    Ok(false)
}

/// A response: `struct inet_diag_msg` and its attributes.
fn connection(body: &[u8]) -> Option<Connection<'_>> {
    let fixed = body.get(..ANSWER)?;
    let family = i32::from(*fixed.first()?);
    // struct inet_diag_sockid: ports and addresses in network byte order.
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes(fixed.get(port..port + 2)?.try_into().ok()?);
        let bytes: [u8; 16] = fixed.get(address..address + 16)?.try_into().ok()?;
        let [a, b, c, d, ..] = bytes;
        let address = match family {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    };
    let cookie = [u32_at(fixed, 44)?, u32_at(fixed, 48)?].map(u64::from);
    let mut connection = Connection {
        state: *fixed.get(1)?,
        local: end(4, 8)?,
        remote: end(6, 24)?,
        cookie: cookie[0] | cookie[1] << 32,
        receive_queue: u32_at(fixed, 56)?,
        send_queue: u32_at(fixed, 60)?,
        uid: u32_at(fixed, 64)?,
        inode: u32_at(fixed, 68)?,
        info: None,
        memory: None,
        congestion: None,
        bbr: None,
    };
    let mut rest = body.get(ANSWER..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(value) = rest.get(4..usize::from(length)) else { break };
        match kind {
            INET_DIAG_INFO => connection.info = Some(TcpInfo::from_bytes(value)),
            INET_DIAG_SKMEMINFO => connection.memory = memory(value),
            INET_DIAG_CONG => connection.congestion = name(value),
            INET_DIAG_BBRINFO => connection.bbr = bbr(value),
            _ => {}
        }
        rest = rest.get(aligned(usize::from(length))..).unwrap_or_default();
    }
    Some(connection)
}

fn memory(value: &[u8]) -> Option<MemInfo> {
    let mut words = [0; 9];
    u32_at(value, 20)?;
    for (at, word) in words.iter_mut().enumerate() {
        *word = u32_at(value, at * 4).unwrap_or_default();
    }
    Some(MemInfo::from_words(words))
}

/// A NUL-terminated name.
fn name(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()?;
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}

fn bbr(value: &[u8]) -> Option<Bbr> {
    let word = |at: usize| u32_at(value, at * 4);
    Some(Bbr {
        bandwidth: u64::from(word(0)?) | u64::from(word(1)?) << 32,
        min_rtt_us: word(2)?,
        pacing_gain: f64::from(word(3)?) / BBR_UNIT,
        cwnd_gain: f64::from(word(4)?) / BBR_UNIT,
    })
}

/// Messages and attributes are aligned to four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEAD + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn answer(family: i32, address: [u8; 16]) -> Vec<u8> {
        let mut body = vec![family as u8, 1, 0, 0];
        body.extend(443u16.to_be_bytes());
        body.extend(50_000u16.to_be_bytes());
        body.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend(address);
        for word in [0u32, 7, 1, 0, 11, 22, 1000, 4242] {
            body.extend(word.to_ne_bytes());
        }
        assert_eq!(body.len(), ANSWER);
        body
    }

    fn parsed(bytes: &[u8]) -> (io::Result<bool>, Vec<String>) {
        let mut all = Vec::new();
        let done = parse(bytes, 5, &mut |found: &Connection<'_>| all.push(format!("{found:?}")));
        (done, all)
    }

    #[test]
    fn a_response_is_parsed() {
        let mut address = [0; 16];
        address[10..].copy_from_slice(&[255, 255, 192, 0, 2, 9]);
        let mut body = answer(libc::AF_INET6, address);
        body.extend(attribute(INET_DIAG_CONG, b"bbr\0"));
        body.extend(attribute(99, b"later kernels"));
        let words: Vec<u8> = (1u32..=9).flat_map(|word| (word * 256).to_ne_bytes()).collect();
        body.extend(attribute(INET_DIAG_BBRINFO, &words[..20]));
        body.extend(attribute(INET_DIAG_SKMEMINFO, &words));
        // As short as TCP_INFO of Linux 2.6: without the timers, but with a state.
        body.extend(attribute(INET_DIAG_INFO, &[1; 104]));
        let bytes = [message(SOCK_DIAG_BY_FAMILY, 5, &body), message(NLMSG_DONE, 5, &[0; 4])];
        let mut seen = 0;
        let done = parse(&bytes.concat(), 5, &mut |found| {
            seen += 1;
            assert_eq!(found.local.port(), 443);
            assert_eq!(found.remote, "192.0.2.9:50000".parse().unwrap());
            assert_eq!((found.cookie, found.inode, found.uid), (1 << 32 | 7, 4242, 1000));
            assert_eq!((found.receive_queue, found.send_queue), (11, 22));
            assert_eq!(found.congestion, Some("bbr"));
            let bbr = found.bbr.unwrap();
            assert_eq!((bbr.bandwidth, bbr.cwnd_gain), (512 << 32 | 256, 5.0));
            let memory = found.memory.unwrap();
            assert_eq!((memory.send_buffer, memory.send_used), (1024, 1536));
            let info = found.info.unwrap();
            assert_eq!((info.state, info.busy_us, info.bytes_acked), (1, None, None));
        });
        assert!(done.unwrap() && seen == 1);
    }

    #[test]
    fn errors_ends_and_other_responses() {
        let missing = (-libc::ENOENT).to_ne_bytes();
        let (result, _) = parsed(&message(NLMSG_ERROR, 5, &missing));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(parsed(&message(NLMSG_DONE, 5, &missing)).0.is_err());
        assert!(parsed(&message(NLMSG_OVERRUN, 5, &[])).0.is_err());
        assert!(parsed(&message(NLMSG_DONE, 5, &[])).0.unwrap());
        // A response to an earlier request, and an unknown family.
        let body = answer(libc::AF_INET, [0; 16]);
        let (result, all) = parsed(&message(SOCK_DIAG_BY_FAMILY, 4, &body));
        assert!(!result.unwrap() && all.is_empty());
        let (result, all) = parsed(&message(SOCK_DIAG_BY_FAMILY, 5, &answer(77, [0; 16])));
        assert!(!result.unwrap() && all.is_empty());
    }

    #[test]
    fn truncated_messages_are_refused_or_skipped() {
        let mut body = answer(libc::AF_INET, [0; 16]);
        body.extend(attribute(INET_DIAG_INFO, &[1; 248]));
        let whole = message(SOCK_DIAG_BY_FAMILY, 5, &body);
        assert_eq!(parsed(&whole).1.len(), 1);
        for length in 0..whole.len() {
            assert!(parsed(&whole[..length]).0.is_err(), "{length}");
        }
        // A complete message of a truncated response.
        for length in 0..ANSWER {
            let (result, all) = parsed(&message(SOCK_DIAG_BY_FAMILY, 5, &body[..length]));
            assert!(!result.unwrap() && all.is_empty(), "{length}");
        }
    }

    proptest! {
        /// Parsing any bytes terminates without a panic.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parsed(&bytes);
            let _ = parsed(&message(SOCK_DIAG_BY_FAMILY, 5, &bytes));
            let mut body = answer(libc::AF_INET, [0; 16]);
            body.extend(&bytes);
            prop_assert_eq!(parsed(&message(SOCK_DIAG_BY_FAMILY, 5, &body)).1.len(), 1);
        }
    }
}
