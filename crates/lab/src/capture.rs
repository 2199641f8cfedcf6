//! Captures (pcapng) at a host's ends of its links, with each packet's fate.
//!
//! Each direction of a link is an interface of its own. What the host sends is
//! captured as it enters the link, lost or not; what it receives, as it comes.

use crate::watch::{Seen, Watch, Way, fate_in_a_word};
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

/// Time stamps count nanoseconds: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes a capture at `host` until the lab ends or nobody reads any longer.
///
/// # Errors
/// The writer's own, but not that nobody reads any longer.
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
    // The lab's clock in the world's time.
    let zero = clock::unix_time().saturating_sub(lab.epoch().elapsed());
    for batch in &watch.seen {
        for seen in &batch {
            if let Some(block) = interfaces.block(seen, zero) {
                writer.write_pcapng_block(block).map_err(broken)?;
            }
        }
        // Whole blocks, so that what was captured so far can be read.
        writer.get_mut().flush()?;
    }
    Ok(())
}

/// The directions at one host.
struct Interfaces {
    names: Vec<String>,
    /// Of each link of the lab, up and down: the interface's number, and
    /// whether the host is the one that sends.
    places: Vec<[Option<(u32, bool)>; 2]>,
}

impl Interfaces {
    fn of(lab: &Lab, host: &str) -> Result<Self, LabError> {
        lab.host(host)?;
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for (link, between) in lab.links() {
            let mut place = [None; 2];
            for (way, [from, to]) in [between, [between[1], between[0]]].into_iter().enumerate() {
                if from == host || to == host {
                    let number = u32::try_from(names.len()).unwrap_or(u32::MAX);
                    place[way] = Some((number, from == host));
                    names.push(format!("{link} {from} to {to}"));
                }
            }
            places.push(place);
        }
        Ok(Interfaces { names, places })
    }

    /// The block of a packet; `None` where this host never sees it.
    fn block<'a>(&self, seen: &'a Seen, zero: Duration) -> Option<EnhancedPacketBlock<'a>> {
        let (interface_id, sends) =
            (*self.places.get(seen.link)?)[usize::from(seen.way == Way::Down)]?;
        let moment = match seen.kind {
            _ if sends => seen.arrived,
            FateKind::Delivered { due, .. } => due.0,
            FateKind::Dropped(_) => return None,
        };
        Some(EnhancedPacketBlock {
            interface_id,
            timestamp: zero + Duration::from_nanos(moment),
            original_len: seen.length,
            data: Cow::Borrowed(&seen.bytes),
            options: vec![EnhancedPacketOption::Comment(Cow::Owned(comment(seen)))],
        })
    }
}

/// `delivered, queued 12.345 ms, on its way 98.765 ms, number 7`.
fn comment(seen: &Seen) -> String {
    let ms = |nanos: u64| format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000);
    let mut text = fate_in_a_word(seen.kind).to_owned();
    if let FateKind::Delivered { due, queued, marked, corrupted, duplicated } = seen.kind {
        text += &format!(
            ", queued {}, on its way {}",
            ms(queued),
            ms(due.since(link::Nanos(seen.arrived)))
        );
        for (whether, word) in
            [(marked, "marked"), (corrupted, "corrupted"), (duplicated, "duplicated")]
        {
            if whether {
                text += &format!(", {word}");
            }
        }
    } else {
        text += &format!(", after {}", ms(seen.decided - seen.arrived.min(seen.decided)));
    }
    text + &format!(", number {}", seen.number)
}

fn broken(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
