//! The agent: what longhaul starts at another host to run tests there, for studies and copies.
//!
//! ```text
//!  standard input ──> requests ──> tests, a server, sysctls, a copy ──> replies ──> standard output
//! ```
//!
//! It does what it is asked with the rights of the user who started it, for whoever started it,
//! and ends with its input: what runs is stopped then, and what it set is reverted.

mod flows;
mod input;
mod refusal;
mod sysctls;

use copy::CopyError;
use flows::Flows;
use host::clock;
use host::lock::lock;
use host::stop::StopFlag;
use input::{Ended, Requests};
use perf::ServerEvent;
use perf::server::{Limits, Server, ServerConfig, Tokens};
use problem::Problem;
use refusal::Refusal;
use remote::protocol::{Hello, MAX_RESULTS, Reply, Request, Secret, VERSION, parse_request, write};
use std::io::Read;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use sysctls::Sysctls;
use tune::HostDisk;

/// The facts that an agent gets from the program that it is a part of.
#[derive(Debug)]
pub struct Host {
    /// Where the journals of this host's settings are kept, or why there is no such place.
    pub journals: Result<HostDisk, Problem>,
    /// The address at which ssh reached this host.
    pub address: Option<IpAddr>,
}

/// The reason an agent ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// Whoever started it does not follow the protocol.
    #[error("protocol error of the process that started the agent: {0}")]
    Protocol(String),
    /// No request came for a long time.
    #[error("no request for {} s", .0.as_secs())]
    Idle(Duration),
    /// A copy ended early.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// How long an agent without work waits for a request: whoever started it asks each agent of a
/// study more often, and a path that is gone does not end the input by itself.
const IDLE: Duration = Duration::from_secs(600);

/// The longest test that its server accepts: that of a study.
const LONGEST: Duration = Duration::from_secs(25 * 3600);

/// Answers requests until the input ends, `stop` is raised, or it is asked to end.
///
/// # Errors
/// [`AgentError`]; what it set is reverted then as well.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn FnMut(&str),
    host: Host,
    stop: &StopFlag,
) -> Result<(), AgentError> {
    let requests = Requests::read(input, stop.clone());
    let mut agent = Agent {
        began: clock::now(),
        sysctls: Sysctls::new(host.journals),
        address: host.address,
        server: None,
        greeted: false,
    };
    let ended = agent.answer_all(&requests, output, stop);
    agent.end();
    ended
}

struct Agent {
    /// Where its clock begins.
    began: Instant,
    sysctls: Sysctls,
    address: Option<IpAddr>,
    server: Option<Serving>,
    /// True if the first request was a hello of this version.
    greeted: bool,
}

/// A server's thread.
struct Serving {
    stop: StopFlag,
    thread: JoinHandle<()>,
}

impl Agent {
    fn answer_all(
        &mut self,
        requests: &Requests,
        output: &mut dyn FnMut(&str),
        stop: &StopFlag,
    ) -> Result<(), AgentError> {
        loop {
            let line = match requests.next(IDLE, stop) {
                Ok(line) => line,
                Err(Ended::Input) => return Ok(()),
                Err(Ended::Late) => return Err(AgentError::Idle(IDLE)),
                Err(Ended::TooLong(error)) => return refuse(output, &error.to_string()),
            };
            let request = match parse_request(&line) {
                Ok(request) => request,
                Err(error) => return refuse(output, &error.to_string()),
            };
            if !self.greeted && !matches!(request, Request::Hello { .. }) {
                return refuse(output, "the first request is not a hello");
            }
            let reply = match request {
                Request::Copy(client) => {
                    requests.discard();
                    return serve_copy(client, output, self.address, stop);
                }
                Request::Stop {} => {
                    self.end();
                    output(&line_of(&Reply::Stopped {}));
                    return Ok(());
                }
                Request::Run { token, flows } => {
                    let flows = Flows { began: self.began, token, requests: flows };
                    flows.run(requests, stop)
                }
                other => self.answer(other),
            };
            output(&line_of(&reply));
        }
    }

    fn answer(&mut self, request: Request) -> Reply {
        let answered = match request {
            Request::Hello { .. } => {
                self.greeted = true;
                Ok(Reply::Hello(Box::new(Hello {
                    version: VERSION,
                    longhaul: env!("CARGO_PKG_VERSION").to_owned(),
                    host: host::facts::read(None),
                    address: self.address.map(|address| address.to_string()),
                })))
            }
            Request::Tune { settings } => {
                self.sysctls.set(&settings).map(|settings| Reply::Tuned { settings })
            }
            Request::Revert {} => self.sysctls.revert().map(|left| Reply::Reverted { left }),
            Request::Serve { token } => self.listen(&token),
            Request::Time {} | Request::Run { .. } | Request::Copy(_) | Request::Stop {} => {
                let clock_ns = u64::try_from(self.began.elapsed().as_nanos());
                let unix_ns = u64::try_from(clock::unix_time().as_nanos());
                Ok(Reply::Time {
                    clock_ns: clock_ns.unwrap_or(u64::MAX),
                    unix_ns: unix_ns.unwrap_or(u64::MAX),
                })
            }
        };
        answered.unwrap_or_else(|refusal: Refusal| Reply::Error { reason: refusal.to_string() })
    }

    /// Serves tests of clients with the token until the agent ends.
    fn listen(&mut self, token: &Secret) -> Result<Reply, Refusal> {
        if self.server.is_some() {
            return Err(Refusal::AlreadyServing);
        }
        let config = ServerConfig {
            port: 0,
            // Made for this study's servers, which may be behind NAT.
            tokens: Some(Arc::new(Tokens::read(&token.0).for_any_name())),
            limits: Limits {
                duration: LONGEST,
                sessions_per_address: Some(Limits::default().sessions),
                ..Limits::default()
            },
            ..ServerConfig::default()
        };
        let server = Server::bind(&config)?;
        let (port, udp) = (server.local_addr().port(), server.has_udp());
        let stop = StopFlag::new();
        let stopped = stop.clone();
        let serve = move || drop(server.serve(&stopped, &|_: ServerEvent| ()));
        let thread = Builder::new().spawn(serve).map_err(Refusal::Thread)?;
        self.server = Some(Serving { stop, thread });
        Ok(Reply::Serving { port, udp })
    }

    /// Ends the server and reverts what was set.
    fn end(&mut self) {
        if let Some(Serving { stop, thread }) = self.server.take() {
            stop.raise();
            let _ = thread.join();
        }
        // Values left are in the journal: longhaul tune rollback.
        let _ = self.sysctls.revert();
    }
}

/// Says what is wrong, and ends.
fn refuse(output: &mut dyn FnMut(&str), why: &str) -> Result<(), AgentError> {
    output(&line_of(&Reply::Error { reason: why.to_owned() }));
    Err(AgentError::Protocol(why.to_owned()))
}

fn serve_copy(
    client: serde_json::Value,
    output: &mut dyn FnMut(&str),
    address: Option<IpAddr>,
    stop: &StopFlag,
) -> Result<(), AgentError> {
    let answered = Mutex::new(false);
    let served = copy::serve_one(
        client,
        |hello| {
            *lock(&answered) = true;
            output(&line_of(&Reply::Copy(hello)));
        },
        address,
        stop,
    );
    match served {
        // The client learns of a later one over the copy's own connections.
        Err(error) if !*lock(&answered) => {
            output(&line_of(&Reply::Error { reason: error.to_string() }));
            Err(error.into())
        }
        served => Ok(served?),
    }
}

/// A reply with the end of its line.
fn line_of(reply: &Reply) -> String {
    let reason = match write(reply) {
        Ok(line) if line.len() <= MAX_RESULTS => return line + "\n",
        Ok(_) => LONG.to_owned(),
        Err(error) => error.to_string(),
    };
    write(&Reply::Error { reason }).unwrap_or_default() + "\n"
}

const LONG: &str = "the samples of these flows exceed 64 MiB; use fewer streams or a shorter test";
