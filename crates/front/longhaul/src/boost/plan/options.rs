//! The options for a transfer, the cheapest first.

use super::request::PlanSettings;
use super::situation::{Situation, interval};
use super::{commands, reasons};
use crate::boost::MAX_LANE_BUFFER;
use model::Congestion;
use model::boost::{self, Bound, Boxes, Estimate, Goodput, LongPath};
use record::{BOOST_WORTH, BoostKind, BoostObject, BoostOption, BoostReason, PredictionInterval};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The most connections that programs open: aria2's `-x`.
const MAX_STREAMS: u32 = 16;

/// Share of the path's rate from which more connections are not worth it.
const FULL: f64 = 0.95;

/// What parallel connections leave of the sum of their rates, under loss and otherwise.
const ADDED_UNDER_LOSS: f64 = 0.7;
const ADDED: f64 = 0.9;

/// Two congestion controls whose predictions differ by less are told apart by their lower ends.
const ALIKE: f64 = 0.05;

/// An edge at this share of the origin's RTT is nearer.
const NEARER: f64 = 0.95;

/// An option within this share of the best one is as good.
const AS_GOOD: f64 = 0.9;

/// An option's prediction, or why there is none.
type Predicted = Result<Goodput, BoostReason>;

/// Every option that was asked for.
pub(super) fn options(of: &Situation, settings: &PlanSettings) -> Vec<BoostOption> {
    let mut all = vec![nothing(of), route_option(of, settings)];
    let count = streams(of);
    let (predicted, commands) = match &count {
        Ok((count, goodput)) => (Ok(*goodput), commands::streams(*count)),
        Err(reason) => (Err(*reason), Vec::new()),
    };
    all.push(option(of, BoostKind::Streams, predicted, commands));
    let copied = of.path.and_then(|path| boost::udp_copy(&path).ok_or(BoostReason::NoModel));
    all.push(option(of, BoostKind::Copy, copied, commands::copy(of)));
    let pair = |path: LongPath, reduction: f64| {
        let boxes = Boxes { reduction, ..lanes(&path, of, settings) };
        let goodput = boost::split(&path, &of.connections, &boxes).ok_or(BoostReason::NoModel)?;
        Ok((boxes, goodput))
    };
    let commands =
        |(boxes, goodput): (Boxes, Goodput)| commands::pair(of, &boxes, goodput.rate.expected);
    let paired = of.path.and_then(|path| pair(path, 1.0));
    let goodput = paired.map(|(_, goodput)| goodput);
    all.push(option(of, BoostKind::Pair, goodput, paired.map(commands).unwrap_or_default()));
    if let Some(ratio) = settings.compressible {
        let ratio = if of.is_encrypted { 1.0 } else { ratio };
        let paired = path_for(of, BoostKind::CompressedPair).and_then(|path| pair(path, ratio));
        let goodput = paired.map(|(_, goodput)| goodput);
        let commands = paired.map(commands).unwrap_or_default();
        let mut compressed = option(of, BoostKind::CompressedPair, goodput, commands);
        let is_of_network = compressed.reason.is_none_or(reasons::is_saturation);
        if of.is_encrypted && is_of_network && compressed.factor.is_some() {
            compressed.reason = Some(BoostReason::Ciphertext);
        }
        all.push(compressed);
    }
    if let Some(rtt) = settings.edge_rtt {
        all.push(edge(of, settings, rtt));
    }
    all
}

/// The cheapest option within a tenth of the best one. Left out are an edge, which serves only what
/// it has cached, and a route behind a send buffer, where BBR has half of its rate at times.
pub(super) fn recommended(options: &[BoostOption]) -> Option<BoostKind> {
    let gain = |one: &BoostOption| match one.kind {
        BoostKind::Edge => 0.0,
        _ if one.reason.is_some() || one.needed_send_buffer.is_some() => 0.0,
        _ => one.factor.map_or(0.0, |factor| factor.expected),
    };
    let best = options.iter().map(gain).fold(0.0, f64::max);
    let is_as_good = |one: &&BoostOption| gain(one) >= BOOST_WORTH && gain(one) >= AS_GOOD * best;
    options.iter().find(is_as_good).map(|one| one.kind)
}

/// The path of an option: of a bottleneck that is saturated, what the transfer has of it.
fn path_for(of: &Situation, kind: BoostKind) -> Result<LongPath, BoostReason> {
    match of.verdict {
        Some(reason) if reasons::is_saturation(reason) && !reasons::remains(reason, kind) => {
            of.own_share()
        }
        _ => of.path,
    }
}

fn nothing(of: &Situation) -> BoostOption {
    let reason = match of.verdict {
        Some(reason) if !reason.is_unpredicted() => reason,
        _ if of.is_already_bbr() => BoostReason::AlreadyBbr,
        _ => BoostReason::AsItIs,
    };
    let factor = of.now.map(|_| interval(Estimate::exact(1.0)));
    BoostOption { goodput_bps: of.now.map(interval), ..without(BoostKind::Nothing, factor, reason) }
}

/// An option without a gain.
fn without(
    kind: BoostKind,
    factor: Option<PredictionInterval<f64>>,
    reason: BoostReason,
) -> BoostOption {
    BoostOption {
        kind,
        goodput_bps: None,
        factor,
        object: None,
        reason: Some(reason),
        needed_send_buffer: None,
        about: about(kind),
        commands: Vec::new(),
    }
}

/// An option that leaves the limit as it is. If another cause may be the limit, it gains up to its
/// prediction; without one, or with one below the present goodput, nothing can be said of the figures.
fn unchanged(
    of: &Situation,
    kind: BoostKind,
    reason: BoostReason,
    predicted: Option<Goodput>,
) -> BoostOption {
    let Some(now) = of.now else { return without(kind, None, reason) };
    // If the bottleneck is not saturated, the transfer shows no more than a lower bound of its rate.
    let predicted = predicted.filter(|_| of.is_rate_known || !reasons::is_saturation(reason));
    let rate = match predicted {
        _ if !of.is_uncertain => Some(now),
        Some(other) if other.rate.high > now.high => {
            Some(Estimate { high: other.rate.high, ..now })
        }
        _ => None,
    };
    let factor = rate.map(|rate| factor(&rate, &now));
    BoostOption { goodput_bps: rate.map(interval), ..without(kind, factor, reason) }
}

/// An option with its factor, or with the reason where that is about 1.
fn option(
    of: &Situation,
    kind: BoostKind,
    predicted: Predicted,
    commands: Vec<String>,
) -> BoostOption {
    if let Some(reason) = of.verdict.filter(|reason| reasons::remains(*reason, kind)) {
        return match reason.is_unpredicted() {
            true => without(kind, None, reason),
            false => unchanged(of, kind, reason, predicted.ok()),
        };
    }
    let (goodput, now) = match (predicted, of.now) {
        (Err(reason), _) if reason.is_unpredicted() => return without(kind, None, reason),
        // The option changes nothing, whatever the limit is.
        (Err(reason), Some(now)) => {
            let same = Some(interval(Estimate::exact(1.0)));
            let goodput_bps = Some(interval(now));
            return BoostOption { goodput_bps, ..without(kind, same, reason) };
        }
        (_, None) => return without(kind, None, BoostReason::NoModel),
        (Ok(goodput), Some(now)) => (goodput, now),
    };
    let mut rate = goodput.rate;
    if of.is_uncertain {
        rate.low = rate.low.min(now.expected);
        rate.high = rate.high.max(now.expected);
    }
    let factor = factor(&rate, &now);
    let gains = factor.expected >= BOOST_WORTH;
    BoostOption {
        kind,
        goodput_bps: Some(interval(rate)),
        factor: Some(factor),
        object: None,
        reason: (!gains).then(|| reasons::no_gain(of, kind, &goodput, factor.expected)),
        needed_send_buffer: None,
        about: about(kind),
        commands: if gains { commands } else { Vec::new() },
    }
}

/// The ratio of a prediction to the present goodput, with the ends of both intervals.
fn factor(rate: &Estimate<BitRate>, now: &Estimate<BitRate>) -> PredictionInterval<f64> {
    let over = |rate: BitRate, now: BitRate| rate.as_f64() / now.as_f64().max(1.0);
    PredictionInterval {
        expected: over(rate.expected, now.expected),
        low: over(rate.low, now.high),
        high: over(rate.high, now.low),
    }
}

/// BBR for this destination, with the windows that are there.
fn route(of: &Situation) -> Predicted {
    let path = of.path?;
    if of.connections.congestion == Congestion::Bbr {
        return Err(reasons::with_bbr(of));
    }
    let with_bbr = of.with_buffers(Congestion::Bbr);
    let goodput = boost::direct(&path, &with_bbr).ok_or(BoostReason::NoModel)?;
    // A measured transfer shows what its hosts' cores carry.
    let is_shown =
        of.limit.is_some() && of.now.is_some_and(|now| goodput.rate.expected < now.expected);
    if is_shown && goodput.bound == Bound::Cpu {
        return Err(BoostReason::HostCpu);
    }
    Ok(goodput)
}

/// Settings of a route, and the send buffer that they would need where it is the limit.
fn route_option(of: &Situation, settings: &PlanSettings) -> BoostOption {
    let predicted = route(of);
    let is_behind_buffer = of.known.send_buffer.is_some()
        && predicted.is_ok_and(|goodput| goodput.bound == Bound::Window);
    let option = option(of, BoostKind::Route, predicted, commands::route(of, settings));
    let is_told = option.factor.is_some() && of.verdict.is_none();
    let needed = of.path.ok().filter(|_| is_behind_buffer && is_told).map(|path| {
        let window = model::per_stream(
            model::bdp(path.rate.expected, path.rtt.expected),
            of.connections.count,
        );
        ByteCount::from_f64(window.as_f64() / model::AUTOTUNED_SEND_SHARE).rounded_up_to(1 << 20)
    });
    BoostOption { needed_send_buffer: needed, ..option }
}

/// As many connections as fill the path, at most [`MAX_STREAMS`], and their goodput.
fn streams(of: &Situation) -> Result<(u32, Goodput), BoostReason> {
    let (path, now) = (of.path?, of.now.ok_or(BoostReason::NoModel)?);
    let count = of.connections.count.max(1);
    if count >= MAX_STREAMS {
        return Err(BoostReason::Parallel);
    }
    let most = |count| boost::most(&path, count).ok_or(BoostReason::NoModel);
    let full = most(MAX_STREAMS)?.rate.expected.as_f64();
    let needed = (FULL * full * f64::from(count) / now.expected.as_f64().max(1.0)).ceil();
    // Fewer than twice as many are no more connections.
    let least = (2 * count).min(MAX_STREAMS);
    let total = needed.clamp(f64::from(least), f64::from(MAX_STREAMS)) as u32;
    let cap = most(total)?;
    let has_loss = path.loss.expected > LossRatio::NONE;
    let added = if has_loss { ADDED_UNDER_LOSS } else { ADDED };
    let sum = now.map(|now| now.scaled(f64::from(total) / f64::from(count)));
    // Of a measured transfer, the assumed CPU may be less than what it shows.
    let expected = sum.expected.min(cap.rate.expected.max(now.expected));
    let rate = Estimate {
        low: sum.low.min(cap.rate.low).scaled(added).min(expected),
        expected,
        high: sum.high.min(cap.rate.high).max(expected),
    };
    let bound = if sum.expected < cap.rate.expected { Bound::Congestion } else { cap.bound };
    Ok((total, Goodput { rate, bound }))
}

/// Boxes with buffers for the path, and the congestion control that carries more.
fn lanes(path: &LongPath, of: &Situation, settings: &PlanSettings) -> Boxes {
    let boxes = |congestion| Boxes {
        congestion,
        window: None,
        lan_rtt: settings.lan_rtt,
        lan_rate: settings.lan_rate,
        reduction: 1.0,
    };
    let carried = |congestion| boost::split(path, &of.connections, &boxes(congestion));
    let is_bbr_better = match (carried(Congestion::Cubic), carried(Congestion::Bbr)) {
        (Some(cubic), Some(bbr)) => {
            let (one, other) = (cubic.rate.expected.as_f64(), bbr.rate.expected.as_f64());
            if (one - other).abs() <= ALIKE * one.max(other) {
                bbr.rate.low > cubic.rate.low
            } else {
                other > one
            }
        }
        (None, _) => true,
        (Some(_), None) => false,
    };
    boxes(if is_bbr_better { Congestion::Bbr } else { Congestion::Cubic })
}

/// A cached object, from an edge at `rtt` instead of the origin.
fn edge(of: &Situation, settings: &PlanSettings, rtt: Rtt) -> BoostOption {
    let size = settings.object;
    if let Some(reason) = of.verdict.filter(|reason| reasons::remains(*reason, BoostKind::Edge)) {
        return option(of, BoostKind::Edge, Err(reason), Vec::new());
    }
    let times = path_for(of, BoostKind::Edge).and_then(|far| {
        let near = LongPath { rtt: Estimate::exact(rtt), ..far };
        let time = |path: &LongPath| {
            boost::object_time(path, &of.connections, size).ok_or(BoostReason::NoModel)
        };
        Ok((time(&far)?, time(&near)?, far.rtt.expected))
    });
    let (now, then, far_rtt) = match times {
        Ok(times) => times,
        Err(reason) => return without(BoostKind::Edge, None, reason),
    };
    let rate = |seconds: f64| BitRate::from_bps_f64(8.0 * size.as_f64() / seconds.max(1e-9));
    let over = |now: f64, then: f64| now / then.max(1e-9);
    let mut factor = PredictionInterval {
        expected: over(now.expected, then.expected),
        low: over(now.low, then.high),
        high: over(now.high, then.low),
    };
    if of.is_uncertain {
        (factor.low, factor.high) = (factor.low.min(1.0), factor.high.max(1.0));
    }
    let is_near = rtt.secs_f64() < NEARER * far_rtt.secs_f64();
    let no_gain = if is_near { BoostReason::LineFull } else { BoostReason::Farther };
    let object = BoostObject { bytes: size, now_s: now.expected, then_s: then.expected };
    BoostOption {
        kind: BoostKind::Edge,
        goodput_bps: Some(PredictionInterval {
            expected: rate(then.expected),
            low: rate(then.high),
            high: rate(then.low),
        }),
        factor: Some(factor),
        object: Some(object),
        reason: (factor.expected < BOOST_WORTH).then_some(no_gain),
        needed_send_buffer: None,
        about: about(BoostKind::Edge),
        commands: Vec::new(),
    }
}

/// What an option is, and what it needs.
fn about(kind: BoostKind) -> String {
    let text = match kind {
        BoostKind::Nothing => "no change",
        BoostKind::Route => {
            "congestion control and initial windows of the route to this destination, on the sending \
             host (root); programs stay as they are"
        }
        BoostKind::Streams => "parallel connections, by the program's own option",
        BoostKind::Copy => "another program, on both hosts: files only, over UDP",
        BoostKind::Pair => "a box near each host; programs and hosts stay as they are",
        BoostKind::CompressedPair => {
            "the pair with zstd between the boxes, for data that it shrinks by this ratio"
        }
        BoostKind::Edge => "an HTTP cache near the clients, such as nginx: cached objects only",
    };
    text.to_owned()
}

/// A lane's buffer: twice the BDP of a predicted goodput, whole MiB, and what boxes take.
pub(super) fn lane_buffer(path: &LongPath, goodput: BitRate) -> ByteCount {
    let window = model::bdp(goodput, path.rtt.high);
    window.times(2).rounded_up_to(1 << 20).min(MAX_LANE_BUFFER)
}
