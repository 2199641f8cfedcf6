//! What a copy is asked for.

use crate::hello::{MAX_TARGET, MIN_TARGET};
use crate::transport::Transport;
use control::Algorithm;
use problem::{Fault, Field, Problem};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::BitRate;

/// The TCP port of servers for copies.
pub const PORT: u16 = 5203;

/// Maximum parallel TCP connections.
const MAX_STREAMS: u32 = 64;

/// One end of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEnd {
    /// A path of this host.
    Local(PathBuf),
    /// A path of another.
    Remote {
        /// `HOST` or `USER@HOST`.
        host: String,
        /// Relative to the home directory, or to the server's root.
        path: PathBuf,
    },
}

/// What is copied, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyRequest {
    /// Files and directories: all local, or all of one host.
    pub sources: Vec<CopyEnd>,
    /// A directory, or the copy's name: local if they are not, and the other way round.
    pub destination: CopyEnd,
    /// The token of a server that runs there; without one the far end is started over ssh.
    pub token: Option<String>,
    /// The server's port.
    pub port: u16,
    /// The ssh command with its options.
    pub ssh: Vec<String>,
    /// The program to start over ssh.
    pub far_program: String,
    /// The transport.
    pub transport: Choice,
    /// Parallel TCP connections.
    pub streams: u32,
    /// Congestion control of UDT: bbr, cubic, reno.
    pub congestion: String,
    /// The maximum rate of file data.
    pub limit: Option<BitRate>,
    /// The rate that UDT keeps despite losses, instead of congestion control.
    pub target: Option<BitRate>,
}

impl Default for CopyRequest {
    /// Over ssh, UDT with BBR. Both ends are missing.
    fn default() -> Self {
        CopyRequest {
            sources: Vec::new(),
            destination: CopyEnd::Local(PathBuf::new()),
            token: None,
            port: PORT,
            ssh: vec!["ssh".to_owned()],
            far_program: "longhaul".to_owned(),
            transport: Choice::Auto,
            streams: 8,
            congestion: "bbr".to_owned(),
            limit: None,
            target: None,
        }
    }
}

impl CopyRequest {
    /// A copy over ssh.
    #[must_use]
    pub fn new(sources: Vec<CopyEnd>, destination: CopyEnd) -> Self {
        CopyRequest { sources, destination, ..CopyRequest::default() }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The field that is wrong, and what it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let wrong = |field, message: String, accepted: String| {
            Err(Problem::field(field, message, accepted))
        };
        if self.sources.is_empty() {
            return wrong(Field::Sources, "nothing to copy".to_owned(), String::new());
        }
        for end in self.sources.iter().chain([&self.destination]) {
            end.check()?;
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            let message = format!("{} streams are out of range", self.streams);
            return wrong(Field::Streams, message, format!("1 to {MAX_STREAMS}"));
        }
        if Algorithm::for_native(&self.congestion).is_none() {
            let message = format!("'{}' is not a congestion control of UDT", self.congestion);
            return wrong(Field::Congestion, message, "bbr, cubic or reno".to_owned());
        }
        if self.target.is_some() && self.limit.is_some() {
            let message = "a fixed rate is itself a limit".to_owned();
            return wrong(Field::Target, message, "or a limit".to_owned());
        }
        match self.target {
            Some(rate) if !(MIN_TARGET..=MAX_TARGET).contains(&rate) => {
                let accepted = format!("a rate from {MIN_TARGET} to {MAX_TARGET}");
                wrong(Field::Target, format!("{rate} cannot be kept"), accepted)
            }
            _ => Ok(()),
        }
    }

    /// The congestion control of UDT, of what this end sends; a fixed rate also of what the far
    /// end sends.
    pub(crate) fn algorithm(&self) -> Algorithm {
        let congestion = || Algorithm::for_native(&self.congestion).unwrap_or(Algorithm::Bbr3);
        self.target.map_or_else(congestion, Algorithm::FixedRate)
    }
}

impl CopyEnd {
    fn check(&self) -> Result<(), Problem> {
        match self {
            CopyEnd::Local(path) if path.as_os_str().is_empty() => Err(Problem::new(
                Fault::Request,
                "a path is empty; use . for the current directory",
            )),
            CopyEnd::Remote { host, .. } => remote::check_host(host)
                .map_err(|error| Problem::new(Fault::Request, format!("{host}: {error}"))),
            CopyEnd::Local(_) => Ok(()),
        }
    }
}

/// Which transport to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// UDT; TCP where UDP is blocked.
    Auto,
    /// One of them, or none.
    Only(Transport),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CopyRequest {
        let to = CopyEnd::Remote { host: "user@host".to_owned(), path: PathBuf::new() };
        CopyRequest::new(vec![CopyEnd::Local("a".into())], to)
    }

    #[test]
    fn wrong_fields_are_named() {
        assert_eq!(request().check(), Ok(()));
        let rate = |text: &str| Some(text.parse().unwrap());
        for (request, field) in [
            (CopyRequest { sources: Vec::new(), ..request() }, Field::Sources),
            (CopyRequest { streams: 0, ..request() }, Field::Streams),
            (CopyRequest { streams: 65, ..request() }, Field::Streams),
            (CopyRequest { congestion: "vegas".to_owned(), ..request() }, Field::Congestion),
            (CopyRequest { target: rate("1bit"), ..request() }, Field::Target),
            (
                CopyRequest { target: rate("1gbit"), limit: rate("1gbit"), ..request() },
                Field::Target,
            ),
        ] {
            let problem = request.check().unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, field, "{request:?}");
        }
        for end in [
            CopyEnd::Local(PathBuf::new()),
            CopyEnd::Remote { host: "-oProxyCommand=x".to_owned(), path: PathBuf::new() },
        ] {
            let request = CopyRequest { destination: end, ..request() };
            assert_eq!(request.check().unwrap_err().fault, Fault::Request);
        }
    }

    #[test]
    fn a_request_survives_json() {
        let text = serde_json::to_string(&request()).unwrap();
        assert_eq!(serde_json::from_str::<CopyRequest>(&text).unwrap(), request());
    }
}
