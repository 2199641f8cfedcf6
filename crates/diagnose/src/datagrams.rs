//! UDP: what became of the datagrams, in plain words.
//!
//! A UDP sender has no window and no congestion control, and so no clocks:
//! what is known is the rate asked, what was sent and what arrived.

use crate::{evidence::Evidence, judge};
use record::{Datagrams, Limit, Measurement};
use units::BitRate;

/// A rate asked counts as reached from here.
const REACHED: f64 = 0.98;
/// Loss from here on says that something is full: 0.1 %.
const SOME: f64 = 1e-3;

/// All streams' books together.
struct Books {
    received: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    extent: u64,
    bursts: u64,
    longest: u64,
}

/// The limit, where the books tell one, and the sentence.
pub(crate) fn explain(m: &Measurement, e: &Evidence) -> (Option<Limit>, String) {
    let books = Books::of(m);
    if books.received == 0 {
        let text = "No datagram arrived: let UDP through the firewalls, both ways.";
        return (None, text.to_owned());
    }
    let lost = books.lost as f64 / (books.lost + books.received) as f64;
    let sent = sent_rate(m);
    let asked = judge::asked(m);
    let reached = match (asked, sent) {
        (Some(asked), Some(sent)) => sent.as_f64() >= REACHED * asked.as_f64(),
        _ => false,
    };
    let mut text = if books.lost == 0 {
        format!("All {} datagrams arrived, {}", books.received, e.average)
    } else {
        format!(
            "{} of {} datagrams were lost ({}){}: {} arrived",
            books.lost,
            books.lost + books.received,
            percent(lost),
            books.bursts(),
            e.average,
        )
    };
    text += &match (asked, sent) {
        (Some(asked), Some(sent)) if !reached => format!(
            "; the sender sent {sent} of the {asked} asked, which is all its core or device gives"
        ),
        (Some(asked), _) if lost < SOME => {
            format!("; the path carries the {asked} asked, and may carry more: see --find-rate")
        }
        (_, Some(sent)) if lost >= SOME => format!(
            " of {sent} sent: the path, or the receiver, takes no more in bursts like these; \
             --find-rate looks for the rate it takes"
        ),
        (None, Some(sent)) => format!(" of {sent} sent, as fast as the sender can"),
        _ => String::new(),
    };
    if books.duplicates > 0 {
        text += &format!("; {} came twice", books.duplicates);
    }
    if books.reordered > 0 {
        text += &format!("; {} came late, by up to {}", books.reordered, books.extent);
    }
    let limit = (reached && lost < SOME).then_some(Limit::Application);
    (limit, text + ".")
}

/// What the senders handed to their kernels, over all streams.
fn sent_rate(m: &Measurement) -> Option<BitRate> {
    let rate = |stream: &record::Stream| {
        // From the other end nothing is known but what it tells.
        (stream.sent_seconds > 0.0).then(|| stream.sent_bytes as f64 * 8.0 / stream.sent_seconds)
    };
    let rates: Option<Vec<f64>> = m.streams.iter().map(rate).collect();
    Some(BitRate::from_bps_f64(rates?.iter().sum()))
}

impl Books {
    fn of(m: &Measurement) -> Self {
        let books = || m.streams.iter().filter_map(|stream| stream.datagrams.as_ref());
        let sum = |count: fn(&Datagrams) -> u64| books().map(count).fold(0, u64::saturating_add);
        let bursts = || books().flat_map(|books| &books.loss_bursts);
        Books {
            received: sum(|books| books.received),
            lost: sum(|books| books.lost),
            duplicates: sum(|books| books.duplicates),
            reordered: sum(|books| books.reordered),
            extent: books().map(|books| books.reorder_extent).max().unwrap_or(0),
            bursts: bursts().map(|burst| burst.count).fold(0, u64::saturating_add),
            longest: bursts().map(|burst| burst.to).max().unwrap_or(0),
        }
    }

    /// How losses come, where the receiver tells.
    fn bursts(&self) -> String {
        match (self.bursts, self.longest) {
            (0, _) => String::new(),
            (_, 1) => ", each alone".to_owned(),
            (bursts, longest) => format!(
                ", {:.1} in a row on average and up to {longest}",
                self.lost as f64 / bursts as f64
            ),
        }
    }
}

fn percent(share: f64) -> String {
    if share >= 0.01 {
        format!("{:.1} %", share * 100.0)
    } else {
        format!("{:.3} %", share * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Direction, HostFacts, LossBurst, Protocol, Stream, TestSpec};

    fn measured(sent: u64, lost: u64, asked: Option<u64>) -> Measurement {
        let mut m = Measurement {
            schema: String::new(),
            version: String::new(),
            started_unix_s: 0,
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
            },
            host: HostFacts::default(),
            peer: String::new(),
            path: None,
            latency: None,
            streams: Vec::new(),
            sender_cpu: None,
            sender_core_wait: None,
            receiver_cpu: None,
            receiver_core_wait: None,
            notes: Vec::new(),
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
    fn what_arrived_is_said_first() {
        let all = crate::explain(&measured(1000, 0, Some(8_000_000)));
        assert_eq!(all.limit, Some(Limit::Application));
        assert!(
            all.sentence.starts_with("All 1000 datagrams arrived, 8 Mbit/s"),
            "{}",
            all.sentence
        );
        let some = crate::explain(&measured(1000, 10, None));
        assert_eq!(some.limit, None);
        assert!(
            some.sentence.contains("10 of 1000 datagrams were lost (1.0 %)"),
            "{}",
            some.sentence
        );
        assert!(some.sentence.contains("2.5 in a row on average and up to 3"), "{}", some.sentence);
        let slow = crate::explain(&measured(1000, 0, Some(80_000_000))).sentence;
        assert!(slow.contains("the sender sent 8 Mbit/s of the 80 Mbit/s asked"), "{slow}");
        assert!(crate::explain(&measured(0, 0, None)).sentence.starts_with("No datagram"));
    }
}
