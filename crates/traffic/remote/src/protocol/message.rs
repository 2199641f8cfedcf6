//! Requests and replies, with their bounds.

use record::{Direction, HostFacts, Measurement, Protocol, Written};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use units::{BitRate, ByteCount};

/// The version of these messages. Agents of another version are refused.
pub const VERSION: u32 = 1;

/// Longest request, in bytes.
pub const MAX_REQUEST: usize = 64 << 10;
/// Longest reply but that to [`Request::Run`], in bytes.
pub const MAX_REPLY: usize = 64 << 10;
/// Longest reply to [`Request::Run`], in bytes: its measurements have every sample.
pub const MAX_RESULTS: usize = 64 << 20;
/// The most flows of one request.
pub const MAX_FLOWS: usize = 16;

/// The most settings of one request.
const MAX_SYSCTLS: usize = 64;
/// Longest name, host or value, in bytes.
const MAX_WORD: usize = 256;
/// Longest reason that an agent gives, in characters.
const MAX_REASON: usize = 400;
/// The most streams of a flow's measurement: 128 in each direction.
const MAX_STREAMS: usize = 256;
/// The most notes of a measurement.
const MAX_NOTES: usize = 64;

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The first request: [`VERSION`].
    Hello {
        /// Of these messages.
        version: u32,
    },
    /// The time of its clock.
    Time {},
    /// Sets sysctls, with a journal of their previous values; those of an earlier request are
    /// reverted first.
    Tune {
        /// In the order of writing.
        settings: Vec<SysctlRequest>,
    },
    /// Reverts what it set.
    Revert {},
    /// Serves tests until it ends, at a port that the kernel chooses.
    Serve {
        /// The token that clients must have.
        token: Secret,
    },
    /// Runs flows, each at its time, and replies when the last one has ended.
    Run {
        /// For the servers.
        token: Option<Secret>,
        /// At most [`MAX_FLOWS`].
        flows: Vec<FlowRequest>,
    },
    /// Serves one copy; what is in it is of `copy`.
    Copy(Value),
    /// Ends a run, or the agent where none is under way.
    Stop {},
}

/// A reply of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(Box<Hello>),
    /// To [`Request::Time`].
    Time {
        /// A monotonic clock, since the agent began, in ns.
        clock_ns: u64,
        /// The wall clock, since 1970-01-01 UTC, in ns.
        unix_ns: u64,
    },
    /// To [`Request::Tune`]: every setting that it did not have before.
    Tuned {
        /// As it was written.
        settings: Vec<Written>,
    },
    /// To [`Request::Revert`].
    Reverted {
        /// Settings that could not be reverted, with the reason.
        left: Vec<String>,
    },
    /// To [`Request::Serve`].
    Serving {
        /// The port.
        port: u16,
        /// True if it serves UDP as well.
        udp: bool,
    },
    /// To [`Request::Run`]: the flows in the order of the request.
    Ran {
        /// One for each.
        flows: Vec<FlowReply>,
    },
    /// To [`Request::Copy`].
    Copy(Value),
    /// To [`Request::Stop`]; the agent ends.
    Stopped {},
    /// The request failed.
    Error {
        /// In words.
        reason: String,
    },
}

/// An agent's description of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The version of longhaul.
    pub longhaul: String,
    /// Its host.
    pub host: HostFacts,
    /// The address at which ssh reached it.
    pub address: Option<String>,
}

/// A token. It is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A sysctl that is to be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SysctlRequest {
    /// With dots.
    pub key: String,
    /// Its value.
    pub value: String,
    /// True if the host may lack it.
    #[serde(default)]
    pub optional: bool,
}

/// One flow: a test against a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRequest {
    /// When it begins, by the agent's clock, in ns.
    pub at_ns: u64,
    /// The server's name or address, as the agent reaches it.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// `4` or `6`; `None`: whichever the server has.
    pub ip: Option<u8>,
    /// TCP, UDP or UDT.
    pub protocol: Protocol,
    /// Who sends.
    pub direction: Direction,
    /// The time for which it sends, after the warm-up.
    pub seconds: f64,
    /// The warm-up.
    pub omit_s: u32,
    /// Parallel streams.
    pub streams: u32,
    /// Of the sender.
    pub congestion: Option<String>,
    /// Socket buffers at both ends.
    pub window_bytes: Option<ByteCount>,
    /// Rate of each stream.
    pub rate_bps: Option<BitRate>,
    /// Pacing rate of the kernel.
    pub pacing_bps: Option<BitRate>,
    /// Bytes of one write or datagram.
    pub block_bytes: Option<ByteCount>,
}

/// The result of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowReply {
    /// It was measured.
    Measured {
        /// When its data began, after the warm-up, by the agent's clock, in ns.
        began_ns: u64,
        /// The client's measurement.
        measurement: Box<Measurement>,
    },
    /// It was not.
    Failed {
        /// In words.
        reason: String,
    },
}

/// The reason a message is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It is not a message of this version.
    #[error("\"{0}\" is not an agent message")]
    Message(String),
    /// The peer has another version.
    #[error(
        "it uses version {0} of the agent protocol, not {VERSION}; use the same version of longhaul on all hosts"
    )]
    Version(u32),
    /// A bound is exceeded.
    #[error("{0}")]
    Bound(&'static str),
}

/// A message as a line, without its end.
///
/// # Errors
/// A number is not finite.
pub fn write<T: Serialize>(message: &T) -> serde_json::Result<String> {
    serde_json::to_string(message)
}

/// Any version's first message.
#[derive(Deserialize)]
struct AnyHello {
    hello: AnyVersion,
}

#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

fn read<T: for<'a> Deserialize<'a>>(line: &[u8]) -> Result<T, ProtocolError> {
    if let Ok(AnyHello { hello: AnyVersion { version } }) = serde_json::from_slice(line)
        && version != VERSION
    {
        return Err(ProtocolError::Version(version));
    }
    serde_json::from_slice(line).map_err(|_| {
        let begin = line.get(..line.len().min(120)).unwrap_or_default();
        ProtocolError::Message(String::from_utf8_lossy(begin).into_owned())
    })
}

/// A request out of a line.
///
/// # Errors
/// It is none, or exceeds a bound.
pub fn parse_request(line: &[u8]) -> Result<Request, ProtocolError> {
    bound(line.len() <= MAX_REQUEST, "a request of more than 64 KiB")?;
    let request: Request = read(line)?;
    match &request {
        Request::Tune { settings } => {
            bound(settings.len() <= MAX_SYSCTLS, "more than 64 settings")?;
            let words = || settings.iter().flat_map(|one| [&one.key, &one.value]);
            bound(words().all(|word| is_word(word)), "a setting of more than 256 bytes")?;
        }
        Request::Serve { token } => check_token(token)?,
        Request::Run { token, flows } => {
            token.as_ref().map_or(Ok(()), check_token)?;
            bound((1..=MAX_FLOWS).contains(&flows.len()), "1 to 16 flows")?;
            flows.iter().try_for_each(FlowRequest::check)?;
        }
        Request::Hello { .. }
        | Request::Time {}
        | Request::Revert {}
        | Request::Copy(_)
        | Request::Stop {} => {}
    }
    Ok(request)
}

/// A reply out of a line; texts of an agent's own are cut to their bounds.
///
/// # Errors
/// It is none, or exceeds a bound.
pub fn parse_reply(line: &[u8]) -> Result<Reply, ProtocolError> {
    bound(line.len() <= MAX_RESULTS, "a reply of more than 64 MiB")?;
    let mut reply: Reply = read(line)?;
    let is_run = matches!(reply, Reply::Ran { .. });
    bound(is_run || line.len() <= MAX_REPLY, "a reply of more than 64 KiB")?;
    match &mut reply {
        Reply::Hello(hello) => {
            let texts = [&mut hello.longhaul, &mut hello.host.kernel];
            texts.into_iter().for_each(|text| shorten(text, MAX_WORD));
        }
        Reply::Tuned { settings } => {
            bound(settings.len() <= MAX_SYSCTLS, "more than 64 settings")?;
            for one in settings {
                let texts = [&mut one.key, &mut one.before, &mut one.now, &mut one.note];
                texts.into_iter().for_each(|text| shorten(text, MAX_REASON));
            }
        }
        Reply::Reverted { left } => {
            bound(left.len() <= MAX_SYSCTLS, "more than 64 settings")?;
            left.iter_mut().for_each(|text| shorten(text, MAX_REASON));
        }
        Reply::Ran { flows } => {
            bound(flows.len() <= MAX_FLOWS, "more than 16 flows")?;
            flows.iter_mut().try_for_each(FlowReply::check)?;
        }
        Reply::Error { reason } => shorten(reason, MAX_REASON),
        Reply::Time { .. } | Reply::Serving { .. } | Reply::Copy(_) | Reply::Stopped {} => {}
    }
    Ok(reply)
}

impl FlowRequest {
    fn check(&self) -> Result<(), ProtocolError> {
        let congestion = self.congestion.as_deref().unwrap_or_default();
        bound(is_word(&self.server) && is_word(congestion), "a word of more than 256 bytes")?;
        bound(!self.server.is_empty(), "a flow without a server")?;
        bound(matches!(self.ip, None | Some(4 | 6)), "IP versions are 4 and 6")
    }
}

impl FlowReply {
    fn check(&mut self) -> Result<(), ProtocolError> {
        match self {
            FlowReply::Failed { reason } => shorten(reason, MAX_REASON),
            FlowReply::Measured { measurement, .. } => {
                bound(measurement.streams.len() <= MAX_STREAMS, "more than 256 streams")?;
                measurement.notes.truncate(MAX_NOTES);
                measurement.notes.iter_mut().for_each(|note| shorten(note, MAX_REASON));
                let texts = [
                    &mut measurement.schema,
                    &mut measurement.version,
                    &mut measurement.peer,
                    &mut measurement.host.kernel,
                    &mut measurement.spec.target,
                ];
                texts.into_iter().for_each(|text| shorten(text, MAX_WORD));
                // Nothing of a lab can be claimed by a host.
                measurement.path = None;
            }
        }
        Ok(())
    }
}

fn check_token(token: &Secret) -> Result<(), ProtocolError> {
    let plain = |byte: u8| byte.is_ascii_graphic();
    let good = (16..=128).contains(&token.0.len()) && token.0.bytes().all(plain);
    bound(good, "a token has 16 to 128 letters and digits")
}

fn bound(holds: bool, what: &'static str) -> Result<(), ProtocolError> {
    if holds { Ok(()) } else { Err(ProtocolError::Bound(what)) }
}

fn is_word(text: &str) -> bool {
    text.len() <= MAX_WORD
}

fn shorten(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowRequest {
        FlowRequest {
            at_ns: u64::MAX,
            server: "192.0.2.1".to_owned(),
            port: 5201,
            ip: Some(4),
            protocol: Protocol::Tcp,
            direction: Direction::Reverse,
            seconds: 2.5,
            omit_s: 1,
            streams: 4,
            congestion: Some("cubic".to_owned()),
            window_bytes: Some(ByteCount::from_bytes(65_536)),
            rate_bps: None,
            pacing_bps: None,
            block_bytes: None,
        }
    }

    fn token() -> Secret {
        Secret("0123456789abcdef".to_owned())
    }

    #[test]
    fn requests_are_read_as_written() {
        let sysctl = SysctlRequest { key: "net.a".into(), value: "1".into(), optional: true };
        for request in [
            Request::Hello { version: VERSION },
            Request::Time {},
            Request::Tune { settings: vec![sysctl] },
            Request::Revert {},
            Request::Serve { token: token() },
            Request::Run { token: None, flows: vec![flow()] },
            Request::Copy(serde_json::json!({"key": "x"})),
            Request::Stop {},
        ] {
            let line = write(&request).unwrap();
            assert_eq!(parse_request(line.as_bytes()), Ok(request), "{line}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let run = |flow: FlowRequest| Request::Run { token: None, flows: vec![flow] };
        let many = Request::Run { token: None, flows: vec![flow(); MAX_FLOWS + 1] };
        let none = Request::Run { token: None, flows: Vec::new() };
        let short = Request::Serve { token: Secret("short".into()) };
        let lines = [many, none, short, run(FlowRequest { ip: Some(5), ..flow() })];
        for request in lines {
            let line = write(&request).unwrap();
            assert!(parse_request(line.as_bytes()).is_err(), "{line}");
        }
        for line in ["", "{}", "[]", "null", "hello", "{\"hello\":{}}", "{\"shell\":\"rm\"}"] {
            assert!(parse_request(line.as_bytes()).is_err(), "{line}");
        }
        // A key that this version does not have would be ignored without a word.
        let more = write(&run(flow())).unwrap().replace("\"at_ns\"", "\"file\":\"/x\",\"at_ns\"");
        assert!(parse_request(more.as_bytes()).is_err(), "{more}");
        let deep = "[".repeat(10_000);
        assert!(parse_request(format!("{{\"copy\":{deep}").as_bytes()).is_err());
    }

    #[test]
    fn another_version_is_named() {
        let later = br#"{"hello":{"version":7,"more":[]}}"#;
        assert_eq!(parse_request(later), Err(ProtocolError::Version(7)));
        assert_eq!(parse_reply(later), Err(ProtocolError::Version(7)));
        assert!(parse_reply(br#"{"hello":{"version":99999999999}}"#).is_err());
    }

    #[test]
    fn a_reply_is_cut_to_its_bounds() {
        let reason = "\u{e9}".repeat(10_000);
        let line = write(&Reply::Error { reason }).unwrap();
        let Ok(Reply::Error { reason }) = parse_reply(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(reason.chars().count(), MAX_REASON);
        let left = vec!["x".to_owned(); MAX_SYSCTLS + 1];
        let line = write(&Reply::Reverted { left }).unwrap();
        assert!(parse_reply(line.as_bytes()).is_err());
        let long = write(&Reply::Error { reason: "x".repeat(MAX_REPLY) }).unwrap();
        assert!(parse_reply(long.as_bytes()).is_err());
        for line in
            [&b"\xff\xfe"[..], b"{\"time\":{\"clock_ns\":-1,\"unix_ns\":0}}", b"{\"time\":{}}"]
        {
            assert!(parse_reply(line).is_err());
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let shown = format!("{:?}", Request::Serve { token: token() });
        assert!(!shown.contains("0123"), "{shown}");
    }
}
