//! What an ndt7 server says during a test, for a client that runs it (m-lab/ndt-server,
//! `spec/ndt7-protocol.md`).

use crate::ndt7::{self, OneDirection, Reported};
use crate::number::count;
use record::{Measurement, ReceiverSample, Sample, Unavailable};

/// The name that a measurement has in place of a tool's.
const TOOL: &str = "ndt7";

/// A message of a server with its `TCP_INFO`.
#[derive(Debug)]
pub struct ServerMessage(Reported);

impl ServerMessage {
    /// Reads a text message; `None` if it has no `TCPInfo`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let reported: Reported = serde_json::from_str(text).ok()?;
        reported.tcp.is_some().then_some(ServerMessage(reported))
    }

    /// Bytes that its kernel had received.
    fn received(&self) -> u64 {
        let sample = self.0.tcp.as_ref().map(crate::ndt7_tcp_info::TcpInfo::receiver);
        sample.map_or(0, |sample| sample.received_bytes)
    }
}

/// A download: the server is the sender, and the client has samples of its own socket. `None` if
/// nothing arrived.
#[must_use]
pub fn download(
    messages: Vec<ServerMessage>,
    receiver: Vec<ReceiverSample>,
    server: &str,
    started_unix_s: u64,
) -> Option<Measurement> {
    let counted = receiver.iter().map(|one| Reported::of_application(one.t_s, one.received_bytes));
    let one = OneDirection {
        server_measurements: messages.into_iter().map(|message| message.0).collect(),
        client_measurements: counted.collect(),
        ..OneDirection::default()
    };
    let mut measurement = ndt7::measurement(&one, true, TOOL, server, started_unix_s)?;
    let mut newest_first = one.server_measurements.iter().rev();
    let limit = newest_first.find_map(|message| count(message.unsent_limit));
    measurement.spec.limits_unsent = limit.is_some();
    if let Some(stream) = measurement.streams.first_mut() {
        stream.receiver = receiver;
        stream.unsent_limit_bytes = limit;
    }
    Some(measurement)
}

/// An upload: the client is the sender, and has samples of its own socket. The server's last
/// message says what arrived; without one it is what was acknowledged. `None` if nothing arrived.
#[must_use]
pub fn upload(
    messages: Vec<ServerMessage>,
    sender: Vec<Sample>,
    congestion: Option<String>,
    server: &str,
    started_unix_s: u64,
) -> Option<Measurement> {
    let messages: Vec<_> = messages.into_iter().filter(|one| one.received() > 0).collect();
    let has_messages = !messages.is_empty();
    let acknowledged = sender.iter().map(|one| Reported::of_application(one.t_s, one.acked_bytes));
    let one = OneDirection {
        server_measurements: messages.into_iter().map(|message| message.0).collect(),
        client_measurements: acknowledged.collect(),
        ..OneDirection::default()
    };
    let mut measurement = ndt7::measurement(&one, false, TOOL, server, started_unix_s)?;
    let mut unavailable = Vec::new();
    if !has_messages {
        unavailable.push(Unavailable::Received);
    }
    if congestion.is_none() {
        unavailable.push(Unavailable::CongestionControl);
    }
    if let Some(tool) = &mut measurement.tool {
        tool.unavailable = unavailable;
    }
    if let Some(stream) = measurement.streams.first_mut() {
        if let Some(last) = sender.last() {
            (stream.sent_bytes, stream.sent_seconds) = (last.acked_bytes, last.t_s);
            stream.retransmits = Some(last.retransmits);
        }
        stream.congestion = congestion;
        stream.sender = sender;
    }
    Some(measurement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(us: f64, figure: &str, bytes: f64) -> ServerMessage {
        let tcp =
            format!(r#"{{"ElapsedTime":{us},"{figure}":{bytes},"BusyTime":5,"SndMSS":1448}}"#);
        ServerMessage::parse(&format!(r#"{{"TCPInfo":{tcp},"Origin":"server"}}"#)).unwrap()
    }

    #[test]
    fn a_message_without_tcp_info_is_none() {
        for text in ["", "{}", "[]", "{\"TCPInfo\":null}", "{\"AppInfo\":{\"NumBytes\":5}}"] {
            assert!(ServerMessage::parse(text).is_none(), "{text}");
        }
        assert_eq!(message(-2e6, "BytesReceived", -1.0).received(), 0);
    }

    #[test]
    fn an_upload_is_counted_at_the_server_and_limited_at_the_client() {
        let sender = |t_s, acked_bytes| Sample { t_s, acked_bytes, ..Sample::default() };
        let samples = vec![sender(0.0, 0), sender(2.0, 900)];
        let messages =
            vec![message(1e6, "BytesReceived", 400.0), message(2e6, "BytesReceived", 800.0)];
        let cubic = Some("cubic".to_owned());
        let of =
            |messages| upload(messages, samples.clone(), cubic.clone(), "192.0.2.1", 7).unwrap();
        let counted = of(messages);
        let stream = &counted.streams[0];
        assert_eq!((stream.received_bytes, stream.received_seconds), (800, 2.0));
        assert_eq!((stream.sent_bytes, stream.sender.len()), (900, 2));
        assert!(counted.tool.unwrap().unavailable.is_empty());
        let silent = of(Vec::new());
        assert_eq!(silent.streams[0].received_bytes, 900);
        assert_eq!(silent.tool.unwrap().unavailable, [Unavailable::Received]);
        // A server that does not say what it has received.
        let mute = of(vec![message(1e6, "RTT", 5.0)]);
        assert_eq!(mute.streams[0].received_bytes, 900);
        assert_eq!(mute.tool.unwrap().unavailable, [Unavailable::Received]);
        assert!(upload(Vec::new(), Vec::new(), None, "192.0.2.1", 7).is_none());
    }

    #[test]
    fn a_download_has_the_servers_samples_and_the_clients() {
        let own = |t_s, received_bytes| ReceiverSample {
            window_bytes: Some(65_536),
            t_s,
            received_bytes,
            ..ReceiverSample::default()
        };
        let messages = vec![message(1e6, "BytesAcked", 500.0)];
        let found = download(messages, vec![own(0.5, 100), own(2.0, 700)], "192.0.2.1", 7).unwrap();
        let stream = &found.streams[0];
        assert_eq!((stream.received_bytes, stream.received_seconds), (700, 2.0));
        assert_eq!(stream.receiver[0].window_bytes, Some(65_536));
        assert_eq!(stream.sender.last().unwrap().acked_bytes, 500);
        assert!(!found.spec.limits_unsent);
        let text = r#"{"TCPInfo":{"ElapsedTime":9,"BytesAcked":5},"UnsentLimit":131072}"#;
        let limited = vec![ServerMessage::parse(text).unwrap()];
        let limited = download(limited, vec![own(2.0, 700)], "192.0.2.1", 7).unwrap();
        assert!(limited.spec.limits_unsent);
        assert_eq!(limited.streams[0].unsent_limit_bytes, Some(131_072));
    }
}
