//! Checks of facts against a target. Pure: the same facts, the same checks.

mod cpu;
mod disk;
mod kernel;
mod line;
mod memory;
mod nic;
mod path;
mod settings;

use crate::document::{DOCTOR_SCHEMA, DoctorReport};
use crate::facts::{Fact, Facts};
use crate::target::{LossBudget, Target};
use record::{Area, Check, CheckCommand, Verdict};
use units::BitRate;

/// From this rate on a host needs tuning: ESnet's advice begins there.
const FAST: BitRate = BitRate::from_bps(10_000_000_000);
/// From this rate on processor details matter.
const VERY_FAST: BitRate = BitRate::from_bps(40_000_000_000);

/// Every check of a host, area by area.
#[must_use]
pub fn examine(facts: &Facts, target: &Target) -> Vec<Check> {
    let mut checks = path::checks(facts, target);
    checks.extend(settings::checks(facts, target));
    checks.extend(kernel::checks(facts));
    checks.extend(nic::checks(facts, target));
    checks.extend(cpu::checks(facts, target));
    checks.extend(memory::checks(facts, target));
    checks.extend(disk::checks(facts, target));
    checks
}

/// The same as a document. `at_unix_s`: seconds since 1970.
#[must_use]
pub fn report(
    facts: &Facts,
    target: &Target,
    host: Option<String>,
    at_unix_s: u64,
) -> DoctorReport {
    report_of(examine(facts, target), facts, target, host, at_unix_s)
}

/// The report of these checks.
pub(crate) fn report_of(
    checks: Vec<Check>,
    facts: &Facts,
    target: &Target,
    host: Option<String>,
    at_unix_s: u64,
) -> DoctorReport {
    let count = |verdict| DoctorReport::count(&checks, verdict);
    let (fail, warn, unknown) =
        (count(Verdict::Fail), count(Verdict::Warn), count(Verdict::Unknown));
    let verdict = match (fail, warn) {
        (0, 0) => Verdict::Pass,
        (0, _) => Verdict::Warn,
        _ => Verdict::Fail,
    };
    let mut notes = Vec::new();
    let by_tune = |check: &Check| matches!(check.command, Some(CheckCommand::TuneApply { .. }));
    if !facts.may_set.why_not().is_empty() && checks.iter().any(by_tune) {
        notes.push(format!("cannot change settings: {}", facts.may_set.why_not()));
    }
    if target.rtt.is_none() {
        notes.push("the RTT is unknown, so buffers are not checked: give the RTT".to_owned());
    }
    DoctorReport {
        schema: DOCTOR_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at_unix_s,
        host,
        to: facts.path.as_ref().map(|path| path.host.clone()),
        target: target.record(),
        verdict,
        fail,
        warn,
        unknown,
        pass: count(Verdict::Pass),
        checks,
        notes,
    }
}

/// A check under construction; a check that passes has no remedy.
struct Draft(Check);

fn check(area: Area, id: &str, verdict: Verdict) -> Draft {
    Draft(Check {
        id: id.to_owned(),
        area,
        verdict,
        seen: String::new(),
        needed: String::new(),
        why: String::new(),
        remedy: String::new(),
        command: None,
        source: String::new(),
    })
}

impl Draft {
    fn seen(mut self, text: impl Into<String>) -> Self {
        self.0.seen = text.into();
        self
    }

    fn needs(mut self, text: impl Into<String>) -> Self {
        self.0.needed = text.into();
        self
    }

    fn why(mut self, text: impl Into<String>) -> Self {
        self.0.why = text.into();
        self
    }

    fn remedy(mut self, text: impl Into<String>) -> Self {
        self.0.remedy = text.into();
        self
    }

    fn command(mut self, command: impl Into<CheckCommand>) -> Self {
        self.0.command = Some(command.into());
        self
    }

    fn source(mut self, text: &str) -> Check {
        self.0.source = text.to_owned();
        if matches!(self.0.verdict, Verdict::Pass) {
            self.0.remedy.clear();
            self.0.command = None;
        }
        self.0
    }
}

/// A check of a fact that could not be read.
fn unread<T>(area: Area, id: &str, fact: &Fact<T>, needed: &str, source: &str) -> Check {
    check(area, id, Verdict::Unknown).seen(fact.why_not()).needs(needed).source(source)
}

/// The congestion control of new connections.
fn congestion(facts: &Facts) -> Option<&str> {
    let name = facts.settings.get("net.ipv4.tcp_congestion_control")?.seen()?;
    Some(name.trim())
}

/// The loss at which the host's congestion control reaches the target; CUBIC's, the
/// default, where it could not be read.
fn loss_budget(facts: &Facts, target: &Target) -> Option<LossBudget> {
    let link = facts.device.seen().and_then(|device| device.speed_mbps.seen());
    let link = link.map(|mbps| BitRate::from_bps(u64::from(*mbps) * 1_000_000));
    target.loss_budget_with(congestion(facts).unwrap_or("cubic"), link)
}

/// Pass where it holds; otherwise the other.
fn pass_or(holds: bool, otherwise: Verdict) -> Verdict {
    if holds { Verdict::Pass } else { otherwise }
}
