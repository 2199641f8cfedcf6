//! The goodput of a long transfer as it is, over a pair of boxes that splits TCP, and over UDT.
//!
//! > direct = min(C (1 - p), n W / RTT, n cc(RTT, p), CPU)
//! >
//! > split = min over legs of the same, of the relay's rate and of what one program keeps in flight
//!
//! C is the bottleneck's payload rate, W the window of each of n connections (RFC 7323, section
//! 1.1), cc the response of the congestion control: Mathis et al. 1997 and RFC 9438, section 5.1, for
//! independent losses (`random_loss.rs`), less the time in timeouts by Padhye et al. 1998, and that
//! model alone from [`TIMEOUT_LOSS`] on; Cardwell et al. 2016 for BBR, less its ProbeRTT phases. Under
//! loss, the mean rate of Reno and CUBIC stays below the minimum where a window or the link is near.
//! That a split connection carries the minimum over its legs was measured for 7875 pairs of legs by
//! Yuan, Rossman and Winstein, USENIX ATC 2025.
//!
//! W is at most TCP's largest window (RFC 7323, section 2.3), and CPU what the hosts' cores carry. A
//! program's own window opens when data is delivered in order, after a repair: `program_rate`.
//!
//! Every input is an [`Estimate`]. A goodput falls with RTT and loss and rises with the rate, so its
//! interval is that of the worst and of the best inputs, widened by the known error of the equation
//! that bounds it.

use crate::{
    BBR_ACCURATE_LOSS, Congestion, MAX_WINDOW, RenoPath, TIMEOUT_LOSS, Transfer,
    bbr_probe_rtt_share, bdp, linux_rto, loss_from_fraction, pftk, random_loss, statistics,
    transfer, window_rate,
};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Share of a lane's payload that is the applications': TLS 1.3 adds 22 bytes to at most 16 KiB
/// (RFC 8446, section 5.2), a length header precedes each run, and streams of lanes end with messages.
pub const PAIR_PAYLOAD: f64 = 0.99;

/// Rate of one connection through a pair with TLS, bit/s: each box receives, decrypts or encrypts,
/// and sends. An estimate, for two cores; plaintext is faster.
const RELAY_RATE: Estimate<u64> =
    Estimate { low: 2_000_000_000, expected: 5_000_000_000, high: 8_000_000_000 };

/// Rate of data before compression at which zstd's level 1 uses up a core (its authors measure 4
/// Gbit/s and more).
const COMPRESSION_RATE: Estimate<u64> =
    Estimate { low: 1_500_000_000, expected: 3_000_000_000, high: 5_000_000_000 };

/// Share of the expected reduction that short blocks and the adaptive level leave.
const REDUCTION_KEPT: [f64; 2] = [0.9, 1.0];

/// Payload of UDT's packets over that of TCP's: a longer header and a message authentication code.
const UDT_PAYLOAD: f64 = 0.98;

/// Rate of one encrypted UDT connection at which its threads use up a core, bit/s.
const UDT_RATE: Estimate<u64> =
    Estimate { low: 1_000_000_000, expected: 2_000_000_000, high: 4_000_000_000 };

/// UDT with BBR against the equation: 0.80 to 0.97 of the rate in the lab and in virtual time
/// (docs/design/udt.md).
const UDT_ERROR: [f64; 2] = [0.75, 1.0];

/// Rate of one TCP connection at which it uses up a core of a host, bit/s. An estimate: with both ends
/// on the same two cores, 17 to 20 Gbit/s were measured.
const HOST_RATE: Estimate<u64> =
    Estimate { low: 10_000_000_000, expected: 20_000_000_000, high: 50_000_000_000 };

/// Cores of a host or of a box that several connections share.
const CORES: u32 = 2;

/// Loss ratio above which Reno and CUBIC have no equation: a connection waits for timers most of the
/// time, and may end (RFC 9293, section 3.8.3). A judgement, not a measurement.
pub const MAX_EQUATION_LOSS: f64 = 0.3;

/// A loss ratio's confidence level.
const CONFIDENCE: f64 = 0.95;

/// A value and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<T> {
    /// Lower end.
    pub low: T,
    /// The value.
    pub expected: T,
    /// Upper end.
    pub high: T,
}

impl<T: Copy> Estimate<T> {
    /// A value that is known exactly.
    #[must_use]
    pub const fn exact(value: T) -> Self {
        Estimate { low: value, expected: value, high: value }
    }

    /// The same of each of the three, in their order.
    #[must_use]
    pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> Estimate<U> {
        Estimate { low: of(self.low), expected: of(self.expected), high: of(self.high) }
    }
}

/// The loss ratio of `lost` of `sent` packets, with its interval by Clopper and Pearson (1934).
/// `None` if nothing was sent.
#[must_use]
pub fn loss_estimate(lost: u64, sent: u64) -> Option<Estimate<LossRatio>> {
    let lost = lost.min(sent);
    let interval = statistics::proportion_interval(lost, sent, CONFIDENCE)?;
    Some(Estimate {
        low: loss_from_fraction(interval.low)?,
        expected: loss_from_fraction(lost as f64 / sent as f64)?,
        high: loss_from_fraction(interval.high)?,
    })
}

/// A path between two hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongPath {
    /// The bottleneck's rate, in payload.
    pub rate: Estimate<BitRate>,
    /// The RTT, queueing included where it is measured under load.
    pub rtt: Estimate<Rtt>,
    /// Random loss.
    pub loss: Estimate<LossRatio>,
    /// Payload of a full segment.
    pub mss: ByteCount,
}

/// The TCP connections of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// The sender's congestion control.
    pub congestion: Congestion,
    /// The smaller one of the receive window and the send buffer's part in flight, of each; `None`
    /// where both hold the path.
    pub window: Option<ByteCount>,
    /// What the program itself keeps in flight on each: requests, or a window of its protocol.
    pub program_window: Option<ByteCount>,
    /// Their number; 0 counts as 1.
    pub count: u32,
}

/// The boxes of a pair, and the networks between them and the hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boxes {
    /// Congestion control of the lanes.
    pub congestion: Congestion,
    /// Window of a lane; `None` where its buffers hold the path.
    pub window: Option<ByteCount>,
    /// RTT between a host and its box.
    pub lan_rtt: Rtt,
    /// Payload rate between them; `None` if it is no limit.
    pub lan_rate: Option<BitRate>,
    /// Bytes of the applications for each byte on the path, 1 without compression.
    pub reduction: f64,
}

/// The term of the minimum that bounds a goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The bottleneck's rate.
    Link,
    /// Window over RTT.
    Window,
    /// The same with TCP's largest window ([`MAX_WINDOW`]).
    LargestWindow,
    /// The response of the congestion control to loss.
    Congestion,
    /// What the program keeps in flight, over the RTT.
    ProgramWindow,
    /// The networks between hosts and boxes, with the hosts' window.
    Lan,
    /// The CPUs of the boxes or of the hosts.
    Cpu,
}

/// A predicted goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// Its value and interval.
    pub rate: Estimate<BitRate>,
    /// What bounds the expected value.
    pub bound: Bound,
}

/// One of the three values of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Worst,
    Expected,
    Best,
}

impl Case {
    const ALL: [Case; 3] = [Case::Worst, Case::Expected, Case::Best];

    /// Of a quantity that raises the goodput.
    const fn rising<T: Copy>(self, of: &Estimate<T>) -> T {
        match self {
            Case::Worst => of.low,
            Case::Expected => of.expected,
            Case::Best => of.high,
        }
    }

    /// Of a quantity that lowers it.
    const fn falling<T: Copy>(self, of: &Estimate<T>) -> T {
        match self {
            Case::Worst => of.high,
            Case::Expected => of.expected,
            Case::Best => of.low,
        }
    }
}

impl LongPath {
    fn transfer(&self, case: Case, window: Option<ByteCount>) -> Transfer {
        Transfer {
            size: ByteCount::ZERO,
            link: case.rising(&self.rate),
            rtt: case.falling(&self.rtt),
            loss: case.falling(&self.loss),
            mss: self.mss,
            window,
            initial: crate::INITIAL_WINDOW_SEGMENTS as u32,
        }
    }
}

/// The rate of parallel connections once slow start is over, and its bound: the minimum of the link
/// and of the sums of their windows and responses, with BBR less ProbeRTT. `None` without a model
/// (BBR above 20 % loss, others above [`MAX_EQUATION_LOSS`]) or with an RTT of zero.
#[must_use]
pub fn long_rate(
    path: &Transfer,
    congestion: Congestion,
    connections: u32,
) -> Option<(BitRate, Bound)> {
    let &Transfer { link, rtt, loss, window, .. } = path;
    let count = f64::from(connections.max(1));
    let link = link.scaled(1.0 - loss.fraction());
    let (window, by_window) = match window.filter(|window| *window < MAX_WINDOW) {
        Some(window) => (window, Bound::Window),
        None => (MAX_WINDOW, Bound::LargestWindow),
    };
    let window = Some(window_rate(window, rtt)?.scaled(count));
    let response = response(path, congestion)?.scaled(count);
    let mut least = (link, Bound::Link);
    lower(&mut least, window, by_window);
    lower(&mut least, Some(response), Bound::Congestion);
    if congestion == Congestion::Bbr {
        least.0 = least.0.scaled(1.0 - bbr_probe_rtt_share(rtt));
    } else if loss > LossRatio::NONE {
        least.0 = random_loss::beside(response, window, link, connections);
    }
    (rtt > Rtt::ZERO).then_some(least)
}

/// The steady rate of one connection without a window or, of Reno and CUBIC under loss, a link; with
/// the timeouts of Padhye et al. where they count.
fn response(path: &Transfer, congestion: Congestion) -> Option<BitRate> {
    let loss = path.loss.fraction();
    let Some(free) = random_loss::free_rate(path, congestion) else {
        return congestion.steady(&Transfer { window: None, ..*path });
    };
    if loss > MAX_EQUATION_LOSS {
        return None;
    }
    let reno = RenoPath {
        mss: path.mss,
        rtt: path.rtt,
        rto: linux_rto(path.rtt),
        window: None,
        packets_per_ack: 1,
    };
    let carried = pftk(&reno, path.loss);
    if loss >= TIMEOUT_LOSS {
        return Some(carried?.scaled(1.0 - loss).min(free));
    }
    let at_once = pftk(&RenoPath { rto: Rtt::ZERO, ..reno }, path.loss);
    // Without loss the equation has no value, and there are no timeouts.
    let share = carried.zip(at_once).map_or(1.0, |(rate, most)| rate.as_f64() / most.as_f64());
    Some(free.scaled(share))
}

/// The measured error of an equation, as factors of its value: docs/design/boost-plan.md.
fn error(congestion: Congestion, bound: Bound, loss: f64) -> [f64; 2] {
    match (congestion, bound) {
        // Where the link is near, bursts after repairs queue.
        (_, Bound::ProgramWindow) if loss > 0.0 => [0.75, 1.05],
        (_, Bound::ProgramWindow | Bound::Lan | Bound::Cpu) => [0.9, 1.02],
        // Behind a buffer smaller than the path it had half of CUBIC's rate (docs/design/routes.md).
        (Congestion::Bbr, Bound::Window | Bound::LargestWindow) => [0.45, 1.05],
        (Congestion::Bbr, _) if loss > BBR_ACCURATE_LOSS => [0.3, 1.0],
        (Congestion::Bbr, _) => [0.85, 1.05],
        (_, Bound::Congestion) => [0.7, 1.4],
        (_, Bound::Link) => [0.85, 1.0],
        (_, Bound::Window | Bound::LargestWindow) => [0.9, 1.02],
    }
}

/// The goodput of a transfer between the hosts. `None` without a model.
#[must_use]
pub fn direct(path: &LongPath, of: &Connections) -> Option<Goodput> {
    estimate(|case| {
        let ends = path.transfer(case, of.window);
        let mut least = long_rate(&ends, of.congestion, of.count)?;
        lower(&mut least, program_rate(of, &ends), Bound::ProgramWindow);
        let cpu = cores_rate(&HOST_RATE, of.count, case);
        lower(&mut least, Some(cpu), Bound::Cpu);
        let loss = ends.loss.fraction();
        Some(Bounded {
            rate: least.0,
            bound: least.1,
            error: error(of.congestion, least.1, loss),
            most: ends.link.scaled(1.0 - loss).min(cpu),
        })
    })
}

/// The most that so many connections carry, whatever their congestion control: the path, TCP's
/// largest windows, and the CPUs of the hosts. `None` with an RTT of zero.
#[must_use]
pub fn most(path: &LongPath, connections: u32) -> Option<Goodput> {
    estimate(|case| {
        let ends = path.transfer(case, None);
        let mut least = (ends.link.scaled(1.0 - ends.loss.fraction()), Bound::Link);
        let windows = window_rate(MAX_WINDOW, ends.rtt)?.scaled(f64::from(connections.max(1)));
        lower(&mut least, Some(windows), Bound::LargestWindow);
        lower(&mut least, Some(cores_rate(&HOST_RATE, connections, case)), Bound::Cpu);
        Some(Bounded { rate: least.0, bound: least.1, error: [1.0, 1.0], most: least.0 })
    })
}

/// The goodput through a pair of boxes: the minimum over the legs, the boxes and the program.
/// `None` without a model.
#[must_use]
pub fn split(path: &LongPath, of: &Connections, boxes: &Boxes) -> Option<Goodput> {
    let reduction = if boxes.reduction > 1.0 { boxes.reduction } else { 1.0 };
    estimate(|case| {
        let lanes = path.transfer(case, boxes.window);
        let kept = Estimate { low: REDUCTION_KEPT[0], expected: 1.0, high: REDUCTION_KEPT[1] };
        let factor = match reduction > 1.0 {
            true => (reduction * case.rising(&kept)).max(1.0),
            false => 1.0,
        } * PAIR_PAYLOAD;
        let (rate, by) = long_rate(&lanes, boxes.congestion, of.count)?;
        let loss = lanes.loss.fraction();
        let mut least = (rate.scaled(factor), by);
        let mut most = lanes.link.scaled((1.0 - loss) * factor);
        let cpu = if reduction > 1.0 { COMPRESSION_RATE } else { RELAY_RATE };
        let cpu = cores_rate(&cpu, of.count, case);
        let far_rtt = lanes.rtt.nanos().saturating_add(2 * boxes.lan_rtt.nanos());
        let whole = Transfer { rtt: Rtt::from_nanos(far_rtt), ..lanes };
        for (rate, bound) in [
            (boxes.lan_rate, Bound::Lan),
            (window_rate(window(of), boxes.lan_rtt).map(|one| one.scaled(count(of))), Bound::Lan),
            (Some(cpu), Bound::Cpu),
            (program_rate(of, &whole), Bound::ProgramWindow),
        ] {
            lower(&mut least, rate, bound);
            most = rate.map_or(most, |rate| most.min(rate));
        }
        let error = error(boxes.congestion, least.1, loss);
        Some(Bounded { rate: least.0, bound: least.1, error, most })
    })
}

/// The goodput of a copy over UDT with BBR. `None` above 20 % loss.
#[must_use]
pub fn udp_copy(path: &LongPath) -> Option<Goodput> {
    estimate(|case| {
        let ends = path.transfer(case, None);
        let (rate, bound) = long_rate(&ends, Congestion::Bbr, 1)?;
        let mut least = (rate.scaled(UDT_PAYLOAD), bound);
        lower(&mut least, Some(BitRate::from_bps(case.rising(&UDT_RATE))), Bound::Cpu);
        let loss = ends.loss.fraction();
        let accurate = if loss > BBR_ACCURATE_LOSS { [0.3, 1.0] } else { UDT_ERROR };
        let most = ends.link.scaled((1.0 - loss) * UDT_PAYLOAD);
        Some(Bounded { rate: least.0, bound: least.1, error: accurate, most })
    })
}

/// The time of an object of `size` from the SYN to its last byte, s: connection and request, rounds
/// of slow start, the rest at the steady rate ([`transfer()`]). `low` is the shortest. `None`
/// without a model, or for a size of zero.
#[must_use]
pub fn object_time(path: &LongPath, of: &Connections, size: ByteCount) -> Option<Estimate<f64>> {
    let ends = |case: Case| {
        let ends = Transfer { size, ..path.transfer(case, Some(window(of))) };
        Transfer { link: ends.link.min(cores_rate(&HOST_RATE, 1, case)), ..ends }
    };
    let of_case = |case| transfer(&ends(case), of.congestion).map(|course| course.seconds);
    let (_, bound) = long_rate(&ends(Case::Expected), of.congestion, 1)?;
    let expected = of_case(Case::Expected)?;
    let high = of_case(Case::Worst).unwrap_or(f64::INFINITY).max(expected);
    let low = of_case(Case::Best)?.min(expected);
    // The start is a count of RTTs; the steady part has the equation's error.
    let error = error(of.congestion, bound, path.loss.expected.fraction());
    Some(Estimate { low: low / error[1], expected, high: high / error[0] })
}

/// Returns true if each connection's window holds the path without queueing.
#[must_use]
pub fn holds_path(path: &LongPath, of: &Connections) -> bool {
    let needed = bdp(path.rate.expected, path.rtt.expected);
    let holds = |window: ByteCount| window.times(u64::from(of.count.max(1))) >= needed;
    holds(window(of)) && of.program_window.is_none_or(holds)
}

/// A rate in one case of the inputs.
struct Bounded {
    rate: BitRate,
    bound: Bound,
    /// The error of the equation behind it, as factors.
    error: [f64; 2],
    /// The rate that nothing exceeds.
    most: BitRate,
}

/// The rates of all cases, as an interval around the expected one.
fn estimate(of: impl Fn(Case) -> Option<Bounded>) -> Option<Goodput> {
    let [worst, expected, best] = Case::ALL.map(of);
    let (expected, best) = (expected?, best?);
    let low = worst.map_or(BitRate::ZERO, |case| case.rate.scaled(case.error[0]));
    let high = best.rate.scaled(best.error[1]).min(best.most).max(expected.rate);
    let low = low.min(expected.rate.scaled(expected.error[0])).min(expected.rate);
    Some(Goodput { rate: Estimate { low, expected: expected.rate, high }, bound: expected.bound })
}

fn lower(least: &mut (BitRate, Bound), rate: Option<BitRate>, bound: Bound) {
    if let Some(rate) = rate.filter(|rate| *rate < least.0) {
        *least = (rate, bound);
    }
}

/// What a program's own window W carries. It opens when data is delivered in order, so what follows
/// a loss waits until the repair, one RTT after the loss:
///
/// > W / (RTT (2 - (1 - exp(-n)) / n)), n = p W / MSS
///
/// n losses within a window are independent; a packet waits for what is left of the RTT after the last of
/// them, `1 - (1 - exp(-n)) / n` RTTs in the mean.
fn program_rate(of: &Connections, path: &Transfer) -> Option<BitRate> {
    let window = of.program_window?;
    let losses = path.loss.fraction() * window.as_f64() / path.mss.as_f64();
    // exp_m1 keeps the digits of few losses.
    let wait = if losses > 0.0 { 1.0 + (-losses).exp_m1() / losses } else { 0.0 };
    Some(window_rate(window, path.rtt)?.scaled(count(of) / (1.0 + wait)))
}

/// The window of each connection, which TCP bounds where nothing else does.
fn window(of: &Connections) -> ByteCount {
    of.window.unwrap_or(MAX_WINDOW).min(MAX_WINDOW)
}

fn count(of: &Connections) -> f64 {
    f64::from(of.count.max(1))
}

/// What the cores carry that connections share, of which [`CORES`] are assumed; `rate` is one core's.
fn cores_rate(rate: &Estimate<u64>, connections: u32, case: Case) -> BitRate {
    let cores = f64::from(connections.clamp(1, CORES));
    BitRate::from_bps(case.rising(rate)).scaled(cores)
}

#[cfg(test)]
mod tests;
