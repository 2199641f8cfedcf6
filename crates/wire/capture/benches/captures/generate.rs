//! Big captures, the same ones each time: a bulk transfer, and many small packets of
//! many flows.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Data segments of the bulk transfer: what tcpdump records of 2.5 Gbit/s in 5 s.
pub(crate) const BULK_SEGMENTS: u32 = 1_070_000;
/// Payload of a segment, with timestamps in a frame of 1514 bytes.
const BULK_PAYLOAD: u32 = 1448;
/// Packets and flows of the other file.
pub(crate) const SMALL_PACKETS: u32 = 20_000_000;
pub(crate) const SMALL_FLOWS: u32 = 100_000;

/// A linear congruential generator (Knuth, MMIX); the upper bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u64::from((self.0 >> 32) as u32) * u64::from(bound)) >> 32) as u32
    }
}

/// One end of a connection towards the other.
struct Segment {
    source: [u8; 4],
    destination: [u8; 4],
    ports: [u16; 2],
    seq: u32,
    ack: u32,
    flags: u8,
    payload: u32,
    /// Microseconds since the start.
    at_us: u64,
}

/// What a capture has of each frame, in bytes.
const WHOLE: u32 = u32::MAX;

const SYN: u8 = 2;
const ACK: u8 = 16;

fn header(out: &mut impl Write) -> io::Result<()> {
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        out.write_all(&word.to_le_bytes())?;
    }
    Ok(())
}

fn write(out: &mut impl Write, segment: &Segment, snaplen: u32) -> io::Result<()> {
    let length = 14 + 20 + 32 + segment.payload;
    let mut bytes = [0_u8; 16 + 66];
    let at_us = segment.at_us;
    let captured = length.min(snaplen.max(66));
    let record =
        [1_700_000_000 + (at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, captured, length];
    for (place, word) in record.into_iter().enumerate() {
        bytes[place * 4..place * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    let frame = &mut bytes[16..];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    if segment.source > segment.destination {
        frame.swap(5, 11);
    }
    let total = (20 + 32 + segment.payload) as u16;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..30].copy_from_slice(&segment.source);
    frame[30..34].copy_from_slice(&segment.destination);
    frame[34..36].copy_from_slice(&segment.ports[0].to_be_bytes());
    frame[36..38].copy_from_slice(&segment.ports[1].to_be_bytes());
    frame[38..42].copy_from_slice(&segment.seq.to_be_bytes());
    frame[42..46].copy_from_slice(&segment.ack.to_be_bytes());
    frame[46..50].copy_from_slice(&[0x80, segment.flags, 0xff, 0xff]);
    frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
    frame[58..62].copy_from_slice(&((at_us / 1000) as u32).to_be_bytes());
    out.write_all(&bytes)?;
    out.write_all(&PAYLOAD[..captured as usize - 66])
}

static PAYLOAD: [u8; 1448] = [0x5a; 1448];

/// One connection that sends [`BULK_SEGMENTS`] segments, acknowledged every sixteen.
pub(crate) fn bulk(path: &Path) -> io::Result<()> {
    bulk_of(path, BULK_SEGMENTS, WHOLE)
}

/// The same with another number of segments, of which `snaplen` bytes are captured.
pub(crate) fn bulk_of(path: &Path, segments: u32, snaplen: u32) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    header(&mut out)?;
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut segment = Segment {
        source: client,
        destination: server,
        ports: [40_000, 5201],
        seq: 0,
        ack: 0,
        flags: SYN,
        payload: 0,
        at_us: 0,
    };
    write(&mut out, &segment, snaplen)?;
    let reply = |seq, ack, flags, at_us| Segment {
        source: server,
        destination: client,
        ports: [5201, 40_000],
        seq,
        ack,
        flags,
        payload: 0,
        at_us,
    };
    write(&mut out, &reply(0, 1, SYN | ACK, 100), snaplen)?;
    segment = Segment { seq: 1, ack: 1, flags: ACK, payload: BULK_PAYLOAD, ..segment };
    for number in 0..segments {
        segment.at_us = 200 + u64::from(number) * 47 / 10;
        write(&mut out, &segment, snaplen)?;
        segment.seq = segment.seq.wrapping_add(BULK_PAYLOAD);
        if number % 16 == 15 {
            write(&mut out, &reply(1, segment.seq, ACK, segment.at_us + 1), snaplen)?;
        }
    }
    out.flush()
}

/// [`SMALL_FLOWS`] connections whose [`SMALL_PACKETS`] packets are in random order.
pub(crate) fn small(path: &Path, packets: u32) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    header(&mut out)?;
    let mut random = Random(1);
    // What the next packet of each flow is, and the next sequence numbers.
    let mut flows = vec![(0_u32, [0_u32; 2]); SMALL_FLOWS as usize];
    for number in 0..packets {
        let flow = random.below(SMALL_FLOWS);
        let (step, next) = &mut flows[flow as usize];
        let [_, a, b, c] = flow.to_be_bytes();
        let (client, server) = ([10, a, b, c], [192, 168, 0, 1]);
        let from_client = *step % 2 == 0;
        let payload = if *step < 3 { 0 } else { random.below(24) };
        let flags = match *step {
            0 => SYN,
            1 => SYN | ACK,
            _ => ACK,
        };
        let side = usize::from(!from_client);
        let segment = Segment {
            source: if from_client { client } else { server },
            destination: if from_client { server } else { client },
            ports: if from_client { [30_000, 443] } else { [443, 30_000] },
            seq: next[side],
            ack: next[1 - side],
            flags,
            payload,
            at_us: u64::from(number) / 4,
        };
        write(&mut out, &segment, WHOLE)?;
        next[side] = next[side].wrapping_add(payload + u32::from(*step < 2));
        *step += 1;
    }
    out.flush()
}
