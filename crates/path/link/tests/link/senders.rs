//! Senders that react to loss and marks with additive increase and multiplicative
//! decrease, and a ping beside them: enough of TCP to close the control loop.

use link::{FateKind, Link, LinkConfig, Train};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use units::Nanos;

/// Size of a ping packet, bytes.
const PING: u32 = 100;

/// Packet size in bytes, and the congestion window.
#[derive(Debug)]
struct Sender {
    size: u32,
    window: f64,
    in_flight: u64,
    slow_start: bool,
    /// Losses detected before this time belong to the same window.
    answered_until: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Came { marked: bool },
    Lost,
    SendPing,
}

/// Result for one packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) flow: u32,
    pub(crate) arrived: Nanos,
    pub(crate) size: u32,
    pub(crate) queued: Duration,
}

/// Runs bulk senders, and a ping every `ping` ns if given, over a link for `time` ns;
/// returns the delivered packets.
pub(crate) fn run(config: LinkConfig, sizes: &[u32], ping: Option<u64>, time: u64) -> Vec<Passed> {
    let delay = u64::try_from(config.delay.as_nanos()).unwrap();
    let mut link = Link::new(config);
    link.watch(true);
    let mut senders: Vec<Sender> = sizes.iter().map(|size| Sender::new(*size)).collect();
    let pinger = u32::try_from(sizes.len()).unwrap();
    let mut news = BinaryHeap::new();
    let mut passed = Vec::new();
    if ping.is_some() {
        news.push(Reverse((Nanos(0), pinger, News::SendPing)));
    }
    for (flow, sender) in (0..).zip(&mut senders) {
        sender.send(&mut link, Nanos(0), flow);
    }
    loop {
        let told = news.peek().map(|Reverse((at, ..))| *at);
        let Some(now) = [told, link.next_due()].into_iter().flatten().min() else { break };
        if now.0 > time {
            break;
        }
        while let Some(delivery) = link.release(now) {
            for _ in delivery.packets {
                let came = News::Came { marked: delivery.marked };
                news.push(Reverse((Nanos(now.0 + delay), delivery.payload, came)));
            }
        }
        while let Some(Reverse((at, flow, what))) = news.peek().copied().filter(|n| n.0.0 <= now) {
            news.pop();
            if let Some(sender) = senders.get_mut(flow as usize) {
                sender.learn(what, at, 2 * delay);
                sender.send(&mut link, now, flow);
            } else if let (News::SendPing, Some(spacing)) = (what, ping) {
                link.arrive(now, Train::single(PING).of_flow(flow), flow);
                news.push(Reverse((Nanos(now.0 + spacing), flow, News::SendPing)));
            }
        }
        for fate in link.fates().collect::<Vec<_>>() {
            match fate.kind {
                FateKind::Dropped(_) => {
                    let lost = Nanos(fate.decided.0 + 2 * delay);
                    news.push(Reverse((lost.max(now), fate.payload, News::Lost)));
                }
                FateKind::Delivered { queued, .. } => passed.push(Passed {
                    flow: fate.payload,
                    arrived: fate.arrived,
                    size: fate.train.size(fate.index),
                    queued,
                }),
            }
        }
    }
    passed
}

impl Sender {
    fn new(size: u32) -> Self {
        Sender { size, window: 10.0, in_flight: 0, slow_start: true, answered_until: Nanos(0) }
    }

    fn send(&mut self, link: &mut Link<u32>, now: Nanos, flow: u32) {
        while (self.in_flight as f64) < self.window.floor() {
            self.in_flight += 1;
            link.arrive(now, Train::single(self.size).of_flow(flow), flow);
        }
    }

    fn learn(&mut self, news: News, now: Nanos, round_trip: u64) {
        self.in_flight -= 1;
        match news {
            News::Came { marked: false } if self.slow_start => self.window += 1.0,
            News::Came { marked: false } => self.window += 1.0 / self.window,
            _ if now < self.answered_until => {}
            _ => {
                self.slow_start = false;
                self.window = (self.window / 2.0).max(1.0);
                self.answered_until = Nanos(now.0 + round_trip);
            }
        }
    }
}
