//! A step that measures loss: numbered datagrams of WebTransport, at a rate that the path has carried
//! twice over.

use super::message::{DatagramPlan, Plan, ServerMessage};
use super::series::Series;
use super::step::{Board, Ended, Outcome, Stage};
use super::validity::Ending;
use crate::datagrams::{Datagrams, Session, Steady};
use host::clock;
use host::lock::lock;
use hyper::body::Bytes;
use model::statistics::{Interval, proportion_interval};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// What a page that can open sessions says of itself.
pub(super) const TRANSPORT: &str = "webtransport";
/// Datagrams a second, on a path that carries at least [`HEADROOM`] times their bytes.
const PER_SECOND: f64 = 800.0;
const HEADROOM: f64 = 2.0;
/// Bytes of payload, and about those of the packet that carries it.
const PAYLOAD: usize = 64;
const ON_WIRE: usize = 144;
/// A tenth of a run's bytes are the most for them.
const MAX_SHARE: u64 = 10;
/// The fewest that say something, and the most of a step.
const MIN_COUNT: u32 = 100;
const MAX_COUNT: u32 = 8192;
/// The time in which the page opens the session: a lost packet of the handshake costs a second.
const OPEN_TIME: Duration = Duration::from_millis(4500);
/// The interval of sending, a datagram each.
const TICK: Duration = Duration::from_millis(1);
/// The time that sending may take longer than planned, in seconds.
const MAX_LATE_S: f64 = 2.0;
/// The time in which the last datagram arrives: RTTs, within these bounds.
const LAST_RTTS: u32 = 2;
const MIN_LAST: Duration = Duration::from_millis(500);
const MAX_LAST: Duration = Duration::from_secs(2);
/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Datagrams that a step sent and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// In packets on the wire: what waited in this process is not among them.
    pub(super) sent: u32,
    pub(super) lost: u32,
}

impl Counted {
    /// Of the numbers below `sent`, those without a bit in the page's report.
    fn of(sent: u32, received: &str) -> Option<Self> {
        let digit = |at: u32| -> Option<u8> {
            let byte = at / 8 * 2 + u32::from(at % 8 < 4);
            let digit = received.as_bytes().get(byte as usize)?;
            char::from(*digit).to_digit(16)?.try_into().ok()
        };
        let has = |at: &u32| digit(*at).is_some_and(|digit| digit >> (at % 4) & 1 == 1);
        let arrived = u32::try_from((0..sent).filter(has).count()).ok()?;
        // Without any, it is the session that failed.
        (arrived > 0).then_some(Counted { sent, lost: sent - arrived })
    }

    pub(super) fn ratio(self) -> f64 {
        f64::from(self.lost) / f64::from(self.sent)
    }

    /// The 95 % interval of the loss ratio, for independent losses.
    pub(super) fn interval(self) -> Option<Interval> {
        proportion_interval(self.lost.into(), self.sent.into(), CONFIDENCE)
    }

    fn sentence(self) -> String {
        let Counted { sent, lost } = self;
        let percent = |ratio: f64| units::significant(ratio * 100.0, 2);
        let share = percent(self.ratio());
        match self.interval() {
            Some(Interval { low, high }) => format!(
                "{lost} of {sent} datagrams were lost: {share} % (95 % interval: {} to {} %).",
                percent(low),
                percent(high)
            ),
            None => format!("{lost} of {sent} datagrams were lost: {share} %."),
        }
    }
}

/// Bytes of a run's that are kept for the step.
pub(super) fn reserved(seconds: f64, max_bytes: u64) -> u64 {
    ((seconds * PER_SECOND) as u64 * ON_WIRE as u64).min(max_bytes / MAX_SHARE)
}

/// The datagrams of a step on a path of this rate, bit/s, in so many bytes; `None` if they are too
/// few.
pub(super) fn plan(
    datagrams: &Datagrams,
    seconds: f64,
    rate: f64,
    bytes: u64,
) -> Option<DatagramPlan> {
    Some(DatagramPlan {
        port: datagrams.address().port(),
        certificate: datagrams.certificate(),
        count: count(seconds, rate, bytes)?,
    })
}

fn count(seconds: f64, rate: f64, bytes: u64) -> Option<u32> {
    let per_second = (rate / HEADROOM / (ON_WIRE * 8) as f64).min(PER_SECOND);
    let most = u32::try_from(bytes / ON_WIRE as u64).unwrap_or(MAX_COUNT).min(MAX_COUNT);
    let count = ((seconds * per_second).round() as u32).min(most);
    (count >= MIN_COUNT).then_some(count)
}

impl Stage {
    /// Carries out a step of datagrams.
    pub(super) async fn loss(
        &mut self,
        plan: Plan,
        datagrams: DatagramPlan,
    ) -> Result<Outcome, Ended> {
        let count = datagrams.count;
        let step = self.next;
        self.next += 1;
        let mut board = Board::new(step);
        self.run.expect(step, 0);
        let (sender, arriving) = oneshot::channel();
        *lock(&self.run.datagrams) = Some(sender);
        let transport = TRANSPORT;
        let message =
            ServerMessage::Step { step, transport, plan: &plan, datagrams: Some(datagrams) };
        self.say(&message).await?;
        let began = clock::now();
        let session = self.session(arriving, &mut board).await;
        *lock(&self.run.datagrams) = None;
        let session = session?;
        let is_open = session.is_some();
        let sent = match session {
            Some(session) => self.send(&session, count, plan.seconds, &mut board).await?,
            None => 0,
        };
        let seconds = began.elapsed().as_secs_f64();
        self.finish(Vec::new(), &mut board).await?;
        let received = board.datagrams.take().flatten();
        let counted = received.and_then(|received| Counted::of(sent, &received));
        let series = Series::new(plan.kind, 0);
        let mut outcome = self.outcome(plan, series, board, None, (Ending::Time, seconds));
        let unknown = match is_open {
            true => "No datagram is known to have arrived, so the loss is unknown.",
            false => "The browser opened no WebTransport session: UDP may be blocked.",
        };
        let sentence = counted.map_or_else(|| unknown.to_owned(), Counted::sentence);
        outcome.result.sentence = Some(sentence);
        outcome.datagrams = counted;
        self.say(&ServerMessage::StepResult(&outcome.result)).await?;
        Ok(outcome)
    }

    /// Waits for the session; `None` if the page cannot open it.
    async fn session(
        &mut self,
        mut arriving: oneshot::Receiver<Session>,
        board: &mut Board,
    ) -> Result<Option<Session>, Ended> {
        let deadline = sleep(OPEN_TIME);
        tokio::pin!(deadline);
        while board.datagrams.is_none() {
            tokio::select! {
                session = &mut arriving => return Ok(session.ok()),
                text = self.control.text() => board.take(&text.ok_or(Ended::Left)?)?,
                () = &mut deadline => break,
            }
        }
        Ok(None)
    }

    /// Sends the datagrams; the number of those that were put on the wire.
    async fn send(
        &mut self,
        session: &Session,
        count: u32,
        seconds: f64,
        board: &mut Board,
    ) -> Result<u32, Ended> {
        let connection = &session.connection;
        let written = || u32::try_from(connection.stats().frame_tx.datagram).unwrap_or(u32::MAX);
        let began = clock::now();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut next = 0;
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {}
                text = self.control.text() => {
                    board.take(&text.ok_or(Ended::Left)?)?;
                    continue;
                }
            }
            let elapsed = began.elapsed().as_secs_f64();
            let due = ((elapsed / seconds * f64::from(count)) as u32).saturating_add(1);
            // One at a time: those that wait together share a packet, whose loss would count twice.
            let is_due = next < due.min(count) && written() >= next;
            if is_due && connection.send_datagram(datagram(&session.prefix, next)).is_ok() {
                next += 1;
            }
            let is_done = next == count && written() >= count;
            if is_done || connection.close_reason().is_some() || elapsed > seconds + MAX_LATE_S {
                break;
            }
        }
        // What leaves in the last wait has no time to arrive.
        let sent = written().min(next);
        let last = (connection.rtt() * LAST_RTTS).clamp(MIN_LAST, MAX_LAST);
        let last = sleep(last);
        tokio::pin!(last);
        loop {
            tokio::select! {
                text = self.control.text() => board.take(&text.ok_or(Ended::Left)?)?,
                () = &mut last => break,
            }
        }
        if let Ok(steady) = connection.congestion_state().into_any().downcast::<Steady>() {
            self.ecn.take_datagrams(steady.marked);
        }
        Ok(sent)
    }
}

/// A datagram: the session's number, its own one, and padding.
fn datagram(prefix: &[u8], number: u32) -> Bytes {
    let mut bytes = prefix.to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(prefix.len() + PAYLOAD, 0);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_the_report_was_lost() {
        let count = |sent, bits| Counted::of(sent, bits).map(|counted| counted.lost);
        assert_eq!(count(16, "ffff"), Some(0));
        // Number 0 is the lowest bit of the first byte, 8 that of the second.
        assert_eq!(count(10, "fe02"), Some(2));
        assert_eq!(count(9, "ff01"), Some(0));
        // What was not sent is not lost, what is not reported is.
        assert_eq!(count(4, "ffff"), Some(0));
        assert_eq!(count(24, "ffff"), Some(8));
        assert_eq!((count(8, ""), count(8, "00"), count(0, "ff")), (None, None, None));
    }

    #[test]
    fn the_rate_is_far_below_the_paths() {
        let count = |seconds, rate| count(seconds, rate, reserved(seconds, 4_000_000_000));
        assert_eq!(count(3.0, 100e6), Some(2400));
        assert_eq!(count(3.0, 1e6), Some(1302));
        assert_eq!(count(3.0, 5e4), None);
        assert_eq!(count(1e5, 1e9), Some(MAX_COUNT));
        assert_eq!(super::count(3.0, 1e9, reserved(3.0, 1_000_000)), Some(694));
        let heard = Counted { sent: 2400, lost: 24 };
        let interval = heard.interval().unwrap();
        assert!(interval.low < 0.01 && interval.high > 0.01);
        assert!((interval.high - interval.low) / 2.0 < 0.007);
        assert!(heard.sentence().starts_with("24 of 2400 datagrams were lost: 1"));
    }
}
