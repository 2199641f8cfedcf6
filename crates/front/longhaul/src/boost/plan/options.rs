//! The options for a transfer, the cheapest first.

use super::commands;
use super::request::PlanSettings;
use super::situation::{Situation, interval};
use model::Congestion;
use model::boost::{self, Bound, Boxes, Connections, Estimate, Goodput, LongPath};
use record::{BOOST_WORTH, BoostKind, BoostObject, BoostOption, BoostReason, PredictionInterval};
use units::{BitRate, ByteCount, Rtt};

/// The most connections that programs open: aria2's `-x`.
const MAX_STREAMS: u32 = 16;

/// Share of the path's rate from which more connections are not worth it.
const FULL: f64 = 0.95;

/// What parallel connections leave of the sum of their rates, under loss and otherwise.
const ADDED_UNDER_LOSS: f64 = 0.7;
const ADDED: f64 = 0.9;

/// Two congestion controls whose predictions differ by less are told apart by their lower ends.
const ALIKE: f64 = 0.05;

/// An option within this share of the best one is as good.
const AS_GOOD: f64 = 0.9;

/// An option's prediction, or why there is none.
type Predicted = Result<Goodput, BoostReason>;

/// Every option that was asked for.
pub(super) fn options(of: &Situation, settings: &PlanSettings) -> Vec<BoostOption> {
    let mut all = vec![nothing(of)];
    all.push(option(of, BoostKind::Route, route(of), commands::route(of, settings)));
    let count = streams(of);
    let (predicted, commands) = match &count {
        Ok((count, goodput)) => (Ok(*goodput), commands::streams(*count)),
        Err(reason) => (Err(*reason), Vec::new()),
    };
    all.push(option(of, BoostKind::Streams, predicted, commands));
    let copied = path(of).and_then(|path| boost::udp_copy(&path).ok_or(BoostReason::NoModel));
    all.push(option(of, BoostKind::Copy, copied, commands::copy(of)));
    let lanes = path(of).map(|path| lanes(&path, of, settings));
    let pair = |reduction: f64| {
        let boxes = lanes.map(|lanes| Boxes { reduction, ..lanes })?;
        boost::split(&path(of)?, &of.connections, &boxes).ok_or(BoostReason::NoModel)
    };
    let commands = |reduction: f64| {
        let pair = |lanes| commands::pair(of, &Boxes { reduction, ..lanes });
        lanes.map(pair).unwrap_or_default()
    };
    all.push(option(of, BoostKind::Pair, pair(1.0), commands(1.0)));
    if let Some(ratio) = settings.compressible {
        let ratio = if of.is_encrypted { 1.0 } else { ratio };
        let mut compressed = option(of, BoostKind::CompressedPair, pair(ratio), commands(ratio));
        if of.is_encrypted && compressed.reason.is_none() {
            compressed.reason = Some(BoostReason::Ciphertext);
        }
        all.push(compressed);
    }
    if let Some(rtt) = settings.edge_rtt {
        all.push(edge(of, settings, rtt));
    }
    all
}

/// The cheapest option within a tenth of the best one. Left out is an edge, which serves only what it has
/// cached.
pub(super) fn recommended(options: &[BoostOption]) -> Option<BoostKind> {
    let gain = |one: &BoostOption| match one.kind {
        BoostKind::Edge => 0.0,
        _ if one.reason.is_some() => 0.0,
        _ => one.factor.map_or(0.0, |factor| factor.expected),
    };
    let best = options.iter().map(gain).fold(0.0, f64::max);
    let is_as_good = |one: &&BoostOption| gain(one) >= BOOST_WORTH && gain(one) >= AS_GOOD * best;
    options.iter().find(is_as_good).map(|one| one.kind)
}

fn path(of: &Situation) -> Result<LongPath, BoostReason> {
    of.path
}

fn nothing(of: &Situation) -> BoostOption {
    let reason = match of.verdict {
        Some(reason) if !reason.is_unpredicted() => reason,
        _ if of.is_already_bbr() => BoostReason::AlreadyBbr,
        _ => BoostReason::AsItIs,
    };
    BoostOption {
        kind: BoostKind::Nothing,
        goodput_bps: of.now.map(interval),
        factor: of.now.map(|_| interval(Estimate::exact(1.0))),
        object: None,
        reason: Some(reason),
        about: about(BoostKind::Nothing),
        commands: Vec::new(),
    }
}

/// An option with its factor, or with the reason where that is about 1.
fn option(
    of: &Situation,
    kind: BoostKind,
    predicted: Predicted,
    commands: Vec<String>,
) -> BoostOption {
    let without = |goodput_bps, factor, reason| BoostOption {
        kind,
        goodput_bps,
        factor,
        object: None,
        reason: Some(reason),
        about: about(kind),
        commands: Vec::new(),
    };
    let unchanged =
        |reason| without(of.now.map(interval), Some(interval(Estimate::exact(1.0))), reason);
    if let Some(reason) = of.verdict.filter(|reason| !is_mended(*reason, kind)) {
        return match reason.is_unpredicted() {
            true => without(None, None, reason),
            false => unchanged(reason),
        };
    }
    let (goodput, now) = match (predicted, of.now) {
        (Err(reason), _) if reason.is_unpredicted() => return without(None, None, reason),
        (Err(reason), _) => return unchanged(reason),
        (Ok(_), None) => return without(None, None, BoostReason::NoModel),
        (Ok(goodput), Some(now)) => (goodput, now),
    };
    let mut rate = goodput.rate;
    if of.is_uncertain {
        rate.low = rate.low.min(now.expected);
    }
    let factor = factor(&rate, &now);
    if factor.expected < BOOST_WORTH {
        let reason = no_gain(of, kind, &goodput);
        return without(Some(interval(rate)), Some(factor), reason);
    }
    let (goodput_bps, factor) = (Some(interval(rate)), Some(factor));
    BoostOption {
        kind,
        goodput_bps,
        factor,
        object: None,
        reason: None,
        about: about(kind),
        commands,
    }
}

/// Returns true if an option removes what limits the transfer although others do not: further
/// connections and another program have windows of their own.
const fn is_mended(reason: BoostReason, kind: BoostKind) -> bool {
    matches!(reason, BoostReason::ProgramWindow)
        && matches!(kind, BoostKind::Streams | BoostKind::Copy)
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

/// Why an option with a model brings nothing.
fn no_gain(of: &Situation, kind: BoostKind, goodput: &Goodput) -> BoostReason {
    if of.is_already_bbr() {
        return BoostReason::AlreadyBbr;
    }
    let link = of.path.as_ref().map_or(BitRate::ZERO, |path| path.rate.expected);
    if of.now.is_some_and(|now| now.expected.as_f64() >= AS_GOOD * link.as_f64()) {
        return BoostReason::LineFull;
    }
    match (kind, goodput.bound) {
        (_, Bound::ProgramWindow) => BoostReason::ProgramWindow,
        (_, Bound::Lan) => BoostReason::Lan,
        (_, Bound::Cpu) => BoostReason::BoxCpu,
        (BoostKind::Route, Bound::Window) => BoostReason::WindowRemains,
        (_, Bound::Link) => BoostReason::LineFull,
        _ => BoostReason::NotCongestion,
    }
}

/// BBR for this destination alone, with the windows that are there.
fn route(of: &Situation) -> Predicted {
    let path = path(of)?;
    if of.connections.congestion == Congestion::Bbr {
        return Err(BoostReason::AlreadyBbr);
    }
    if of.connections.window.is_some() && !boost::holds_path(&path, &of.connections) {
        return Err(BoostReason::WindowRemains);
    }
    let window = of.connections.window.or(of.send_window);
    let with_bbr = Connections { congestion: Congestion::Bbr, window, ..of.connections };
    if !boost::holds_path(&path, &Connections { program_window: None, ..with_bbr }) {
        // BBR behind a smaller buffer has no model (docs/design/routes.md).
        return Err(BoostReason::WindowRemains);
    }
    boost::direct(&path, &with_bbr).ok_or(BoostReason::NoModel)
}

/// As many connections as fill the path, at most [`MAX_STREAMS`], and their goodput.
fn streams(of: &Situation) -> Result<(u32, Goodput), BoostReason> {
    let (path, now) = (path(of)?, of.now.ok_or(BoostReason::NoModel)?);
    let count = of.connections.count.max(1);
    let most = MAX_STREAMS / count;
    if most < 2 {
        return Err(BoostReason::Parallel);
    }
    let link = path.rate.expected.as_f64();
    let needed = (FULL * link / now.expected.as_f64().max(1.0)).ceil();
    // A ratio below 2 is 2: fewer are no more connections.
    let times = (needed.clamp(2.0, f64::from(most))) as u32;
    let cap = Estimate {
        low: path.rate.low.scaled(1.0 - path.loss.high.fraction()),
        expected: path.rate.expected.scaled(1.0 - path.loss.expected.fraction()),
        high: path.rate.high.scaled(1.0 - path.loss.low.fraction()),
    };
    let added = if of.connections.window.is_some() { ADDED } else { ADDED_UNDER_LOSS };
    let sum = now.map(|now| now.scaled(f64::from(times)));
    let expected = sum.expected.min(cap.expected);
    let rate = Estimate {
        low: sum.low.min(cap.low).scaled(added).min(expected),
        expected,
        high: sum.high.min(cap.high).max(expected),
    };
    let bound = if sum.expected < cap.expected { Bound::Congestion } else { Bound::Link };
    Ok((times * count, Goodput { rate, bound }))
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
    let times = path(of).and_then(|far| {
        let near = LongPath { rtt: Estimate::exact(rtt), ..far };
        let time = |path: &LongPath| {
            boost::object_time(path, &of.connections, size).ok_or(BoostReason::NoModel)
        };
        Ok((time(&far)?, time(&near)?))
    });
    let (now, then) = match times {
        Ok(times) => times,
        Err(reason) => return option(of, BoostKind::Edge, Err(reason), Vec::new()),
    };
    if of.verdict.is_some() {
        return option(of, BoostKind::Edge, Err(BoostReason::NoModel), Vec::new());
    }
    let rate = |seconds: f64| BitRate::from_bps_f64(8.0 * size.as_f64() / seconds.max(1e-9));
    let over = |now: f64, then: f64| now / then.max(1e-9);
    let factor = PredictionInterval {
        expected: over(now.expected, then.expected),
        low: over(now.low, then.high),
        high: over(now.high, then.low),
    };
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
        reason: (factor.expected < BOOST_WORTH).then_some(BoostReason::LineFull),
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

/// A lane's buffer: twice the path's BDP, whole MiB.
pub(super) fn lane_buffer(path: &LongPath) -> ByteCount {
    let window = model::bdp(path.rate.expected, path.rtt.high);
    window.times(2).rounded_up_to(1 << 20)
}
