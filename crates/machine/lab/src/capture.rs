//! Captures (pcapng) at a host, with the fate of each packet.
//!
//! Each direction of a link is an interface. Packets that the host sends are
//! captured as they enter the link, dropped or not; packets that it receives, on
//! arrival. They are written in the order of these times, a second later.

use crate::time_order::TimeOrder;
use crate::watch::{LinkDirection, PacketRecord, Watch, fate_name};
use crate::{Lab, LabError};
use capture::LinkType;
use capture::write::{self, CapturedInterface, CapturedPacket, WriteFormat};
use host::clock;
use link::FateKind;
use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use units::Nanos;

/// What is buffered until it is written, bytes.
const BUFFER: usize = 64 * 1024;

/// How long packets that are due wait for a silent lab.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);

/// Writes a capture at `host` until the lab ends or the reader closes the stream.
///
/// # Errors
/// Those of the writer, except that the reader closed the stream.
pub fn stream(lab: &Lab, host: &str, watch: &Watch, out: impl Write) -> Result<(), io::Error> {
    match write(lab, host, watch, out) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn write(lab: &Lab, host: &str, watch: &Watch, mut out: impl Write) -> io::Result<()> {
    let interfaces = Interfaces::of(lab, host).map_err(io::Error::other)?;
    let described: Vec<CapturedInterface<'_>> =
        interfaces.names.iter().map(|name| described(name)).collect();
    let mut buffer = Vec::with_capacity(2 * BUFFER);
    let application = concat!("longhaul ", env!("CARGO_PKG_VERSION"));
    write::begin(&mut buffer, WriteFormat::Pcapng, application, &described);
    flush(&mut buffer, &mut out)?;
    // Unix time of the lab's epoch.
    let zero = clock::unix_time().saturating_sub(lab.epoch().elapsed());
    let mut order = TimeOrder::default();
    loop {
        let ended = match watch.records.recv_timeout(WRITE_INTERVAL) {
            Ok(batch) => {
                for record in batch {
                    if let Some(moment) = interfaces.moment(&record) {
                        let block = interfaces.block(&record, zero + moment.since(Nanos(0)));
                        order.add(moment, record.number, block);
                    }
                }
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let now = Nanos(u64::try_from(lab.epoch().elapsed().as_nanos()).unwrap_or(u64::MAX));
        while let Some(block) = if ended { order.pop() } else { order.next(now) } {
            buffer.extend(block);
            if buffer.len() >= BUFFER {
                flush(&mut buffer, &mut out)?;
            }
        }
        // Complete blocks, so that the capture so far is readable.
        flush(&mut buffer, &mut out)?;
        if ended {
            return Ok(());
        }
    }
}

fn flush(buffer: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(buffer)?;
    buffer.clear();
    out.flush()
}

fn described(name: &str) -> CapturedInterface<'_> {
    CapturedInterface { name, link: LinkType::RAW, snaplen: 0, filter: "" }
}

/// The interfaces of a capture: the directions of the links at one host.
struct Interfaces {
    names: Vec<String>,
    /// For each link of the lab, up and down: the interface number, and whether
    /// the host is the sender.
    interfaces_of: Vec<[Option<(u32, bool)>; 2]>,
}

impl Interfaces {
    fn of(lab: &Lab, host: &str) -> Result<Self, LabError> {
        lab.host(host)?;
        let (mut names, mut interfaces_of) = (Vec::new(), Vec::new());
        for (link, between) in lab.links() {
            let mut of_link = [None; 2];
            for (direction, [from, to]) in
                [between, [between[1], between[0]]].into_iter().enumerate()
            {
                if from == host || to == host {
                    let number = u32::try_from(names.len()).unwrap_or(u32::MAX);
                    of_link[direction] = Some((number, from == host));
                    names.push(format!("{link} {from} to {to}"));
                }
            }
            interfaces_of.push(of_link);
        }
        Ok(Interfaces { names, interfaces_of })
    }

    /// The interface of a packet, and whether the host sends it.
    fn interface(&self, record: &PacketRecord) -> Option<(u32, bool)> {
        let direction = usize::from(record.direction == LinkDirection::Down);
        self.interfaces_of.get(record.link)?[direction]
    }

    /// When the packet passes this host; `None` if it never does.
    fn moment(&self, record: &PacketRecord) -> Option<Nanos> {
        let (_, sends) = self.interface(record)?;
        match record.kind {
            _ if sends => Some(record.arrived),
            FateKind::Delivered { due, .. } => Some(due),
            FateKind::Dropped(_) => None,
        }
    }

    /// The packet's block, with the Unix time at which it passes.
    fn block(&self, record: &PacketRecord, time: Duration) -> Vec<u8> {
        let mut block = Vec::new();
        if let Some((interface, sends)) = self.interface(record) {
            let packet = CapturedPacket {
                interface,
                time_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
                original_len: record.length,
                data: &[&record.bytes],
                inbound: Some(!sends),
                comment: &comment(record),
            };
            write::packet(&mut block, WriteFormat::Pcapng, &packet);
        }
        block
    }
}

/// `delivered, queued 12.345 ms, in transit 98.765 ms, number 7`.
fn comment(record: &PacketRecord) -> String {
    let ms = |time: Duration| {
        let micros = time.as_micros();
        format!("{}.{:03} ms", micros / 1000, micros % 1000)
    };
    let mut text = fate_name(record.kind).to_owned();
    if let FateKind::Delivered { due, queued, marked, corrupted, duplicated } = record.kind {
        text += &format!(", queued {}, in transit {}", ms(queued), ms(due.since(record.arrived)));
        for (whether, word) in
            [(marked, "marked"), (corrupted, "corrupted"), (duplicated, "duplicated")]
        {
            if whether {
                text += &format!(", {word}");
            }
        }
    } else {
        text += &format!(", after {}", ms(record.decided.since(record.arrived)));
    }
    text + &format!(", number {}", record.number)
}
