//! How many connections carry near's session, and when one more is opened.
//!
//! One connection carries at most a window per RTT. Where the kernel grants less buffer than near was
//! asked to give each connection (`--buffer`), as many are opened as have that buffer together.

use crate::event::Event;
use crate::lane_buffers::{BufferKind, GrantedBuffers};
use std::time::{Duration, Instant};
use units::ByteCount;

/// Most connections where their number is not set.
const MOST_AUTOMATIC: usize = 8;
/// Pauses before a lost connection is replaced while others carry the session. Each loss has much sent
/// again, so those that follow one another soon wait longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A buffer that a kernel caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CappedBuffer {
    /// One of this box.
    Near(BufferKind),
    /// The smaller one of the far box.
    Far,
}

/// The connections of near's session.
pub(super) struct Connections {
    wanted: usize,
    set: Option<usize>,
    pause: Duration,
    retry_at: Instant,
}

impl Connections {
    /// `set` of them, or as many as are needed.
    pub(super) fn new(set: Option<usize>, now: Instant) -> Self {
        let wanted = set.unwrap_or(1);
        Connections { wanted, set, pause: FIRST_PAUSE, retry_at: now }
    }

    /// Far has answered on a session's only connection: decides how many there are to be. The reason,
    /// if there are several for the first time.
    pub(super) fn decide(
        &mut self,
        asked: Option<ByteCount>,
        near: Option<GrantedBuffers>,
        far: Option<ByteCount>,
    ) -> Option<Event> {
        if let Some(set) = self.set {
            self.wanted = set;
            return None;
        }
        let near = near.map(|granted| {
            let (kind, size) = granted.least();
            (size, CappedBuffer::Near(kind))
        });
        let far = far.map(|size| (size, CappedBuffer::Far));
        let (granted, capped) = near.into_iter().chain(far).min_by_key(|(size, _)| *size)?;
        let asked = asked?;
        let count = asked.bytes().div_ceil(granted.bytes().max(1));
        let count = usize::try_from(count).unwrap_or(usize::MAX).clamp(1, MOST_AUTOMATIC);
        let before = std::mem::replace(&mut self.wanted, count);
        (count > 1 && count != before).then_some(Event::SeveralConnections {
            connections: count,
            capped,
            granted,
            asked,
        })
    }

    /// UDT carries the session: its buffers are not the kernel's.
    pub(super) const fn one(&mut self) {
        self.wanted = 1;
    }

    /// The number to open beside those that are open or being opened.
    pub(super) fn missing(&self, open: usize, now: Instant) -> usize {
        if now < self.retry_at { 0 } else { self.wanted.saturating_sub(open) }
    }

    /// One was lost or refused while another one carries the session.
    pub(super) fn lost(&mut self, lived: Duration, now: Instant) {
        if lived >= LONGEST_PAUSE {
            self.pause = FIRST_PAUSE;
        }
        if now >= self.retry_at {
            self.retry_at = now + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn kib(size: u64) -> ByteCount {
        ByteCount::from_bytes(size * KIB)
    }

    #[test]
    fn as_many_are_opened_as_the_smallest_buffer_needs() {
        let count = |asked: Option<u64>, near: Option<[u64; 2]>, far: Option<u64>| {
            let mut all = Connections::new(None, host::clock::now());
            let near = near.map(|[send, receive]| GrantedBuffers::with(kib(send), kib(receive)));
            let event = all.decide(asked.map(kib), near, far.map(kib));
            let capped = event.map(|event| match event {
                Event::SeveralConnections { connections, capped, .. } => (connections, capped),
                other => panic!("{other:?}"),
            });
            (all.missing(0, host::clock::now()), capped)
        };
        let receive = CappedBuffer::Near(BufferKind::Receive);
        let send = CappedBuffer::Near(BufferKind::Send);
        assert_eq!(count(None, Some([208, 208]), Some(208)), (1, None), "autotuned");
        assert_eq!(count(Some(1000), None, None), (1, None), "nothing is known");
        assert_eq!(count(Some(1000), Some([1000, 1000]), Some(1000)), (1, None));
        assert_eq!(count(Some(1000), Some([1000, 999]), None), (2, Some((2, receive))));
        assert_eq!(count(Some(1000), Some([300, 999]), Some(400)), (4, Some((4, send))));
        assert_eq!(
            count(Some(1000), Some([1000, 1000]), Some(200)),
            (5, Some((5, CappedBuffer::Far)))
        );
        assert_eq!(count(Some(100_000), Some([208, 208]), None), (8, Some((8, receive))));
        assert_eq!(count(Some(1000), Some([0, 0]), None), (8, Some((8, receive))));
    }

    #[test]
    fn a_number_that_is_set_is_kept_and_reasons_are_given_once() {
        let now = host::clock::now();
        let small = Some(GrantedBuffers::with(kib(100), kib(100)));
        let mut set = Connections::new(Some(3), now);
        assert_eq!(set.decide(Some(kib(1000)), small, None), None);
        assert_eq!([0, 2, 3, 16].map(|open| set.missing(open, now)), [3, 1, 0, 0]);
        let mut all = Connections::new(None, now);
        assert!(all.decide(Some(kib(300)), small, None).is_some());
        assert_eq!(all.decide(Some(kib(300)), small, None), None, "a session that is resumed");
    }

    #[test]
    fn losses_that_follow_one_another_are_replaced_more_slowly() {
        let mut now = host::clock::now();
        let mut all = Connections::new(Some(4), now);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            all.lost(Duration::from_secs(1), now);
            all.lost(Duration::from_secs(1), now);
            let begin = now;
            while all.missing(3, now) == 0 {
                now += Duration::from_millis(100);
            }
            pauses.push(now.saturating_duration_since(begin).as_millis());
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[11], 30_000);
        all.lost(LONGEST_PAUSE, now);
        assert_eq!(all.missing(3, now + FIRST_PAUSE), 1);
    }
}
