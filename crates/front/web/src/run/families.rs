//! IPv4 beside IPv6: what the page measured over each, before the run, and what differs.

use super::interval::Interval;
use serde::{Deserialize, Serialize};
use units::BitRate;

/// Largest figures that a page may say: ms, and bit/s.
const MAX_MS: f64 = 60_000.0;
const MAX_RATE: f64 = 1e12;
/// A difference of the RTT below this is none to a person, ms, and of a rate, as a share.
const MIN_RTT_DIFFERENCE_MS: f64 = 1.0;
const MIN_RATE_DIFFERENCE: f64 = 0.05;

/// The reason for which there is no figure of a family, as far as a page can tell: browsers do not
/// say whether a name had no address, a host no route or a port no listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Failure {
    /// The server has no name of this family alone.
    NoName,
    /// The name has no address of it, by the server's resolver.
    NoAddress,
    /// Nothing answered until the page gave up.
    Silent,
    /// It failed at once: no address, no route, refused, or a certificate that is not trusted.
    Failed,
    /// The name was reached over the other family.
    OtherFamily,
    /// It was reached, and the measurement ended with an error.
    Incomplete,
}

/// What was measured over a family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Family {
    /// RTT without load, ms.
    pub(super) rtt: Option<f64>,
    pub(super) rtt_interval: Option<Interval>,
    /// Goodput of a short download, bit/s.
    pub(super) rate: Option<f64>,
    pub(super) interval: Option<Interval>,
    pub(super) failed: Option<Failure>,
    /// The time until it failed, ms.
    pub(super) after_ms: Option<f64>,
}

/// What the page says of both.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Families {
    ipv4: Family,
    ipv6: Family,
}

/// The same with what differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ShownFamilies {
    ipv4: Family,
    ipv6: Family,
    sentence: String,
}

impl Family {
    fn is_in_range(&self) -> bool {
        let fits = |value: f64, most: f64| (0.0..=most).contains(&value);
        let pair = |interval: Option<Interval>, most: f64| {
            interval.is_none_or(|[low, high]| low <= high && fits(low, most) && fits(high, most))
        };
        self.rtt.is_none_or(|ms| fits(ms, MAX_MS))
            && self.after_ms.is_none_or(|ms| fits(ms, MAX_MS))
            && self.rate.is_none_or(|rate| fits(rate, MAX_RATE))
            && pair(self.rtt_interval, MAX_MS)
            && pair(self.interval, MAX_RATE)
    }

    const fn is_measured(&self) -> bool {
        self.failed.is_none() && self.rtt.is_some()
    }
}

impl Families {
    /// Whether every number is within its range.
    pub(super) fn is_in_range(&self) -> bool {
        self.ipv4.is_in_range() && self.ipv6.is_in_range()
    }

    /// What differs, in words.
    pub(super) fn shown(self) -> ShownFamilies {
        let Families { ipv4, ipv6 } = self;
        let sentence = match (ipv4.is_measured(), ipv6.is_measured()) {
            (true, true) => compared(&ipv4, &ipv6),
            (true, false) => failure("IPv6", "AAAA", &ipv6),
            (false, true) => failure("IPv4", "A", &ipv4),
            (false, false) => "Neither family could be measured on its own.".to_owned(),
        };
        ShownFamilies { ipv4, ipv6, sentence }
    }
}

/// How a figure of IPv6 compares with that of IPv4: by their 95 % intervals.
fn differs(ipv4: (f64, Option<Interval>), ipv6: (f64, Option<Interval>), least: f64) -> Differs {
    let (Some([low4, high4]), Some([low6, high6])) = (ipv4.1, ipv6.1) else {
        return Differs::Unknown;
    };
    match (low6 > high4 || high6 < low4) && (ipv6.0 - ipv4.0).abs() >= least {
        true => Differs::Yes,
        false => Differs::No,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Differs {
    Yes,
    /// The intervals meet, or the difference is too small to matter.
    No,
    /// There is no interval.
    Unknown,
}

fn compared(ipv4: &Family, ipv6: &Family) -> String {
    let rtt = match (ipv4.rtt, ipv6.rtt) {
        (Some(four), Some(six)) => {
            let found =
                differs((four, ipv4.rtt_interval), (six, ipv6.rtt_interval), MIN_RTT_DIFFERENCE_MS);
            match found {
                Differs::Yes => {
                    let more = if six > four { "longer" } else { "shorter" };
                    format!("The RTT over IPv6 is {:.1} ms {more}", (six - four).abs())
                }
                Differs::No => "The RTT is the same over both".to_owned(),
                Differs::Unknown => "I cannot tell whether the RTT differs".to_owned(),
            }
        }
        _ => "The RTT was not measured over both".to_owned(),
    };
    let rate = match (ipv4.rate, ipv6.rate) {
        (Some(four), Some(six)) if four > 0.0 => {
            let found =
                differs((four, ipv4.interval), (six, ipv6.interval), four * MIN_RATE_DIFFERENCE);
            let text = |rate: f64| BitRate::from_bps(rate as u64).to_string();
            match found {
                Differs::Yes => {
                    let more = if six > four { "more" } else { "less" };
                    let (six, four) = (text(six), text(four));
                    format!("IPv6 carried {more}: {six} against {four}")
                }
                Differs::No => "the rate is the same".to_owned(),
                Differs::Unknown => "I cannot tell whether the rate differs".to_owned(),
            }
        }
        _ => "the rate was not measured over both".to_owned(),
    };
    format!("{rtt}; {rate}.")
}

/// Why a family has no figures.
fn failure(name: &str, record: &str, family: &Family) -> String {
    let after = family.after_ms.map_or(String::new(), |ms| match ms >= 1000.0 {
        true => format!(" within {:.1} s", ms / 1e3),
        false => format!(" after {ms:.0} ms"),
    });
    match family.failed {
        Some(Failure::NoName) => {
            format!("{name} was not measured: this server has no name of {name} alone.")
        }
        Some(Failure::NoAddress) => {
            format!("{name} was not measured: the server's name has no {record} record.")
        }
        Some(Failure::Silent) => format!(
            "No {name}: nothing answered{after}, as where packets are dropped on the path. Browsers \
             wait for such a family before they use the other one."
        ),
        Some(Failure::Failed) => format!(
            "No {name}: the connection failed{after}. I cannot tell whether your resolver has no \
             {record} record, your host has no route, or the connection was refused or not trusted."
        ),
        Some(Failure::OtherFamily) => format!(
            "{name} was not measured: its name was reached over the other family. It may have only \
             {record} records."
        ),
        Some(Failure::Incomplete) | None => {
            format!("{name} was reached, but its measurement did not finish.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(rtt: f64, rate: f64) -> Family {
        Family {
            rtt: Some(rtt),
            rtt_interval: Some([rtt - 0.5, rtt + 0.5]),
            rate: Some(rate),
            interval: Some([rate * 0.98, rate * 1.02]),
            ..Family::default()
        }
    }

    fn sentence(ipv4: Family, ipv6: Family) -> String {
        let families = Families { ipv4, ipv6 };
        assert!(families.is_in_range());
        families.shown().sentence
    }

    #[test]
    fn what_differs_is_told_by_the_intervals() {
        let same = sentence(family(20.0, 1e8), family(20.4, 1.01e8));
        assert_eq!(same, "The RTT is the same over both; the rate is the same.");
        let longer = sentence(family(20.0, 1e8), family(32.0, 5e7));
        assert!(longer.starts_with("The RTT over IPv6 is 12.0 ms longer; "), "{longer}");
        assert!(longer.contains("IPv6 carried less: 50"), "{longer}");
        // Apart, but by less than anybody notices.
        let close = Family { rtt_interval: Some([20.8, 21.0]), ..family(20.9, 1e8) };
        assert!(sentence(family(20.0, 1e8), close).starts_with("The RTT is the same"));
        let vague = Family { rtt_interval: None, interval: None, ..family(90.0, 1e6) };
        let told = sentence(family(20.0, 1e8), vague);
        assert_eq!(
            told,
            "I cannot tell whether the RTT differs; I cannot tell whether the rate differs."
        );
    }

    #[test]
    fn where_a_family_fails_is_told_as_far_as_it_is_known() {
        let failed = |failed, after_ms| Family {
            failed: Some(failed),
            after_ms: Some(after_ms),
            ..Family::default()
        };
        let good = family(20.0, 1e8);
        let silent = sentence(good, failed(Failure::Silent, 4000.0));
        assert!(silent.starts_with("No IPv6: nothing answered within 4.0 s"), "{silent}");
        let quick = sentence(good, failed(Failure::Failed, 12.0));
        assert!(quick.contains("after 12 ms. I cannot tell whether"), "{quick}");
        let without = sentence(failed(Failure::NoAddress, 1.0), good);
        assert!(without.contains("has no A record"), "{without}");
        let neither = sentence(failed(Failure::Failed, 1.0), failed(Failure::Silent, 1.0));
        assert!(neither.starts_with("Neither"), "{neither}");
    }

    #[test]
    fn forged_figures_are_out_of_range() {
        let good = family(20.0, 1e8);
        for forged in [
            Family { rtt: Some(-1.0), ..good },
            Family { rtt: Some(f64::NAN), ..good },
            Family { rate: Some(1e300), ..good },
            Family { interval: Some([5.0, 1.0]), ..good },
            Family { rtt_interval: Some([0.0, 1e9]), ..good },
            Family { after_ms: Some(1e9), ..good },
        ] {
            assert!(!Families { ipv4: good, ipv6: forged }.is_in_range(), "{forged:?}");
            assert!(!Families { ipv4: forged, ipv6: good }.is_in_range(), "{forged:?}");
        }
    }
}
