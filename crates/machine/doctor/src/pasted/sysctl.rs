//! `sysctl -a` of Linux: the settings of a host, checked against a target.

use super::{MAX_LINE, MAX_LINES};
use crate::checks::{examine, report_of};
use crate::commands::{System, commands};
use crate::document::DoctorReport;
use crate::facts::{Fact, Facts};
use crate::target::Target;
use record::{Area, Check, CheckCommand, Verdict};

/// The reason for a setting that the text does not have.
const MISSING: &str = "not in the text";

/// The settings of a text: `net.ipv4.tcp_rmem = 4096 131072 6291456`.
fn settings(text: &str) -> impl Iterator<Item = (&str, String)> {
    let lines = text.lines().take(MAX_LINES).filter(|line| line.len() <= MAX_LINE);
    lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let is_key = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        let words: Vec<&str> = value.split_whitespace().collect();
        (key.contains('.') && key.chars().all(is_key)).then(|| (key, words.join(" ")))
    })
}

/// Returns true if a text has a setting of TCP or of sockets as sysctl(8) prints it.
#[must_use]
pub fn is_sysctl(text: &str) -> bool {
    settings(text).any(|(key, _)| key.starts_with("net.ipv4.") || key.starts_with("net.core."))
}

/// The settings of a text checked against a target, with sysctl's line for each that is too low.
/// `at_unix_s`: seconds since 1970.
#[must_use]
pub fn pasted_settings(text: &str, target: &Target, at_unix_s: u64) -> DoctorReport {
    let mut facts = Facts::unread(MISSING);
    let recipes = commands(System::Linux, target).recipes;
    for (key, value) in settings(text) {
        if key == "kernel.osrelease" {
            facts.kernel = Fact::Seen(value);
        } else if key.starts_with("net.") {
            facts.settings.insert(key.to_owned(), Fact::Seen(value));
        }
    }
    let line = |mut check: Check| {
        let is_seen = facts.settings.get(&check.id).is_some_and(|fact| fact.seen().is_some());
        if check.verdict == Verdict::Unknown && !is_seen {
            MISSING.clone_into(&mut check.seen);
        }
        if matches!(check.command, Some(CheckCommand::TuneApply { .. })) {
            let recipe = recipes.iter().find(|recipe| recipe.id == check.id);
            let lines = recipe.map(|recipe| recipe.apply.join("\n"));
            check.command = lines.filter(|lines| !lines.is_empty()).map(CheckCommand::Shell);
            "apply it now; /etc/sysctl.d keeps it".clone_into(&mut check.remedy);
        }
        check
    };
    let checks = examine(&facts, target).into_iter();
    let checks: Vec<Check> =
        checks.filter(|check| check.area == Area::Settings).map(line).collect();
    facts.may_set = Fact::Seen(true);
    report_of(checks, &facts, target, None, at_unix_s)
}
