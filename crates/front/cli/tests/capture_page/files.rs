//! Capture files: raw IPv4 in pcap with microseconds.

/// A segment; host A (10.0.0.1) sends it unless `from_b`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) at_us: u64,
    pub(crate) from_b: bool,
    /// Port of A.
    pub(crate) port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) len: u16,
    pub(crate) sack: Option<(u32, u32)>,
}

pub(crate) const ACK: u8 = 16;
pub(crate) const SYN: u8 = 2;

/// The file; payload is not captured.
pub(crate) fn pcap(segments: &[Sent]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for sent in segments {
        let mut options = Vec::new();
        if sent.flags & SYN != 0 {
            // MSS 1000, SACK permitted, window scale 7.
            options.extend([2, 4, 3, 232, 4, 2, 3, 3, 7, 1, 1, 1]);
        }
        if let Some((left, right)) = sent.sack {
            options.extend([1, 1, 5, 10]);
            options.extend(left.to_be_bytes());
            options.extend(right.to_be_bytes());
        }
        let header = 40 + options.len() as u32;
        let total = header + u32::from(sent.len);
        let seconds = (1_700_000_000 + sent.at_us / 1_000_000) as u32;
        for word in [seconds, (sent.at_us % 1_000_000) as u32, header, total] {
            file.extend(word.to_le_bytes());
        }
        let (from, to) = if sent.from_b { (2, 1) } else { (1, 2) };
        file.extend([0x45, 0]);
        file.extend((total as u16).to_be_bytes());
        file.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let ports = if sent.from_b { [5201, sent.port] } else { [sent.port, 5201] };
        ports.iter().for_each(|port: &u16| file.extend(port.to_be_bytes()));
        file.extend(sent.seq.to_be_bytes());
        file.extend(sent.ack.to_be_bytes());
        file.extend([(5 + options.len() as u8 / 4) << 4, sent.flags]);
        file.extend(sent.window.to_be_bytes());
        file.extend([0; 4]);
        file.extend(options);
    }
    file
}

/// A transfer of `count` segments of 1000 bytes, 200 µs apart, with an RTT of 20 ms. Every
/// `lose`-th one is lost behind the capture point and retransmitted after an RTT. From
/// segment `late` on, ACKs are held back for 300 ms.
pub(crate) fn transfer(port: u16, count: u32, lose: u32, late: u32) -> Vec<Sent> {
    let base = Sent { port, window: 1000, ..Sent::default() };
    let mut all = vec![
        Sent { seq: 0, flags: SYN, window: 65_000, ..base },
        Sent { at_us: 20_000, from_b: true, ack: 1, flags: SYN | ACK, window: 65_000, ..base },
        Sent { at_us: 20_010, seq: 1, ack: 1, flags: ACK, ..base },
    ];
    let number = |index: u32| 1 + index * 1000;
    // The first segment that is missing at the receiver, and until when.
    let mut missing: Option<(u32, u64)> = None;
    for index in 0..count {
        let at_us = 20_100 + u64::from(index) * 200;
        let data = Sent { at_us, seq: number(index), ack: 1, flags: ACK, len: 1000, ..base };
        all.push(data);
        let is_lost = lose > 0 && index % lose == lose - 1;
        if is_lost {
            missing = Some((index, at_us + 20_400));
            all.push(Sent { at_us: at_us + 20_400, ..data });
        }
        let until = missing.filter(|(_, until)| *until > at_us);
        let resumes = 20_100 + u64::from(late) * 200 + 320_000;
        let acked = at_us + 20_000;
        let at_us = if index >= late { acked.max(resumes) } else { acked };
        let answer = Sent { from_b: true, seq: 1, flags: ACK, at_us, ..base };
        all.push(match until {
            _ if is_lost => continue,
            Some((first, _)) => Sent {
                ack: number(first),
                sack: Some((number(first + 1), number(index + 1))),
                ..answer
            },
            None => Sent { ack: number(index + 1), ..answer },
        });
    }
    all.sort_by_key(|sent| sent.at_us);
    all
}
