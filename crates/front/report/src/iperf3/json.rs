//! The document of `-J`, and the lines of `--json-stream`.

use super::date::{date, whole};
use super::facts::{End, Head, Row, ServerOutput, Side};
use super::json_end::Totals;
use super::json_format;
use super::json_rows::{Interval, finite};
use iperf3_proto::JsonText;
use serde::Serialize;

/// A test as a JSON document, complete at any time: it can be written after a failure
/// as well as at the end.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    start: Start,
    intervals: Vec<Interval>,
    end: Totals,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_json: Option<JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Start {
    connected: Vec<Connected>,
    version: &'static str,
    system_info: String,
    #[serde(flatten)]
    test: Option<Test>,
}

#[derive(Debug, Clone, Serialize)]
struct Connected {
    socket: u32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Debug, Clone, Serialize)]
struct Test {
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<Host>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<Host>,
    cookie: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u64>,
    target_bitrate: u64,
    fq_rate: u64,
    sock_bufsize: u64,
    sndbuf_actual: u64,
    rcvbuf_actual: u64,
    test_start: TestStart,
}

#[derive(Debug, Clone, Serialize)]
struct Timestamp {
    time: String,
    timesecs: u64,
    timemillisecs: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Host {
    host: String,
    port: u16,
}

#[derive(Debug, Clone, Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u64,
    omit: u64,
    duration: u64,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u64,
    target_bitrate: u64,
    bidir: u8,
    fqrate: u64,
    interval: f64,
    gso: u8,
    gro: u8,
}

impl Document {
    /// The document of a test that has not begun; `system` as in [`Head::system`].
    #[must_use]
    pub fn new(system: &str, title: Option<String>, extra_data: Option<String>) -> Self {
        Document {
            start: Start {
                connected: Vec::new(),
                version: super::VERSION,
                system_info: system.to_owned(),
                test: None,
            },
            intervals: Vec::new(),
            end: Totals::default(),
            error: None,
            title,
            extra_data,
            server_output_json: None,
            server_output_text: None,
        }
    }

    /// Records the start of the test.
    pub fn begin(&mut self, head: &Head) {
        self.start.connected = head
            .streams
            .iter()
            .map(|stream| Connected {
                socket: stream.socket,
                local_host: stream.local_host.clone(),
                local_port: stream.local_port,
                remote_host: stream.remote_host.clone(),
                remote_port: stream.remote_port,
            })
            .collect();
        self.start.test = Some(Test::of(head));
        if self.title.is_none() {
            self.title.clone_from(&head.title);
        }
        if self.extra_data.is_none() {
            self.extra_data.clone_from(&head.extra_data);
        }
    }

    /// Adds an interval.
    pub fn interval(&mut self, head: &Head, rows: &[Row]) {
        self.intervals.push(Interval::of(head, rows));
    }

    /// Records the end of the test.
    pub fn end(&mut self, head: &Head, end: &End) {
        self.end = Totals::of(head, end);
        match &end.server_output {
            Some(ServerOutput::Text(text)) => self.server_output_text = Some(text.clone()),
            Some(ServerOutput::Json(value)) => self.server_output_json = Some(value.clone()),
            None => {}
        }
    }

    /// Records a failure; the first reason is kept.
    pub fn fail(&mut self, why: &str) {
        self.error.get_or_insert_with(|| why.to_owned());
    }

    /// The JSON text, without a final newline.
    #[must_use]
    pub fn text(&self) -> String {
        json_format::pretty(self)
    }

    /// The JSON text for the results that a server sends, without title and extra data,
    /// which the client has.
    #[must_use]
    pub fn for_results(&self) -> Option<JsonText> {
        JsonText::of(&Document { title: None, extra_data: None, ..self.clone() })
    }

    /// The `start` event of `--json-stream`.
    #[must_use]
    pub fn start_line(&self) -> String {
        event("start", &self.start)
    }

    /// The last events of `--json-stream`.
    #[must_use]
    pub fn last_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.error.as_ref().map(|why| event("error", why)));
        lines.extend(self.server_output_json.as_ref().map(|it| event("server_output_json", it)));
        lines.extend(self.server_output_text.as_ref().map(|it| event("server_output_text", it)));
        lines.push(event("end", &self.end));
        lines
    }
}

/// The `interval` event of `--json-stream`.
#[must_use]
pub fn interval_line(head: &Head, rows: &[Row]) -> String {
    event("interval", &Interval::of(head, rows))
}

fn event(name: &str, data: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Event<'a, T> {
        event: &'a str,
        data: &'a T,
    }
    json_format::compact(&Event { event: name, data })
}

impl Test {
    fn of(head: &Head) -> Self {
        let (asked, host) =
            (&head.asked, Host { host: head.peer_host.clone(), port: head.peer_port });
        let (connecting_to, accepted_connection) = match head.side {
            Side::Client => (Some(host), None),
            Side::Server => (None, Some(host)),
        };
        let tcp = head.is_tcp();
        Test {
            timestamp: Timestamp {
                time: date(head.unix_s),
                timesecs: whole(head.unix_s),
                timemillisecs: whole(head.unix_s * 1000.0),
            },
            connecting_to,
            accepted_connection,
            cookie: head.cookie.clone(),
            tcp_mss: (tcp && asked.mss > 0).then_some(asked.mss),
            tcp_mss_default: (tcp && asked.mss == 0).then_some(head.control_mss),
            target_bitrate: asked.rate,
            fq_rate: asked.fq_rate,
            sock_bufsize: asked.window,
            sndbuf_actual: head.send_buffer,
            rcvbuf_actual: head.receive_buffer,
            test_start: TestStart {
                protocol: asked.protocol.name(),
                num_streams: asked.streams,
                blksize: asked.block,
                omit: asked.omit,
                duration: asked.duration,
                bytes: asked.bytes,
                blocks: asked.blocks,
                reverse: u8::from(asked.reverse),
                tos: asked.tos,
                target_bitrate: asked.rate,
                bidir: u8::from(asked.bidir),
                fqrate: asked.fq_rate,
                interval: finite(head.interval_s),
                gso: u8::from(asked.gso),
                gro: u8::from(asked.gro),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_test_that_never_began_gives_a_complete_document() {
        let mut document = Document::new("Linux", None, None);
        document.fail("unable to connect");
        document.fail("and more");
        let value: Value = serde_json::from_str(&document.text()).unwrap();
        assert_eq!(
            value,
            json!({"start": {"connected": [], "version": super::super::VERSION, "system_info": "Linux"},
                   "intervals": [], "end": {}, "error": "unable to connect"})
        );
        assert_eq!(document.last_lines().len(), 2);
    }
}
