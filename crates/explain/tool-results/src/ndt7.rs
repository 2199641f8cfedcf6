//! ndt7: the lines of ndt7-client-go's `-format=json`, and the server's archival JSON
//! (m-lab/ndt-server, `data/result.go` and `spec/data-format.md`).
//!
//! Both have the server's `TCP_INFO`: it sends in a download and receives in an upload. The
//! client counts the bytes that its application read or wrote.

use crate::{
    ndt7_tcp_info::TcpInfo,
    not_a_result::NotAResult,
    number::{self, count},
    start,
    transfer::{self, Transfer},
    unix_seconds::unix_seconds,
};
use iperf3_proto::lenient::short_text;
use record::{Direction, Measurement, ReceiverSample, Sample, Stream, TestSpec, Unavailable};
use serde::Deserialize;

/// Measurements of one direction: a server makes ten a second at most, a test lasts 10 s.
const MAX_MEASUREMENTS: usize = 20_000;

/// What a test of one direction has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct OneDirection {
    #[serde(deserialize_with = "short_text::<40, _>")]
    pub(crate) start_time: Option<String>,
    #[serde(deserialize_with = "number::list::<_, MAX_MEASUREMENTS, _>")]
    pub(crate) server_measurements: Vec<Reported>,
    #[serde(deserialize_with = "number::list::<_, MAX_MEASUREMENTS, _>")]
    pub(crate) client_measurements: Vec<Reported>,
}

/// A measurement of either end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reported {
    #[serde(rename = "AppInfo")]
    app: Option<AppInfo>,
    #[serde(rename = "TCPInfo")]
    pub(crate) tcp: Option<TcpInfo>,
    #[serde(rename = "BBRInfo")]
    bbr: Option<BbrInfo>,
    #[serde(rename = "Origin", deserialize_with = "short_text::<10, _>")]
    origin: Option<String>,
    #[serde(rename = "Test", deserialize_with = "short_text::<10, _>")]
    test: Option<String>,
    /// Longhaul's servers alone limit what waits unsent, and say so.
    #[serde(rename = "UnsentLimit", deserialize_with = "number::maybe")]
    pub(crate) unsent_limit: Option<f64>,
    #[serde(rename = "Server", deserialize_with = "short_text::<120, _>")]
    server: Option<String>,
}

impl Reported {
    /// A client's measurement: bytes of its application.
    pub(crate) fn of_application(seconds: f64, bytes: u64) -> Self {
        let app = AppInfo { num_bytes: Some(bytes as f64), elapsed_time: Some(seconds * 1e6) };
        Reported { app: Some(app), ..Reported::default() }
    }
}

/// Bytes of the application, and µs since the test began.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AppInfo {
    #[serde(deserialize_with = "number::maybe")]
    num_bytes: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    elapsed_time: Option<f64>,
}

/// Present of a sender alone, and zero where it is not BBR.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct BbrInfo {
    #[serde(rename = "BW", deserialize_with = "number::maybe")]
    bandwidth: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Archive {
    #[serde(deserialize_with = "short_text::<60, _>")]
    version: Option<String>,
    #[serde(rename = "ServerIP", deserialize_with = "short_text::<120, _>")]
    server_ip: Option<String>,
    #[serde(deserialize_with = "short_text::<40, _>")]
    start_time: Option<String>,
    download: Option<OneDirection>,
    upload: Option<OneDirection>,
}

/// A line of the client's; the last one is a summary without a key.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Line {
    #[serde(deserialize_with = "short_text::<20, _>")]
    key: Option<String>,
    value: Option<Reported>,
    #[serde(rename = "ServerFQDN", deserialize_with = "short_text::<120, _>")]
    server_fqdn: Option<String>,
}

/// The server's archival JSON: a download or an upload.
pub(crate) fn archive(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    const WHAT: &str = "ndt7's archival JSON";
    let archive: Archive = serde_json::from_str(text).map_err(|e| NotAResult::json(WHAT, &e))?;
    let version = archive.version.as_deref().filter(|version| !version.is_empty());
    let tool = version.map_or_else(|| "ndt-server".to_owned(), |v| format!("ndt-server {v}"));
    let server = transfer::name(archive.server_ip.as_deref().unwrap_or_default());
    let started = archive.start_time.as_deref().and_then(unix_seconds);
    let of = |one: &Option<OneDirection>, is_download| {
        let one = one.as_ref()?;
        let started = one.start_time.as_deref().and_then(unix_seconds).or(started).unwrap_or(0);
        measurement(one, is_download, &tool, &server, started)
    };
    let all: Vec<Measurement> =
        [of(&archive.download, true), of(&archive.upload, false)].into_iter().flatten().collect();
    if all.is_empty() {
        Err(NotAResult::empty(WHAT, "no measurement with payload"))
    } else {
        Ok(all)
    }
}

/// The client's lines. A test that was ended early lacks the last ones.
pub(crate) fn client(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    const WHAT: &str = "ndt7-client's JSON output";
    let (mut download, mut upload) = (OneDirection::default(), OneDirection::default());
    let mut server = String::new();
    let mut count = 0;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    for (number, line) in (1..).zip(lines) {
        let line: Line =
            serde_json::from_str(line).map_err(|e| NotAResult::json_line(WHAT, number, &e))?;
        if let Some(name) = &line.server_fqdn {
            server = transfer::name(name);
        }
        let Some(value) = line.value else { continue };
        if let Some(name) = &value.server {
            server = transfer::name(name);
        }
        if line.key.as_deref() != Some("measurement") || count >= 4 * MAX_MEASUREMENTS {
            continue;
        }
        count += 1;
        let direction = match value.test.as_deref() {
            Some("download") => &mut download,
            Some("upload") => &mut upload,
            _ => continue,
        };
        match value.origin.as_deref() {
            Some("server") => direction.server_measurements.push(value),
            _ => direction.client_measurements.push(value),
        }
    }
    let of = |one, is_download| measurement(one, is_download, "ndt7-client", &server, 0);
    let all: Vec<Measurement> =
        [of(&download, true), of(&upload, false)].into_iter().flatten().collect();
    if all.is_empty() {
        Err(NotAResult::empty(WHAT, "no measurement with payload"))
    } else {
        Ok(all)
    }
}

/// One direction; `None` if nothing was transferred.
pub(crate) fn measurement(
    one: &OneDirection,
    is_download: bool,
    tool: &str,
    server: &str,
    started_unix_s: u64,
) -> Option<Measurement> {
    let infos: Vec<&TcpInfo> =
        one.server_measurements.iter().filter_map(|seen| seen.tcp.as_ref()).collect();
    let mut stream = Stream { id: 1, reverse: is_download, ..Stream::default() };
    let mut unavailable = Vec::new();
    let application = application(&one.client_measurements);
    if is_download {
        stream.sender = sender(&infos);
        stream.receiver = application;
        let bbr = one.server_measurements.iter().filter_map(|seen| seen.bbr);
        let is_bbr = bbr.filter_map(|bbr| bbr.bandwidth).any(|bandwidth| bandwidth > 0.0);
        stream.congestion = is_bbr.then(|| "bbr".to_owned());
        stream.retransmits = stream.sender.last().map(|sample| sample.retransmits);
        if !is_bbr {
            unavailable.push(Unavailable::CongestionControl);
        }
        if !infos.iter().all(|info| info.has_timers()) || infos.is_empty() {
            unavailable.push(Unavailable::SenderTimers);
        }
        if stream.sender.iter().all(|sample| sample.peer_window_bytes.is_none()) {
            unavailable.push(Unavailable::ReceiveWindow);
        }
        if stream.sender.is_empty() {
            unavailable.extend([
                Unavailable::CongestionWindow,
                Unavailable::Rtt,
                Unavailable::Retransmissions,
            ]);
        }
    } else {
        let of_kernel = receiver(&infos);
        // The client's count is what it wrote; what arrived the server knows.
        if of_kernel.is_empty() {
            unavailable.push(Unavailable::Received);
        }
        stream.receiver = if of_kernel.is_empty() { application } else { of_kernel };
        unavailable.extend([
            Unavailable::SenderTimers,
            Unavailable::ReceiveWindow,
            Unavailable::CongestionWindow,
            Unavailable::CongestionControl,
            Unavailable::Retransmissions,
        ]);
    }
    let sent = stream.sender.last().map(|sample| (sample.acked_bytes, sample.t_s));
    let received = stream.receiver.last().map(|sample| (sample.received_bytes, sample.t_s));
    let (bytes, seconds) = received.or(sent)?;
    (stream.received_bytes, stream.received_seconds) = (bytes, seconds);
    (stream.sent_bytes, stream.sent_seconds) = sent.unwrap_or((bytes, seconds));
    if bytes == 0 || seconds <= 0.0 {
        return None;
    }
    let direction = if is_download { Direction::Reverse } else { Direction::Forward };
    let name = if is_download { "download" } else { "upload" };
    let host = server.rsplit_once(':').filter(|(host, port)| {
        port.parse::<u16>().is_ok() && !host.ends_with(':') && !host.contains("::")
    });
    let transfer = Transfer {
        tool: tool.to_owned(),
        name: name.to_owned(),
        started_unix_s,
        spec: TestSpec {
            target: host.map_or(server, |(host, _)| host).to_owned(),
            direction,
            seconds: seconds.max(stream.sent_seconds),
            streams: 1,
            ..TestSpec::default()
        },
        streams: vec![stream],
        unavailable,
        ..Transfer::default()
    };
    Some(transfer.into_measurement())
}

/// The kernel's samples of the server as the sender, with one at the start.
fn sender(infos: &[&TcpInfo]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for sample in infos.iter().map(|info| info.sender()) {
        match samples.last() {
            None if sample.t_s > 0.0 => samples.push(start::of_sender(&sample)),
            Some(last) if sample.t_s <= last.t_s => continue,
            _ => {}
        }
        samples.push(sample);
    }
    samples
}

/// The same as the receiver.
fn receiver(infos: &[&TcpInfo]) -> Vec<ReceiverSample> {
    let mut samples: Vec<ReceiverSample> = Vec::new();
    for sample in infos.iter().map(|info| info.receiver()) {
        match samples.last() {
            None if sample.t_s > 0.0 => samples.push(start::of_receiver(&sample)),
            Some(last) if sample.t_s <= last.t_s => continue,
            _ => {}
        }
        samples.push(sample);
    }
    samples
}

/// What the client's application counted.
fn application(measurements: &[Reported]) -> Vec<ReceiverSample> {
    let mut samples: Vec<ReceiverSample> = Vec::new();
    for app in measurements.iter().filter_map(|seen| seen.app) {
        let (Some(bytes), Some(us)) = (count(app.num_bytes), app.elapsed_time) else { continue };
        let sample =
            ReceiverSample { t_s: us / 1e6, received_bytes: bytes, ..ReceiverSample::default() };
        match samples.last() {
            None if sample.t_s > 0.0 => samples.push(ReceiverSample::default()),
            Some(last) if sample.t_s <= last.t_s => continue,
            _ => {}
        }
        samples.push(sample);
    }
    samples
}
