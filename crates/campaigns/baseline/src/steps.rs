//! The next steps: first against doubts about the measurement itself, then against the costliest
//! limits.

use record::{
    Action, AlsoShows, BaselineCondition, BaselineDifference, BaselineReport, BaselineStep,
    ConditionFactor, Direction, Limit, Remedy, RemedyPlace, TestCondition, TestSpec, Verdict,
};
use std::collections::BTreeSet;
use units::BitRate;

/// Bufferbloat grades from which on the queue deserves attention: 60 ms and more.
const BLOATED: [&str; 3] = ["C", "D", "F"];

/// Steps at most: further ones follow from the next baseline.
const MAX_STEPS: usize = 6;

/// From this share of a saturated bottleneck's rate on a limit costs nothing.
const SAME_RATE: f64 = 0.97;

/// Less than this below the other direction is no asymmetry of the provisioned rate, share.
const ASYMMETRIC: f64 = 0.25;

/// The steps for a report whose other parts are complete, the most effective first.
#[must_use]
pub fn steps(report: &BaselineReport) -> Vec<BaselineStep> {
    let mut steps = Vec::new();
    if report.conditions.is_empty() {
        return steps;
    }
    steps.extend(doubts(report));
    steps.extend(link(report));
    let mut explained = BTreeSet::new();
    steps.extend(family(report));
    steps.extend(streams(report, &mut explained));
    steps.extend(limits(report, &mut explained));
    steps.extend(direction(report));
    steps.extend(bufferbloat(report));
    steps.truncate(MAX_STEPS);
    if steps.is_empty() {
        let text = if report.interrupted {
            "Repeat the baseline to completion: this one was interrupted; it shows nothing to fix \
             so far, and later baselines cannot be compared with it"
        } else {
            "Nothing to fix: keep this result, and compare a later baseline with it"
        };
        steps.push(step(text, Some(again(report))));
    }
    steps
}

fn step(text: impl Into<String>, command: Option<String>) -> BaselineStep {
    BaselineStep { text: text.into(), command }
}

/// Power saving, other traffic, a CDN: repeat the baseline without them.
fn doubts(report: &BaselineReport) -> Vec<BaselineStep> {
    let wrong = |verdict| matches!(verdict, Verdict::Warn | Verdict::Fail);
    let checks = report.checks.iter().filter(|check| wrong(check.verdict));
    let of_checks = checks.filter(|check| !check.remedy.is_empty()).map(|check| {
        let text = format!("{} ({}): {}; then measure again", check.id, check.seen, check.remedy);
        step(text, check.command.as_ref().map(ToString::to_string).or_else(|| Some(again(report))))
    });
    let cdn = report.paths.iter().find_map(|path| path.cdn.as_ref());
    let of_cdn = cdn.map(|cdn| {
        let text = format!(
            "The server's address belongs to {cdn}: measure to a host of your own or a public \
             server, so that the path is tested and not the network's nearest site"
        );
        let elsewhere = Action::Baseline { host: String::new(), port: 0 };
        step(text, Some(elsewhere.command()))
    });
    of_cdn.into_iter().chain(of_checks).collect()
}

/// A link on the path below this host's own.
fn link(report: &BaselineReport) -> Option<BaselineStep> {
    // The fastest: a slower one may be the other direction of an asymmetric plan.
    let found = report.links.iter().max_by_key(|link| link.link_bps)?;
    let (link, median) = (found.link_bps, found.median_bps);
    let text = match report.link_bps {
        Some(own) if own > link => format!(
            "Find the {link} link: {} reaches its payload rate ({median}), but this host's link \
             runs at {own}. It is {}",
            found.condition, found.means
        ),
        Some(own) if own == link => format!(
            "This host's own {link} link is saturated ({median} of payload): a higher rate needs a \
             faster device, cable and port"
        ),
        _ => format!(
            "{} reaches the payload rate of a {link} link ({median}): {}. If your plan is faster, \
             look for that link",
            found.condition, found.means
        ),
    };
    let check = Action::CheckPath { host: report.target.clone(), port: report.port };
    Some(step(text, Some(check.command())))
}

/// The largest difference of a factor that matters, as a ratio.
fn largest(report: &BaselineReport, factor: ConditionFactor) -> Option<&BaselineDifference> {
    let ratio = |one: &&BaselineDifference| {
        let found = &one.comparison;
        (found.now_bps.max(1.0) / found.baseline_bps.max(1.0)).ln().abs()
    };
    let of_factor = report.differences.iter().filter(|one| one.factor == factor && one.matters);
    // Of equals the first.
    of_factor.rev().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
}

fn family(report: &BaselineReport) -> Option<BaselineStep> {
    let found = largest(report, ConditionFactor::Family)?;
    let slow = if found.comparison.difference_bps < 0.0 { found.second } else { found.first };
    let flag = if slow.family == record::AddressFamily::Ipv4 { "-4" } else { "-6" };
    Some(step(
        format!(
            "{} is the slower IP version: compare the routes; tunnels, and routers that forward \
             it in software, are the usual causes. {}",
            slow.family.name(),
            found.comparison.sentence
        ),
        Some(trace(report, Some(flag))),
    ))
}

/// One stream is limited by itself where several carry more.
fn streams(report: &BaselineReport, explained: &mut BTreeSet<Limit>) -> Option<BaselineStep> {
    let found = largest(report, ConditionFactor::Streams)?;
    if found.comparison.difference_bps <= 0.0 {
        return None;
    }
    let single = report.conditions.iter().find(|one| one.condition == found.first)?;
    explained.extend(single.limit);
    let cause = match single.limit {
        Some(limit) if limit != Limit::Unknown => format!("limited by {}", limit.name()),
        _ => "limited by something other than the path".to_owned(),
    };
    let text = format!(
        "A single connection is {cause}: {}. {}",
        found.comparison.sentence,
        single.finding.as_ref().map_or("", |finding| &finding.sentence)
    );
    Some(step(text.trim_end(), Some(fix(single, report))))
}

/// The limits that can be removed, the one with the lowest goodput first.
fn limits(report: &BaselineReport, explained: &mut BTreeSet<Limit>) -> Vec<BaselineStep> {
    let mut open: Vec<&BaselineCondition> = report.conditions.iter().collect();
    open.sort_by(|a, b| {
        let median = |one: &BaselineCondition| one.summary.median_bps.unwrap_or(0.0);
        median(a).total_cmp(&median(b))
    });
    let mut steps = Vec::new();
    for one in open {
        let Some(limit) = one.limit.filter(|limit| !limit.is_saturated()) else { continue };
        let Some(finding) = &one.finding else { continue };
        if limit == Limit::Unknown || costs_nothing(one, report) || !explained.insert(limit) {
            continue;
        }
        let median = one.summary.median_bps.map(BitRate::from_bps_f64).unwrap_or_default();
        let text = format!("{} ({median}): {}", one.condition, finding.sentence);
        steps.push(step(text, Some(fix(one, report))));
    }
    steps
}

/// Returns true if the bottleneck, saturated by another number of streams, carries no more.
fn costs_nothing(one: &BaselineCondition, report: &BaselineReport) -> bool {
    let same_path = |other: &&BaselineCondition| {
        other.condition.family == one.condition.family
            && other.condition.direction == one.condition.direction
            && other.limit.is_some_and(Limit::is_saturated)
    };
    let median = one.summary.median_bps.unwrap_or(0.0);
    let saturated = report.conditions.iter().filter(same_path);
    saturated.filter_map(|other| other.summary.median_bps).any(|rate| median >= rate * SAME_RATE)
}

/// The step against a condition's limit: its first remedy, else the end of its finding.
fn fix(of: &BaselineCondition, report: &BaselineReport) -> String {
    let finding = of.finding.as_ref();
    let remedy = finding.and_then(|finding| finding.remedies.first());
    let next = || finding?.next.as_ref().map(ToString::to_string);
    remedy.map(|remedy| command(remedy, of, report)).or_else(next).unwrap_or_else(|| {
        Action::Test(Box::new(test(report, of.condition)), AlsoShows::Cause).command()
    })
}

/// A remedy as a command: the setting, or the test that shows its effect.
fn command(remedy: &Remedy, of: &BaselineCondition, report: &BaselineReport) -> String {
    let test = test(report, of.condition);
    match remedy.place {
        RemedyPlace::Call => {
            let spec = test.clone().with(&remedy.command).unwrap_or(test);
            Action::Test(Box::new(spec), AlsoShows::Nothing).command()
        }
        RemedyPlace::Sender | RemedyPlace::Receiver => {
            let sender = remedy.place == RemedyPlace::Sender;
            let here = sender == (of.condition.direction == Direction::Forward);
            let place = if here { "" } else { "   # on the server" };
            format!("sudo {}{place}", remedy.command)
        }
        RemedyPlace::Boxes => remedy.command.to_string(),
    }
}

/// The test of a condition, with what else it is to show.
fn test(report: &BaselineReport, of: TestCondition) -> TestSpec {
    TestSpec {
        target: report.target.clone(),
        port: report.port,
        direction: of.direction,
        streams: of.streams,
        ..TestSpec::default()
    }
}

fn trace(report: &BaselineReport, family: Option<&'static str>) -> String {
    Action::Trace { host: report.target.clone(), family }.command()
}

/// The same baseline once more.
fn again(report: &BaselineReport) -> String {
    Action::Baseline { host: report.target.clone(), port: report.port }.command()
}

/// Directions that differ although nothing but their provisioned rates limits them.
fn direction(report: &BaselineReport) -> Option<BaselineStep> {
    let found = largest(report, ConditionFactor::Direction)?;
    let share = found.comparison.difference_share?;
    if share.abs() < ASYMMETRIC {
        return None;
    }
    Some(step(
        format!(
            "The directions differ: {}. This is usual for cable, DSL, PON and mobile plans; if the \
             plan is symmetric, ask the provider",
            found.comparison.sentence
        ),
        Some(trace(report, None)),
    ))
}

/// The worst queue of each direction.
fn bufferbloat(report: &BaselineReport) -> Vec<BaselineStep> {
    let mut steps = Vec::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let rise = |one: &&BaselineCondition| {
            one.latency.as_ref().and_then(|latency| latency.rise_ms).unwrap_or(0.0)
        };
        let of_direction = report.conditions.iter().filter(|c| c.condition.direction == direction);
        let worst = of_direction.max_by(|a, b| rise(a).total_cmp(&rise(b)));
        let Some((one, latency)) = worst.and_then(|one| Some((one, one.latency.as_ref()?))) else {
            continue;
        };
        let (Some(rise), Some(grade)) = (latency.rise_ms, latency.grade.as_deref()) else {
            continue;
        };
        if !BLOATED.contains(&grade) {
            continue;
        }
        let median = one.summary.median_bps.unwrap_or(0.0);
        // A tenth below, so that the queue is in the router that manages it.
        let shaped = BitRate::from_bps_f64(median * 0.9);
        let place = match direction {
            Direction::Reverse => {
                "for received traffic, at the router's ingress or the provider's end"
            }
            _ => "for sent traffic, at the router",
        };
        steps.push(step(
            format!(
                "The RTT rises by {rise:.0} ms under load (bufferbloat grade {grade}, {}): enable \
                 active queue management {place}: cake or fq_codel, shaped to about {shaped}",
                one.condition
            ),
            Some(Action::Test(Box::new(test(report, one.condition)), AlsoShows::Latency).command()),
        ));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::report;
    use crate::{TestRun, differences, summary};
    use record::AddressFamily::{Ipv4, Ipv6};
    use record::{Area, Check, RemedyCommand};

    fn first(report: &BaselineReport) -> String {
        steps(report)[0].text.clone()
    }

    #[test]
    fn a_saturated_path_leaves_nothing_to_fix() {
        let good = report(&[Ipv4, Ipv6], |_| 90.0, 10.0);
        let found = steps(&good);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("Nothing to fix"), "{found:?}");
        let interrupted = BaselineReport { interrupted: true, ..good.clone() };
        assert!(steps(&interrupted)[0].text.starts_with("Repeat the baseline"), "{interrupted:?}");
        let none = BaselineReport { conditions: Vec::new(), ..good };
        assert_eq!(steps(&none), []);
    }

    #[test]
    fn what_makes_the_result_doubtful_comes_first() {
        let mut found = report(&[Ipv4], |_| 941.0, 300.0);
        found.link_bps = Some(BitRate::from_bps(2_500_000_000));
        assert!(first(&found).starts_with("Find the 1 Gbit/s link: IPv4"), "{found:?}");
        found.link_bps = Some(BitRate::from_bps(1_000_000_000));
        assert!(first(&found).starts_with("This host's own 1 Gbit/s link is saturated"));
        found.checks.push(Check {
            id: "cpu.governor".to_owned(),
            area: Area::Cpu,
            verdict: Verdict::Warn,
            seen: "powersave (4)".to_owned(),
            needed: String::new(),
            why: String::new(),
            remedy: "select the performance governor".to_owned(),
            command: Some("sudo cpupower frequency-set -g performance".into()),
            source: String::new(),
        });
        let all = steps(&found);
        assert!(all[0].text.starts_with("cpu.governor (powersave (4)): select"), "{all:?}");
        assert!(all[0].command.as_ref().unwrap().contains("cpupower"));
        let grades = all.iter().filter(|step| step.text.contains("grade D")).count();
        assert_eq!(grades, 2, "one of each direction: {all:?}");
        assert!(all.iter().any(|step| step.text.contains("shaped to about 847 Mbit/s")));
    }

    #[test]
    fn a_slow_ip_version_and_a_single_stream_have_their_commands() {
        let rate = |c: &record::TestCondition| match (c.family, c.streams) {
            (Ipv6, _) => 15.0,
            (_, 1) => 20.0,
            _ => 80.0,
        };
        let mut found = report(&[Ipv4, Ipv6], rate, 1.0);
        let place = RemedyPlace::Call;
        let command = RemedyCommand::CongestionControl("bbr".to_owned());
        let remedy =
            Remedy { place, command, setting: None, expects_bps: None, why: String::new() };
        for one in found.conditions.iter_mut().filter(|one| one.condition.streams == 1) {
            let mut run = crate::synthetic::run(20.0, Limit::Loss, None);
            run.finding.remedies.push(remedy.clone());
            let runs: Vec<TestRun> = vec![run; 3];
            let new = summary(one.condition, &runs, 0).unwrap();
            if one.condition.family == Ipv4 {
                *one = new;
            }
        }
        found.differences = differences(&found.conditions);
        let all = steps(&found);
        assert_eq!(all[0].command.as_deref(), Some("longhaul trace server.example.net -6"));
        assert!(all.iter().all(|step| step.command.is_some()), "{all:?}");
        assert!(all[1].text.starts_with("A single connection is limited by loss: 4 streams"));
        assert_eq!(all[1].command.as_deref(), Some("longhaul test server.example.net -C bbr"));
        // The same limit is not explained twice.
        assert_eq!(all.iter().filter(|step| step.text.contains("The limit is loss")).count(), 1);
        // Nor is one that costs nothing: four streams saturate the path at the same rate.
        let mut same = report(&[Ipv4], |_| 80.0, 1.0);
        same.conditions[0].limit = Some(Limit::Loss);
        assert!(steps(&same)[0].text.starts_with("Nothing to fix"));
        same.conditions[0].summary.median_bps = Some(77e6);
        assert!(steps(&same)[0].text.starts_with("IPv4 upload, 1 stream (77 Mbit/s): The limit"));
        found.target = "$(reboot)".to_owned();
        assert_eq!(steps(&found)[0].command.as_deref(), Some("longhaul trace '$(reboot)' -6"));
    }
}
