//! `ss -tin`, once or as a series: `while sleep 1; do date +%s.%N; ss -tin; done > FILE`.
//!
//! The time of a sample is that of the line before it, as `date` prints it: seconds since
//! 1970, or a line with hours, minutes and seconds. Without times the growth of the busy timer
//! is the time between two samples, as a transfer with data at all times keeps it running.

use crate::{
    not_a_result::NotAResult,
    ss_details::{Details, addresses, is_details},
    start,
    transfer::{self, Transfer},
};
use record::{Direction, Measurement, ReceiverSample, Sample, Stream, TestSpec, Unavailable};
use std::collections::HashMap;

const WHAT: &str = "output of ss";

/// Connections that are followed.
const MAX_CONNECTIONS: usize = 4_096;

/// Samples of all connections.
const MAX_SAMPLES: usize = 200_000;

/// Transfers that are returned, the largest first.
const MAX_TRANSFERS: usize = 64;

/// Payload from which a connection is a transfer, in bytes, unless there is no larger one.
const TRANSFER: u64 = 100_000;

/// A day, in seconds.
const DAY_S: f64 = 86_400.0;

/// One sample of a connection, of both directions.
#[derive(Debug, Clone, Copy, Default)]
struct Both {
    sent: Sample,
    received: ReceiverSample,
    /// Whether the line before it had a time.
    has_time: bool,
    has_timers: bool,
}

#[derive(Debug, Default)]
struct Connection {
    ends: [String; 2],
    congestion: Option<String>,
    samples: Vec<Both>,
}

/// The transfers of one sample or of a series, the largest first.
pub(crate) fn samples(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let connections = read(text);
    let mut transfers: Vec<(u64, Measurement)> =
        connections.into_iter().filter_map(of_connection).collect();
    transfers.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let most = transfers.first().map_or(0, |(bytes, _)| *bytes);
    let least = TRANSFER.min(most);
    let transfers: Vec<Measurement> = transfers
        .into_iter()
        .filter(|(bytes, _)| *bytes >= least)
        .take(MAX_TRANSFERS)
        .map(|(_, measurement)| measurement)
        .collect();
    if transfers.is_empty() {
        return Err(NotAResult::empty(
            WHAT,
            "no connection with payload and a busy timer (ss -tin of Linux 4.10 and later), or \
             two samples of one with their times",
        ));
    }
    Ok(transfers)
}

fn read(text: &str) -> Vec<Connection> {
    let mut all: Vec<Connection> = Vec::new();
    let mut index: HashMap<[String; 2], usize> = HashMap::new();
    let mut clock = Clock::default();
    let mut before = "";
    let mut count = 0;
    for line in text.lines() {
        if !is_details(line) {
            if addresses(line).is_none()
                && let Some(time) = Clock::of_line(line)
            {
                clock.set(time);
            }
            before = line;
            continue;
        }
        let ends_of = |line: &str| addresses(line);
        let ends = ends_of(line).or_else(|| ends_of(before)).unwrap_or_default();
        let with_addresses = if addresses(line).is_some() { line } else { before };
        before = "";
        let at = match index.get(&ends) {
            Some(at) => *at,
            None if all.len() < MAX_CONNECTIONS => {
                index.insert(ends.clone(), all.len());
                all.push(Connection { ends, ..Connection::default() });
                all.len() - 1
            }
            None => continue,
        };
        count += 1;
        let Some(connection) = all.get_mut(at).filter(|_| count <= MAX_SAMPLES) else { break };
        let details = Details::of(line);
        connection.congestion = details.congestion().map(transfer::name);
        connection.samples.push(sample(&details, send_queue(with_addresses), clock.now));
    }
    all
}

/// Times of the lines between samples, which go on at midnight.
#[derive(Debug, Default)]
struct Clock {
    now: Option<f64>,
}

impl Clock {
    fn set(&mut self, time: f64) {
        let before = self.now.unwrap_or(time);
        let is_of_day = time < DAY_S;
        let days = if is_of_day && time < before { ((before - time) / DAY_S).ceil() } else { 0.0 };
        self.now = Some(time + days * DAY_S);
    }

    /// Seconds since 1970, or of the day.
    fn of_line(line: &str) -> Option<f64> {
        let line = line.trim();
        if let Ok(seconds) = line.parse::<f64>() {
            // From 2001 on, and milliseconds.
            return match seconds {
                s if (1e9..1e10).contains(&s) => Some(s),
                ms if (1e12..1e13).contains(&ms) => Some(ms / 1e3),
                _ => None,
            };
        }
        line.split(|c: char| c.is_whitespace() || c == 'T').take(12).find_map(time_of_day)
    }
}

/// `08:29:57`, `08:29:57.25+00:00`.
fn time_of_day(word: &str) -> Option<f64> {
    let word = word.trim_end_matches('Z');
    let end = word.find(['+', '-']).unwrap_or(word.len());
    let mut parts = word.get(..end)?.split(':');
    let mut part = |most: f64| {
        let text = parts.next()?;
        let digits = text.starts_with(|c: char| c.is_ascii_digit());
        let number: f64 = text.replace(',', ".").parse().ok()?;
        (digits && (0.0..most).contains(&number)).then_some(number)
    };
    let seconds = part(24.0)? * 3600.0 + part(60.0)? * 60.0 + part(61.0)?;
    parts.next().is_none().then_some(seconds)
}

/// The second number before the addresses: bytes written and not acknowledged.
fn send_queue(line: &str) -> Option<u64> {
    let is_number = |word: &&str| word.parse::<u64>().is_ok();
    line.split_whitespace().filter(is_number).nth(1)?.parse().ok()
}

fn sample(details: &Details<'_>, queued: Option<u64>, time: Option<f64>) -> Both {
    let mss = details.count("mss").unwrap_or(0).clamp(1, 65_535);
    let segments = |key| details.count(key).map(|count| count.saturating_mul(mss));
    let us = |key| details.number(key).map(|ms| (ms * 1e3) as u64);
    let us32 = |key| us(key).map(|us| u32::try_from(us).unwrap_or(u32::MAX));
    let count32 = |key| details.count(key).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let acked = details.count("bytes_acked").unwrap_or(0);
    let sacked = segments("sacked").unwrap_or(0);
    let lost = segments("lost").unwrap_or(0);
    let retransmitted = segments("retrans").unwrap_or(0);
    let unacked = segments("unacked").unwrap_or(0);
    let unsent = details.count("notsent").unwrap_or(0);
    let scale = |position: usize| {
        let text = details.text("wscale")?;
        text.split(',').nth(position)?.parse::<u8>().ok()
    };
    let t_s = time.unwrap_or(0.0);
    let sent = Sample {
        t_s,
        written_bytes: acked.saturating_add(queued.unwrap_or(unacked.saturating_add(unsent))),
        acked_bytes: acked,
        delivered_bytes: acked.saturating_add(sacked),
        mss_bytes: mss as u32,
        cwnd_bytes: segments("cwnd").unwrap_or(0),
        ssthresh_bytes: segments("ssthresh"),
        in_flight_bytes: unacked
            .saturating_add(retransmitted)
            .saturating_sub(sacked.saturating_add(lost)),
        unsent_bytes: unsent,
        peer_window_bytes: details.count("snd_wnd"),
        rtt_us: us32("rtt").unwrap_or(0),
        rttvar_us: details.second("rtt").map_or(0, |ms| (ms * 1e3) as u32),
        min_rtt_us: us32("minrtt"),
        delivery_rate_bps: details.rate("delivery_rate").map_or(0, units::BitRate::bps),
        delivery_app_limited: details.has("app_limited"),
        pacing_rate_bps: details.rate("pacing_rate").map(units::BitRate::bps),
        retransmits: details.second("retrans").map_or(0, |count| count as u64),
        busy_us: us("busy").unwrap_or(0),
        rwnd_limited_us: us("rwnd_limited").unwrap_or(0),
        sndbuf_limited_us: us("sndbuf_limited").unwrap_or(0),
        ce_delivered: count32("delivered_ce"),
        dsack_duplicates: count32("dsack_dups"),
        reorderings: count32("reord_seen"),
        acks: count32("segs_in"),
        // The word is left out where there is no scaling.
        peer_window_scale: Some(scale(0).unwrap_or(0)),
        ..Sample::default()
    };
    let received = ReceiverSample {
        t_s,
        received_bytes: details.count("bytes_received").unwrap_or(0),
        window_bytes: details.count("rcv_wnd"),
        min_rtt_us: us32("minrtt"),
        rtt_us: us32("rcv_rtt").filter(|us| *us > 0),
        segments: count32("data_segs_in"),
        out_of_order: count32("rcv_ooopack"),
        window_scale: Some(scale(1).unwrap_or(0)),
        ..ReceiverSample::default()
    };
    let has_timers = details.text("busy").is_some();
    Both { sent, received, has_time: time.is_some(), has_timers }
}

/// The transfer of a connection in the direction that carried more, and its payload.
fn of_connection(mut connection: Connection) -> Option<(u64, Measurement)> {
    let mut unavailable = Vec::new();
    let samples = &mut connection.samples;
    if samples.len() == 1 {
        unavailable.push(Unavailable::Series);
        let first = *samples.first()?;
        let sent = start::of_sender(&first.sent);
        let received = start::of_receiver(&first.received);
        samples.insert(0, Both { sent, received, ..first });
    }
    let is_single = !unavailable.is_empty();
    if is_single || samples.iter().any(|sample| !sample.has_time) {
        if !is_single {
            unavailable.push(Unavailable::Times);
        }
        for sample in samples.iter_mut() {
            sample.sent.t_s = sample.sent.busy_us as f64 / 1e6;
            sample.received.t_s = sample.sent.t_s;
        }
    }
    // A port that was used again: counters begin anew.
    let mut last = 0;
    samples.retain(|sample| {
        let total = sample.sent.acked_bytes.saturating_add(sample.received.received_bytes);
        let grows = total >= last;
        last = last.max(total);
        grows
    });
    let mut before = f64::NEG_INFINITY;
    samples.retain(|sample| {
        let later = sample.sent.t_s > before;
        before = before.max(sample.sent.t_s);
        later
    });
    let (first, last) = (*samples.first()?, *samples.last()?);
    let seconds = last.sent.t_s - first.sent.t_s;
    let acked = last.sent.acked_bytes.saturating_sub(first.sent.acked_bytes);
    let received = last.received.received_bytes.saturating_sub(first.received.received_bytes);
    let bytes = acked.max(received);
    if seconds.is_nan() || seconds <= 0.0 || bytes == 0 {
        return None;
    }
    let sends = acked >= received;
    let mut stream = Stream {
        id: 1,
        reverse: !sends,
        watched: true,
        congestion: connection.congestion,
        sent_bytes: bytes,
        received_bytes: bytes,
        sent_seconds: seconds,
        received_seconds: seconds,
        ..Stream::default()
    };
    if sends {
        if !samples.iter().all(|sample| sample.has_timers) {
            unavailable.push(Unavailable::SenderTimers);
        }
        if samples.iter().all(|sample| sample.sent.peer_window_bytes.is_none()) {
            unavailable.push(Unavailable::ReceiveWindow);
        }
        stream.sender = samples.iter().map(|sample| sample.sent.since(&first.sent)).collect();
        stream.retransmits = stream.sender.last().map(|sample| sample.retransmits);
    } else {
        // The congestion control is this end's, which does not send.
        stream.congestion = None;
        stream.receiver =
            samples.iter().map(|sample| sample.received.since(&first.received)).collect();
        unavailable.extend([
            Unavailable::SenderTimers,
            Unavailable::CongestionWindow,
            Unavailable::CongestionControl,
            Unavailable::Retransmissions,
        ]);
        if samples.iter().all(|sample| sample.received.window_bytes.is_none()) {
            unavailable.push(Unavailable::ReceiveWindow);
        }
    }
    let [local, peer] = &connection.ends;
    let host = peer.rsplit_once(':').map_or(peer.as_str(), |(host, _)| host);
    let transfer = Transfer {
        tool: "ss".to_owned(),
        name: transfer::name(&format!("{local} to {peer}")),
        started_unix_s: if first.sent.t_s > 1e9 { first.sent.t_s as u64 } else { 0 },
        spec: TestSpec {
            target: transfer::name(host.trim_matches(['[', ']'])),
            direction: if sends { Direction::Forward } else { Direction::Reverse },
            seconds,
            streams: 1,
            ..TestSpec::default()
        },
        streams: vec![stream],
        unavailable,
        ..Transfer::default()
    };
    Some((bytes, transfer.into_measurement()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_date_give_the_time() {
        for (line, seconds) in [
            ("1795595370.503003844", 1_795_595_370.503_003_8),
            ("1795595370503", 1_795_595_370.503),
            ("Wed Nov 25 08:25:16 UTC 2026", 30_316.0),
            ("2026-11-25T08:25:16+00:00", 30_316.0),
            ("2026-11-25 08:25:16.250", 30_316.25),
        ] {
            assert_eq!(Clock::of_line(line), Some(seconds), "{line}");
        }
        for line in
            ["", "State Recv-Q", "12:99:00", "17", "a:b:c", "Recv-Q Send-Q Local Address:Port"]
        {
            assert_eq!(Clock::of_line(line), None, "{line}");
        }
    }

    #[test]
    fn time_goes_on_at_midnight() {
        let mut clock = Clock::default();
        clock.set(86_399.0);
        clock.set(1.0);
        assert_eq!(clock.now, Some(86_401.0));
        clock.set(2.0);
        assert_eq!(clock.now, Some(86_402.0));
    }
}
