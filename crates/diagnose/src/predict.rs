//! What the limit's equation gives, in payload, with its numbers in words.

use crate::{evidence::Evidence, judge, network};
use model::Payload;
use record::{Limit, Measurement};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// A goodput and the equation behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) rate: BitRate,
    pub(crate) equation: String,
}

/// What a known path carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathPayload {
    pub(crate) rate: BitRate,
    pub(crate) mss: u32,
    pub(crate) wire: u32,
    pub(crate) goodput: BitRate,
}

/// The known path's payload rate; `None` where no lab made it, or none limited it.
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

/// The congestion control used, else the one asked for.
pub(crate) fn congestion(m: &Measurement) -> Option<&str> {
    let used = m.streams.iter().find_map(|stream| stream.congestion.as_deref());
    used.or(m.spec.congestion.as_deref())
}

/// The goodput that `limit` allows; `None` where no equation says.
pub(crate) fn goodput(limit: Limit, m: &Measurement, e: &Evidence) -> Option<Prediction> {
    match limit {
        Limit::ReceiveWindow => receive_window(m, e),
        Limit::SendBuffer => send_buffer(m, e),
        Limit::Application => application(m),
        Limit::PathRate => path_rate(m, e),
        Limit::Loss => loss(m, e),
        Limit::Congestion => cwnd(m, e),
        Limit::Pacing => e.pacing.map(|rate| Prediction {
            rate,
            equation: format!("pacing rate = {rate} of TCP payload"),
        }),
        Limit::Policer | Limit::Cpu | Limit::Ramp | Limit::Unknown => None,
    }
}

fn receive_window(m: &Measurement, e: &Evidence) -> Option<Prediction> {
    let (windows, sum, rtt) = (e.windows.as_ref()?, e.window_sum()?, e.min_rtt?);
    let left = match windows.as_slice() {
        [one] => format!("window / RTT = {one}"),
        [first, rest @ ..] if rest.iter().all(|window| window == first) => {
            format!("streams x window / RTT = {} x {first}", windows.len())
        }
        _ => format!("windows / RTT = {sum} over {} streams", windows.len()),
    };
    over_rtt(&left, sum, rtt, m, e)
}

fn send_buffer(m: &Measurement, e: &Evidence) -> Option<Prediction> {
    let held = e.held?;
    over_rtt(&format!("send buffer / RTT = {held}"), held, e.min_rtt?, m, e)
}

/// The median window over the median round trip, queue and all.
fn cwnd(m: &Measurement, e: &Evidence) -> Option<Prediction> {
    let cwnd = e.cwnd?;
    over_rtt(&format!("congestion window / RTT = {cwnd}"), cwnd, e.loaded_rtt?, m, e)
}

fn over_rtt(
    left: &str,
    bytes: ByteCount,
    rtt: Rtt,
    m: &Measurement,
    e: &Evidence,
) -> Option<Prediction> {
    let rate = model::window_rate(bytes, rtt)?;
    Some(capped(rate, format!("{left} / {rtt} = {rate} of TCP payload"), m, e))
}

/// No equation gives more than the path carries.
fn capped(rate: BitRate, equation: String, m: &Measurement, e: &Evidence) -> Prediction {
    match path_payload(m, e) {
        Some(path) if path.goodput < rate => Prediction {
            rate: path.goodput,
            equation: format!("{equation}, of which the path carries {}", path.goodput),
        },
        _ => Prediction { rate, equation },
    }
}

fn application(m: &Measurement) -> Option<Prediction> {
    let (each, rate) = (m.spec.rate_bps?, judge::asked(m)?);
    let equation = match m.streams.len() {
        0 | 1 => format!("rate asked = {rate} of TCP payload"),
        n => format!("streams x rate asked = {n} x {each} = {rate} of TCP payload"),
    };
    Some(Prediction { rate, equation })
}

fn path_rate(m: &Measurement, e: &Evidence) -> Option<Prediction> {
    if let Some(PathPayload { rate, mss, wire, goodput }) = path_payload(m, e) {
        let equation =
            format!("rate x payload / packet = {rate} x {mss} / {wire} = {goodput} of TCP payload");
        return Some(Prediction { rate: goodput, equation });
    }
    let rate = e.delivery.filter(|rate| *rate > BitRate::ZERO)?;
    let equation = format!("median delivery rate = {rate} of TCP payload");
    Some(Prediction { rate, equation })
}

/// The loss the path was asked for, else the one seen: segments sent again over segments sent.
pub(crate) fn loss_ratio(m: &Measurement, e: &Evidence) -> Option<LossRatio> {
    let asked = m.path.as_ref().map(|path| path.loss).filter(|loss| *loss > LossRatio::NONE);
    asked.or_else(|| e.loss.and_then(model::loss_from_fraction)).filter(|p| *p > LossRatio::NONE)
}

/// What the equations of Reno and CUBIC give one stream, the lesser first.
pub(crate) fn loss_range(m: &Measurement, e: &Evidence) -> Option<(BitRate, BitRate)> {
    let (mss, rtt, p) = (e.mss?, e.loaded_rtt?, loss_ratio(m, e)?);
    let (reno, cubic) = (model::mathis(mss, rtt, p)?, model::cubic_region(mss, rtt, p)?);
    Some((reno.min(cubic), reno.max(cubic)))
}

fn loss(m: &Measurement, e: &Evidence) -> Option<Prediction> {
    let (mss, rtt, p) = (e.mss?, e.loaded_rtt?, loss_ratio(m, e)?);
    if network::is_bbr(m) {
        return None;
    }
    let reno = model::mathis(mss, rtt, p)?;
    let cubic = model::cubic_region(mss, rtt, p)?;
    // CUBIC is Linux' default; where Reno would be faster it does as Reno does.
    let as_reno = cubic <= reno || congestion(m) == Some("reno");
    let one = if as_reno { reno } else { cubic };
    let rate = one.scaled(e.streams.max(1) as f64);
    let (size, share) = (mss.bytes(), percent(p));
    let mut equation = if as_reno {
        format!("sqrt(3/2) x MSS / (RTT x sqrt(p)) = 1.22 x {size} B / ({rtt} x sqrt({share}))")
    } else {
        format!(
            "1.054 x (RTT / p)^(3/4) x MSS / RTT = 1.054 x ({rtt} / {share})^(3/4) x {size} B / {rtt}"
        )
    };
    equation += &format!(" = {one}");
    if e.streams > 1 {
        equation += &format!(", times {} streams = {rate}", e.streams);
    }
    Some(capped(rate, equation + " of TCP payload", m, e))
}

/// Two significant digits are all that a counted loss is worth.
pub(crate) fn percent(p: LossRatio) -> String {
    let percent = p.fraction() * 100.0;
    let places = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 10.0) } else { 0.0 };
    let text = format!("{percent:.*}", places as usize);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}
