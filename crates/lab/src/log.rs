//! Logs of packets and queues, as tables (CSV, RFC 4180).

use crate::running::LinkReport;
use crate::watch::{Seen, Watch, Way, fate_in_a_word};
use link::FateKind;
use std::io::{self, BufWriter, Write};

/// The heading of a packet log. `loss=replay:FILE` reads `link`, `way`,
/// `number` and `fate`; times are in seconds since the lab began.
const PACKETS: &str =
    "link,way,number,arrived_s,decided_s,due_s,bytes,queued_ms,fate,marked,corrupted,duplicated";

/// The heading of a queue log; `dropped` (before the bottleneck), `lost`
/// (behind it), `marked` and `sent_bytes` are sums since the lab began.
const QUEUES: &str = "link,way,at_s,bytes,packets,sojourn_ms,sent_bytes,dropped,lost,marked";

/// Writes down each packet's fate until the lab ends; `links` are their names.
///
/// # Errors
/// The writer's own.
pub fn packets(watch: &Watch, links: &[String], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "{PACKETS}")?;
    for seen in watch.seen.iter().flatten() {
        packet(&mut out, &seen, links)?;
    }
    out.flush()
}

fn packet(out: &mut impl Write, seen: &Seen, links: &[String]) -> io::Result<()> {
    let Seen { link, way, number, length, arrived, decided, kind, .. } = seen;
    let name = links.get(*link).map_or("", String::as_str);
    let (arrived, decided) = (Seconds(*arrived), Seconds(*decided));
    write!(out, "{name},{},{number},{arrived},{decided},", way.name())?;
    let fate = fate_in_a_word(*kind);
    match *kind {
        FateKind::Dropped(_) => writeln!(out, ",{length},,{fate},,,"),
        FateKind::Delivered { due, queued, marked, corrupted, duplicated } => {
            let [marked, corrupted, duplicated] = [marked, corrupted, duplicated].map(u8::from);
            let (due, queued) = (Seconds(due.0), Millis(queued));
            writeln!(out, "{due},{length},{queued},{fate},{marked},{corrupted},{duplicated}")
        }
    }
}

/// Writes down the queues over time.
///
/// # Errors
/// The writer's own.
pub fn queues(links: &[LinkReport], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "{QUEUES}")?;
    for link in links {
        for (way, samples) in [Way::Up, Way::Down].into_iter().zip(&link.queues) {
            for s in samples {
                writeln!(
                    out,
                    "{},{},{},{},{},{},{},{},{},{}",
                    link.name,
                    way.name(),
                    Seconds(s.at),
                    s.bytes,
                    s.packets,
                    Millis(s.sojourn),
                    s.sent_bytes,
                    s.dropped,
                    s.lost,
                    s.marked
                )?;
            }
        }
    }
    out.flush()
}

/// Nanoseconds, printed as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Nanoseconds, printed as milliseconds.
struct Millis(u64);

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::{Cause, Nanos};

    #[test]
    fn a_row_has_as_many_fields_as_the_heading() {
        let fates = [
            FateKind::Dropped(Cause::Lost),
            FateKind::Delivered {
                due: Nanos(1_000_000_001),
                queued: 1_500_000,
                marked: true,
                corrupted: false,
                duplicated: false,
            },
        ];
        let rows = fates.map(|kind| {
            let seen = Seen {
                link: 0,
                way: Way::Up,
                number: 7,
                length: 1500,
                arrived: 0,
                decided: 5,
                kind,
                bytes: Box::default(),
            };
            let mut row = Vec::new();
            packet(&mut row, &seen, &["path".to_owned()]).unwrap();
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
