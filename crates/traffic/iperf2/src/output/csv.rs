//! Reports as comma-separated values: `-y C`.
//!
//! Date, sender's address and port, receiver's address and port, stream id, interval in
//! seconds, bytes, bit/s; at a UDP receiver also jitter in ms, lost, sent, lost in
//! percent, out of order.

use crate::{DatagramStats, Event, IntervalReport, Label};
use std::net::SocketAddr;
use std::time::Duration;

/// The line of an event, if it has one. Sums have none, as in version 2.1.8.
pub fn line(event: &Event, date: &str) -> Option<String> {
    match event {
        Event::Interval(IntervalReport {
            label: Some(label),
            ends: Some(ends),
            sending,
            from,
            to,
            bytes,
            received,
            ..
        }) => {
            let (local, peer) = *ends;
            let (sender, receiver) = if *sending { (local, peer) } else { (peer, local) };
            Some(row(date, (sender, receiver), *label, (*from, *to), *bytes, received.as_ref()))
        }
        Event::Report { label, ends, report } => {
            let received = DatagramStats {
                datagrams: report.datagrams,
                lost: report.lost,
                late: report.late,
                jitter: Some(report.jitter),
            };
            let time = (Duration::ZERO, report.time);
            Some(row(date, *ends, *label, time, report.bytes, Some(&received)))
        }
        _ => None,
    }
}

fn row(
    date: &str,
    (sender, receiver): (SocketAddr, SocketAddr),
    label: Label,
    (from, to): (Duration, Duration),
    bytes: u64,
    received: Option<&DatagramStats>,
) -> String {
    let seconds = (to - from.min(to)).as_secs_f64();
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let mut line = format!(
        "{date},{},{},{},{},{},{:.1}-{:.1},{bytes},{rate:.0}",
        sender.ip(),
        sender.port(),
        receiver.ip(),
        receiver.port(),
        label.id,
        from.as_secs_f64(),
        to.as_secs_f64(),
    );
    if let Some(received) = received {
        let DatagramStats { datagrams, lost, late, jitter } = *received;
        let jitter = jitter.unwrap_or_default().as_secs_f64() * 1e3;
        let percent = 100.0 * units::share(lost, datagrams);
        line += &format!(",{jitter:.3},{lost},{datagrams},{percent:.3},{late}");
    }
    line + "\n"
}

/// Seconds since 1970 as `YYYYMMDDHHMMSS`, in UTC.
pub fn date(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years that start in March end with the leap day; 400 of them have 146 097 days.
    // 1970-01-01 is day 719 468 of year 0.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @N` says.
    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "19700101000000"),
            (951_782_399, "20000228235959"),
            (951_782_400, "20000229000000"),
            (951_868_800, "20000301000000"),
            (1_795_264_573, "20261121123613"),
            (4_107_542_400, "21000301000000"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    /// The lines of version 2.1.8 for the same values.
    #[test]
    fn the_sender_comes_first() {
        let ends = ("127.0.0.1:6001".parse().unwrap(), "127.0.0.1:45274".parse().unwrap());
        let received = DatagramStats {
            datagrams: 174,
            lost: 0,
            late: 0,
            jitter: Some(Duration::from_micros(10)),
        };
        let row = IntervalReport {
            label: Some(Label { id: 1, reverse: false }),
            ends: Some(ends),
            sending: false,
            from: Duration::ZERO,
            to: Duration::from_secs(2),
            bytes: 255_780,
            whole: true,
            received: Some(received),
        };
        assert_eq!(
            line(&Event::Interval(row), "D").unwrap(),
            "D,127.0.0.1,45274,127.0.0.1,6001,1,0.0-2.0,255780,1023120,0.010,0,174,0.000,0\n"
        );
        let sum = IntervalReport { label: None, ends: None, ..row };
        assert_eq!(line(&Event::Interval(sum), "D"), None);
    }
}
