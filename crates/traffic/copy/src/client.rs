//! A copy from the user's side.

mod far_side;
pub(crate) mod segments;
mod tcp_trial;

use crate::progress::{Figures, Progress};
use crate::protocol::message::{Carrier, Message, Request};
use crate::receiver;
use crate::request::{Choice, CopyEnd, CopyRequest};
use crate::server::local_destination;
use crate::transport::{Session, Transport, udt};
use crate::{CopyError, sender, walk};
pub(crate) use far_side::CONTROL_LANE;
use far_side::FarSide;
use host::clock;
use host::stop::StopFlag;
use problem::Field;
pub use segments::PathMtu;
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tcp_trial::TcpTrial;
use units::BitRate;

const CONNECT: Duration = Duration::from_secs(10);
/// Pauses before a copy whose connection failed is continued.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// What carries a copy, and why.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// This transport does from now on.
    Connected(Transport),
    /// UDT loses this share of its packets, 0 to 1: TCP is tried.
    TryingTcp {
        /// The share.
        loss: f64,
    },
    /// Full-size packets vanish on the path: smaller ones are used.
    SmallerPackets(PathMtu),
    /// The rate of each. Unless TCP carried half as much again, UDT stays.
    TriedTcp {
        /// Rate of UDT before the trial.
        udt: BitRate,
        /// Rate of TCP in the trial.
        tcp: BitRate,
        /// The transport of the copy from now on.
        kept: Transport,
    },
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Its transport at the end.
    pub transport: Transport,
    /// Seconds from the request to the end.
    pub seconds: f64,
    /// Share of that time in which the sender waited for the network, 0 to 1; only where
    /// this end sends.
    pub network_limited: Option<f64>,
    /// Share in which the network waited for the sender's disk.
    pub source_limited: f64,
    /// Share in which the network waited for the receiver's disk.
    pub destination_limited: f64,
    /// Times that the connection failed and the copy was continued.
    pub resumed: u32,
    /// The totals.
    pub figures: Figures,
    /// Entries that failed, with the reason: the first 100.
    pub problems: Vec<String>,
}

/// Who sends, once the request is checked.
enum CopyDirection {
    Upload { sources: Vec<Vec<u8>>, host: String, to: Vec<u8> },
    Download { host: String, sources: Vec<Vec<u8>>, to: Vec<u8> },
}

/// Copies, and continues where a connection fails. `report` learns what carries it.
///
/// # Errors
/// The reason the copy ended early.
pub fn copy(
    request: &CopyRequest,
    progress: &Progress,
    stop: &StopFlag,
    report: &(dyn Fn(Notice) + Sync),
) -> Result<Summary, CopyError> {
    // Without it there are fewer descriptors.
    let _ = host::limits::raise_open_files();
    let direction = direction(request)?;
    let mut began = None;
    let (mut transport, mut resumed) = (request.transport, 0);
    loop {
        let (before, attempt_began) = (progress.figures(), clock::now());
        let attempt = Attempt { request, direction: &direction, transport, progress, stop };
        let error = match attempt.run(report) {
            Ok(mut summary) => {
                summary.resumed = resumed;
                summary.seconds += began
                    .map_or(0.0, |began: Instant| began.elapsed().as_secs_f64() - summary.seconds);
                return Ok(summary);
            }
            Err(error) => error,
        };
        let (CopyError::Connection(_), Some(pause)) = (&error, PAUSES.get(resumed as usize)) else {
            return Err(error);
        };
        // It never worked.
        if resumed == 0 && progress.figures().listed_entries == 0 {
            return Err(error);
        }
        // UDP that carries nothing may be blocked behind the handshake.
        if progress.figures().written_bytes == before.written_bytes && transport == Choice::Auto {
            transport = Choice::Only(Transport::Tcp);
        }
        let until = clock::now() + *pause;
        while clock::now() < until && !stop.is_raised() {
            std::thread::sleep(Duration::from_millis(50));
        }
        resumed += 1;
        began.get_or_insert(attempt_began);
        progress.restart();
    }
}

fn direction(request: &CopyRequest) -> Result<CopyDirection, CopyError> {
    let wrong = |text: &str| Err(CopyError::Local(text.to_owned()));
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    match &request.destination {
        CopyEnd::Remote { host, path } => {
            let mut sources = Vec::new();
            for source in &request.sources {
                let CopyEnd::Local(path) = source else {
                    return wrong("one side must be this host: copy to it first, then from it");
                };
                sources.push(bytes(path));
            }
            // Everything is checked before a connection is made.
            let found = walk::local_sources(&sources)?;
            walk::check_names(&found)?;
            Ok(CopyDirection::Upload { sources, host: host.clone(), to: bytes(path) })
        }
        CopyEnd::Local(to) => {
            let (mut sources, mut far) = (Vec::new(), None);
            for source in &request.sources {
                let CopyEnd::Remote { host, path } = source else {
                    return wrong("one side must be HOST:PATH; for local copies use cp");
                };
                if *far.get_or_insert(host) != host {
                    return wrong("all sources must be on one host");
                }
                sources.push(bytes(path));
            }
            let Some(host) = far else { return wrong("nothing to copy") };
            let to = bytes(to);
            destination(&to, &sources)?;
            Ok(CopyDirection::Download { host: host.clone(), sources, to })
        }
    }
}

/// Where a download goes. Only names that were asked for are accepted.
fn destination(to: &[u8], sources: &[Vec<u8>]) -> Result<receiver::Destination, CopyError> {
    let last = |path: &Vec<u8>| {
        path.split(|byte| *byte == b'/')
            .rfind(|name| !matches!(*name, b"" | b"."))
            .map(<[u8]>::to_vec)
    };
    // `.` asks for everything there.
    let expected: Option<Vec<_>> = sources.iter().map(last).collect();
    let has_wildcard = |path: &Vec<u8>| path.iter().any(|byte| b"*?[".contains(byte));
    let is_one = sources.len() == 1 && expected.is_some() && !sources.iter().any(has_wildcard);
    local_destination(to, if is_one { 1 } else { 2 }, expected)
}

struct Attempt<'a> {
    request: &'a CopyRequest,
    direction: &'a CopyDirection,
    transport: Choice,
    progress: &'a Progress,
    stop: &'a StopFlag,
}

impl Attempt<'_> {
    fn run(&self, report: &(dyn Fn(Notice) + Sync)) -> Result<Summary, CopyError> {
        let (CopyDirection::Upload { host, .. } | CopyDirection::Download { host, .. }) =
            self.direction;
        let far = FarSide::reach(self.request, host, self.stop)?;
        let session = &Session::new(self.stop.clone());
        let done = &StopFlag::new();
        std::thread::scope(|scope| {
            let connected = match self.transport {
                Choice::Only(Transport::Tcp) => None,
                Choice::Auto | Choice::Only(Transport::UdtNative) => {
                    far.connect_udt(self.request.algorithm())?
                }
            };
            let transport = match connected {
                Some(mut socket) => {
                    scope.spawn(move || {
                        let smaller = |mtu| report(Notice::SmallerPackets(mtu));
                        udt::carry(&mut socket, session, true, &smaller);
                    });
                    if self.transport == Choice::Auto && self.request.target.is_none() {
                        let trial = TcpTrial { attempt: self, far: &far, session, done };
                        scope.spawn(move || trial.run(scope, report));
                    }
                    Transport::UdtNative
                }
                None if self.transport == Choice::Only(Transport::UdtNative) => {
                    return Err(CopyError::Connection(format!(
                        "UDP does not get through; use {} tcp",
                        Field::Transport
                    )));
                }
                None => {
                    let lanes = far.connect_tcp(self.request.streams, CONNECT, Some(0))?;
                    if let Some(mtu) = far.path_mtu() {
                        report(Notice::SmallerPackets(mtu));
                    }
                    for (index, mut tls) in lanes.into_iter().enumerate() {
                        scope.spawn(move || tls.carry(session, index == 0));
                    }
                    Transport::Tcp
                }
            };
            report(Notice::Connected(transport));
            let result = self.transfer(session, transport);
            done.raise();
            if let Err(error) = &result {
                session.fail(error.clone());
            }
            result
        })
    }

    const fn is_upload(&self) -> bool {
        matches!(self.direction, CopyDirection::Upload { .. })
    }

    /// Most that file data is sent at: TCP cannot keep a target, but it must not exceed it.
    fn limit_bps(&self, transport: Transport) -> u64 {
        let target = self.request.target.filter(|_| transport == Transport::Tcp);
        self.request.limit.or(target).map_or(0, BitRate::bps)
    }

    fn transfer(&self, session: &Session, transport: Transport) -> Result<Summary, CopyError> {
        let began = clock::now();
        let limit_bps = self.limit_bps(transport);
        session.limit(limit_bps);
        let is_upload = match self.direction {
            CopyDirection::Upload { sources, to, .. } => {
                let sources = walk::local_sources(sources)?;
                let count = u32::try_from(sources.len()).unwrap_or(u32::MAX);
                let request = Request::Receive { destination: to.clone(), sources: count };
                session.send(&Message::Request(request))?;
                sender::send(session, self.progress, sources)?;
                true
            }
            CopyDirection::Download { sources, to, .. } => {
                let destination = destination(to, sources)?;
                ask(session, Request::Send { limit_bps, sources: sources.clone() })?;
                receiver::receive(session, self.progress, &destination)?;
                false
            }
        };
        let elapsed = began.elapsed();
        let share =
            |time: Duration| (time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)).min(1.0);
        let (full, empty) = session.waits();
        let figures = self.progress.figures();
        let moved = session.data_path().only() == Some(Carrier::Tcp);
        Ok(Summary {
            transport: if moved { Transport::Tcp } else { transport },
            seconds: elapsed.as_secs_f64(),
            network_limited: is_upload.then(|| share(full)),
            source_limited: match is_upload {
                true => share(empty),
                false => share(Duration::from_nanos(figures.sender_waited_ns)),
            },
            destination_limited: share(Duration::from_nanos(figures.receiver_waited_ns)),
            resumed: 0,
            problems: self.progress.problems(),
            figures,
        })
    }
}

fn ask(session: &Session, request: Request) -> Result<(), CopyError> {
    session.send(&Message::Request(request))?;
    match session.receive()? {
        Some(Message::Accepted) => Ok(()),
        Some(Message::Refused(reason)) => Err(CopyError::Refused(reason)),
        Some(_) => Err(CopyError::Protocol("it did not answer the request".into())),
        None => Err(CopyError::Connection("the peer closed it".into())),
    }
}
