//! Losses that no queue causes, and what is mistaken for them.

use crate::Scenario;
use crate::draws::{BasePath, Draws, PACKET_BITS};
use control::Algorithm;
use units::{BitRate, ByteCount, Rtt};

/// Policers below the bottleneck rate, with buckets of 1 to 500 ms.
pub(super) fn policer(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((4.0, 2000.0), (1.0, 300.0));
    let rate = base.rate * draws.between(0.1, 0.8);
    let bucket = (rate * 125.0 * draws.log(1.0, 500.0)).max(3_000.0);
    let path = format!(
        "{},{},police={:.0}kbit:{bucket:.0}",
        base.path(),
        draws.any_queue(&base),
        rate * 1e3
    );
    Scenario {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Independent loss: 3 to 300 a run, or as much as leaves a share of the rate.
pub(super) fn independent(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((4.0, 2000.0), (2.0, 300.0));
    let congestion = draws.mostly_loss_based(0.92);
    let streams = draws.few_streams();
    let loss = random_loss(draws, &base, congestion, streams);
    let path = format!("{},{},loss={:.6}%", base.path(), draws.any_queue(&base), loss * 100.0);
    Scenario {
        congestion,
        streams,
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Gilbert-Elliott loss, and bursts of lost packets.
pub(super) fn clustered(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((4.0, 2000.0), (2.0, 300.0));
    let congestion = draws.mostly_loss_based(0.92);
    let streams = draws.few_streams();
    let loss = if draws.chance(0.7) {
        // Each cluster is one event for the control, however many packets it has.
        let clusters = random_loss(draws, &base, congestion, streams);
        let mean_length = draws.log(2.0, 20.0);
        let bad = draws.one(&[100.0, 100.0, 50.0, 30.0]);
        format!("loss=ge:{:.6}%:{:.4}%:{bad}%", clusters * 100.0, 100.0 / mean_length)
    } else {
        let every = draws.log(0.3, 3.0) * 1e3;
        format!("bursts={:.0}p@{every:.0}ms", draws.log(3.0, 40.0))
    };
    Scenario {
        congestion,
        streams,
        reverse: draws.reverse(0.4),
        ..Scenario::new(format!("{},{},{loss}", base.path(), draws.any_queue(&base)), base.seconds)
    }
}

/// Packets that overtake others, by little and by more than an RTT.
pub(super) fn reordering(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((10.0, 1000.0), (4.0, 250.0));
    // Without congestion control's own losses, only reordering is left to react to.
    let queue = draws.drop_tail(&base, (0.5, 8.0), 40.0);
    // Overtaking by a quarter of the RTT is what Linux adapts to (RFC 8985, section 6.2).
    let effect = if draws.chance(0.6) {
        let by = base.rtt * draws.log(0.15, 2.0);
        format!("reorder={:.4}%:{:.0}us", draws.log(0.02, 4.0), by * 1e3)
    } else {
        let kind = draws.one(&["exponential", "exponential", "normal"]);
        format!("jitter={kind}:{:.0}us,overtake=yes", base.rtt * draws.log(0.04, 0.4) * 1e3)
    };
    Scenario {
        congestion: draws.loss_based(),
        streams: draws.few_streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(format!("{},{queue},{effect}", base.path()), base.seconds)
    }
}

/// Slow or lossy directions of acknowledgements.
pub(super) fn ack_path(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((20.0, 1000.0), (4.0, 200.0));
    let reverse = draws.reverse(0.5);
    let back = if reverse { "up" } else { "down" };
    let data = if reverse { "down" } else { "up" };
    // Both directions have a queue of their own.
    let queue = draws.any_queue(&base);
    let forward_queue: Vec<String> =
        queue.split(',').map(|option| format!("{data}.{option}")).collect();
    let forward_queue = forward_queue.join(",");
    // An acknowledgement of 52 bytes for every two packets of 1500: below a fiftieth of
    // the rate, its own direction is the bottleneck.
    let slow = base.rate / draws.log(55.0, 600.0);
    let queue = (draws.log(20.0, 1000.0)).round();
    let mut path = format!("{},{forward_queue},{back}.rate={:.0}kbit", base.path(), slow * 1e3);
    path += &format!(",{back}.queue={queue:.0}p");
    if draws.chance(0.3) {
        path += &format!(",{back}.loss={:.1}%", draws.log(1.0, 40.0));
    }
    Scenario {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse,
        ..Scenario::new(path, base.seconds)
    }
}

/// A loss ratio: half of the draws give a number of losses, half a share of the rate.
pub(super) fn random_loss(
    draws: &mut Draws,
    base: &BasePath,
    congestion: Algorithm,
    streams: u32,
) -> f64 {
    let streams = f64::from(streams);
    let wish = if draws.chance(0.5) {
        let losses = draws.log(3.0, 300.0);
        bisect(|loss| losses_a_run(base, congestion, loss, streams) > losses)
    } else {
        let share = draws.log(0.05, 0.9);
        bisect(|loss| rate_at(base, congestion, loss) * streams < base.rate * share)
    };
    wish.clamp(1e-6, 0.1)
}

/// Losses within a run by the response function, at most the bottleneck's rate.
fn losses_a_run(base: &BasePath, congestion: Algorithm, loss: f64, streams: f64) -> f64 {
    let rate = (rate_at(base, congestion, loss) * streams).min(base.rate);
    loss * rate * 1e6 * base.seconds / PACKET_BITS
}

/// The rate in Mbit/s that a control reaches at a loss ratio (RFC 9438: CUBIC by the
/// larger of its two equations). BBR is drawn as CUBIC, which has no such function.
fn rate_at(base: &BasePath, congestion: Algorithm, loss: f64) -> f64 {
    let (mss, rtt) = (ByteCount::from_bytes(1448), Rtt::from_micros((base.rtt * 1e3) as u64));
    let rate = model::loss_from_fraction(loss).map(|p| {
        let reno = model::mathis(mss, rtt, p);
        if congestion == Algorithm::NewReno {
            reno
        } else {
            reno.max(model::cubic_region(mss, rtt, p))
        }
    });
    rate.flatten().map_or(f64::INFINITY, |rate: BitRate| rate.as_f64() / 1e6)
}

/// The least loss ratio that is `enough`, which more losses are too.
fn bisect(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (1e-7f64, 0.1f64);
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if enough(middle) { high = middle } else { low = middle }
    }
    low
}
