//! Building blocks of the causes' predictions: a window over an RTT, the path's payload
//! rate, and the response of congestion control to loss.

use crate::{causes::Observed, evidence::Evidence};
use model::Payload;
use record::Measurement;
use units::{BitRate, ByteCount, LossRatio, Rtt, percent};

/// The shortest RTT over which a window is a rate. The kernel counts in µs, with a floor
/// of 1 µs; TCP over loopback takes about 10 µs.
const SHORTEST_RTT: Rtt = Rtt::from_micros(5);

/// A bound above this multiple of the goodput is no limit, and is not printed.
const FAR_ABOVE: f64 = 100.0;

/// A median delivery rate below this share of the goodput is not the bottleneck's.
const DELIVERED: f64 = 0.95;

/// A goodput and the equation behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) rate: BitRate,
    pub(crate) equation: String,
}

/// The payload rate of a known path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathPayload {
    pub(crate) rate: BitRate,
    pub(crate) mss: u32,
    pub(crate) wire: u32,
    pub(crate) goodput: BitRate,
}

/// The known path's payload rate; `None` outside a lab, or without a rate limit.
pub(crate) fn path_payload(m: &Measurement, e: &Evidence) -> Option<PathPayload> {
    let path = m.path.as_ref()?;
    let rate = path.rate_bps.filter(|rate| *rate > BitRate::ZERO)?;
    let measured = e.mss.and_then(|mss| u32::try_from(mss.bytes()).ok());
    let mss = match measured {
        Some(mss) if mss < path.mtu_bytes => mss,
        _ => Payload::of_ip(path.mtu_bytes).mss()?,
    };
    let wire = path.mtu_bytes.saturating_add(path.overhead_bytes);
    let goodput = rate.scaled(model::share_of(mss, wire)?);
    Some(PathPayload { rate, mss, wire, goodput })
}

/// `bytes / rtt`; `None` if the RTT is unknown, below what a kernel can measure, or so
/// short that the rate is no limit: 99 MB over 1 µs would be 792 Tbit/s.
pub(crate) fn window_rate(
    bytes: Option<ByteCount>,
    rtt: Option<Rtt>,
    e: &Evidence,
) -> Option<(ByteCount, Rtt, BitRate)> {
    let (bytes, rtt) = bytes.zip(rtt.filter(|rtt| *rtt >= SHORTEST_RTT))?;
    let rate = model::window_rate(bytes, rtt)?;
    (rate.as_f64() <= FAR_ABOVE * e.goodput.as_f64()).then_some((bytes, rtt, rate))
}

/// The prediction `left / RTT`, where `left` is `bytes` in words.
pub(crate) fn over_rtt(
    left: &str,
    bytes: Option<ByteCount>,
    rtt: Option<Rtt>,
    o: &Observed<'_>,
) -> Option<Prediction> {
    let (_, rtt, rate) = window_rate(bytes, rtt, o.e)?;
    Some(capped(rate, format!("{left} / {rtt} = {rate} of TCP payload"), o))
}

/// No prediction exceeds the path's payload rate.
pub(crate) fn capped(rate: BitRate, equation: String, o: &Observed<'_>) -> Prediction {
    match path_payload(o.m, o.e) {
        Some(path) if path.goodput < rate => Prediction {
            rate: path.goodput,
            equation: format!("{equation}, capped at the path's {}", path.goodput),
        },
        _ => Prediction { rate, equation },
    }
}

/// The payload rate of a saturated bottleneck: the known path's, else as delivered.
pub(crate) fn bottleneck(o: &Observed<'_>) -> Option<Prediction> {
    if let Some(PathPayload { rate, mss, wire, goodput }) = path_payload(o.m, o.e) {
        let equation =
            format!("rate x payload / packet = {rate} x {mss} / {wire} = {goodput} of TCP payload");
        return Some(Prediction { rate: goodput, equation });
    }
    // ACKs that come in bursts make the kernel's estimate too low.
    let rate = o.e.delivery.filter(|rate| rate.as_f64() >= DELIVERED * o.e.goodput.as_f64())?;
    let rate = Some(rate).filter(|rate| *rate > BitRate::ZERO)?;
    let equation = format!("median delivery rate = {rate} of TCP payload");
    Some(Prediction { rate, equation })
}

/// The configured loss of the path, else the measured one: retransmitted segments over sent segments.
pub(crate) fn loss_ratio(m: &Measurement, e: &Evidence) -> Option<LossRatio> {
    let asked = m.path.as_ref().map(|path| path.loss).filter(|loss| *loss > LossRatio::NONE);
    asked.or_else(|| e.loss.and_then(model::loss_from_fraction)).filter(|p| *p > LossRatio::NONE)
}

/// The rates that the equations of Reno and CUBIC give one stream, the lower first.
pub(crate) fn loss_range(m: &Measurement, e: &Evidence) -> Option<(BitRate, BitRate)> {
    let (mss, rtt, p) = (e.mss?, e.loaded_rtt?, loss_ratio(m, e)?);
    let (reno, cubic) = (model::mathis(mss, rtt, p)?, model::cubic_region(mss, rtt, p)?);
    Some((reno.min(cubic), reno.max(cubic)))
}

/// The losses or marks from which their ratio is known well enough for an equation: of twenty, the
/// ratio's 95 % interval is a factor of 1.5 to either side, and the window before the first of them
/// hardly counts any more.
const ENOUGH_EVENTS: f64 = 20.0;

/// The goodput with timeouts, of which CUBIC's are Reno's: windows are small there.
fn with_timeouts(mss: ByteCount, rtt: Rtt, p: LossRatio, o: &Observed<'_>) -> Option<Prediction> {
    let rto = model::linux_rto(rtt);
    let path = model::RenoPath { mss, rtt, rto, window: None, packets_per_ack: 1 };
    let sent = model::pftk(&path, p)?;
    let one = sent.scaled(1.0 - p.fraction());
    let rate = one.scaled(o.e.streams.max(1) as f64);
    let mut equation = format!(
        "Padhye's model with timeouts, at a loss of {} over {rtt} with an RTO of {rto} = {one}",
        percent(p.fraction())
    );
    if o.e.streams > 1 {
        equation += &format!(", times {} streams = {rate}", o.e.streams);
    }
    Some(capped(rate, equation + " of TCP payload", o))
}

/// The goodput of Reno or CUBIC whose window is reduced once per `1 / p` segments, as `events` of
/// them show; `None` if they are too few, and for BBR, which does not respond to single losses.
pub(crate) fn response(p: LossRatio, events: f64, o: &Observed<'_>) -> Option<Prediction> {
    let (mss, rtt) = (o.e.mss?, o.e.loaded_rtt?);
    let is_known = o.m.path.as_ref().is_some_and(|path| path.loss > LossRatio::NONE);
    if o.facts.is_bbr() || (!is_known && events < ENOUGH_EVENTS) {
        return None;
    }
    if p.fraction() >= model::TIMEOUT_LOSS {
        return with_timeouts(mss, rtt, p, o);
    }
    let reno = model::mathis(mss, rtt, p)?;
    let cubic = model::cubic_region(mss, rtt, p)?;
    // CUBIC is the Linux default; in its Reno-friendly region (RFC 9438, 4.3) it follows Reno.
    let as_reno = cubic <= reno || o.facts.is_reno();
    let one = if as_reno { reno } else { cubic };
    let rate = one.scaled(o.e.streams.max(1) as f64);
    let (size, share) = (mss.bytes(), percent(p.fraction()));
    let mut equation = if as_reno {
        format!("sqrt(3/2) x MSS / (RTT x sqrt(p)) = 1.22 x {size} B / ({rtt} x sqrt({share}))")
    } else {
        format!(
            "1.054 x (RTT / p)^(3/4) x MSS / RTT = 1.054 x ({rtt} / {share})^(3/4) x {size} B / {rtt}"
        )
    };
    equation += &format!(" = {one}");
    if o.e.streams > 1 {
        equation += &format!(", times {} streams = {rate}", o.e.streams);
    }
    Some(capped(rate, equation + " of TCP payload", o))
}
