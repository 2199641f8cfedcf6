//! Events of a running lab.

use lab::{Job, SessionEvent};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use topology::Plan;
use units::BitRate;

/// Events of a running lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabEvent {
    /// Names of hosts do not resolve, so that programs have to use addresses.
    NamesUnresolved {
        /// The reason.
        error: String,
        /// The hosts.
        hosts: Vec<(Ipv4Addr, String)>,
    },
    /// The lab is up.
    Up {
        /// The name by which it is found.
        name: String,
        /// Number of hosts and routers.
        hosts: usize,
        /// Number of links.
        links: usize,
    },
    /// The path of a pair.
    Path {
        /// In words.
        path: String,
        /// Congestion control of both hosts.
        congestion: String,
        /// The rates of a connection that autotuning reaches with the hosts' TCP buffers, from
        /// and to, where that is less than the path's.
        autotuned: Option<[BitRate; 2]>,
    },
    /// The far end is this machine, whose TCP ports are relayed.
    MachineRelayed {
        /// Those that are open now.
        ports: Vec<u16>,
    },
    /// The far end is this machine, which forwards to its network.
    MachineForwards,
    /// A program does not listen after that time; the lab goes on.
    NotListening {
        /// Its host.
        host: String,
        /// Its command line.
        command: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// All servers listen; the lab's clock starts.
    Begun,
    /// A program was started.
    Started {
        /// Its host.
        host: String,
        /// Its command line.
        command: String,
    },
    /// A program wrote a line.
    Line {
        /// Its host.
        host: String,
        /// The line, as it came: not safe for a terminal.
        line: String,
    },
    /// A program exited by itself.
    Exited {
        /// Its host.
        host: String,
        /// Its command line.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// A link was changed.
    Changed {
        /// Seconds since the lab's clock started.
        at_s: f64,
        /// The link.
        link: String,
        /// The settings that changed.
        set: String,
    },
    /// Packets arrived faster than they could be written.
    PacketsMissed {
        /// The log or capture that misses them.
        file: PathBuf,
        /// Their number.
        packets: u64,
    },
}

impl LabEvent {
    pub(super) fn of(event: &SessionEvent<'_>, plan: &Plan) -> Self {
        let program = |job: &Job| (job.host.clone(), job.words.clone());
        match event {
            SessionEvent::Begun => LabEvent::Begun,
            SessionEvent::NotListening(job, timeout) => {
                let ((host, command), seconds) = (program(job), timeout.as_secs());
                LabEvent::NotListening { host, command, seconds }
            }
            SessionEvent::Started(job) => {
                let (host, command) = program(job);
                LabEvent::Started { host, command }
            }
            SessionEvent::Line(job, line) => {
                LabEvent::Line { host: job.host.clone(), line: (*line).to_owned() }
            }
            SessionEvent::Ended(job, code) => {
                let (host, command) = program(job);
                LabEvent::Exited { host, command, code: *code }
            }
            SessionEvent::Changed(change) => LabEvent::Changed {
                at_s: change.at.as_secs_f64(),
                link: plan.links[change.link].name.clone(),
                set: change.set.clone(),
            },
        }
    }
}
