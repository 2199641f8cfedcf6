//! What other speed tests would have shown of the same transfers, by their published rules.

use serde::Serialize;

/// LibreSpeed's factor for headers, and the start that it leaves out (speedtest_worker.js).
const LIBRESPEED_FACTOR: f64 = 1.06;
const LIBRESPEED_GRACE_S: f64 = 1.5;
/// Ookla's slices: the fastest 10 % and the slowest 30 % are left out.
const SLICES: usize = 20;
const FASTEST: usize = SLICES / 10;
const SLOWEST: usize = SLICES * 3 / 10;
/// The time of a test of iperf3, and of ndt7.
const TEN_SECONDS: f64 = 10.0;
/// The share of a transfer that fast.com's ramp takes at most.
const RAMP_SHARE: f64 = 0.5;

/// Bytes by time, of all flows of a transfer.
pub(super) type ByteSeries = [(f64, u64)];

/// What a test would have shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Method {
    pub(super) method: &'static str,
    pub(super) rate: Option<f64>,
    pub(super) rule: &'static str,
}

/// Mean rate between two times, bit/s.
fn mean(series: &ByteSeries, from: f64, to: f64) -> Option<f64> {
    // At its start a transfer has no bytes; the first sample is a little later.
    let at = |time: f64| {
        let sample = series.iter().rev().find(|(t_s, _)| *t_s <= time);
        sample.copied().unwrap_or((0.0, 0))
    };
    let ((from, first), (to, last)) = (at(from), at(to));
    (to > from).then(|| last.saturating_sub(first) as f64 * 8.0 / (to - from))
}

fn end(series: &ByteSeries) -> Option<f64> {
    series.last().map(|(t_s, _)| *t_s)
}

/// The mean of ten seconds, as iperf3 and ndt7 test: from the arrival of the first bytes, whose
/// acknowledgements come an RTT after they were sent. A shorter transfer is taken to go on at the rate
/// of its second half, or its ramp-up would weigh too much.
fn ten_seconds(series: &ByteSeries) -> Option<f64> {
    let unacknowledged = series.iter().take_while(|(_, bytes)| *bytes == 0);
    let from = unacknowledged.last().map_or(0.0, |(t_s, _)| *t_s);
    let end = end(series)?;
    let left = TEN_SECONDS - (end - from);
    let mean = mean(series, from, end)?;
    if left <= 0.0 {
        return Some(mean);
    }
    Some((mean * (TEN_SECONDS - left) + settled(series)? * left) / TEN_SECONDS)
}

fn librespeed(series: &ByteSeries) -> Option<f64> {
    Some(mean(series, LIBRESPEED_GRACE_S, end(series)?)? * LIBRESPEED_FACTOR)
}

fn sliced(series: &ByteSeries) -> Option<f64> {
    let slice = end(series)? / SLICES as f64;
    let mut rates: Vec<f64> = (0..SLICES)
        .map(|index| mean(series, index as f64 * slice, (index + 1) as f64 * slice))
        .collect::<Option<_>>()?;
    rates.sort_by(f64::total_cmp);
    let kept = rates.get(SLOWEST..SLICES - FASTEST)?;
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

fn settled(series: &ByteSeries) -> Option<f64> {
    let end = end(series)?;
    mean(series, end * RAMP_SHARE, end)
}

/// What is known of one flow with BBR.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfBbr<'a> {
    /// It was measured.
    Measured(&'a ByteSeries),
    /// A host was the limit of another congestion control, and would be BBR's.
    AsAnother(&'a ByteSeries),
    /// It was not tried, and might be faster, or slower.
    Unknown,
}

/// What each test would have shown of a download: of one flow with the system's congestion control,
/// with BBR, and with several flows. Where random losses limit the one, when the first of them ends slow
/// start is luck, and decides more than the line does.
pub(super) fn methods(
    one: Option<&ByteSeries>,
    by_losses: bool,
    bbr: OfBbr<'_>,
    several: Option<&ByteSeries>,
) -> Vec<Method> {
    let row = |method, rate, rule| Method { method, rate, rule };
    let (ndt7, rule) = match bbr {
        OfBbr::Measured(bbr) => (ten_seconds(bbr), "one flow with BBR, the mean of ten seconds"),
        OfBbr::AsAnother(one) => (
            ten_seconds(one),
            "one flow with BBR, the mean of ten seconds: here the same with another congestion control, as a host is the limit",
        ),
        OfBbr::Unknown => (
            None,
            "one flow with BBR, the mean of ten seconds: not tried in this run, and it might differ",
        ),
    };
    vec![
        row(
            "iperf3",
            one.and_then(ten_seconds),
            if by_losses {
                "one flow, the mean of ten seconds with the ramp-up, payload only; with random losses \
                 two such tests in turn differ by a quarter and more"
            } else {
                "one flow, the mean of ten seconds with the ramp-up, payload only"
            },
        ),
        row("ndt7", ndt7, rule),
        row(
            "librespeed",
            several.and_then(librespeed),
            "several flows, the first 1.5 s left out, times 1.06 for headers",
        ),
        row(
            "ookla",
            several.and_then(sliced),
            "several flows, 20 slices of time without the fastest 10 % and the slowest 30 %",
        ),
        row("fast.com", several.and_then(settled), "several flows, the ramp-up left out"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 s of ramp-up at half of 100 Mbit/s, then 4 s at 100 Mbit/s.
    fn series() -> Vec<(f64, u64)> {
        (0..=50)
            .map(|tick| {
                let t_s = f64::from(tick) / 10.0;
                (t_s, (t_s.min(1.0) * 6.25e6 + (t_s - 1.0).max(0.0) * 12.5e6) as u64)
            })
            .collect()
    }

    #[test]
    fn each_rule_is_applied_to_recorded_bytes() {
        let series = series();
        let close = |got: Option<f64>, expected: f64| {
            let got = got.unwrap();
            assert!((got / expected - 1.0).abs() < 0.01, "{got} {expected}");
        };
        close(mean(&series, 0.0, 5.0), 90e6);
        // 450 Mbit in five seconds, then 500 Mbit.
        close(ten_seconds(&series), 95e6);
        close(ten_seconds(&series[..=20]), 95e6);
        // Over an RTT of 0.5 s, the same bytes are acknowledged so much later.
        let later = series.iter().map(|(t_s, bytes)| (t_s + 0.5, *bytes));
        let later: Vec<(f64, u64)> = [(0.0, 0), (0.25, 0)].into_iter().chain(later).collect();
        close(ten_seconds(&later), 95e6);
        close(librespeed(&series), 106e6);
        close(sliced(&series), 100e6);
        close(settled(&series), 100e6);
        // The first sample comes some milliseconds after the start.
        close(mean(&series[1..], 0.0, 5.0), 90e6);
        close(sliced(&series[1..]), 100e6);
        let rates = |bbr| {
            let all = methods(Some(&series), false, bbr, None);
            all.iter().filter(|method| method.rate.is_some()).count()
        };
        assert_eq!((rates(OfBbr::AsAnother(&series)), rates(OfBbr::Unknown)), (2, 1));
        let rule = |by_losses| methods(Some(&series), by_losses, OfBbr::Unknown, None)[0].rule;
        assert!(rule(true).contains("random losses") && !rule(false).contains("random"));
        for short in [&series[..0], &series[..1]] {
            assert_eq!((sliced(short), settled(short)), (None, None));
            assert_eq!(ten_seconds(short), None);
        }
    }
}
