//! Labs as JSON documents: `lab up`, `lab run`, `lab exec` and `lab set` with `--json`, and the
//! links of `--report`.

use lab::control::Inventory;
use lab::{Job, LabReport, LinkReport, SessionEnd};
use record::PathReport;
use serde::Serialize;
use topology::Plan;

/// A lab that has ended.
#[derive(Debug, Serialize)]
pub(super) struct LabDocument<'a> {
    schema: &'static str,
    name: &'a str,
    valid: bool,
    hosts: Vec<&'a str>,
    links: Vec<LinkDocument<'a>>,
    programs: Vec<Program<'a>>,
}

/// A link's report under its name.
#[derive(Debug, Serialize)]
pub(super) struct LinkDocument<'a> {
    #[serde(flatten)]
    path: &'a PathReport,
    link: &'a str,
    between: &'a [String; 2],
}

#[derive(Debug, Serialize)]
struct Program<'a> {
    on: &'a str,
    command: &'a str,
    started: bool,
    exit_code: Option<i32>,
    stopped: bool,
    last_lines: &'a [String],
}

/// A running lab, in `lab list --json`.
#[derive(Debug, Serialize)]
pub(super) struct RunningLab<'a> {
    pub(super) name: &'a str,
    #[serde(flatten)]
    pub(super) inventory: &'a Inventory,
}

/// A program that ran on a host of a running lab.
#[derive(Debug, Serialize)]
pub(super) struct ExecDocument<'a> {
    schema: &'static str,
    version: &'static str,
    on: &'a str,
    command: String,
    exit_code: i32,
}

impl<'a> ExecDocument<'a> {
    pub(super) fn new(on: &'a str, command: String, exit_code: i32) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        ExecDocument { schema: "longhaul.lab-exec/1", version, on, command, exit_code }
    }
}

/// A changed link of a running lab.
#[derive(Debug, Serialize)]
pub(super) struct SetDocument<'a> {
    schema: &'static str,
    version: &'static str,
    link: &'a str,
    set: &'a str,
}

impl<'a> SetDocument<'a> {
    pub(super) fn new(link: &'a str, set: &'a str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        SetDocument { schema: "longhaul.lab-set/1", version, link, set }
    }
}

impl<'a> LabDocument<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        jobs: &'a [Job],
        ended: &'a SessionEnd,
        report: &'a LabReport,
    ) -> Self {
        // A program that was not started has no end.
        let programs = jobs.iter().zip(&ended.ends).map(|(job, end)| Program {
            on: &job.host,
            command: &job.words,
            started: end.is_some(),
            exit_code: end.as_ref().and_then(|end| end.code),
            stopped: end.as_ref().is_some_and(|end| end.stopped),
            last_lines: end.as_ref().map_or(&[], |end| &end.last_lines),
        });
        LabDocument {
            schema: "longhaul.lab/1",
            name: &plan.name,
            valid: report.links.iter().all(|link| link.path.valid),
            hosts: plan.hosts.iter().map(|host| host.name.as_str()).collect(),
            links: LinkDocument::of(&report.links),
            programs: programs.collect(),
        }
    }
}

impl<'a> LinkDocument<'a> {
    pub(super) fn of(links: &'a [LinkReport]) -> Vec<Self> {
        let one = |link: &'a LinkReport| LinkDocument {
            path: &link.path,
            link: &link.name,
            between: &link.between,
        };
        links.iter().map(one).collect()
    }
}
