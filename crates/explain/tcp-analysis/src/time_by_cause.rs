//! What a sender waited for, from one packet to the next: the time of a stream by cause.
//!
//! Web100 counts the time by the window that is full (RFC 4898), T-RAT by the shape of the
//! flights (Zhang et al. 2002). Here each interval between two packets has one cause, so the
//! times add up to the stream's duration, and each cause has its longest span as evidence.

/// What a sender waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeCause {
    /// The handshake is not complete.
    Handshake,
    /// Nothing more to send: nothing in flight, or a short segment was the last one.
    Application,
    /// The receive window is full.
    ReceiveWindow,
    /// The receive window is closed: less than a segment.
    ZeroWindow,
    /// The send buffer is all in flight.
    SendBuffer,
    /// Room in the congestion window, or the pacing timer.
    CongestionWindow,
    /// A loss is being repaired.
    Recovery,
    /// The retransmission timer.
    Timeout,
}

impl TimeCause {
    /// All of them, in the order of a stream's life.
    pub const ALL: [TimeCause; 8] = [
        TimeCause::Handshake,
        TimeCause::Application,
        TimeCause::ReceiveWindow,
        TimeCause::ZeroWindow,
        TimeCause::SendBuffer,
        TimeCause::CongestionWindow,
        TimeCause::Recovery,
        TimeCause::Timeout,
    ];

    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TimeCause::Handshake => "handshake",
            TimeCause::Application => "application",
            TimeCause::ReceiveWindow => "receive_window",
            TimeCause::ZeroWindow => "zero_window",
            TimeCause::SendBuffer => "send_buffer",
            TimeCause::CongestionWindow => "congestion_window",
            TimeCause::Recovery => "recovery",
            TimeCause::Timeout => "timeout",
        }
    }
}

/// An uninterrupted span of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Its first and its last packet.
    pub packets: (u64, u64),
    /// Its length.
    pub ns: u64,
}

/// The time of one cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeShare {
    /// Which.
    pub cause: TimeCause,
    /// In all.
    pub ns: u64,
    /// Of the stream's duration, 0 to 1; all of them add up to 1.
    pub share: f64,
    /// The longest span.
    pub longest: Span,
}

/// Spans that wait for data at most.
const MAX_WAITING: usize = 1024;

/// Adds up the time between packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeByCause {
    each: [(u64, Span); TimeCause::ALL.len()],
    open: Option<(TimeCause, Span)>,
    /// Spans since the last data: what comes next may show that the sender had nothing to send.
    waiting: Vec<(TimeCause, Span)>,
    /// The last packet and its time.
    last: Option<(u64, u64)>,
}

impl TimeByCause {
    /// A packet ends the time of `cause` since the one before; [`TimeByCause::settle`] follows
    /// where it is data. Times that run backwards count as no time.
    pub(crate) fn add(&mut self, cause: TimeCause, packet: u64, time_ns: u64) {
        let Some((before, last_ns)) = self.last else {
            self.last = Some((packet, time_ns));
            return;
        };
        self.last = Some((packet, time_ns.max(last_ns)));
        let ns = time_ns.saturating_sub(last_ns);
        if ns == 0 {
            return;
        }
        match self.waiting.last_mut() {
            Some((open, span)) if *open == cause => {
                span.ns += ns;
                span.packets.1 = packet;
            }
            _ => self.waiting.push((cause, Span { packets: (before, packet), ns })),
        }
        if self.waiting.len() > MAX_WAITING {
            self.settle(false);
        }
    }

    /// Data follows: if the sender's application had nothing to send until then (`is_idle`), the
    /// time since the last data is the application's, where no loss or window took it. Returns
    /// what the congestion window loses.
    pub(crate) fn settle(&mut self, is_idle: bool) -> u64 {
        let mut moved = 0;
        for (cause, span) in std::mem::take(&mut self.waiting) {
            let cause = match cause {
                TimeCause::CongestionWindow if is_idle => {
                    moved += span.ns;
                    TimeCause::Application
                }
                other => other,
            };
            self.enter(cause, span);
        }
        moved
    }

    fn enter(&mut self, cause: TimeCause, next: Span) {
        match &mut self.open {
            Some((open, span)) if *open == cause => {
                span.ns += next.ns;
                span.packets.1 = next.packets.1;
            }
            _ => {
                self.close();
                self.open = Some((cause, next));
            }
        }
    }

    fn close(&mut self) {
        if let Some((cause, span)) = self.open.take() {
            let (total, longest) = &mut self.each[cause as usize];
            *total += span.ns;
            if span.ns > longest.ns {
                *longest = span;
            }
        }
    }

    /// The causes that took time, the one that took most first. Of the time that the congestion
    /// window took, `buffered` spans were the send buffer's, and `application_ns` the application's.
    pub(crate) fn shares(&self, buffered: &[Span], application_ns: u64) -> Vec<TimeShare> {
        let mut closed = self.clone();
        closed.settle(false);
        closed.close();
        let mut each = closed.each;
        let window = &mut each[TimeCause::CongestionWindow as usize].0;
        let moved = buffered.iter().map(|span| span.ns).sum::<u64>().min(*window);
        *window -= moved;
        let to_application = application_ns.min(*window);
        *window -= to_application;
        each[TimeCause::Application as usize].0 += to_application;
        let longest = buffered.iter().copied().max_by_key(|span| span.ns).unwrap_or_default();
        let buffer = &mut each[TimeCause::SendBuffer as usize];
        *buffer = (buffer.0 + moved, longest);
        let total = each.iter().map(|(ns, _)| ns).sum::<u64>();
        let mut shares: Vec<TimeShare> = TimeCause::ALL
            .into_iter()
            .zip(each)
            .filter(|(_, (ns, _))| *ns > 0)
            .map(|(cause, (ns, longest))| TimeShare {
                cause,
                ns,
                share: ns as f64 / total as f64,
                longest,
            })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_and_the_longest_span_is_kept() {
        let mut times = TimeByCause::default();
        let causes = [
            (TimeCause::Handshake, 1, 100),
            (TimeCause::Handshake, 2, 140),
            (TimeCause::CongestionWindow, 3, 200),
            (TimeCause::CongestionWindow, 4, 260),
            (TimeCause::Recovery, 5, 300),
            (TimeCause::CongestionWindow, 6, 290),
            (TimeCause::CongestionWindow, 7, 310),
        ];
        for (cause, packet, ns) in causes {
            times.add(cause, packet, ns);
        }
        let span = |packets, ns| Span { packets, ns };
        let shares = times.shares(&[], 0);
        let found: Vec<_> = shares.iter().map(|it| (it.cause, it.ns, it.longest)).collect();
        assert_eq!(
            found,
            [
                (TimeCause::CongestionWindow, 130, span((2, 4), 120)),
                (TimeCause::Handshake, 40, span((1, 2), 40)),
                (TimeCause::Recovery, 40, span((4, 5), 40)),
            ]
        );
        assert!((shares.iter().map(|it| it.share).sum::<f64>() - 1.0).abs() < 1e-12);
        // The send buffer takes no more than there is.
        let shares = times.shares(&[span((3, 4), 1000)], 0);
        assert_eq!((shares[0].cause, shares[0].ns), (TimeCause::SendBuffer, 130));
        assert!(times.shares(&[], 0).iter().all(|it| it.cause != TimeCause::SendBuffer));
        assert!(TimeByCause::default().shares(&[], 0).is_empty());
    }
}
