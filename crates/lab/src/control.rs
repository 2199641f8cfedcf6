//! Talking to a running lab from outside: who is there, other settings, a
//! capture. One line of JSON asks, one answers; a capture's bytes follow.

use crate::capture;
use crate::{Lab, LabError};
use host::control::{self, Connection, Listener};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

/// How long either side waits for the other's line.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Ask {
    /// Who is there.
    Inventory,
    /// Other settings for a link; for the only one where none is named.
    Set { link: Option<String>, set: String },
    /// A capture at a host's ends of its links, of so many bytes of each packet.
    Capture { host: String, bytes: usize },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum Answer {
    Inventory(Inventory),
    Done,
    Refused { why: String },
}

/// Who is in a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its hosts.
    pub hosts: Vec<HostEntry>,
    /// Its links.
    pub links: Vec<LinkEntry>,
}

/// A host of a running lab.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkEntry {
    /// Its name.
    pub name: String,
    /// Its ends' names: upwards is from the first to the second.
    pub between: [String; 2],
    /// Its path as it was asked at the beginning, in words.
    pub path: String,
}

/// Answers callers of `name` for as long as the process lives, each on a
/// thread of its own.
///
/// # Errors
/// [`LabError::NameTaken`] where another lab has that name.
pub fn serve(name: &str, lab: &Arc<Lab>) -> Result<(), LabError> {
    let listener = Listener::bind(name).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => LabError::NameTaken { name: name.to_owned() },
        _ => LabError::System { step: "opening a way in", source },
    })?;
    let lab = Arc::clone(lab);
    std::thread::spawn(move || {
        // Where accepting fails the lab goes on without a way in.
        while let Ok(caller) = listener.accept(None) {
            let lab = Arc::clone(&lab);
            if let Some(caller) = caller {
                std::thread::spawn(move || answer(&lab, caller));
            }
        }
    });
    Ok(())
}

fn answer(lab: &Lab, mut caller: Connection) {
    while let Ok(Some(line)) = caller.receive_line(PATIENCE) {
        let answer = match serde_json::from_str(&line) {
            Ok(Ask::Inventory) => Answer::Inventory(inventory(lab)),
            Ok(Ask::Set { link, set }) => done(set_link(lab, link.as_deref(), &set)),
            Ok(Ask::Capture { host, bytes }) => {
                match lab.watch(Some(&host), bytes) {
                    Ok(watch) => {
                        if say(&mut caller, &Answer::Done).is_ok() {
                            // Whoever captures ends it by hanging up.
                            let (_, stream) = caller.into_stream();
                            let _ = capture::stream(lab, &host, &watch, stream);
                        }
                        return;
                    }
                    Err(error) => Answer::Refused { why: error.to_string() },
                }
            }
            Err(error) => Answer::Refused { why: format!("cannot read that: {error}") },
        };
        if say(&mut caller, &answer).is_err() {
            return;
        }
    }
}

fn say(caller: &mut Connection, answer: &Answer) -> io::Result<()> {
    caller.send_line(&serde_json::to_string(answer).map_err(io::Error::other)?, PATIENCE)
}

fn done(result: Result<(), LabError>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Refused { why: error.to_string() },
    }
}

fn set_link(lab: &Lab, link: Option<&str>, settings: &str) -> Result<(), LabError> {
    let mut links = lab.links();
    let name = match (link, links.next(), links.next()) {
        (Some(name), ..) => name,
        (None, Some((only, _)), None) => only,
        _ => {
            let all: Vec<&str> = lab.links().map(|(name, _)| name).collect();
            let known = all.iter().take(12).copied().collect::<Vec<_>>().join(", ");
            let more = if all.len() > 12 { ", …" } else { "" };
            return Err(LabError::Refused {
                why: format!("name the link, before what to change; there are {known}{more}"),
            });
        }
    };
    lab.set(name, settings, &mut |file| std::fs::read_to_string(file))
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
    }
}

/// A conversation with a running lab.
#[derive(Debug)]
pub struct Caller {
    connection: Connection,
}

impl Caller {
    /// Calls the lab `name`; the only one that runs where none is named.
    ///
    /// # Errors
    /// Where it does not run, or several do and none is named.
    pub fn call(name: Option<&str>) -> Result<Self, LabError> {
        let failed = LabError::system("calling the lab");
        let running = control::running().map_err(&failed)?;
        let known = || running.join(", ");
        let name = match (name, running.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, []) => return Err(LabError::NoneRuns),
            (None, _) => return Err(LabError::SeveralRun { known: known() }),
        };
        match control::connect(name) {
            Ok(connection) => Ok(Caller { connection }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && running.is_empty() => {
                Err(LabError::NoneRuns)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(LabError::NoLab { name: name.to_owned(), known: known() })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Who is there.
    ///
    /// # Errors
    /// Where the lab does not answer.
    pub fn inventory(&mut self) -> Result<Inventory, LabError> {
        match self.ask(&Ask::Inventory)? {
            Answer::Inventory(inventory) => Ok(inventory),
            answer => Err(unexpected(&answer)),
        }
    }

    /// Gives a link other settings; the only one where none is named.
    ///
    /// # Errors
    /// Where the lab refuses them.
    pub fn set(&mut self, link: Option<&str>, settings: &str) -> Result<(), LabError> {
        let (link, set) = (link.map(str::to_owned), settings.to_owned());
        match self.ask(&Ask::Set { link, set })? {
            Answer::Done => Ok(()),
            answer => Err(unexpected(&answer)),
        }
    }

    /// Begins a capture (pcapng) at a host, of so many bytes of each packet;
    /// it goes on until the stream is closed or the lab ends.
    ///
    /// # Errors
    /// Where the lab refuses it.
    pub fn capture(mut self, host: &str, bytes: usize) -> Result<impl Read, LabError> {
        match self.ask(&Ask::Capture { host: host.to_owned(), bytes })? {
            Answer::Done => {
                let (begun, stream) = self.connection.into_stream();
                Ok(io::Cursor::new(begun).chain(stream))
            }
            answer => Err(unexpected(&answer)),
        }
    }

    /// The line to the lab, for [`host::join`].
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn ask(&mut self, ask: &Ask) -> Result<Answer, LabError> {
        let failed = LabError::system("asking the lab");
        let line = serde_json::to_string(ask).map_err(|e| failed(io::Error::other(e)))?;
        self.connection.send_line(&line, PATIENCE).map_err(&failed)?;
        let answer = self.connection.receive_line(PATIENCE).map_err(&failed)?;
        let answer = answer.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        match serde_json::from_str(&answer).map_err(|e| failed(io::Error::other(e)))? {
            Answer::Refused { why } => Err(LabError::Refused { why }),
            answer => Ok(answer),
        }
    }
}

fn unexpected(answer: &Answer) -> LabError {
    let source = io::Error::other(format!("an answer to another question: {answer:?}"));
    LabError::System { step: "asking the lab", source }
}

/// The names of the labs that run, of this user.
///
/// # Errors
/// Where the system does not list them.
pub fn running() -> Result<Vec<String>, LabError> {
    control::running().map_err(LabError::system("listing the labs"))
}
