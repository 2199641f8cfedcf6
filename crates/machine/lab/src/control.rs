//! Control protocol of a running lab: inventory, settings, captures. A request is
//! one line of JSON, and so is the reply; the bytes of a capture follow it.

use crate::capture;
use crate::{Lab, LabError};
use host::control::{self, Connection, Listener, Owner};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// Timeout of each side for a line of the other.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest part of a file in one line, in bytes: JSON escapes take six times as
/// many at most, which fits a line.
const FILE_PART: usize = 128 * 1024;

/// Total size of the files of one client: a trace of 64 MiB lasts for hours, and
/// `--link` has the same limit.
pub const MAX_FILES: ByteCount = ByteCount::from_bytes(64 << 20);

/// Delay after a failed accept.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Request {
    /// List hosts and links.
    Inventory,
    /// A part of a file that settings name; parts arrive in order.
    File { name: String, part: String },
    /// Change the settings of a link (`None`: the only one). The files they name
    /// were sent before.
    Set { link: Option<String>, set: String },
    /// Start a capture at a host; `bytes` is the snapshot length.
    Capture { host: String, bytes: usize },
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum Reply {
    Inventory(Inventory),
    Done,
    Refused { why: String },
}

/// The hosts and links of a lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its hosts.
    pub hosts: Vec<HostEntry>,
    /// Its links.
    pub links: Vec<LinkEntry>,
    /// The cores that its programs are confined to; `None`: any.
    #[serde(default)]
    pub program_cores: Option<Vec<u32>>,
}

/// A host of a running lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Its name.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: std::net::Ipv4Addr,
    /// Its IPv6 address.
    pub ipv6: std::net::Ipv6Addr,
    /// Its network namespace, as a file descriptor of the lab's process.
    pub namespace: i32,
}

/// A link of a running lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkEntry {
    /// Its name.
    pub name: String,
    /// The names of its ends: up is from the first to the second.
    pub between: [String; 2],
    /// Its path as configured at the start, in words.
    pub path: String,
}

/// Serves clients of `name` until the process ends, each on a thread.
///
/// # Errors
/// [`LabError::NameTaken`] where another lab has that name.
pub fn serve(name: &str, lab: &Arc<Lab>) -> Result<(), LabError> {
    let listener = Listener::bind(Owner::Lab, name).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => LabError::NameTaken { name: name.to_owned() },
        _ => LabError::System { step: "opening the control socket", source },
    })?;
    let lab = Arc::clone(lab);
    let callers = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        loop {
            match listener.accept(None) {
                Ok(Some(caller)) => {
                    let lab = Arc::clone(&lab);
                    // Without a thread the connection is closed.
                    let builder = std::thread::Builder::new().name("caller".to_owned());
                    drop(builder.spawn(move || answer(&lab, caller)));
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(RETRY_DELAY),
            }
        }
    });
    callers.map(drop).map_err(LabError::system("opening the control socket"))
}

fn answer(lab: &Lab, mut caller: Connection) {
    let mut files = Files::default();
    while let Ok(Some(line)) = caller.receive_line(REPLY_TIMEOUT) {
        let answer = match serde_json::from_str(&line) {
            Ok(Request::Inventory) => Reply::Inventory(inventory(lab)),
            Ok(Request::Set { link, set }) => {
                done(set_link(lab, link.as_deref(), &set, &std::mem::take(&mut files)))
            }
            Ok(Request::File { name, part }) => done(files.add(name, &part)),
            Ok(Request::Capture { host, bytes }) => {
                match lab.watch(Some(&host), bytes) {
                    Ok(watch) => {
                        if reply(&mut caller, &Reply::Done).is_ok() {
                            // The client ends the capture by closing the connection.
                            let (_, stream) = caller.into_stream();
                            let _ = capture::stream(lab, &host, &watch, stream);
                        }
                        return;
                    }
                    Err(error) => Reply::Refused { why: error.to_string() },
                }
            }
            Err(error) => Reply::Refused { why: format!("malformed request: {error}") },
        };
        if reply(&mut caller, &answer).is_err() {
            return;
        }
    }
}

fn reply(caller: &mut Connection, answer: &Reply) -> io::Result<()> {
    caller.send_line(&serde_json::to_string(answer).map_err(io::Error::other)?, REPLY_TIMEOUT)
}

fn done(result: Result<(), LabError>) -> Reply {
    match result {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Refused { why: error.to_string() },
    }
}

/// Files that a client sent. The lab opens none for a client: it may have rights
/// that the client has not.
#[derive(Debug, Default)]
struct Files {
    texts: HashMap<String, String>,
    bytes: u64,
}

impl Files {
    fn add(&mut self, name: String, part: &str) -> Result<(), LabError> {
        // Names count as well: many empty files must not bypass the limit.
        self.bytes = self.bytes.saturating_add((name.len() + part.len()) as u64);
        if self.bytes > MAX_FILES.bytes() {
            return Err(LabError::Refused {
                why: format!("the files exceed the limit of {MAX_FILES}"),
            });
        }
        self.texts.entry(name).or_default().push_str(part);
        Ok(())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let text = self.texts.get(name).cloned();
        text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the file was not sent"))
    }
}

fn set_link(lab: &Lab, link: Option<&str>, settings: &str, files: &Files) -> Result<(), LabError> {
    let mut links = lab.links();
    let name = match (link, links.next(), links.next()) {
        (Some(name), ..) => name,
        (None, Some((only, _)), None) => only,
        _ => {
            let all: Vec<&str> = lab.links().map(|(name, _)| name).collect();
            let known = all.iter().take(12).copied().collect::<Vec<_>>().join(", ");
            let more = if all.len() > 12 { ", …" } else { "" };
            return Err(LabError::Refused {
                why: format!("several links; name one before the settings: {known}{more}"),
            });
        }
    };
    lab.set(name, settings, &mut |file| files.read(file))
}

fn inventory(lab: &Lab) -> Inventory {
    Inventory {
        hosts: lab
            .hosts()
            .iter()
            .map(|host| HostEntry {
                name: host.name.clone(),
                ipv4: host.ipv4,
                ipv6: host.ipv6,
                namespace: host.namespace.as_fd().as_raw_fd(),
            })
            .collect(),
        links: lab
            .links()
            .zip(lab.paths())
            .map(|((name, between), path)| LinkEntry {
                name: name.to_owned(),
                between: between.map(str::to_owned),
                path: path.to_string(),
            })
            .collect(),
        program_cores: lab.program_cores().map(<[u32]>::to_vec),
    }
}

/// A connection to the control socket of a running lab.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Connects to the lab `name`, or to the only one running.
    ///
    /// # Errors
    /// If it is not running, or several are and `name` is `None`.
    pub fn call(name: Option<&str>) -> Result<Self, LabError> {
        let failed = LabError::system("connecting to the lab");
        let running = control::running(Owner::Lab).map_err(&failed)?;
        let known = || running.join(", ");
        let name = match (name, running.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, []) => return Err(LabError::NoneRuns),
            (None, _) => return Err(LabError::SeveralRun { known: known() }),
        };
        match control::connect(Owner::Lab, name) {
            Ok(connection) => Ok(Client { connection }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && running.is_empty() => {
                Err(LabError::NoneRuns)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(LabError::NoLab { name: name.to_owned(), known: known() })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The hosts and links.
    ///
    /// # Errors
    /// If the lab does not reply.
    pub fn inventory(&mut self) -> Result<Inventory, LabError> {
        match self.ask(&Request::Inventory)? {
            Reply::Inventory(inventory) => Ok(inventory),
            answer => Err(unexpected(&answer)),
        }
    }

    /// Changes the settings of a link, or of the only one. `files` has the name
    /// and text of each file that they name: the lab opens none itself.
    ///
    /// # Errors
    /// If the lab refuses them.
    pub fn set(
        &mut self,
        link: Option<&str>,
        settings: &str,
        files: &[(String, String)],
    ) -> Result<(), LabError> {
        for (name, text) in files {
            let mut rest = text.as_str();
            // An empty file is sent too.
            loop {
                let (part, after) = rest.split_at(rest.floor_char_boundary(FILE_PART));
                rest = after;
                let (name, part) = (name.clone(), part.to_owned());
                match self.ask(&Request::File { name, part })? {
                    Reply::Done => {}
                    answer => return Err(unexpected(&answer)),
                }
                if rest.is_empty() {
                    break;
                }
            }
        }
        let (link, set) = (link.map(str::to_owned), settings.to_owned());
        match self.ask(&Request::Set { link, set })? {
            Reply::Done => Ok(()),
            answer => Err(unexpected(&answer)),
        }
    }

    /// Starts a capture (pcapng) at a host with that snapshot length; it lasts
    /// until the stream is closed or the lab ends.
    ///
    /// # Errors
    /// If the lab refuses it.
    pub fn capture(mut self, host: &str, bytes: usize) -> Result<impl Read, LabError> {
        match self.ask(&Request::Capture { host: host.to_owned(), bytes })? {
            Reply::Done => {
                let (begun, stream) = self.connection.into_stream();
                Ok(io::Cursor::new(begun).chain(stream))
            }
            answer => Err(unexpected(&answer)),
        }
    }

    /// The connection, for [`host::join`].
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn ask(&mut self, ask: &Request) -> Result<Reply, LabError> {
        let failed = LabError::system("sending a request to the lab");
        let line = serde_json::to_string(ask).map_err(|e| failed(io::Error::other(e)))?;
        self.connection.send_line(&line, REPLY_TIMEOUT).map_err(&failed)?;
        let answer = self.connection.receive_line(REPLY_TIMEOUT).map_err(&failed)?;
        let answer = answer.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        match serde_json::from_str(&answer).map_err(|e| failed(io::Error::other(e)))? {
            Reply::Refused { why } => Err(LabError::Refused { why }),
            answer => Ok(answer),
        }
    }
}

fn unexpected(answer: &Reply) -> LabError {
    let source = io::Error::other(format!("unexpected reply: {answer:?}"));
    LabError::System { step: "sending a request to the lab", source }
}

/// The names of the running labs of this user.
///
/// # Errors
/// If the system does not list them.
pub fn running() -> Result<Vec<String>, LabError> {
    control::running(Owner::Lab).map_err(LabError::system("listing the labs"))
}
