//! Made-up segments between two hosts, analysed and recorded.

use capture::LinkType;
use capture::dissect::{Layers, dissect};
use tcp_analysis::{Connection, PacketAnalysis, PacketPosition, Rules};
use tcp_graphs::{Graphs, Limits, Recorder};

/// When the capture begins, in ns since 1970.
pub(crate) const START_NS: u64 = 1_700_000_000_000_000_000;

pub(crate) const ACK: u16 = 0x10;
pub(crate) const SYN: u16 = 0x02;

/// A segment to be sent; host A sends it unless `from_b`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) at_ns: u64,
    pub(crate) from_b: bool,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) flags: u16,
    pub(crate) len: u16,
    pub(crate) sack: Vec<(u32, u32)>,
}

impl Sent {
    fn packet(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (left, right) in &self.sack {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        let header = 20 + options.len();
        let (from, to) = if self.from_b { (2, 1) } else { (1, 2) };
        let mut bytes = vec![0x45, 0];
        bytes.extend(((20 + header) as u16 + self.len).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let ports: [u16; 2] = if self.from_b { [5201, 40000] } else { [40000, 5201] };
        ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend((self.flags | ((header / 4) << 12) as u16).to_be_bytes());
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        bytes
    }
}

/// What the analysis says of each segment, and the graphs under each of `limits`.
pub(crate) fn record(segments: &[Sent], limits: &[Limits]) -> (Vec<PacketAnalysis>, Vec<Graphs>) {
    let is_sorted = segments.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns);
    let mut connection = Connection::default();
    let mut recorders: Vec<Recorder> = limits
        .iter()
        .map(|limits| Recorder::new(START_NS, is_sorted, [true, true], *limits))
        .collect();
    let mut layers = Layers::new();
    let mut found = Vec::new();
    for (number, sent) in (1..).zip(segments) {
        let bytes = sent.packet();
        dissect(LinkType::RAW, &bytes, bytes.len() as u32 + u32::from(sent.len), &mut layers);
        let segment = layers.tcp(&bytes).unwrap();
        let place = PacketPosition { packet: number, time_ns: sent.at_ns, reuses_ports: false };
        let analysis = connection.add(Rules::default(), place, &segment);
        for recorder in &mut recorders {
            recorder.add(&connection, number, sent.at_ns, &segment, &analysis);
        }
        found.push(analysis);
    }
    (found, recorders.into_iter().map(Recorder::finish).collect())
}

/// A transfer from A to B: `count` segments of 1000 bytes 100 µs apart, with ACKs 10 ms
/// later, an RTT in which 100 of them are in flight. Every `lose`-th segment is lost once
/// and retransmitted 20 ms later, before the next one.
pub(crate) fn transfer(count: u32, lose: u32) -> Vec<Sent> {
    let at = |index: u32| START_NS + u64::from(index) * 100_000;
    let mut all = vec![
        Sent { at_ns: START_NS, seq: 0, flags: SYN, window: 65_535, ..Sent::default() },
        Sent {
            at_ns: START_NS + 10_000,
            from_b: true,
            seq: 0,
            ack: 1,
            flags: SYN | ACK,
            window: 65_535,
            ..Sent::default()
        },
    ];
    let data = |index: u32, at_ns: u64| Sent {
        at_ns,
        seq: 1 + index * 1000,
        ack: 1,
        flags: ACK,
        window: 500,
        len: 1000,
        ..Sent::default()
    };
    for index in 0..count {
        all.push(data(index, at(index + 1)));
        if lose > 0 && index >= 200 && (index - 200) % lose == 0 {
            all.push(data(index - 200, at(index + 1) + 10_000));
        }
        if index >= 100 {
            all.push(Sent {
                at_ns: at(index + 1) + 20_000,
                from_b: true,
                seq: 1,
                ack: 1 + (index - 99) * 1000,
                flags: ACK,
                window: 60_000,
                ..Sent::default()
            });
        }
    }
    all.sort_by_key(|sent| sent.at_ns);
    all
}
