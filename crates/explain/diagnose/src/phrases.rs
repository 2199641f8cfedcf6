//! Parts of sentences that several causes share.

use crate::{
    causes::Observed,
    evidence::Evidence,
    predict::{self, Prediction},
};
use model::IpVersion;
use record::{Measurement, Unavailable};
use units::{BitRate, ByteCount, Rtt};

/// The path's rate, and the window that each stream needs for it, if the path is known.
pub(crate) fn needed(m: &Measurement, e: &Evidence) -> Option<(BitRate, ByteCount)> {
    let path = m.path.as_ref()?;
    let rtt = if path.rtt > Rtt::ZERO { path.rtt } else { e.min_rtt? };
    let streams = u32::try_from(e.streams).unwrap_or(u32::MAX);
    let rate = path.rate_bps?;
    Some((rate, model::per_stream(model::bdp(rate, rtt), streams)))
}

/// `96.4 Mbit/s arrived`; where the receiver's count is missing, the sender's.
pub(crate) fn arrived(m: &Measurement, rate: BitRate) -> String {
    if m.lacks(Unavailable::Received) {
        format!("{rate} was written by the sender")
    } else {
        format!("{rate} arrived")
    }
}

/// Where the goodput over a real path is the payload rate of an Ethernet line, that sentence.
pub(crate) fn line(m: &Measurement, e: &Evidence) -> Option<String> {
    if m.path.is_some() || e.goodput == BitRate::ZERO {
        return None;
    }
    let of = |ip| model::line_class(e.goodput, ip);
    let class = of(IpVersion::Ipv4).or_else(|| of(IpVersion::Ipv6))?;
    Some(format!(
        "{}, the TCP payload rate of a {} link ({}): {}.",
        arrived(m, e.goodput),
        class.link,
        class.goodput,
        class.means
    ))
}

/// ` for each of 4 streams`.
pub(crate) fn for_each(e: &Evidence) -> String {
    if e.streams > 1 { format!(" for each of {} streams", e.streams) } else { String::new() }
}

/// `96.4 of at most 96.5 Mbit/s`: the unit once if both rates share it. Over a part of a test, a
/// little more may arrive than the path carries in the long run: that is all of it.
pub(crate) fn of_at_most(got: BitRate, most: BitRate) -> String {
    let is_all = got > most && got.as_f64() < 1.01 * most.as_f64();
    let got = if is_all { most } else { got };
    let (got, most) = (got.to_string(), most.to_string());
    let unit = most.split_once(' ').map_or("", |(_, unit)| unit);
    let got = got.strip_suffix(unit).map_or(got.as_str(), str::trim_end);
    format!("{got} of at most {most}")
}

/// The goodput, and the payload rate of the bottleneck if that is known.
pub(crate) fn goodput_of_path(o: &Observed<'_>) -> String {
    match predict::path_payload(o.m, o.e) {
        Some(path) => of_at_most(o.e.goodput, path.goodput),
        None => o.e.goodput.to_string(),
    }
}

/// `BBR (-C bbr) or more streams (-P)`, without BBR if it is in use.
pub(crate) fn bbr_or_more_streams(o: &Observed<'_>) -> &'static str {
    if o.facts.is_bbr() { "more streams (-P)" } else { "BBR (-C bbr) or more streams (-P)" }
}

/// `, with 171 ms of queueing delay`, if there is a standing queue.
pub(crate) fn with_queueing(e: &Evidence) -> String {
    match e.queueing().filter(|_| e.has_standing_queue()) {
        Some(queueing) => format!(", with {queueing} of queueing delay"),
        None => String::new(),
    }
}

/// ` (64 KiB over 173 ms)`.
pub(crate) fn over_rtt(bytes: Option<ByteCount>, e: &Evidence) -> String {
    let rtt = e.loaded_rtt.or(e.min_rtt);
    let both = predict::window_rate(bytes, rtt, e);
    both.map_or(String::new(), |(bytes, rtt, _)| format!(" ({bytes} over {rtt})"))
}

/// `, at most 3.03 Mbit/s`.
pub(crate) fn at_most(prediction: Option<Prediction>) -> String {
    prediction.map_or(String::new(), |most| format!(", at most {}", most.rate))
}

/// `, about 3.03 Mbit/s`, where the equation is no bound.
pub(crate) fn about(prediction: Option<Prediction>) -> String {
    prediction.map_or(String::new(), |usual| format!(", about {}", usual.rate))
}

/// `9.1 s`, and whole seconds from 100 s.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 99.95 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_at_most_arrives_unless_it_is_much_more() {
        let of = |got, most| of_at_most(BitRate::from_bps(got), BitRate::from_bps(most));
        assert_eq!(of(96_400_000, 96_500_000), "96.4 of at most 96.5 Mbit/s");
        assert_eq!(of(9_660_000, 9_650_000), "9.65 of at most 9.65 Mbit/s");
        assert_eq!(of(12_000_000, 9_650_000), "12 of at most 9.65 Mbit/s");
    }
}
