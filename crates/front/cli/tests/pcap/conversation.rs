//! A made-up capture with something of everything that people filter for, a second between packets.

use crate::frames::{ethernet, tcp_with, udp};

const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [198, 51, 100, 7];
const IPV4: u16 = 0x0800;

/// The ones' complement sum of RFC 1071.
fn checksum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words =
        bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv4 packet with right checksums; `fields` are the type of service, the identification, flags
/// with offset, and the time to live.
fn ip(
    protocol: u8,
    from_client: bool,
    fields: (u8, u16, u16, u8),
    mut payload: Vec<u8>,
) -> Vec<u8> {
    let (from, to) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let at = match protocol {
        6 => Some(16),
        17 => Some(6),
        1 => Some(2),
        _ => None,
    };
    if let Some(at) = at {
        let length = (payload.len() as u32).to_be_bytes();
        let pseudo = [&from[..], &to, &length, &[0, 0, 0, protocol]].concat();
        let pseudo: &[u8] = if protocol == 1 { &[] } else { &pseudo };
        let sum = checksum(&[pseudo, &payload]).to_be_bytes();
        payload[at..at + 2].copy_from_slice(&sum);
    }
    let (tos, id, fragment, ttl) = fields;
    let mut header = vec![0x45, tos];
    header.extend((20 + payload.len() as u16).to_be_bytes());
    header.extend(id.to_be_bytes());
    header.extend(fragment.to_be_bytes());
    header.extend([ttl, protocol, 0, 0]);
    header.extend(from);
    header.extend(to);
    let sum = checksum(&[&header]).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    ethernet(IPV4, &[header, payload].concat())
}

const PLAIN: (u8, u16, u16, u8) = (0, 7, 0x4000, 64);

/// One end's segment: ports by the number of the stream, sequence numbers, flags.
struct Segment<'a> {
    ports: [u16; 2],
    from_client: bool,
    numbers: [u32; 2],
    flags: u8,
    window: u16,
    options: &'a [u8],
    payload: &'a [u8],
}

fn segment(it: &Segment<'_>) -> Vec<u8> {
    let [client, server] = it.ports;
    let ports = if it.from_client { [client, server] } else { [server, client] };
    let bytes = tcp_with(ports, it.numbers, it.flags, it.window, it.options, it.payload);
    ip(6, it.from_client, PLAIN, bytes)
}

/// A query for `www.example.com`, or its answer.
fn dns(id: u16, flags: u16, with_answer: bool) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend(flags.to_be_bytes());
    message.extend([0, 1, 0, u8::from(with_answer), 0, 0, 0, 0]);
    message.extend(b"\x03www\x07example\x03com\0\0\x01\0\x01");
    if with_answer {
        message.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04");
        message.extend(SERVER);
    }
    message
}

/// A message of SIP with this first line.
fn sip(first: &str) -> Vec<u8> {
    let header = "Via: SIP/2.0/UDP a.example.com;branch=z9hG4bK1\r\n\
                  From: <sip:a@example.com>;tag=1\r\nTo: <sip:bob@example.com>\r\n\
                  Call-ID: 1@a\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n";
    format!("{first}\r\n{header}").into_bytes()
}

/// A client's hello with a server name, as a record.
fn client_hello() -> Vec<u8> {
    let name = b"www.example.com";
    let length = name.len() as u8;
    let extension = [&[0, 0, 0, length + 5, 0, length + 3, 0, 0, length][..], name].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    // No session, one cipher suite, no compression.
    body.extend([0, 0, 2, 0x13, 1, 1, 0, 0, extension.len() as u8]);
    body.extend(extension);
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

/// A DHCP message that looks for servers.
fn dhcp_discover() -> Vec<u8> {
    let mut message = vec![1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0, 0];
    message.extend([0; 16]);
    message.extend([2, 0, 0, 0, 0, 1]);
    message.resize(236, 0);
    message.extend([99, 130, 83, 99, 53, 1, 1, 12, 4, b'h', b'o', b's', b't', 255]);
    message
}

/// A connection to a web server: handshake, request, answer, a hole with duplicate ACKs and a
/// retransmission, the end.
fn web() -> Vec<Vec<u8>> {
    const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 4, 0, 0, 0, 0, 0, 1, 3, 3, 7];
    const TIMES: [u8; 12] = [1, 1, 8, 10, 0, 0, 4, 1, 0, 0, 4, 0];
    let sack =
        [&TIMES[..], &[1, 1, 5, 10], &1449_u32.to_be_bytes(), &2449_u32.to_be_bytes()].concat();
    let request =
        b"GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: curl/8.1\r\n\r\n";
    let answer =
        b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\ngone";
    let (q, a) = (request.len() as u32, answer.len() as u32);
    let ports = [40_000, 80];
    let side = |from_client: bool, numbers: [u32; 2], flags: u8, options: &[u8], payload: &[u8]| {
        segment(&Segment { ports, from_client, numbers, flags, window: 512, options, payload })
    };
    vec![
        side(true, [1000, 0], 2, &SYN_OPTIONS, b""),
        side(false, [5000, 1001], 18, &SYN_OPTIONS, b""),
        side(true, [1001, 5001], 16, &TIMES, b""),
        side(true, [1001, 5001], 24, &TIMES, request),
        side(false, [5001, 1001 + q], 24, &TIMES, answer),
        side(true, [1001 + q, 5001 + a], 16, &TIMES, b""),
        side(true, [1001 + q, 5001 + a], 17, &TIMES, b""),
        side(false, [5001 + a, 1002 + q], 17, &sack, b""),
        side(true, [1002 + q, 5002 + a], 16, &TIMES, b""),
    ]
}

/// Data with a hole, on a port that nobody knows.
fn transfer() -> Vec<Vec<u8>> {
    let side = |from_client: bool, numbers: [u32; 2], flags: u8, window: u16, payload: &[u8]| {
        let ports = [50_002, 40_020];
        segment(&Segment { ports, from_client, numbers, flags, window, options: &[], payload })
    };
    let data = [b'x'; 1000];
    let mut frames = vec![
        side(true, [100, 0], 2, 8000, b""),
        side(false, [900, 101], 18, 8000, b""),
        side(true, [101, 901], 16, 8000, b""),
        side(true, [101, 901], 16, 8000, &data),
        side(true, [2101, 901], 24, 8000, &data),
        side(false, [901, 1101], 16, 8000, b""),
        side(false, [901, 1101], 16, 8000, b""),
        side(false, [901, 1101], 16, 8000, b""),
        side(true, [1101, 901], 16, 8000, &data),
        side(false, [901, 3101], 16, 0, b""),
        side(false, [901, 3101], 20, 0, b""),
    ];
    // Damaged on the way.
    if let Some(byte) = frames[3].last_mut() {
        *byte ^= 1;
    }
    frames
}

/// The frames.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let datagram = |from_client: bool, ports: [u16; 2], payload: &[u8]| {
        ip(17, from_client, PLAIN, udp(ports, payload))
    };
    let secure = |from_client: bool, numbers: [u32; 2], flags: u8, payload: &[u8]| {
        let (ports, window, options) = ([50_001, 443], 8000, &[][..]);
        segment(&Segment { ports, from_client, numbers, flags, window, options, payload })
    };
    let ftp = |from_client: bool, numbers: [u32; 2], payload: &[u8]| {
        let (ports, flags, window, options) = ([50_003, 21], 24, 8000, &[][..]);
        segment(&Segment { ports, from_client, numbers, flags, window, options, payload })
    };
    let arp = |target: [u8; 4]| {
        let start = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1];
        ethernet(0x0806, &[&start[..], &CLIENT, &[0; 6], &target].concat())
    };
    let mut broadcast = arp(SERVER);
    broadcast[..6].fill(0xff);
    let mut damaged = datagram(true, [40_005, 40_006], b"damaged");
    damaged[24] ^= 1;
    let mut discover = datagram(true, [68, 67], &dhcp_discover());
    discover[..6].fill(0xff);
    let v6 = {
        let addresses: Vec<u8> =
            [[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]; 2].concat();
        let mut payload = udp([40_007, 40_008], b"six");
        let length = (payload.len() as u32).to_be_bytes();
        let sum = checksum(&[&addresses, &length, &[0, 0, 0, 17], &payload]);
        payload[6..8].copy_from_slice(&sum.to_be_bytes());
        let start = [0x60, 0, 0, 0, 0, payload.len() as u8, 17, 64];
        ethernet(0x86dd, &[&start[..], &addresses, &payload].concat())
    };
    let ping = |kind: u8| ip(1, kind == 8, PLAIN, vec![kind, 0, 0, 0, 0, 9, 0, 1]);
    let mut tagged = ethernet(0x8100, &[0, 100, 8, 0]);
    tagged.extend(&datagram(true, [40_009, 40_010], b"tagged")[14..]);
    let lldp = [2, 7, 4, 2, 0, 0, 0, 0, 1, 4, 2, 7, b'1', 6, 2, 0, 120, 0, 0];
    let mut all = web();
    all.extend(transfer());
    all.extend([
        secure(true, [1, 0], 2, b""),
        secure(false, [7, 2], 18, b""),
        secure(true, [2, 8], 24, &client_hello()),
        secure(true, [2 + client_hello().len() as u32, 8], 24, &[21, 3, 3, 0, 2, 2, 40]),
        ftp(true, [1, 1], b"USER anonymous\r\n"),
        ftp(false, [1, 17], b"331 Please specify the password.\r\n"),
        datagram(true, [5060, 5060], &sip("INVITE sip:bob@example.com SIP/2.0")),
        datagram(false, [5060, 5060], &sip("SIP/2.0 180 Ringing")),
        datagram(true, [40_003, 53], &dns(0x1234, 0x0100, false)),
        datagram(false, [53, 40_003], &dns(0x1234, 0x8180, true)),
        datagram(false, [53, 40_003], &dns(0x1235, 0x8183, false)),
        datagram(true, [5353, 5353], &dns(0, 0, false)),
        datagram(true, [123, 123], &[&[0x23, 0][..], &[0; 46]].concat()),
        discover,
        datagram(true, [40_004, 514], b"<13>Nov 14 22:13:20 host tag: text"),
        ip(17, true, (0xb8 | 3, 0, 0, 5), udp([40_011, 40_012], &[b'y'; 120])),
        damaged,
        broadcast,
        arp(CLIENT),
        v6,
        ping(8),
        ping(0),
        tagged,
        ethernet(0x88cc, &lldp),
    ]);
    all
}
