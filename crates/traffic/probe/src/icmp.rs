//! Echo messages of ICMP (RFC 792) and ICMPv6 (RFC 4443), and descriptions of errors.

use host::recvmsg::ExtendedError;

/// Length of the echo header, bytes.
pub(crate) const HEADER: usize = 8;

/// Identifies an echo request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo {
    /// The sender's identifier.
    pub(crate) id: u16,
    /// The sequence number of the probe.
    pub(crate) seq: u16,
}

/// An echo request with `payload` bytes. The kernel fills in the ICMPv6 checksum
/// (RFC 3542, section 3.1).
pub(crate) fn request(is_v6: bool, echo: Echo, payload: usize) -> Vec<u8> {
    let mut packet = vec![if is_v6 { 128 } else { 8 }, 0, 0, 0];
    packet.extend(echo.id.to_be_bytes());
    packet.extend(echo.seq.to_be_bytes());
    packet.extend((0..payload).map(|at| u8::try_from(at % 256).unwrap_or_default()));
    if !is_v6 {
        let sum = checksum(&packet).to_be_bytes();
        packet[2..4].copy_from_slice(&sum);
    }
    packet
}

/// Parses an echo reply; `None` for other messages.
pub(crate) fn reply(message: &[u8], is_v6: bool) -> Option<Echo> {
    echo(message, if is_v6 { 129 } else { 0 })
}

/// Parses the echo request that an error quotes.
pub(crate) fn quoted_request(message: &[u8], is_v6: bool) -> Option<Echo> {
    echo(message, if is_v6 { 128 } else { 8 })
}

fn echo(message: &[u8], kind: u8) -> Option<Echo> {
    match message {
        [its, 0, _, _, a, b, c, d, ..] if *its == kind => {
            Some(Echo { id: u16::from_be_bytes([*a, *b]), seq: u16::from_be_bytes([*c, *d]) })
        }
        _ => None,
    }
}

/// The payload of an IPv4 packet (RFC 791, section 3.1).
pub(crate) fn ipv4_payload(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let words = usize::from(first & 0x0f);
    (first >> 4 == 4 && words >= 5).then(|| packet.get(words * 4..)).flatten()
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        // 64 KiB are 32 768 words: their sum fits 32 bits.
        sum += u32::from(word);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

/// Whether the TTL or hop limit of a probe expired, as a trace expects.
pub(crate) fn is_expired(error: &ExtendedError, is_v6: bool) -> bool {
    error.by.is_some() && error.code == 0 && error.kind == if is_v6 { 3 } else { 11 }
}

/// Whether the port is closed.
pub(crate) fn is_closed_port(error: &ExtendedError, is_v6: bool) -> bool {
    error.by.is_some() && (error.kind, error.code) == if is_v6 { (1, 4) } else { (3, 3) }
}

/// The minimum MTU of IPv4 (RFC 791); smaller reported values are ignored.
const MIN_MTU: u32 = 68;

/// The MTU that a router reports for a packet that was too big (RFC 1191, RFC 4443
/// section 3.2); routers before RFC 1191 report none.
pub(crate) fn too_big(error: &ExtendedError, is_v6: bool) -> Option<u32> {
    let is_too_big = if is_v6 { error.kind == 2 } else { (error.kind, error.code) == (3, 4) };
    (is_too_big && error.by.is_some() && error.info >= MIN_MTU).then_some(error.info)
}

/// Describes an error: RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section
/// 5.2.7.1; RFC 4443 section 3.
pub(crate) fn describe(error: &ExtendedError, is_v6: bool) -> String {
    if error.by.is_none() {
        return std::io::Error::from_raw_os_error(error.errno).to_string();
    }
    let text = match (is_v6, error.kind, error.code) {
        (false, 3, 0) => "network unreachable",
        (false, 3, 1) => "host unreachable",
        (false, 3, 2) => "protocol unreachable",
        (false, 3, 3) | (true, 1, 4) => "port unreachable",
        (false, 3, 4) | (true, 2, _) => {
            return format!("packet too big, MTU {}", error.info);
        }
        (false, 3, 5) => "source route failed",
        (false, 3, 6) => "network unknown",
        (false, 3, 7) => "host unknown",
        (false, 3, 9 | 10 | 13) | (true, 1, 1) => "administratively prohibited",
        (false, 3, 11 | 12) => "unreachable for this type of service",
        (false, 11, 0) => "time to live exceeded",
        (true, 3, 0) => "hop limit exceeded",
        (false, 11, 1) | (true, 3, 1) => "fragment reassembly time exceeded",
        (false, 12, _) | (true, 4, _) => "parameter problem",
        (true, 1, 0) => "no route to destination",
        (true, 1, 2) => "beyond scope of source address",
        (true, 1, 3) => "address unreachable",
        (true, 1, 5) => "source address failed ingress/egress policy",
        (true, 1, 6) => "reject route to destination",
        _ => return format!("ICMP type {} code {}", error.kind, error.code),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_format_of_the_rfc() {
        let packet = request(false, Echo { id: 0x1234, seq: 1 }, 4);
        // 0800 + 1234 + 0001 + 0001 + 0203 = 1c39; its complement is e3c6.
        assert_eq!(packet, [8, 0, 0xe3, 0xc6, 0x12, 0x34, 0, 1, 0, 1, 2, 3]);
        let packet = request(true, Echo { id: 0x1234, seq: 0xfffe }, 0);
        assert_eq!(packet, [128, 0, 0, 0, 0x12, 0x34, 0xff, 0xfe]);
    }

    #[test]
    fn the_checksum_carries_and_pads() {
        // The example of RFC 1071, section 3: the sum is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
        // ffff + 0001 carries to 0001; a last odd byte is the high one.
        assert_eq!(checksum(&[0xff, 0xff, 0, 1]), !1);
        assert_eq!(checksum(&[1]), !0x0100);
        assert_eq!(checksum(&[0xff; 65_536]), 0);
    }

    #[test]
    fn only_echo_replies_are_replies() {
        let echo = Some(Echo { id: 0x0102, seq: 0x0304 });
        assert_eq!(reply(&[0, 0, 9, 9, 1, 2, 3, 4], false), echo);
        assert_eq!(reply(&[129, 0, 9, 9, 1, 2, 3, 4, 5], true), echo);
        assert_eq!(quoted_request(&[8, 0, 9, 9, 1, 2, 3, 4], false), echo);
        // A request, another code, the other family's, one byte short.
        assert_eq!(reply(&[8, 0, 9, 9, 1, 2, 3, 4], false), None);
        assert_eq!(reply(&[0, 1, 9, 9, 1, 2, 3, 4], false), None);
        assert_eq!(reply(&[129, 0, 9, 9, 1, 2, 3, 4], false), None);
        assert_eq!(reply(&[0, 0, 9, 9, 1, 2, 3], false), None);
        assert_eq!(reply(&[], true), None);
    }

    #[test]
    fn ipv4_options_are_skipped() {
        let mut packet = vec![0x46; 24];
        packet.extend([7, 7]);
        assert_eq!(ipv4_payload(&packet), Some(&[7u8, 7][..]));
        assert_eq!(ipv4_payload(&[0x45; 20]), Some(&[][..]));
        for wrong in [&[0x45; 19][..], &[0x65; 40], &[0x44; 40], &[]] {
            assert_eq!(ipv4_payload(wrong), None);
        }
    }

    #[test]
    fn errors_are_described() {
        let error = |kind, code| ExtendedError {
            by: Some("192.0.2.1".parse().unwrap()),
            kind,
            code,
            errno: 113,
            info: 1400,
        };
        assert!(is_expired(&error(11, 0), false) && !is_expired(&error(11, 1), false));
        assert!(is_expired(&error(3, 0), true) && !is_expired(&error(3, 0), false));
        assert!(is_closed_port(&error(3, 3), false) && is_closed_port(&error(1, 4), true));
        assert_eq!(describe(&error(3, 13), false), "administratively prohibited");
        assert_eq!(describe(&error(3, 4), false), "packet too big, MTU 1400");
        assert_eq!(describe(&error(2, 0), true), "packet too big, MTU 1400");
        assert_eq!(describe(&error(77, 1), false), "ICMP type 77 code 1");
        let own = ExtendedError { by: None, kind: 0, code: 0, errno: 113, info: 0 };
        assert!(describe(&own, false).to_lowercase().contains("no route"));
    }
}
