//! Memory: on a path of under 1 ms, more data between the applications than the CPU's caches
//! hold. It leaves them before it is read, and each byte costs more CPU time.
//!
//! No equation covers it; the measured curve does ([`CURVE`], docs/design/local-paths.md).
//! Where the same run had little between the applications at some time, its own cost per byte
//! then is the better prediction.

use crate::{
    causes::{Cause, Observed},
    cpu_cost::{CpuCost, CpuCounters},
    next_limit::{Expectation, NextLimit, call},
    predict::Prediction,
};
use model::INITIAL_WINDOW_SHARE;
use record::{Direction, Limit, Remedy, RemedyCommand, RemedyPlace};
use units::ByteCount;

/// MB between the applications, and what a byte then costs in CPU time over what it costs with
/// at most 8 MB: medians over a veth pair and a loopback, four and eight streams, CUBIC, last
/// level cache of 32 MB.
const CURVE: [(f64, f64); 5] = [(8.0, 1.0), (16.0, 1.08), (32.0, 1.2), (64.0, 1.33), (128.0, 1.42)];

/// Bytes of all streams' socket buffers together with which a byte costs the least, and the
/// smallest and the largest buffer of one stream that was among the best.
const TOGETHER: u64 = 4 << 20;
const EACH: [u64; 2] = [256 << 10, 1 << 20];

/// A buffer of this many BDPs never limits the window: half of it becomes window, and half of
/// that is for the delay of the receiving thread.
const BDPS: f64 = 4.0;

pub(super) struct Memory;

impl Cause for Memory {
    fn limit(&self) -> Limit {
        Limit::Memory
    }

    fn noun(&self) -> &'static str {
        "memory bandwidth"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        // The equation of the present goodput: what is expected without it, over the growth.
        let (growth, from) = growth(&cost(o)?);
        let rate = o.e.goodput;
        let without = rate.scaled(growth);
        Some(Prediction {
            rate,
            equation: format!(
                "goodput with small buffers / growth of CPU time per byte = {without} / {growth:.2} ({from})"
            ),
        })
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let Some(cost) = cost(o) else {
            return format!("Memory-limited at {}; use smaller socket buffers (-w).", o.e.goodput);
        };
        let (growth, from) = growth(&cost);
        format!(
            "Memory-limited at {}: {} leaves the CPU's caches before it is read, so each byte \
             costs {growth:.2} times the CPU time ({from}); use smaller socket buffers (-w {}K).",
            o.e.goodput,
            excess(&cost, o),
            buffer(o) >> 10
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        match cost(o) {
            Some(cost) => {
                format!("memory-limited: {}; use smaller socket buffers", excess(&cost, o))
            }
            None => "memory-limited: use smaller socket buffers".to_owned(),
        }
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let o = &next.o;
        let buffer = buffer(o);
        if o.m.spec.window_bytes.is_some_and(|set| set.bytes() <= buffer) {
            return Vec::new();
        }
        let expected = || match cost(o).map(|cost| growth(&cost)) {
            Some((growth, from)) => Expectation {
                rate: Some(o.e.goodput.scaled(growth)),
                why: format!("{} x {growth:.2}, within a tenth: {from}", o.e.goodput),
            },
            None => Expectation::none("no prediction: the CPU time per byte was not measured"),
        };
        let smaller = call(RemedyCommand::SocketBufferKib(buffer >> 10), expected());
        if o.m.spec.window_bytes.is_some() {
            return vec![smaller];
        }
        let key = "net.ipv4.tcp_rmem";
        let known = o.m.host.tcp_rmem.filter(|_| o.m.spec.direction == Direction::Reverse);
        let [least, initial, _] = known.unwrap_or([4096, 131_072, 0]).map(|all| all.min(buffer));
        let Expectation { rate, why } = expected();
        let sysctl = Remedy {
            place: RemedyPlace::Receiver,
            command: RemedyCommand::Sysctl {
                key: key.to_owned(),
                value: format!("{least} {initial} {}", 2 * buffer),
            },
            setting: Some(key.to_owned()),
            expects_bps: rate,
            why: format!("{why}; it also limits long paths"),
        };
        vec![smaller, sysctl]
    }
}

/// Over the steady part.
fn cost(o: &Observed<'_>) -> Option<CpuCost> {
    CpuCounters::of(o.m)?.over(o.e.steady.from_s, o.e.steady.to_s)
}

/// How many times as much a byte costs as with small buffers, and where that is from.
fn growth(cost: &CpuCost) -> (f64, &'static str) {
    match cost.growth().filter(|growth| *growth > 1.0) {
        Some(growth) => (growth, "measured in this run while little was buffered"),
        None => (on_curve(cost.buffered / 1e6), "from the measured curve"),
    }
}

/// Linear in the logarithm between the points.
fn on_curve(megabytes: f64) -> f64 {
    let [(first, least), .., (last, most)] = CURVE;
    if megabytes <= first {
        return least;
    }
    if megabytes >= last {
        return most;
    }
    let above = CURVE.partition_point(|(mb, _)| *mb <= megabytes);
    match (CURVE.get(above.saturating_sub(1)), CURVE.get(above)) {
        (Some((low, from)), Some((high, to))) => {
            from + (to - from) * (megabytes / low).ln() / (high / low).ln()
        }
        _ => most,
    }
}

/// The data between the applications, compared with the BDP.
fn excess(cost: &CpuCost, o: &Observed<'_>) -> String {
    let buffered = ByteCount::from_f64(cost.buffered);
    // The delay of a round trip through both hosts counts, too, or the BDP would be a packet.
    match o.e.min_rtt.map(|rtt| (rtt, model::bdp(o.e.goodput, rtt))) {
        Some((rtt, bdp)) if bdp > ByteCount::ZERO => {
            format!("{buffered} of buffered data on a path that needs {bdp} ({rtt})")
        }
        _ => format!("{buffered} of buffered data"),
    }
}

/// The socket buffer of one stream: a few BDPs, and what was among the best.
fn buffer(o: &Observed<'_>) -> u64 {
    let [least, most] = EACH;
    let each = (TOGETHER / o.e.streams.max(1) as u64).clamp(least, most);
    let bdp = o.e.min_rtt.map_or(0.0, |rtt| model::bdp(o.e.per_stream(), rtt).as_f64());
    let needed = (BDPS * bdp / INITIAL_WINDOW_SHARE) as u64;
    // Whole multiples of 256 KiB.
    each.max(needed).div_ceil(least).saturating_mul(least)
}

#[cfg(test)]
mod tests {
    use super::{Memory, on_curve};
    use crate::{
        causes::Cause,
        example::{Example, samples},
    };
    use record::{Direction, Stream};
    use units::ByteCount;

    /// Four streams of 22 Gbit/s over 30 µs, with that many MB in each one's buffers.
    fn local(megabytes: u64) -> Example {
        let mut example = Example::new(88_000.0, 0.03);
        (example.e.steady.from_s, example.e.steady.to_s) = (0.0, 3.0);
        example.e.streams = 4;
        let sender = samples(3.0, 22_000.0, |_, s| {
            s.written_bytes = s.acked_bytes + megabytes * 1_000_000;
        });
        example.m.streams = vec![Stream { sender, ..Stream::default() }; 4];
        example
    }

    #[test]
    fn what_is_buffered_is_compared_with_the_bdp_and_the_gain_is_the_curves() {
        let mut example = local(16);
        let sentence = Memory.sentence(&example.observed());
        assert!(
            sentence.contains("64 MB of buffered data on a path that needs 330 kB"),
            "{sentence}"
        );
        assert!(
            sentence.contains("1.33 times the CPU time (from the measured curve)"),
            "{sentence}"
        );
        let remedies = example.remedies(&Memory);
        assert_eq!(remedies[0].command.to_string(), "-w 1024K");
        let expected = remedies[0].expects_bps.unwrap().as_f64() / 1e9;
        assert!((116.0..118.0).contains(&expected), "{expected}");
        let sysctl = remedies[1].command.to_string();
        assert_eq!(sysctl, "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 2097152\"");
        example.m.spec.window_bytes = Some(ByteCount::from_bytes(256 << 10));
        assert!(example.remedies(&Memory).is_empty());
        example.m.spec.window_bytes = Some(ByteCount::from_bytes(16 << 20));
        assert_eq!(example.remedies(&Memory).len(), 1, "a sysctl does not change a fixed window");
    }

    #[test]
    fn the_cost_in_the_same_run_comes_before_the_curve() {
        let mut example = local(16);
        example.m.spec.direction = Direction::Reverse;
        for s in example.m.streams.iter_mut().flat_map(|stream| &mut stream.sender) {
            let early = s.t_s.min(1.0);
            s.written_bytes -= if s.t_s < 1.0 { 15_000_000 } else { 0 };
            s.cpu_us = Some((early * 4e5 + (s.t_s - early) * 6e5) as u64);
        }
        (example.e.steady.from_s, example.e.steady.to_s) = (1.5, 3.0);
        let sentence = Memory.sentence(&example.observed());
        assert!(sentence.contains("1.50 times the CPU time (measured in this run"), "{sentence}");
    }

    #[test]
    fn the_curve_is_linear_between_its_points_and_flat_beyond() {
        for (megabytes, growth) in [(0.0, 1.0), (8.0, 1.0), (32.0, 1.2), (128.0, 1.42), (1e9, 1.42)]
        {
            assert!((on_curve(megabytes) - growth).abs() < 1e-9, "{megabytes}");
        }
        assert!((on_curve(45.25) - 1.265).abs() < 1e-3, "{}", on_curve(45.25));
    }
}
