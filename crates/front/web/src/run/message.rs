//! The messages of the protocol `longhaul.web.1` (docs/design/web.md).

use super::families::Families;
use super::interval::Interval;
use record::Finding;
use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Most bytes of a message of the page.
pub(super) const MAX_PAGE_MESSAGE: usize = 64 << 10;
/// Probes of a message, and of one kind in a step.
const MAX_REPLIES: usize = 1000;
/// Longest RTT, and latest time in a step, that a page may say, ms.
const MAX_MS: f64 = 60_000.0;
/// Flows of a step.
pub(super) const MAX_FLOWS: u32 = 16;

/// The visitor's system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Platform {
    Linux,
    MacOs,
    Windows,
    Android,
    Ios,
    #[default]
    #[serde(other)]
    Other,
}

/// Where probes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProbePlace {
    /// On the probe connection.
    Own,
    /// Within the flows of the step.
    Loaded,
}

/// What the page says of its own validity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct PageReport {
    pub(super) step: u32,
    #[serde(default)]
    pub(super) hidden: bool,
    pub(super) busy: Option<f64>,
    /// How often a thread of the page with nothing to do was delayed: the load of its machine.
    pub(super) machine_busy: Option<f64>,
    pub(super) longest_stall_ms: Option<f64>,
}

/// RTTs that the page measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Probes {
    pub(super) step: u32,
    pub(super) on: ProbePlace,
    /// When sent, in ms since the step's start, and the RTT in ms.
    pub(super) replies: Vec<(f64, f64)>,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Purpose {
    /// A result, with everything in it.
    #[default]
    Test,
    /// A round of one leg of a path, in short steps.
    Leg,
    /// IPv4 or IPv6 alone, in short steps.
    Family,
}

/// Datagrams that the page received.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Datagrams {
    pub(super) step: u32,
    /// A bit for each number, the lowest first, as bytes in hexadecimal; null without a session.
    pub(super) received: Option<String>,
}

/// A message of the page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum PageMessage {
    Hello {
        version: u32,
        #[serde(default)]
        platform: Platform,
        max_bytes: Option<u64>,
        #[serde(default)]
        thorough: bool,
        /// What flows may be: `http`, `websocket`.
        #[serde(default)]
        transports: Vec<String>,
        #[serde(default)]
        purpose: Purpose,
        /// What the page measured over IPv4 and over IPv6.
        #[serde(default)]
        families: Option<Families>,
    },
    Received {
        step: u32,
        t: f64,
        bytes: Vec<u64>,
    },
    Probes(Probes),
    Datagrams(Datagrams),
    Page(PageReport),
}

impl PageMessage {
    /// Reads a message, whose numbers are then within their ranges.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let message: PageMessage =
            serde_json::from_str(text).map_err(|error| format!("malformed message: {error}"))?;
        let in_range = |value: f64, most: f64| (0.0..=most).contains(&value);
        let fits = match &message {
            PageMessage::Hello { families, .. } => {
                families.as_ref().is_none_or(Families::is_in_range)
            }
            PageMessage::Received { t, bytes, .. } => {
                in_range(*t, MAX_MS / 1e3) && bytes.len() <= MAX_FLOWS as usize
            }
            PageMessage::Probes(probes) => {
                probes.replies.len() <= MAX_REPLIES
                    && probes.replies.iter().all(|(sent, rtt)| {
                        in_range(*sent, MAX_MS) && *rtt > 0.0 && in_range(*rtt, MAX_MS)
                    })
            }
            PageMessage::Datagrams(datagrams) => datagrams.received.as_ref().is_none_or(|bits| {
                bits.len() % 2 == 0 && bits.bytes().all(|c| c.is_ascii_hexdigit())
            }),
            PageMessage::Page(report) => {
                let shares = [report.busy, report.machine_busy];
                shares.into_iter().flatten().all(|busy| in_range(busy, 16.0))
                    && report.longest_stall_ms.is_none_or(|ms| in_range(ms, 1e9))
            }
        };
        if fits { Ok(message) } else { Err("a number is out of range".to_owned()) }
    }
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StepKind {
    /// Probes only.
    Idle,
    Download,
    Upload,
    /// Datagrams of WebTransport.
    Loss,
}

impl StepKind {
    /// Whether flows carry as much as they can.
    pub(super) const fn is_transfer(self) -> bool {
        matches!(self, StepKind::Download | StepKind::Upload)
    }
}

/// A step as it is planned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Plan {
    pub(super) kind: StepKind,
    pub(super) flows: u32,
    pub(super) seconds: f64,
    /// When it ends at the latest, where its rate has not settled in `seconds`.
    pub(super) longest: f64,
    /// The congestion control to set; `None` leaves the system's.
    pub(super) congestion: Option<String>,
    /// The rate that each flow is paced at; `None` for no limit.
    pub(super) pacing: Option<BitRate>,
    pub(super) why: String,
}

impl Plan {
    /// Whether the step changes something of its connections.
    pub(super) const fn is_experiment(&self) -> bool {
        self.congestion.is_some() || self.pacing.is_some()
    }
}

/// Where the page finds a step's datagrams.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DatagramPlan {
    pub(super) port: u16,
    /// SHA-256 of the certificate, in hexadecimal.
    pub(super) certificate: String,
    pub(super) count: u32,
}

/// A flow in a sample.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct FlowSample {
    pub(super) rate: f64,
    pub(super) rtt: Option<f64>,
    pub(super) cwnd: Option<u64>,
    pub(super) retransmits: Option<u64>,
}

/// The result of a step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StepResult {
    pub(super) step: u32,
    pub(super) kind: StepKind,
    pub(super) congestion: Option<String>,
    pub(super) rate: Option<f64>,
    /// Confidence interval of the rate.
    pub(super) interval: Option<Interval>,
    pub(super) average: Option<f64>,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) flows: u32,
    pub(super) valid: bool,
    pub(super) invalid_because: Vec<String>,
    pub(super) rtt_idle: Option<f64>,
    pub(super) rtt_loaded: Option<f64>,
    pub(super) jitter: Option<f64>,
    /// Confidence intervals of the RTT, without load or under it, and of the jitter.
    pub(super) rtt_interval: Option<Interval>,
    pub(super) jitter_interval: Option<Interval>,
    pub(super) finding: Option<Finding>,
    pub(super) sentence: Option<String>,
}

/// A message of the server.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum ServerMessage<'a> {
    Welcome {
        run: &'a str,
        client: String,
        ip_version: u8,
        proxied: bool,
        tls: bool,
        max_bytes: u64,
        seconds: f64,
        /// Whether a result can be kept on the server.
        history: bool,
        steps: &'a [Plan],
    },
    Step {
        step: u32,
        transport: &'static str,
        #[serde(flatten)]
        plan: &'a Plan,
        #[serde(skip_serializing_if = "Option::is_none")]
        datagrams: Option<DatagramPlan>,
    },
    Sample {
        step: u32,
        t: f64,
        rate: f64,
        bytes: u64,
        rtt: Option<f64>,
        cwnd: Option<u64>,
        retransmits: Option<u64>,
        flows: &'a [FlowSample],
    },
    StepResult(&'a StepResult),
    Result(&'a super::result::RunResult),
    Problem {
        message: &'a str,
        retry_after: Option<u32>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_page_are_read() {
        let hello = r#"{"type":"hello","version":1,"platform":"macos","max_bytes":5,"more":[1]}"#;
        let expected = PageMessage::Hello {
            version: 1,
            platform: Platform::MacOs,
            max_bytes: Some(5),
            thorough: false,
            transports: Vec::new(),
            purpose: Purpose::Test,
            families: None,
        };
        assert_eq!(PageMessage::parse(hello), Ok(expected));
        let unknown = r#"{"type":"hello","version":1,"platform":"amiga","max_bytes":null}"#;
        assert!(PageMessage::parse(unknown).is_ok());
        let probes = r#"{"type":"probes","step":1,"on":"own","replies":[[12.0,50.9]],"lost":0}"#;
        assert!(matches!(PageMessage::parse(probes), Ok(PageMessage::Probes(_))));
    }

    #[test]
    fn forged_messages_are_refused() {
        let many = vec!["[1,1]"; 1001].join(",");
        for text in [
            "",
            "[]",
            "{}",
            r#"{"type":"nonesuch"}"#,
            r#"{"type":"hello"}"#,
            r#"{"type":"hello","version":1,"families":{}}"#,
            r#"{"type":"hello","version":1,"families":{"ipv4":{"rtt":-1},"ipv6":{}}}"#,
            r#"{"type":"hello","version":1,"families":{"ipv4":{},"ipv6":{"failed":"<b>"}}}"#,
            r#"{"type":"received","step":1,"t":-1,"bytes":[]}"#,
            r#"{"type":"received","step":1,"t":1e300,"bytes":[]}"#,
            r#"{"type":"received","step":1,"t":NaN,"bytes":[]}"#,
            r#"{"type":"received","step":1,"t":1,"bytes":[-5]}"#,
            r#"{"type":"received","step":-1,"t":1,"bytes":[]}"#,
            r#"{"type":"probes","step":1,"on":"own","replies":[[1,1e300]]}"#,
            r#"{"type":"probes","step":1,"on":"own","replies":[[1,0]]}"#,
            r#"{"type":"probes","step":1,"on":"own","replies":[[-1,1]]}"#,
            r#"{"type":"probes","step":1,"on":"elsewhere","replies":[]}"#,
            &format!(r#"{{"type":"probes","step":1,"on":"own","replies":[{many}]}}"#),
            r#"{"type":"datagrams","step":1,"received":"0"}"#,
            r#"{"type":"datagrams","step":1,"received":"0g"}"#,
            r#"{"type":"page","step":1,"busy":-1,"longest_stall_ms":0}"#,
            r#"{"type":"page","step":1,"busy":1e9,"longest_stall_ms":0}"#,
            r#"{"type":"page","step":1,"machine_busy":-1}"#,
        ] {
            assert!(PageMessage::parse(text).is_err(), "{text}");
        }
    }
}
