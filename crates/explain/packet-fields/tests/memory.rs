//! The memory of a reading: whatever flows a capture has, its tables keep to their budget, by their
//! own account and by what the kernel counts.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use capture::batch::Batch;
use capture::conversations::Conversations;
use capture::endpoints::Endpoints;
use capture::file::Reader;
use capture::{MemoryBudget, Seed};
use packet_fields::Tracker;
use std::collections::VecDeque;
use std::io::{self, Read};
use tcp_analysis::Rules;

/// Bytes of all tables.
const BUDGET: usize = 12 << 20;

/// What the process may take beside them: buffers, the allocator's reserve, the test itself; and
/// fragments, which have a limit of their own.
const BESIDE: usize = 6 << 20;
const FRAGMENTS: usize = capture::reassembly::MAX_BYTES + (4 << 20);

/// The most memory that this process had so far, in bytes.
fn most_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

fn ipv4(flow: u32, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    bytes[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    bytes[4..6].copy_from_slice(&(flow as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes.extend((0x0a00_0000 + flow).to_be_bytes());
    bytes.extend([192, 0, 2, 1]);
    bytes.extend(payload);
    bytes
}

fn ipv6(flow: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 64];
    bytes.extend((0x2001_0db8_u128 << 96 | u128::from(flow) << 20).to_be_bytes());
    bytes.extend((0x2001_0db8_u128 << 96 | 1).to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn tcp(port: u16, flags: u8, seq: u32, options: &[u8], data: usize) -> Vec<u8> {
    let mut bytes = port.to_be_bytes().to_vec();
    bytes.extend(80_u16.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 0, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes.extend(std::iter::repeat_n(0, data));
    bytes
}

const SYN: u8 = 2;
const ACK: u8 = 16;
/// MP_CAPABLE (RFC 8684, section 3.1), padded.
const MPTCP: [u8; 4] = [30, 4, 0x01, 0x81];

/// The packets of a flow of a mix.
fn packets(mix: usize, flow: u32) -> Vec<Vec<u8>> {
    let udp = [0x10, 0, 0, 53, 0, 8, 0, 0];
    match mix {
        0 => vec![ipv4(flow, 6, 0, &tcp(1024, SYN, 1, &[], 0))],
        1 => vec![ipv6(flow, 6, &tcp(1024, SYN, 1, &MPTCP, 0))],
        2 => vec![ipv4(flow, 17, 0, &udp), ipv6(flow, 17, &udp)],
        3 => vec![ipv4(flow, 132, 0, &[0; 12])],
        4 => (0..3).map(|part| ipv4(flow, 17, 0x2000 | (part * 4), &[0; 16])).collect(),
        // The same ports again and again: each SYN begins a stream.
        5 => vec![ipv4(0, 6, 0, &tcp(1024, SYN, flow.wrapping_mul(77_777), &[], 0))],
        // Gaps, what comes late, and nothing that is acknowledged.
        6 => [0, 9, 3, 12, 6, 1]
            .map(|place| ipv4(flow, 6, 0, &tcp(1024, ACK, 1000 + place * 100, &[], 50)))
            .to_vec(),
        // Few flows with as much outstanding as a flow can have, in order or not.
        _ => {
            let place = flow / 200 * if flow.is_multiple_of(2) { 100 } else { 777_777 };
            vec![ipv4(flow % 200, 6, 0, &tcp(1024, ACK, place.max(1), &[], 50))]
        }
    }
}

/// A pcap file of a mix, made while it is read.
struct Capture {
    mix: usize,
    flows: std::ops::Range<u32>,
    packets: u32,
    bytes: VecDeque<u8>,
}

impl Read for Capture {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.bytes.len() < to.len()
            && let Some(flow) = self.flows.next()
        {
            for data in packets(self.mix, flow) {
                self.packets += 1;
                let length = data.len() as u32;
                let header = [self.packets / 1_000_000, self.packets % 1_000_000, length, length];
                self.bytes.extend(header.map(u32::to_le_bytes).as_flattened());
                self.bytes.extend(data);
            }
        }
        self.bytes.read(to)
    }
}

/// The file's header: microseconds, raw IP.
const HEADER: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101];

#[test]
fn no_mix_of_flows_takes_more_than_the_budget() {
    for mix in 0..8 {
        let before = most_resident();
        let budget = MemoryBudget::new(BUDGET);
        let seed = Seed([1, 2]);
        let flows = 0..if mix == 6 { 40_000 } else { 100_000 };
        let bytes = HEADER.map(u32::to_le_bytes).as_flattened().to_vec().into();
        let mut reader = Reader::new(Capture { mix, flows, packets: 0, bytes }).unwrap();
        let mut batch = Batch::new(seed);
        let mut conversations = Conversations::within(seed, &budget);
        let mut tracker = Tracker::within(Rules::default(), &budget);
        while let Some(packets) = reader.next_packets().unwrap() {
            batch.prepare(&packets, &conversations);
            for (packet, layers, stream) in batch.each(&packets) {
                let segment = layers.tcp(packet.data);
                let segment = segment.as_ref();
                let stream = conversations.add_expected(&packet, layers, segment, stream);
                tracker.add(&packet, layers, segment, stream, &conversations);
            }
        }
        let left_out = conversations.left_out();
        let counted: u64 = [conversations.tcp(), conversations.udp()]
            .iter()
            .flat_map(|flows| flows.iter())
            .map(|flow| flow.traffic.frames())
            .sum();
        let others = left_out[2].counts.frames + left_out[3].counts.frames;
        if [0, 1, 2, 5, 6, 7].contains(&mix) {
            assert_eq!(counted + others, reader.summary().packets, "mix {mix}: all are counted");
        }
        let further: u64 = left_out.iter().map(|it| it.flows).sum();
        let is_cut = tracker.streams().cut() > 0;
        let least = [1, 10_000][usize::from(mix != 5)];
        assert!(further >= least || (mix == 7 && is_cut), "mix {mix}: {left_out:?}");
        let view = MemoryBudget::new(BUDGET / 2);
        assert!(!Endpoints::of_ip(&conversations, &view).is_empty(), "mix {mix}");
        let (ip, _) = conversations.ip(&view);
        assert!(!ip.is_empty(), "mix {mix}");
        let grown = most_resident() - before;
        let beside = if mix == 4 { BESIDE + FRAGMENTS } else { BESIDE };
        assert!(grown < BUDGET + BUDGET / 2 + beside, "mix {mix}: {} MiB", grown >> 20);
        drop((ip, tracker, conversations));
        assert_eq!((budget.left(), view.left()), (BUDGET, BUDGET / 2), "mix {mix}");
    }
}
