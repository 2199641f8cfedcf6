//! Responsiveness to a server under load (draft-ietf-ippm-responsiveness-09): round trips per minute,
//! in a download and in an upload, and where the delay is.

mod direction;
mod figures;
mod http2;
mod load;
mod probes;

pub use figures::{Confidence, Latencies};

use crate::http_client::{self, Endpoint};
use crate::{Fault, Problem, StopFlag};
use diagnose::latency;
use direction::Run;
use figures::Round;
use host::resolve::Family;
use http2::Http2;
use probes::ForeignProbe;
use record::{Finding, Measurement};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::timeout;
use units::BitRate;

/// The version of [`ResponsivenessDocument`] in JSON.
pub const RESPONSIVENESS_SCHEMA: &str = "longhaul.responsiveness/1";

/// Most characters of the reason of a failure, which a server may choose.
const MAX_REASON: usize = 200;
/// The path of the configuration (section 6 of the draft).
const CONFIGURATION_PATH: &str = "/.well-known/nq";
/// Most bytes of the configuration.
const MAX_CONFIGURATION: usize = 64 << 10;
/// The time in which the server answers a small request.
const ANSWER_TIME: Duration = Duration::from_secs(7);
/// Probes before the load, and the time after which no more are sent.
const IDLE_PROBES: usize = 10;
const IDLE_TIME: Duration = Duration::from_secs(3);
/// Bounds of the time for a direction.
const SECONDS: std::ops::RangeInclusive<u32> = 8..=60;

/// The server, and which directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsivenessRequest {
    /// A host, for which TLS is used, or a URL. Without a path, the configuration's.
    pub url: String,
    /// Only the download.
    pub download_only: bool,
    /// The IP version.
    pub family: Family,
    /// Accepts any certificate.
    pub insecure: bool,
    /// The longest time of a direction, in seconds, 8 to 60: it ends when the result is stable.
    pub max_seconds: u32,
}

impl Default for ResponsivenessRequest {
    fn default() -> Self {
        ResponsivenessRequest::new("")
    }
}

impl ResponsivenessRequest {
    /// Both directions, at most 20 s each.
    pub fn new(url: impl Into<String>) -> Self {
        ResponsivenessRequest {
            url: url.into(),
            download_only: false,
            family: Family::Any,
            insecure: false,
            max_seconds: 20,
        }
    }

    /// Checks the request before anything is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        Endpoint::parse(&self.url)?;
        if SECONDS.contains(&self.max_seconds) {
            return Ok(());
        }
        Err(Problem::field(problem::Field::Duration, "the time is out of range", "8 to 60 seconds"))
    }
}

/// The direction of the load.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadDirection {
    /// The server sends.
    Download,
    /// This host sends.
    Upload,
}

impl LoadDirection {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoadDirection::Download => "download",
            LoadDirection::Upload => "upload",
        }
    }
}

/// Events of [`run`].
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponsivenessEvent {
    /// The RTT without load is measured.
    Idle(Latencies),
    /// An interval of 1 s has ended.
    Interval {
        /// The direction of the load.
        direction: LoadDirection,
        /// Seconds since it began.
        t_s: f64,
        /// Loaded connections.
        connections: u32,
        /// Goodput in the interval.
        rate: BitRate,
        /// Of the last 4 intervals; `None` with too few probes.
        rpm: Option<f64>,
    },
}

/// The result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ResponsivenessDocument {
    /// [`RESPONSIVENESS_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// The URL or host of the request.
    pub url: String,
    /// Probes without load, each on a connection of its own.
    pub idle: Latencies,
    /// The download, then the upload.
    pub directions: Vec<DirectionResult>,
}

/// The result of a direction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct DirectionResult {
    /// Of the load.
    pub direction: LoadDirection,
    /// Round trips per minute: the mean of those of foreign and of loaded probes; `None` with too
    /// few of a kind.
    pub rpm: Option<f64>,
    /// Its rating: `poor`, `fair`, `good` or `excellent`.
    pub rating: Option<String>,
    /// Whether the result was stable.
    pub confidence: Confidence,
    /// Goodput of the last 4 intervals.
    pub rate_bps: BitRate,
    /// Loaded connections at the end.
    pub connections: u32,
    /// Length of the load, in seconds.
    pub seconds: f64,
    /// Probes on connections of their own, in the last 4 intervals.
    pub foreign: Latencies,
    /// Probes within the loaded connections, in the last 4 intervals.
    pub loaded: Latencies,
    /// Probes without an answer, in the whole time.
    pub failed_probes: u32,
    /// The result in sentences.
    pub sentence: String,
    /// The limit of the throughput, as far as this host's sockets reveal it.
    pub finding: Finding,
    /// The loaded connections.
    pub measurement: Measurement,
}

/// The targets of requests to one server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Targets {
    authority: String,
    is_encrypted: bool,
    small: String,
    large: String,
    upload: String,
}

fn wrong(what: impl std::fmt::Display) -> Problem {
    let what = report::untrusted::excerpt(&what.to_string(), MAX_REASON);
    Problem::new(Fault::Peer, format!("responsiveness: {what}"))
}

/// What ended a connection: hyper's own words name no cause.
fn failed(error: &hyper::Error) -> Problem {
    match std::error::Error::source(error) {
        Some(cause) => wrong(cause),
        None => wrong(error),
    }
}

impl Targets {
    /// Reads a configuration. Its URLs are on the server that it is of: nobody can have this host
    /// load another one.
    fn parse(text: &[u8], endpoint: &Endpoint) -> Result<Self, Problem> {
        // The names of early versions may stand beside those of the draft.
        let value: serde_json::Value = serde_json::from_slice(text)
            .map_err(|error| wrong(format!("the configuration: {error}")))?;
        let target = |name: &str, early: &str| {
            let urls = value.get("urls");
            let url = urls.and_then(|urls| urls.get(name).or(urls.get(early))?.as_str());
            let url = url.ok_or_else(|| wrong(format!("the configuration has no {name}")))?;
            let found = Endpoint::parse(url).map_err(|problem| {
                wrong(format!("{name} of the configuration: {}", problem.message))
            })?;
            if !endpoint.is_same_server(&found) {
                return Err(wrong(format!("{name} of the configuration is on another server")));
            }
            Ok(found.target("/"))
        };
        Ok(Targets {
            authority: endpoint.authority(),
            is_encrypted: endpoint.is_encrypted,
            small: target("small_download_url", "small_https_download_url")?,
            large: target("large_download_url", "large_https_download_url")?,
            upload: target("upload_url", "https_upload_url")?,
        })
    }
}

/// Measures without load, then in the download and the upload.
///
/// # Errors
/// An invalid field, a name without address; no server, or one without HTTP/2 or the configuration,
/// or that refuses.
pub fn run(
    request: &ResponsivenessRequest,
    on_event: &mut dyn FnMut(ResponsivenessEvent),
    stop: &StopFlag,
) -> Result<ResponsivenessDocument, Problem> {
    request.check()?;
    let endpoint = Endpoint::parse(&request.url)?;
    let work = async {
        let (family, insecure) = (request.family, request.insecure);
        let found = http_client::find(&endpoint, family, insecure, &[b"h2"], stop).await?;
        let (server, connected) = found;
        let path = endpoint.target(CONFIGURATION_PATH);
        let asked = Targets {
            authority: endpoint.authority(),
            is_encrypted: endpoint.is_encrypted,
            small: path.clone(),
            large: String::new(),
            upload: String::new(),
        };
        let configuration = async {
            let (connection, _) = Http2::open(connected).await?;
            connection.get(&asked, &path, MAX_CONFIGURATION).await
        };
        let configuration = timeout(ANSWER_TIME, configuration).await;
        let text = configuration.map_err(|_| wrong("the server does not answer"))??;
        let targets = Targets::parse(&text, &endpoint)?;
        let idle = idle(&server, &targets).await?;
        on_event(ResponsivenessEvent::Idle(idle));
        let mut directions = Vec::new();
        for direction in [LoadDirection::Download, LoadDirection::Upload] {
            if request.download_only && direction == LoadDirection::Upload {
                break;
            }
            let run =
                Run { direction, server: &server, targets: &targets, seconds: request.max_seconds };
            let (round, measurement) = run.run(on_event).await?;
            directions.push(result(direction, &round, measurement, &idle));
        }
        Ok((idle, directions))
    };
    let (idle, directions) = http_client::block_on(work, stop)?;
    Ok(ResponsivenessDocument {
        schema: RESPONSIVENESS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: request.url.clone(),
        idle,
        directions,
    })
}

/// Latencies without load.
async fn idle(server: &http_client::Server, targets: &Targets) -> Result<Latencies, Problem> {
    let began = host::clock::now();
    let mut probes: Vec<ForeignProbe> = Vec::new();
    while probes.len() < IDLE_PROBES && began.elapsed() < IDLE_TIME {
        let probe = timeout(ANSWER_TIME, probes::foreign(server, targets)).await;
        probes.push(probe.map_err(|_| wrong("the server does not answer"))??);
    }
    Ok(Latencies::of(&probes))
}

fn result(
    direction: LoadDirection,
    round: &Round,
    measurement: Measurement,
    idle: &Latencies,
) -> DirectionResult {
    let rating = round.rpm.map(|rpm| latency::word(rpm).to_owned());
    let sentence = sentence(direction, round, idle);
    let finding = diagnose::explain(&measurement);
    DirectionResult {
        direction,
        rpm: round.rpm,
        rating,
        confidence: round.confidence,
        rate_bps: round.rate,
        connections: round.connections,
        seconds: round.seconds,
        foreign: round.foreign,
        loaded: round.loaded,
        failed_probes: round.failed,
        sentence,
        finding,
        measurement,
    }
}

/// A loaded round trip this much longer than a foreign one spends its time in the ends' buffers.
const BUFFER_FACTOR: f64 = 2.0;
/// Differences below this say nothing, ms.
const MIN_DIFFERENCE_MS: f64 = 20.0;

fn sentence(direction: LoadDirection, round: &Round, idle: &Latencies) -> String {
    let name = direction.name();
    let (Some(rpm), Some(foreign), Some(loaded)) =
        (round.rpm, round.foreign.http_ms, round.loaded.http_ms)
    else {
        return format!("In the {name}, too few probes were answered for a responsiveness.");
    };
    let mut text = format!(
        "In the {name}, {rpm:.0} round trips per minute ({}) at {}: an HTTP request took {loaded:.0} \
         ms on a loaded connection and {foreign:.0} ms on a new one",
        latency::word(rpm),
        round.rate
    );
    if let Some(idle) = idle.http_ms {
        text += &format!(", {idle:.0} ms without load");
    }
    if round.confidence != Confidence::High {
        text += &format!("; it was not stable in {:.0} s", round.seconds);
    }
    let above = |one: f64, other: f64| one - other > MIN_DIFFERENCE_MS;
    text += if loaded > foreign * BUFFER_FACTOR && above(loaded, foreign) {
        ". Most of the delay is in buffers of the loaded connections' ends: other connections do not \
         share it."
    } else if idle.http_ms.is_some_and(|idle| above(foreign, idle)) {
        ". The delay is in a queue on the path, which other connections share."
    } else {
        "."
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.example/.well-known/nq";

    fn parse(urls: &str) -> Result<Targets, Problem> {
        let text = format!("{{\"version\":1,\"urls\":{{{urls}}}}}");
        Targets::parse(text.as_bytes(), &Endpoint::parse(URL)?)
    }

    #[test]
    fn a_configuration_has_the_drafts_names_or_the_early_ones() {
        let draft = r#""small_download_url":"https://a.example/s","large_download_url":"https://a.example/l?t=1","upload_url":"https://a.example:443/u""#;
        let early = r#""small_https_download_url":"https://a.example/s","large_https_download_url":"https://a.example/l?t=1","https_upload_url":"https://a.example/u""#;
        let targets = parse(draft).unwrap();
        assert_eq!((targets.small.as_str(), targets.large.as_str()), ("/s", "/l?t=1"));
        assert_eq!(parse(early).unwrap(), targets);
        assert_eq!(parse(&format!("{draft},{early}")).unwrap(), targets);
    }

    #[test]
    fn a_server_cannot_have_another_one_loaded() {
        for other in [
            "https://b.example/x",
            "http://a.example/x",
            "https://a.example:444/x",
            "https://a.example@b.example/x",
            "file:///etc/passwd",
            "/relative",
            "",
        ] {
            let urls = format!(
                r#""small_download_url":"https://a.example/s","large_download_url":"{other}","upload_url":"https://a.example/u""#
            );
            let problem = parse(&urls).unwrap_err();
            assert!(problem.message.contains("large_download_url"), "{other}: {problem}");
        }
        assert!(Targets::parse(b"[", &Endpoint::parse(URL).unwrap()).is_err());
        assert!(Targets::parse(b"null", &Endpoint::parse(URL).unwrap()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_configuration_is_read_or_refused(text in ".{0,200}", url in "[ -~]{0,60}") {
            let endpoint = Endpoint::parse(URL).unwrap();
            let _ = Targets::parse(text.as_bytes(), &endpoint);
            let value = serde_json::json!({"urls": {
                "small_download_url": url, "large_download_url": url, "upload_url": url,
            }});
            if let Ok(targets) = Targets::parse(value.to_string().as_bytes(), &endpoint) {
                assert!(targets.small.starts_with('/') && targets.authority == "a.example");
            }
        }
    }
}
