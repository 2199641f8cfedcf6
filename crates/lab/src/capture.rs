//! Captures (pcapng) at a host, with the fate of each packet.
//!
//! Each direction of a link is an interface. Packets that the host sends are
//! captured as they enter the link, dropped or not; packets that it receives, on
//! arrival.

use crate::watch::{Direction, PacketRecord, Watch, fate_name};
use crate::{Lab, LabError};
use host::clock;
use link::FateKind;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::time::Duration;
use units::Nanos;

/// Resolution of time stamps: 10^-9 s.
const NANOSECONDS: u8 = 9;

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

fn write(lab: &Lab, host: &str, watch: &Watch, out: impl Write) -> io::Result<()> {
    let interfaces = Interfaces::of(lab, host).map_err(io::Error::other)?;
    let mut writer = PcapNgWriter::new(BufWriter::new(out)).map_err(broken)?;
    for name in &interfaces.names {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(block).map_err(broken)?;
    }
    writer.get_mut().flush()?;
    // Unix time of the lab's epoch.
    let zero = clock::unix_time().saturating_sub(lab.epoch().elapsed());
    for batch in &watch.records {
        for record in &batch {
            if let Some(block) = interfaces.block(record, zero) {
                writer.write_pcapng_block(block).map_err(broken)?;
            }
        }
        // Complete blocks, so that the capture so far is readable.
        writer.get_mut().flush()?;
    }
    Ok(())
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

    /// The block of a packet; `None` if this host never sees it.
    fn block<'a>(
        &self,
        record: &'a PacketRecord,
        zero: Duration,
    ) -> Option<EnhancedPacketBlock<'a>> {
        let (interface_id, sends) = (*self.interfaces_of.get(record.link)?)
            [usize::from(record.direction == Direction::Down)]?;
        let moment = match record.kind {
            _ if sends => record.arrived,
            FateKind::Delivered { due, .. } => due,
            FateKind::Dropped(_) => return None,
        };
        Some(EnhancedPacketBlock {
            interface_id,
            timestamp: zero + moment.since(Nanos(0)),
            original_len: record.length,
            data: Cow::Borrowed(&record.bytes),
            options: vec![EnhancedPacketOption::Comment(Cow::Owned(comment(record)))],
        })
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

fn broken(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
