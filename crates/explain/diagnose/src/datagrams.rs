//! UDP: the limit and the sentence, from datagrams sent, received and lost.
//!
//! A UDP sender has no window and no congestion control, and so no timers: the
//! evidence is the requested rate, and what was sent and received.

use crate::{evidence::Evidence, facts::Facts};
use record::{Datagrams, Fragmentation, Limit, Measurement, Stream, Unavailable};
use units::{BitRate, percent, significant};

/// The share of the requested rate from which it counts as reached.
const REACHED: f64 = 0.98;
/// The loss ratio from which something on the path overflows: 0.1 %.
const SOME: f64 = 1e-3;

/// The shortest time without an arrival at the end of a test that is an outage, in seconds.
const MIN_OUTAGE_S: f64 = 1.0;

/// The counters of all streams together.
struct Totals {
    length: u32,
    fragmentation: Option<Fragmentation>,
    /// `None` if a sender's count is missing.
    sent: Option<u64>,
    received: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    extent: u64,
    bursts: u64,
    longest: u64,
}

/// The limit, if the counters show one, and the sentence.
pub(crate) fn explain(facts: &Facts<'_>, e: &Evidence) -> (Option<Limit>, String) {
    let m = facts.m;
    let totals = Totals::of(m);
    if totals.received == 0 {
        return (None, totals.none_arrived(m));
    }
    let all = totals.lost.saturating_add(totals.received);
    let lost = totals.lost as f64 / all as f64;
    let sent = sent_rate(m);
    let requested = facts.requested_rate;
    let reached = match (requested, sent) {
        (Some(requested), Some(sent)) => sent.as_f64() >= REACHED * requested.as_f64(),
        _ => false,
    };
    let outage = outage(m, &totals).filter(|_| lost >= SOME);
    // Without one end's count, what was sent after the last arrival is unknown.
    let known = match (totals.sent.is_none(), m.lacks(Unavailable::Received)) {
        (false, false) => "",
        _ => " up to the last arrival",
    };
    let mut text = match totals.lost {
        0 if known.is_empty() && totals.received == 1 => {
            format!("The only datagram arrived: {}", e.average)
        }
        0 if known.is_empty() => {
            format!("All {} datagrams arrived: {}", totals.received, e.average)
        }
        0 => format!("No datagram was lost{known}: {}", e.average),
        lost_count => format!(
            "{lost_count} of {all} datagrams{known} {} lost ({}){}: {} arrived",
            if lost_count == 1 { "was" } else { "were" },
            percent(lost),
            totals.bursts(),
            e.average,
        ),
    };
    text += &match (requested, sent) {
        _ if outage.is_some() => String::new(),
        (Some(requested), Some(sent)) if !reached => format!(
            "; the sender reached {sent} of the requested {requested}, limited by its CPU or \
             network device"
        ),
        (Some(requested), _) if lost < SOME => format!(
            "; the path sustains the requested {requested}; a search for the highest rate finds its maximum"
        ),
        (_, Some(sent)) if lost >= SOME => format!(
            " of {sent} sent; a queue on the path or the receiver's socket buffer overflows: \
             search for the highest rate without such loss"
        ),
        (None, Some(sent)) => format!(" of {sent} sent, the sender's maximum"),
        _ => String::new(),
    };
    if totals.duplicates > 0 {
        let plural = if totals.duplicates == 1 { "" } else { "s" };
        text += &format!("; {} duplicate{plural}", totals.duplicates);
    }
    if totals.reordered > 0 {
        let plural = if totals.extent == 1 { "" } else { "s" };
        text += &format!(
            "; {} reordered, by up to {} datagram{plural}",
            totals.reordered, totals.extent
        );
    }
    if let Some(fragmentation) = totals.fragmentation.filter(|_| totals.lost > 0) {
        text += &format!("; {}", fragmentation.sentence(totals.length));
    }
    if let Some(outage) = outage {
        return (Some(Limit::Outage), text + "; " + &outage + ".");
    }
    let limit = (reached && lost < SOME).then_some(Limit::Application);
    (limit, text + ".")
}

/// The rate at which the senders wrote to their sockets, summed over streams.
fn sent_rate(m: &Measurement) -> Option<BitRate> {
    let rate = |stream: &record::Stream| {
        // A peer may report no sending time.
        (stream.sent_seconds > 0.0).then(|| stream.sent_bytes as f64 * 8.0 / stream.sent_seconds)
    };
    let rates: Option<Vec<f64>> = m.streams.iter().map(rate).collect();
    Some(BitRate::from_bps_f64(rates?.iter().sum()))
}

/// The outage that lost most of what was lost, as a part of the sentence.
fn outage(m: &Measurement, totals: &Totals) -> Option<String> {
    const LOOK: &str = "look for an interruption of the path";
    if let Some(last) = last_arrivals(m) {
        let last = significant(last, 2);
        return Some(format!("nothing arrived after {last} s: {LOOK} at that time"));
    }
    let longest = m.streams.iter().filter_map(longest_burst).fold(0.0, f64::max);
    let is_most = totals.longest.saturating_mul(2) > totals.lost / m.streams.len().max(1) as u64;
    (longest >= MIN_OUTAGE_S && is_most).then(|| {
        let (count, seconds) = (totals.longest, significant(longest, 2));
        format!("{count} of them in a row, which is {seconds} s of the test: {LOOK}")
    })
}

/// When the last datagram arrived, in seconds, if the rest of the test is an outage.
fn last_arrivals(m: &Measurement) -> Option<f64> {
    let ends =
        m.streams.iter().map(|stream| Some((last_arrival(stream)?, stream.receiver.last()?.t_s)));
    let ends: Vec<(f64, f64)> = ends.collect::<Option<_>>()?;
    let latest = |of: fn(&(f64, f64)) -> f64| ends.iter().map(of).fold(0.0, f64::max);
    let (last, end) = (latest(|(last, _)| *last), latest(|(_, end)| *end));
    (end - last >= MIN_OUTAGE_S).then_some(last)
}

/// The time in which a stream sent the datagrams of its longest burst of losses, in seconds.
fn longest_burst(stream: &Stream) -> Option<f64> {
    let datagrams = stream.datagrams.as_ref()?;
    let longest = datagrams.loss_bursts.iter().map(|burst| burst.from).max()?;
    let all = datagrams.received.saturating_add(datagrams.lost);
    Some(longest as f64 / all.max(1) as f64 * stream.sent_seconds)
}

/// The first sample of a receiver that has all bytes of the last one.
fn last_arrival(stream: &Stream) -> Option<f64> {
    let all = stream.receiver.last()?.received_bytes;
    stream.receiver.iter().find(|sample| sample.received_bytes >= all).map(|sample| sample.t_s)
}

impl Totals {
    /// The sentence where nothing was received.
    fn none_arrived(&self, m: &Measurement) -> String {
        let Totals { lost, length, .. } = self;
        if let (1.., Some(fragmentation)) = (lost, self.fragmentation) {
            let Fragmentation { fragments, largest_whole_bytes } = fragmentation;
            return format!(
                "None of {lost} datagrams arrived (100 % lost): datagrams of {length} B are fragmented \
                 into {fragments}, and the path drops fragments. Send datagrams that are not \
                 fragmented: -l {largest_whole_bytes}."
            );
        }
        let is_sent = m.streams.iter().any(|stream| stream.sent_bytes > 0);
        match (lost, m.tool.is_none()) {
            (0, _) if is_sent => {
                "The receiver's counts are missing, so the amount received is unknown.".to_owned()
            }
            // Its streams were opened by a datagram in each direction.
            (1.., true) => format!(
                "None of {lost} datagrams arrived (100 % lost), although those that opened the stream \
                 did: look for a firewall that limits UDP, or for a path MTU below {length} B of \
                 payload (-l auto finds the size that passes)."
            ),
            _ => "No datagram arrived: allow UDP through the firewalls in both directions."
                .to_owned(),
        }
    }

    fn of(m: &Measurement) -> Self {
        let streams = || m.streams.iter().filter_map(|stream| stream.datagrams.as_ref());
        let sum = |count: fn(&Datagrams) -> u64| streams().map(count).fold(0, u64::saturating_add);
        let bursts = || streams().flat_map(|datagrams| &datagrams.loss_bursts);
        Totals {
            length: streams().map(|datagrams| datagrams.length_bytes).max().unwrap_or(0),
            fragmentation: streams().find_map(|datagrams| datagrams.fragmentation),
            sent: streams().try_fold(0, |all: u64, each| Some(all.saturating_add(each.sent?))),
            received: sum(|datagrams| datagrams.received),
            lost: sum(|datagrams| datagrams.lost),
            duplicates: sum(|datagrams| datagrams.duplicates),
            reordered: sum(|datagrams| datagrams.reordered),
            extent: streams().map(|datagrams| datagrams.reorder_extent).max().unwrap_or(0),
            bursts: bursts().map(|burst| burst.count).fold(0, u64::saturating_add),
            longest: bursts().map(|burst| burst.to).max().unwrap_or(0),
        }
    }

    /// The burst lengths of the losses, if the receiver reports them.
    fn bursts(&self) -> String {
        match (self.bursts, self.longest) {
            (0, _) => String::new(),
            (_, 1) => ", one at a time".to_owned(),
            (1, _) => ", in one burst".to_owned(),
            (bursts, longest) => format!(
                ", in bursts of {:.1} on average and at most {longest}",
                self.lost as f64 / bursts as f64
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Direction, LossBurst, Protocol, ReceiverSample, TestSpec};

    fn measured(sent: u64, lost: u64, asked: Option<u64>) -> Measurement {
        let mut m = Measurement {
            spec: TestSpec {
                target: "h".into(),
                port: 1,
                protocol: Protocol::Udp,
                direction: Direction::Forward,
                seconds: 1.0,
                streams: 1,
                window_bytes: None,
                rate_bps: asked.map(BitRate::from_bps),
                congestion: None,
                ..TestSpec::default()
            },
            ..Measurement::default()
        };
        m.streams.push(Stream {
            sent_bytes: sent * 1000,
            received_bytes: (sent - lost) * 1000,
            sent_seconds: 1.0,
            received_seconds: 1.0,
            datagrams: Some(Datagrams {
                sent: Some(sent),
                received: sent - lost,
                lost,
                loss_bursts: vec![LossBurst { from: 2, to: 3, count: 4 }],
                ..Datagrams::default()
            }),
            ..Stream::default()
        });
        m
    }

    #[test]
    fn the_sentence_begins_with_what_arrived() {
        let all = crate::explain(&measured(1000, 0, Some(8_000_000)));
        assert_eq!(all.limit, Some(Limit::Application));
        assert!(
            all.sentence.starts_with("All 1000 datagrams arrived: 8 Mbit/s"),
            "{}",
            all.sentence
        );
        let some = crate::explain(&measured(1000, 10, None));
        assert_eq!(some.limit, None);
        assert!(
            some.sentence.contains("10 of 1000 datagrams were lost (1 %)"),
            "{}",
            some.sentence
        );
        assert!(
            some.sentence.contains("in bursts of 2.5 on average and at most 3"),
            "{}",
            some.sentence
        );
        let slow = crate::explain(&measured(1000, 0, Some(80_000_000))).sentence;
        assert!(slow.contains("reached 8 Mbit/s of the requested 80 Mbit/s"), "{slow}");
        assert!(crate::explain(&measured(0, 0, None)).sentence.starts_with("No datagram"));
    }

    #[test]
    fn datagrams_that_stop_arriving_are_an_outage() {
        let stopped = |after: u64, whole: u64| {
            let mut m = measured(1000, 400, Some(8_000_000));
            m.streams[0].receiver = (0..=whole)
                .map(|tenth| ReceiverSample {
                    t_s: tenth as f64 / 10.0,
                    received_bytes: 10_000 * tenth.min(after),
                    ..ReceiverSample::default()
                })
                .collect();
            crate::explain(&m)
        };
        let found = stopped(16, 30);
        assert_eq!(found.limit, Some(Limit::Outage));
        assert!(found.sentence.contains("400 of 1000 datagrams were lost (40 %)"));
        assert!(found.sentence.contains("nothing arrived after 1.6 s"), "{}", found.sentence);
        assert_eq!(stopped(21, 30).limit, None, "for less than a second");
        assert_eq!(stopped(30, 30).limit, None);
    }

    #[test]
    fn fragments_that_never_arrive_are_named() {
        let mut m = measured(1000, 1000, Some(8_000_000));
        let text = crate::explain(&m).sentence;
        assert!(
            text.starts_with("None of 1000 datagrams arrived (100 % lost), although"),
            "{text}"
        );
        let fragmentation = Fragmentation { fragments: 14, largest_whole_bytes: 1472 };
        let datagrams = m.streams[0].datagrams.as_mut().unwrap();
        (datagrams.length_bytes, datagrams.fragmentation) = (20_480, Some(fragmentation));
        let text = crate::explain(&m).sentence;
        assert!(text.contains("datagrams of 20480 B are fragmented into 14"), "{text}");
        assert!(text.contains("drops fragments") && text.contains("-l 1472"), "{text}");
        m.streams[0].datagrams.as_mut().unwrap().received = 900;
        m.streams[0].datagrams.as_mut().unwrap().lost = 100;
        let text = crate::explain(&m).sentence;
        assert!(text.contains("one lost fragment loses the datagram"), "{text}");
    }

    #[test]
    fn missing_counts_are_no_loss() {
        let mut m = measured(1000, 0, None);
        m.streams[0].datagrams.as_mut().unwrap().received = 0;
        assert!(crate::explain(&m).sentence.contains("the amount received is unknown"));
    }
}
