//! Transfers whose limit is known because it was made on purpose.

use crate::draws::Draws;
use record::Limit;
use units::{BitRate, ByteCount, Rtt};

/// One transfer over a path of its own.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// What holds it.
    pub(crate) truth: Limit,
    /// The path, as `--link` reads it.
    pub(crate) path: String,
    pub(crate) congestion: &'static str,
    /// Settings of both hosts beside what the path needs.
    pub(crate) sysctls: Vec<(String, String)>,
    pub(crate) seconds: f64,
    /// Rate the program keeps to.
    pub(crate) rate: Option<BitRate>,
    /// Rate the socket is paced at.
    pub(crate) pacing: Option<BitRate>,
    /// Bytes a write.
    pub(crate) block: Option<ByteCount>,
}

/// Rates of paths, in Mbit/s: the ends of what the promise names, and between.
const RATES: [f64; 8] = [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// Causes in the order they are drawn in, again and again.
const CAUSES: [Limit; 10] = [
    Limit::ReceiveWindow,
    Limit::SendBuffer,
    Limit::Application,
    Limit::PathRate,
    Limit::Loss,
    Limit::Policer,
    Limit::Pacing,
    Limit::Ramp,
    Limit::PathRate,
    Limit::Cpu,
];

/// The case of that number among those of `seed`.
pub(crate) fn case(seed: u64, number: usize) -> Case {
    let mut draws = Draws::new(seed, number as u64);
    let truth = CAUSES[number % CAUSES.len()];
    let mut rate = *draws.one(&RATES) * draws.between(0.8, 1.25);
    let mut rtt = draws.between(5f64.ln(), 250f64.ln()).exp();
    match truth {
        // Faster paths lose too seldom, at the losses that hold them, to be held in a short test.
        Limit::Loss => (rate, rtt) = (rate.clamp(20.0, 150.0), rtt.min(120.0)),
        // Buffers of less than a few segments are none.
        Limit::ReceiveWindow | Limit::SendBuffer => rtt = rtt.max(2400.0 / rate).min(250.0),
        Limit::Ramp => (rate, rtt) = (rate.max(100.0), rtt.max(60.0)),
        Limit::Cpu => (rate, rtt) = (rate.max(1500.0), rtt.min(20.0)),
        _ => {}
    }
    let rate = rate.min(2000.0);
    let bdp = rate * 1e6 * rtt / 8e3;
    let mut case = Case {
        truth,
        path: format!("rate={rate:.1}mbit,rtt={rtt:.1}ms"),
        congestion: if draws.chance(0.5) { "bbr" } else { "cubic" },
        sysctls: Vec::new(),
        seconds: (2.0 + rtt * 0.04).clamp(4.0, 12.0),
        rate: None,
        pacing: None,
        block: None,
    };
    let below = BitRate::from_bps((rate * 1e6 * draws.between(0.15, 0.75)) as u64);
    let buffer = |bytes: f64| format!("4096 {0:.0} {0:.0}", bytes.max(8192.0));
    match truth {
        // Half of it becomes window; a fifth to three quarters of what the path needs.
        Limit::ReceiveWindow => case
            .sysctls
            .push(("net.ipv4.tcp_rmem".to_owned(), buffer(2.0 * bdp * draws.between(0.1, 0.6)))),
        Limit::SendBuffer => case
            .sysctls
            .push(("net.ipv4.tcp_wmem".to_owned(), buffer(bdp * draws.between(0.1, 0.35)))),
        Limit::Application => case.rate = Some(below),
        Limit::Pacing => case.pacing = Some(below),
        Limit::PathRate => {
            case.path += &format!(",queue={:.2}bdp", draws.between(0.5, 4.0));
            case.seconds = (4.0 + rtt * 0.08).clamp(6.0, 16.0);
        }
        Limit::Loss => {
            case.congestion = "cubic";
            let share = draws.between(0.05, 0.4);
            let loss = loss_for(BitRate::from_bps((rate * 1e6 * share) as u64), rtt);
            case.path += &format!(",loss={:.5}%", loss * 100.0);
            // Some fifty losses.
            case.seconds = (50.0 / (loss * rate * share * 1e6 / 12e3)).clamp(8.0, 30.0);
        }
        Limit::Policer => {
            case.congestion = "cubic";
            // Buckets hold 20 to 300 ms of their rate.
            let burst = (below.as_f64() / 8.0 * draws.between(0.02, 0.3)).max(32_768.0);
            case.path += &format!(",police={:.1}mbit:{burst:.0}", below.as_f64() / 1e6);
            case.seconds = (4.0 + rtt * 0.08).clamp(6.0, 16.0);
        }
        // Some five round trips: slow start needs seven to thirteen.
        Limit::Ramp => case.seconds = (rtt * draws.between(4.0, 6.0) / 1e3).max(0.4),
        // Each write costs about a microsecond.
        Limit::Cpu => case.block = Some(ByteCount::from_bytes(16)),
        _ => {}
    }
    case
}

/// The loss that leaves CUBIC this rate over a round trip of so many ms, by the
/// better of its two equations (RFC 9438).
fn loss_for(rate: BitRate, rtt: f64) -> f64 {
    let (mss, rtt) = (ByteCount::from_bytes(1448), Rtt::from_micros((rtt * 1e3) as u64));
    let (mut low, mut high) = (1e-7f64, 0.1f64);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        let allows = model::loss_from_fraction(middle)
            .and_then(|p| Some(model::mathis(mss, rtt, p)?.max(model::cubic_region(mss, rtt, p)?)));
        if allows.is_some_and(|allowed| allowed > rate) { low = middle } else { high = middle }
    }
    low
}
