//! Labs as JSON documents.

use lab::control::Inventory;
use lab::{EndReason, Job, LabReport, LinkReport, SessionEnd};
use record::PathReport;
use serde::{Deserialize, Serialize};
use topology::Plan;

/// A lab that has ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabDocument {
    /// `longhaul.lab/1`.
    pub schema: String,
    /// Its name, unless the request had another.
    pub name: String,
    /// True if all links were emulated as configured.
    pub valid: bool,
    /// Its hosts and routers.
    pub hosts: Vec<String>,
    /// Its links.
    pub links: Vec<LinkDocument>,
    /// Its programs, in the order of the request: first the server, if there is one.
    pub programs: Vec<LabProgramReport>,
    /// The reason it ended; not part of the document.
    #[serde(skip, default = "done")]
    pub why: EndReason,
}

impl LabDocument {
    /// True unless it ended by itself and a link was not emulated as configured: what called a lab
    /// that a signal ended has to know of the signal.
    #[must_use]
    pub const fn is_valid_or_interrupted(&self) -> bool {
        self.valid || matches!(self.why, EndReason::Signal(_))
    }
}

const fn done() -> EndReason {
    EndReason::Done
}

/// A link's report under its name.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkDocument {
    /// Its path, configured and measured.
    #[serde(flatten)]
    pub path: PathReport,
    /// Its name.
    pub link: String,
    /// The hosts at its ends: up is from the first to the second.
    pub between: [String; 2],
}

/// A program of a lab that has ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabProgramReport {
    /// Its host.
    pub on: String,
    /// Its command line.
    pub command: String,
    /// True if it was started.
    pub started: bool,
    /// Its exit code; `None` if it was not started or could not be killed.
    pub exit_code: Option<i32>,
    /// True if it was asked to stop.
    pub stopped: bool,
    /// Its last lines of output, if they went into events.
    pub last_lines: Vec<String>,
}

/// A running lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningLab {
    /// Its name.
    pub name: String,
    /// Its hosts and links.
    #[serde(flatten)]
    pub inventory: Inventory,
}

/// A program that ran on a host of a running lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecDocument {
    /// `longhaul.lab-exec/1`.
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The host.
    pub on: String,
    /// The command line.
    pub command: String,
    /// The exit code of the program; 137 if the lab ended first.
    pub exit_code: i32,
}

/// A changed link of a running lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetDocument {
    /// `longhaul.lab-set/1`.
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The link.
    pub link: String,
    /// The settings that changed.
    pub set: String,
}

impl ExecDocument {
    pub(super) fn new(on: &str, command: String, exit_code: i32) -> Self {
        ExecDocument {
            schema: "longhaul.lab-exec/1".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            on: on.to_owned(),
            command,
            exit_code,
        }
    }
}

impl SetDocument {
    pub(super) fn new(link: &str, set: &str) -> Self {
        SetDocument {
            schema: "longhaul.lab-set/1".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            link: link.to_owned(),
            set: set.to_owned(),
        }
    }
}

impl LabDocument {
    pub(super) fn new(plan: &Plan, jobs: &[Job], ended: SessionEnd, report: &LabReport) -> Self {
        // A program that was not started has no end.
        let programs = jobs.iter().zip(ended.ends).map(|(job, end)| LabProgramReport {
            on: job.host.clone(),
            command: job.words.clone(),
            started: end.is_some(),
            exit_code: end.as_ref().and_then(|end| end.code),
            stopped: end.as_ref().is_some_and(|end| end.stopped),
            last_lines: end.map(|end| end.last_lines).unwrap_or_default(),
        });
        LabDocument {
            schema: "longhaul.lab/1".to_owned(),
            name: plan.name.clone(),
            valid: report.links.iter().all(|link| link.path.valid),
            hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
            programs: programs.collect(),
            links: report.links.iter().map(LinkDocument::of).collect(),
            why: ended.why,
        }
    }
}

impl LinkDocument {
    pub(super) fn of(link: &LinkReport) -> Self {
        let LinkReport { path, name, between, .. } = link;
        LinkDocument { path: path.clone(), link: name.clone(), between: between.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_lab_is_no_invalid_one() {
        let of = |valid, why| {
            let schema = "longhaul.lab/1".to_owned();
            let (hosts, links, programs) = (Vec::new(), Vec::new(), Vec::new());
            let name = String::new();
            LabDocument { schema, name, valid, hosts, links, programs, why }
                .is_valid_or_interrupted()
        };
        assert!(of(false, EndReason::Signal(15)) && of(true, EndReason::Failed(0)));
        assert!(!of(false, EndReason::Done) && !of(false, EndReason::Failed(0)));
    }
}
