//! A download and an upload to an ndt7 server (m-lab/ndt-server, `spec/ndt7-protocol.md`), and what
//! limited them: the server says its `TCP_INFO`, and in an upload this host is the sender.

mod session;

use crate::explain::{ExplainedTransfer, Transfer};
use crate::http_client::{self, Endpoint};
use crate::{Fault, Problem, StopFlag};
use host::resolve::Family;
use serde::{Deserialize, Serialize};
use session::Session;
use std::net::SocketAddr;
use units::{BitRate, ByteCount};

/// The version of [`Ndt7Document`] in JSON.
pub const NDT7_SCHEMA: &str = "longhaul.ndt7/1";

/// A test of ndt7.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ndt7Test {
    /// The server sends.
    Download,
    /// This host sends.
    Upload,
}

impl Ndt7Test {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ndt7Test::Download => "download",
            Ndt7Test::Upload => "upload",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Ndt7Test::Download => "/ndt/v7/download",
            Ndt7Test::Upload => "/ndt/v7/upload",
        }
    }
}

/// The server, and which tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ndt7Request {
    /// A host, for which TLS is used, or a URL with the scheme wss, https, ws or http. A path that
    /// ends in `/download` or `/upload` selects that test alone.
    pub url: String,
    /// Only the download.
    pub download_only: bool,
    /// The IP version.
    pub family: Family,
    /// Accepts any certificate.
    pub insecure: bool,
}

impl Default for Ndt7Request {
    fn default() -> Self {
        Ndt7Request::new("")
    }
}

impl Ndt7Request {
    /// Both tests.
    pub fn new(url: impl Into<String>) -> Self {
        Ndt7Request { url: url.into(), download_only: false, family: Family::Any, insecure: false }
    }

    /// Checks the request before anything is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.tests().map(drop)
    }

    /// The tests in their order.
    ///
    /// # Errors
    /// As [`Ndt7Request::check`].
    pub fn tests(&self) -> Result<Vec<Ndt7Test>, Problem> {
        self.parsed().map(|(_, tests)| tests)
    }

    /// The server, and the tests in their order.
    fn parsed(&self) -> Result<(Endpoint, Vec<Ndt7Test>), Problem> {
        let endpoint = Endpoint::parse(&self.url)?;
        let named = [Ndt7Test::Download, Ndt7Test::Upload]
            .into_iter()
            .find(|test| endpoint.path.ends_with(&format!("/{}", test.name())));
        let is_path = endpoint.path.len() > 1;
        let tests = match (named, self.download_only) {
            (None, _) if is_path => {
                let message = "the URL's path is that of no ndt7 test";
                let accepted = "without a path, or with one that ends in /download or /upload";
                return Err(Problem::field(problem::Field::Host, message, accepted));
            }
            (Some(Ndt7Test::Upload), true) => {
                let message = "the URL names the upload, in which the server does not send";
                return Err(Problem::field(problem::Field::Host, message, "one without a path"));
            }
            (Some(test), _) => vec![test],
            (None, true) => vec![Ndt7Test::Download],
            (None, false) => vec![Ndt7Test::Download, Ndt7Test::Upload],
        };
        Ok((endpoint, tests))
    }
}

/// Events of [`run`].
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ndt7Event {
    /// A test begins.
    Connected {
        /// Which.
        test: Ndt7Test,
        /// The server.
        peer: SocketAddr,
    },
    /// Five times a second.
    Progress {
        /// Which test.
        test: Ndt7Test,
        /// Seconds since it began.
        t_s: f64,
        /// Bytes that arrived: of an upload, those that are acknowledged.
        bytes: ByteCount,
        /// Their mean rate so far.
        rate: BitRate,
    },
}

/// The tests, and their limits.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Ndt7Document {
    /// [`NDT7_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// The URL or host of the request.
    pub url: String,
    /// In the order in which they ran.
    pub tests: Vec<Ndt7Result>,
}

/// A test, and its limit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Ndt7Result {
    /// Which.
    pub test: Ndt7Test,
    /// The figure that clients of ndt7 show: the mean over the whole test. Of a download this host
    /// counts, of an upload the server.
    pub rate_bps: BitRate,
    /// The measurement and its limit.
    #[serde(flatten)]
    pub transfer: ExplainedTransfer,
}

impl Ndt7Document {
    /// The measurements with their names, as those of a file.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> {
        self.tests.iter().map(|one| Transfer {
            name: one.transfer.name.clone(),
            measurement: one.transfer.measurement.clone(),
        })
    }
}

/// Runs the tests, one after the other.
///
/// # Errors
/// An invalid field, a name without address; no server, one that speaks something else or refuses;
/// a test in which nothing arrived.
pub fn run(
    request: &Ndt7Request,
    on_event: &mut dyn FnMut(Ndt7Event),
    stop: &StopFlag,
) -> Result<Ndt7Document, Problem> {
    let (endpoint, tests) = request.parsed()?;
    let mut results = Vec::new();
    for test in tests {
        let work = async {
            let protocols: &[&[u8]] = &[b"http/1.1"];
            let (family, insecure) = (request.family, request.insecure);
            let found = http_client::find(&endpoint, family, insecure, protocols, stop).await?;
            let (server, connected) = found;
            on_event(Ndt7Event::Connected { test, peer: server.address });
            Session::open(test, &endpoint, connected).await?.run(on_event).await
        };
        let measurement = http_client::block_on(work, stop)?;
        let nothing =
            || Problem::new(Fault::Peer, format!("nothing arrived in the {}", test.name()));
        let stream = measurement.streams.first().ok_or_else(nothing)?;
        let rate = stream.received_bytes as f64 * 8.0 / stream.received_seconds;
        let transfer = Transfer { name: test.name().to_owned(), measurement };
        results.push(Ndt7Result {
            test,
            rate_bps: BitRate::from_bps_f64(rate),
            transfer: ExplainedTransfer::new(transfer),
        });
    }
    Ok(Ndt7Document {
        schema: NDT7_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: request.url.clone(),
        tests: results,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_selects_a_test() {
        let tests = |url: &str, download_only| {
            Ndt7Request { download_only, ..Ndt7Request::new(url) }.tests()
        };
        let (down, up) = (Ndt7Test::Download, Ndt7Test::Upload);
        assert_eq!(tests("speed.example", false), Ok(vec![down, up]));
        assert_eq!(tests("speed.example", true), Ok(vec![down]));
        assert_eq!(tests("ws://a/ndt/v7/upload?token=x", false), Ok(vec![up]));
        assert_eq!(tests("ws://a/ndt/v7/download", true), Ok(vec![down]));
        assert!(tests("ws://a/ndt/v7/upload", true).is_err());
        assert!(tests("ws://a/other", false).is_err());
    }
}
