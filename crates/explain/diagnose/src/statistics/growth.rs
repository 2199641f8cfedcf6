//! Growth of the congestion window: slow start, its overshoot, and what followed.

use super::{Part, Statistic, Statistics, ln};
use crate::series::Step;
use model::statistics::{median, percentile};

pub(super) fn add(part: &Part<'_>, all: &mut Statistics) {
    let test = part.test;
    let sampled = !part.streams.iter().all(|steps| steps.is_empty());
    let flag = |step: &Step| Some(f64::from(u8::from(step.is_slow_start())));
    all.add(Statistic::SlowStart, part.mean(flag));
    let never = |step: &Step| Some(f64::from(u8::from(step.after.ssthresh_bytes.is_none())));
    all.add(Statistic::NoThreshold, part.mean(never));
    all.add(Statistic::LnFromRtts, Some(ln(part.from / test.min_rtt, 1.0)));
    all.add(Statistic::LnRtts, Some(ln(part.seconds() / test.min_rtt, 1.0)));
    all.add(Statistic::LnSeconds, Some(ln(part.seconds(), 0.1)));
    let ends = |read: fn(&[Step]) -> Option<&Step>| {
        let windows: Vec<f64> =
            part.streams.iter().filter_map(|steps| read(steps)).map(Step::cwnd).collect();
        median(&windows).filter(|window| *window > 0.0)
    };
    let grown = ends(<[Step]>::first).zip(ends(<[Step]>::last));
    all.add(
        Statistic::WindowGrowth,
        grown.map(|(first, last)| (last / first).ln().clamp(-4.0, 4.0)),
    );
    let windows = part.values(|step| Some(step.cwnd()));
    let usual = median(&windows);
    all.add(Statistic::LnWindow, usual.map(|window| ln(window, 1.0)));
    let lowest = percentile(&windows, 0.05).zip(usual);
    all.add(Statistic::WindowLow, lowest.map(|(low, usual)| low / usual.max(1.0)));

    // The first event of the whole test, with what slow start had reached by then.
    let first = |(events, steps): (&Vec<crate::events::Event>, &Vec<Step>)| {
        let event = events.first()?;
        let start = steps.get(event.step)?;
        let in_slow_start = start.before.ssthresh_bytes.is_none();
        Some((event.lost, event.window, event.queueing, event.at, in_slow_start))
    };
    let firsts: Vec<_> = test.events.iter().zip(&test.series.streams).filter_map(first).collect();
    let over = |read: fn(&(f64, f64, f64, f64, bool)) -> f64| {
        median(&firsts.iter().map(read).collect::<Vec<f64>>())
    };
    let overshot = firsts.iter().filter(|first| first.4).count() as f64;
    let streams = test.series.streams.len().max(1) as f64;
    all.add(Statistic::Overshot, sampled.then(|| overshot / streams));
    all.add(Statistic::OvershootLost, over(|first| first.0).map(|lost| ln(lost, 0.5)));
    let peak = over(|first| first.1).zip(usual);
    all.add(
        Statistic::LnOvershootWindow,
        peak.map(|(peak, usual)| (peak / usual.max(1.0)).max(1e-3).ln()),
    );
    let queued = over(|first| first.2);
    all.add(Statistic::OvershootQPerRtt, queued.map(|q| ln(q / test.min_rtt, 1e-3)));
    all.add(Statistic::OvershootQMs, queued.map(|q| ln(q * 1e3, 0.02)));
    let since = over(|first| first.3).map(|at| (part.from - at) / test.min_rtt);
    all.add(Statistic::LnSinceOvershoot, since.map(|rtts| ln(rtts, 1.0)));
    // NormDiff over slow start (Sundaresan et al.): near 0 where the queue was standing.
    all.add(Statistic::NormDiff, norm_diff(part));
}

/// (max RTT - min RTT) / max RTT until the first retransmission of the test, from samples
/// as close as they come: slow start is short.
fn norm_diff(part: &Part<'_>) -> Option<f64> {
    let of = |stream: &record::Stream| {
        let until = stream.sender.iter().take_while(|s| s.retransmits == 0).take(400);
        let rtts: Vec<f64> = until.map(|s| f64::from(s.rtt_us)).filter(|rtt| *rtt > 0.0).collect();
        let most = rtts.iter().copied().fold(0.0, f64::max);
        let least = rtts.iter().copied().fold(f64::INFINITY, f64::min);
        (rtts.len() >= 3 && most > 0.0).then(|| (most - least) / most)
    };
    median(&part.test.facts.m.streams.iter().filter_map(of).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use crate::example::{close, statistic as of};
    use record::Sample;

    #[test]
    fn slow_start_lasts_until_the_first_reduction() {
        assert_eq!(of("slow_start", |_, _| {}), Some(1.0));
        assert_eq!(of("no_threshold", |_, _| {}), Some(1.0));
        let half = |index: u64, s: &mut Sample| {
            s.ssthresh_bytes = (index > 50).then_some(s.cwnd_bytes);
        };
        close(of("slow_start", half), 0.5);
        assert_eq!(of("slow_start", |_, s| s.ssthresh_bytes = Some(1)), Some(0.0));
    }

    #[test]
    fn an_overshoot_is_the_first_loss_without_a_threshold() {
        let overshoot = |index: u64, s: &mut Sample| {
            let late = index >= 10;
            s.retransmits = if late { 300 } else { 0 };
            s.ssthresh_bytes = late.then_some(50_000);
            s.cwnd_bytes = if late { 50_000 } else { 200_000 };
        };
        assert_eq!(of("overshot", overshoot), Some(1.0));
        close(of("overshoot_lost", overshoot), 300.5f64.ln());
        close(of("ln_overshoot_window", overshoot), 4f64.ln());
        assert_eq!(of("overshot", |_, _| {}), Some(0.0));
        assert_eq!(of("overshoot_lost", |_, _| {}), None);
    }

    #[test]
    fn the_window_grows_from_the_first_step_to_the_last() {
        close(of("window_growth", |_, _| {}), 0.0);
        let grows = |index: u64, s: &mut Sample| s.cwnd_bytes = 10_000 + index * 1_000;
        close(of("window_growth", grows), 10f64.ln());
        close(of("ln_rtts", |_, _| {}), 501f64.ln());
    }
}
