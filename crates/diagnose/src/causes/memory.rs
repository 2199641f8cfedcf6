//! Memory: on a path of under 1 ms, windows far above the BDP. Data leaves the CPU's
//! caches before it is read, and each byte costs more CPU time.
//!
//! No equation covers it. Measured over a veth pair with four streams: 24.7 Gbit/s with
//! autotuned windows of 99 MB, 45 to 49.5 Gbit/s with `-w 256K`.

use crate::{
    causes::{Cause, Observed},
    next_limit::{Expectation, NextLimit, call},
    predict,
};
use record::{Limit, Remedy, RemedyCommand};
use units::ByteCount;

/// The buffer that the measurement above found best, in KiB.
const BUFFER_KIB: u64 = 256;

pub(super) struct Memory;

impl Cause for Memory {
    fn limit(&self) -> Limit {
        Limit::Memory
    }

    fn noun(&self) -> &'static str {
        "memory bandwidth"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "Memory-limited at {}: {}, so data leaves the CPU's caches before it is read; use \
             smaller socket buffers (-w {BUFFER_KIB}K).",
            o.e.goodput,
            windows(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("memory-limited: {}; use smaller socket buffers", windows(o))
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        if next.o.m.spec.window_bytes.is_some_and(|set| set.bytes() <= BUFFER_KIB << 10) {
            return Vec::new();
        }
        let command = RemedyCommand::SocketBufferKib(BUFFER_KIB);
        vec![call(command, Expectation::none("no prediction: no equation covers cache misses"))]
    }
}

/// The windows against the BDP, if the RTT can be measured.
fn windows(o: &Observed<'_>) -> String {
    let open = o.e.window_sum().into_iter().chain(o.e.cwnd).min();
    let bound = predict::window_rate(open, o.e.min_rtt, o.e);
    match bound.map(|(open, rtt, _)| (open, rtt, model::bdp(o.e.goodput, rtt))) {
        Some((open, rtt, bdp)) if bdp > ByteCount::ZERO && open > bdp => format!(
            "the windows of {open} are {:.0} times what {rtt} need",
            open.as_f64() / bdp.as_f64()
        ),
        _ => match open {
            Some(open) => format!("the windows of {open} are far above what the path needs"),
            None => "the windows are far above what the path needs".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;
    use crate::{causes::Cause, example::Example};
    use units::ByteCount;

    #[test]
    fn windows_are_compared_with_the_bdp() {
        let mut example = Example::new(24_700.0, 0.1);
        example.e.windows = Some(vec![ByteCount::from_bytes(6_175_000)]);
        example.e.cwnd = Some(ByteCount::from_bytes(99_000_000));
        let sentence = Memory.sentence(&example.observed());
        assert!(sentence.contains("6.17 MB are 20 times what 100 µs need"), "{sentence}");
        assert_eq!(example.remedies(&Memory)[0].command.to_string(), "-w 256K");
        example.m.spec.window_bytes = Some(ByteCount::from_bytes(256 << 10));
        assert!(example.remedies(&Memory).is_empty());
    }
}
