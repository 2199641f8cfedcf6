//! Levels of factors in sentences, and what a comparison of two of them says.

use crate::level::Level;
use crate::plan::{Cell, Plan};
use crate::setting::{Setting, ValueKind};
use units::{BitRate, LossRatio, Rtt, significant};

/// Levels in words.
pub(crate) struct Named {
    /// The two that are compared, the faster one first: `BBR`, `4 streams`.
    pub(crate) levels: [String; 2],
    /// Whether they are what transfers, so that they can be said to be fast.
    pub(crate) are_fast: bool,
    /// Where: ` at 1 % loss with 4 streams`, or empty.
    pub(crate) at: String,
}

/// What is known of two levels.
pub(crate) struct Known {
    pub(crate) ratio: f64,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) significant: Option<bool>,
    /// Valid runs of each; `None` over several conditions.
    pub(crate) runs: Option<[u32; 2]>,
}

impl Named {
    /// The comparison in a sentence without its full stop.
    pub(crate) fn verdict(&self, known: &Known) -> String {
        let [faster, slower] = &self.levels;
        let (ratio, at) = (times(known.ratio), &self.at);
        let claim = if self.are_fast {
            format!("{faster} is {ratio} times as fast as {slower}{at}")
        } else {
            let goodput = format!("goodput with {faster} is {ratio} times that with {slower}");
            match capital(at.trim_start()) {
                at if at.is_empty() => format!("The {goodput}"),
                at => format!("{at}, the {goodput}"),
            }
        };
        let Some([low, high]) = known.interval else {
            return match known.runs {
                Some([1, 1]) => format!("{claim}; one run each, so there is no interval"),
                Some([first, second]) if first > 1 && second > 1 => {
                    format!("{claim}; the runs of each repeat exactly, so there is no interval")
                }
                Some([first, second]) => {
                    format!("{claim}; {first} and {second} runs, too few for an interval")
                }
                None => format!("{claim}; too few conditions for an interval"),
            };
        };
        let interval = format!("95 %: {} to {}", times(low), times(high));
        if low <= 1.0 && high >= 1.0 {
            let ratio = format!("ratio {ratio}; {interval}");
            return format!("No significant difference between {faster} and {slower}{at}: {ratio}");
        }
        match known.significant {
            Some(false) => format!("{claim}; {interval}; not significant among all comparisons"),
            _ => format!("{claim}; {interval}"),
        }
    }

    /// Why there is no ratio, in a sentence without its full stop.
    pub(crate) fn no_ratio(&self, why: &str) -> String {
        let [first, second] = &self.levels;
        format!("No ratio of {first} to {second}{}: {why}", self.at)
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A ratio with as many digits as tell it from 1.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r > 9_999.0 => ">9999".to_owned(),
        r if r < 0.001 => "<0.001".to_owned(),
        r if r >= 2.0 => significant(r, 2),
        r if r >= 1.1 => significant(r, 3),
        r if r >= 1.0 => significant(r, 4),
        r => significant(r, 3),
    }
}

/// Whether a factor's levels are what transfers.
pub(crate) fn is_transfer(setting: &Setting) -> bool {
    matches!(setting, Setting::Congestion | Setting::Protocol | Setting::Program)
}

/// The levels of some of a plan's factors in a cell: `20 Mbit/s and an RTT of 600 ms`.
pub(crate) fn level(plan: &Plan, cell: &Cell, factors: &[usize]) -> String {
    let nouns = factors.iter().filter_map(|at| {
        let (factor, level) = (plan.factors.get(*at)?, cell.levels.get(*at)?);
        Some(noun(&factor.setting, level))
    });
    nouns.collect::<Vec<_>>().join(" and ")
}

/// The levels of the factors that are compared with themselves: ` at 1 % loss with 4 streams`.
pub(crate) fn condition(plan: &Plan, cell: &Cell, factors: &[usize]) -> String {
    let (mut at, mut with) = (Vec::new(), Vec::new());
    for index in factors {
        let (Some(factor), Some(level)) = (plan.factors.get(*index), cell.levels.get(*index))
        else {
            continue;
        };
        if factor.levels.len() < 2 {
            continue;
        }
        let is_of_path = quantity(&factor.setting, level).is_some();
        let group = if is_of_path { &mut at } else { &mut with };
        group.push(noun(&factor.setting, level));
    }
    let joined = |word: &str, nouns: &[String]| match nouns {
        [] => String::new(),
        nouns => format!(" {word} {}", nouns.join(" and ")),
    };
    joined("at", &at) + &joined("with", &with)
}

fn noun(setting: &Setting, level: &Level) -> String {
    let text = level.text.as_str();
    if let Some(noun) = quantity(setting, level) {
        return noun;
    }
    match setting {
        Setting::Congestion => congestion(text).to_owned(),
        Setting::Protocol => text.to_uppercase(),
        Setting::Program => text.to_owned(),
        Setting::Ip => format!("IPv{text}"),
        Setting::Streams | Setting::TotalStreams if text == "1" => "1 stream".to_owned(),
        Setting::Streams => format!("{text} streams"),
        Setting::Window => format!("a window of {text}"),
        Setting::TotalStreams => format!("{text} streams in all"),
        Setting::TotalWindow => format!("windows of {text} in all"),
        _ => format!("{setting}={text}"),
    }
}

/// A loss, a rate or an RTT of the path.
fn quantity(setting: &Setting, level: &Level) -> Option<String> {
    let (Setting::Path(key), Some(number)) = (setting, level.number()) else { return None };
    match (key.as_str(), setting.kind()) {
        ("loss", ValueKind::Share) => {
            let loss: LossRatio = level.text.parse().ok()?;
            Some(format!("{loss} loss"))
        }
        ("rate", ValueKind::Rate) => Some(BitRate::from_bps_f64(number).to_string()),
        ("rtt", ValueKind::Time) => Some(format!("an RTT of {}", Rtt::from_secs(number))),
        _ => None,
    }
}

/// The name of a congestion control as its authors write it.
fn congestion(name: &str) -> &str {
    match name {
        "cubic" => "CUBIC",
        "bbr" => "BBR",
        "reno" => "Reno",
        "udt" => "UDT",
        "srt" => "SRT",
        "dctcp" => "DCTCP",
        "htcp" => "H-TCP",
        "vegas" => "Vegas",
        "westwood" => "Westwood",
        "psockets" => "PSockets",
        "xcp" => "XCP",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_near_one_keep_the_digits_that_tell_them_from_it() {
        for (ratio, text) in [
            (37.2, "37"),
            (343.0, "343"),
            (2.34, "2.3"),
            (1.234, "1.23"),
            (1.0023, "1.002"),
            (1.0, "1"),
            (0.9712, "0.971"),
            (1e9, ">9999"),
            (f64::INFINITY, ">9999"),
            (0.0, "<0.001"),
        ] {
            assert_eq!(times(ratio), text);
        }
    }

    #[test]
    fn a_verdict_claims_no_more_than_its_interval() {
        let named = Named {
            levels: ["BBR".to_owned(), "CUBIC".to_owned()],
            are_fast: true,
            at: " at 1 % loss".to_owned(),
        };
        let verdict = |interval, significant, runs| {
            named.verdict(&Known { ratio: 37.2, interval, significant, runs: Some(runs) })
        };
        assert_eq!(
            verdict(Some([33.9, 40.8]), Some(true), [3, 3]),
            "BBR is 37 times as fast as CUBIC at 1 % loss; 95 %: 34 to 41"
        );
        assert!(
            verdict(Some([1.2, 900.0]), Some(false), [2, 2]).ends_with("among all comparisons")
        );
        assert_eq!(
            verdict(Some([0.8, 900.0]), Some(false), [2, 2]),
            "No significant difference between BBR and CUBIC at 1 % loss: ratio 37; 95 %: 0.8 to 900"
        );
        assert!(verdict(None, None, [1, 1]).ends_with("one run each, so there is no interval"));
        assert!(verdict(None, None, [1, 4]).ends_with("1 and 4 runs, too few for an interval"));
    }
}
