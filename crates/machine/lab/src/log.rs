//! Logs of packets and queues as CSV (RFC 4180).

use crate::running::LinkReport;
use crate::watch::{LinkDirection, PacketRecord, Watch, fate_name};
use link::FateKind;
use std::io::{self, BufWriter, Write};
use std::time::Duration;
use units::Nanos;

/// Header of a packet log. `loss=replay:FILE` reads `link`, `way`, `number` and
/// `fate`; times are in seconds since the lab started.
const PACKETS: &str =
    "link,way,number,arrived_s,decided_s,due_s,bytes,queued_ms,fate,marked,corrupted,duplicated";

/// Header of a queue log; `dropped` (before the bottleneck), `lost` (after it),
/// `marked` and `sent_bytes` are counters since the lab started.
const QUEUES: &str = "link,way,at_s,bytes,packets,sojourn_ms,sent_bytes,dropped,lost,marked";

/// Logs every packet until the lab ends; `links` has the names of the links.
///
/// # Errors
/// Those of the writer.
pub fn packets(watch: &Watch, links: &[String], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "{PACKETS}")?;
    for record in watch.records.iter().flatten() {
        packet(&mut out, &record, links)?;
    }
    out.flush()
}

fn packet(out: &mut impl Write, record: &PacketRecord, links: &[String]) -> io::Result<()> {
    let PacketRecord { link, direction, number, length, arrived, decided, kind, .. } = record;
    let name = links.get(*link).map_or("", String::as_str);
    let (arrived, decided) = (Seconds(*arrived), Seconds(*decided));
    write!(out, "{name},{},{number},{arrived},{decided},", direction.name())?;
    let fate = fate_name(*kind);
    match *kind {
        FateKind::Dropped(_) => writeln!(out, ",{length},,{fate},,,"),
        FateKind::Delivered { due, queued, marked, corrupted, duplicated } => {
            let [marked, corrupted, duplicated] = [marked, corrupted, duplicated].map(u8::from);
            let (due, queued) = (Seconds(due), Millis(queued));
            writeln!(out, "{due},{length},{queued},{fate},{marked},{corrupted},{duplicated}")
        }
    }
}

/// Writes the log of the queues.
///
/// # Errors
/// Those of the writer.
pub fn queues(links: &[LinkReport], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "{QUEUES}")?;
    for link in links {
        for (direction, samples) in
            [LinkDirection::Up, LinkDirection::Down].into_iter().zip(&link.queues)
        {
            for s in samples {
                writeln!(
                    out,
                    "{},{},{},{},{},{},{},{},{},{}",
                    link.name,
                    direction.name(),
                    Seconds(s.at),
                    s.bytes.bytes(),
                    s.packets,
                    Millis(s.sojourn),
                    s.sent_bytes.bytes(),
                    s.dropped,
                    s.lost,
                    s.marked
                )?;
            }
        }
    }
    out.flush()
}

/// A time since the lab began, printed in seconds.
struct Seconds(Nanos);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000)
    }
}

/// A duration, printed in milliseconds.
struct Millis(Duration);

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.as_millis(), self.0.as_nanos() % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::Cause;

    #[test]
    fn a_row_has_as_many_fields_as_the_heading() {
        let fates = [
            FateKind::Dropped(Cause::Lost),
            FateKind::Delivered {
                due: Nanos(1_000_000_001),
                queued: Duration::from_micros(1500),
                marked: true,
                corrupted: false,
                duplicated: false,
            },
        ];
        let rows = fates.map(|kind| {
            let record = PacketRecord {
                link: 0,
                direction: LinkDirection::Up,
                number: 7,
                length: 1500,
                arrived: Nanos(0),
                decided: Nanos(5),
                kind,
                bytes: Box::default(),
            };
            let mut row = Vec::new();
            packet(&mut row, &record, &["path".to_owned()]).unwrap();
            String::from_utf8(row).unwrap()
        });
        assert_eq!(
            rows,
            [
                "path,up,7,0.000000000,0.000000005,,1500,,dropped-loss,,,\n",
                "path,up,7,0.000000000,0.000000005,1.000000001,1500,1.500000,delivered,1,0,0\n"
            ]
        );
        for row in rows {
            assert_eq!(row.matches(',').count(), PACKETS.matches(',').count());
        }
    }
}
