//! The messages of an ndt7 server (ndt-server, `spec/ndt7-protocol.md`): times in µs, rates in
//! bytes/s.

use host::tcp_info::{BbrInfo, TcpInfo};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;

/// The largest integer that every client's JSON library keeps exactly.
const MAX_INTEGER: u64 = 1 << 53;

/// Mean time between two messages.
const MEAN_INTERVAL: Duration = Duration::from_millis(250);
/// Bounds of the time between two messages.
const MIN_INTERVAL: Duration = Duration::from_millis(25);
const MAX_INTERVAL: Duration = Duration::from_millis(625);

/// One message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Message<'a> {
    app_info: AppInfo,
    connection_info: &'a ConnectionInfo,
    #[serde(rename = "BBRInfo")]
    bbr: Bbr,
    #[serde(rename = "TCPInfo")]
    tcp: Tcp,
    origin: &'static str,
    test: &'static str,
    /// Bytes that may wait in the socket unsent, which is no field of ndt7: its time limited by the
    /// send buffer is the server's own doing then.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsent_limit: Option<u64>,
}

/// Bytes of payload since the test began.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AppInfo {
    elapsed_time: u64,
    num_bytes: u64,
}

/// The two ends of the connection.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConnectionInfo {
    client: String,
    server: String,
    #[serde(rename = "UUID")]
    uuid: String,
}

impl ConnectionInfo {
    pub(super) fn new(client: SocketAddr, server: SocketAddr, uuid: String) -> Self {
        ConnectionInfo { client: endpoint(client), server: endpoint(server), uuid }
    }
}

/// An address and port, IPv6 in brackets, IPv4 as itself.
fn endpoint(address: SocketAddr) -> String {
    host::address::canonical(address).to_string()
}

/// BBR's state; zeros where the connection has another congestion control.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Bbr {
    #[serde(rename = "BW")]
    bandwidth: u64,
    #[serde(rename = "MinRTT")]
    min_rtt: u32,
    pacing_gain: u32,
    cwnd_gain: u32,
    elapsed_time: u64,
}

/// The kernel's `tcp_info`, by the names of m-lab/tcp-info.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tcp {
    elapsed_time: u64,
    state: u8,
    #[serde(rename = "CAState")]
    ca_state: u8,
    #[serde(rename = "WScale")]
    wscale: u8,
    app_limited: u8,
    #[serde(rename = "RTO")]
    rto: u64,
    #[serde(rename = "SndMSS")]
    snd_mss: u32,
    #[serde(rename = "RcvMSS")]
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    #[serde(rename = "PMTU")]
    pmtu: u32,
    rcv_ss_thresh: u32,
    #[serde(rename = "RTT")]
    rtt: u32,
    #[serde(rename = "RTTVar")]
    rtt_var: u32,
    snd_ss_thresh: u32,
    snd_cwnd: u32,
    reordering: u32,
    #[serde(rename = "RcvRTT")]
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    #[serde(rename = "MinRTT")]
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    #[serde(rename = "RWndLimited")]
    rwnd_limited: u64,
    snd_buf_limited: u64,
    delivered: u32,
    #[serde(rename = "DeliveredCE")]
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    #[serde(rename = "DSackDups")]
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooo_pack: u32,
    snd_wnd: u32,
}

/// A threshold that was not reduced yet, as Linux has it.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl Tcp {
    fn of(info: &TcpInfo, elapsed_time: u64) -> Self {
        let exact = |value: Option<u64>| value.unwrap_or_default().min(MAX_INTEGER);
        Tcp {
            elapsed_time,
            state: info.state,
            ca_state: info.ca_state,
            wscale: info.snd_wscale | info.rcv_wscale << 4,
            app_limited: u8::from(info.delivery_rate_app_limited),
            rto: micros(info.rto),
            snd_mss: info.snd_mss,
            rcv_mss: info.rcv_mss,
            unacked: info.unacked,
            sacked: info.sacked,
            lost: info.lost,
            retrans: info.retrans,
            pmtu: info.pmtu,
            rcv_ss_thresh: info.rcv_ssthresh,
            rtt: info.rtt_us,
            rtt_var: info.rttvar_us,
            snd_ss_thresh: info.snd_ssthresh.unwrap_or(INFINITE_SSTHRESH),
            snd_cwnd: info.snd_cwnd,
            reordering: info.reordering,
            rcv_rtt: info.rcv_rtt_us,
            rcv_space: info.rcv_space,
            total_retrans: info.total_retrans,
            pacing_rate: exact(info.pacing_rate),
            bytes_acked: exact(info.bytes_acked),
            bytes_received: exact(info.bytes_received),
            segs_out: info.segs_out.unwrap_or_default(),
            segs_in: info.segs_in.unwrap_or_default(),
            notsent_bytes: info.notsent_bytes.unwrap_or_default(),
            min_rtt: info.min_rtt_us.unwrap_or_default(),
            data_segs_in: info.data_segs_in.unwrap_or_default(),
            data_segs_out: info.data_segs_out.unwrap_or_default(),
            delivery_rate: exact(info.delivery_rate),
            busy_time: exact(info.busy_us),
            rwnd_limited: exact(info.rwnd_limited_us),
            snd_buf_limited: exact(info.sndbuf_limited_us),
            delivered: info.delivered.unwrap_or_default(),
            delivered_ce: info.delivered_ce.unwrap_or_default(),
            bytes_sent: exact(info.bytes_sent),
            bytes_retrans: exact(info.bytes_retrans),
            dsack_dups: info.dsack_dups.unwrap_or_default(),
            reord_seen: info.reord_seen.unwrap_or_default(),
            rcv_ooo_pack: info.rcv_ooopack.unwrap_or_default(),
            snd_wnd: info.snd_wnd.unwrap_or_default(),
        }
    }
}

/// µs, at least 1: clients divide by it.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(MAX_INTEGER).clamp(1, MAX_INTEGER)
}

/// The message of a test that has run for `elapsed` and moved `bytes` of payload.
pub(super) fn message(
    test: &'static str,
    connection_info: &ConnectionInfo,
    elapsed: Duration,
    bytes: u64,
    info: &TcpInfo,
    (bbr, unsent_limit): (Option<BbrInfo>, Option<u64>),
) -> String {
    let elapsed_time = micros(elapsed);
    let bbr = bbr.unwrap_or_default();
    let message = Message {
        app_info: AppInfo { elapsed_time, num_bytes: bytes.min(MAX_INTEGER) },
        connection_info,
        bbr: Bbr {
            bandwidth: bbr.bandwidth.min(MAX_INTEGER),
            min_rtt: bbr.min_rtt_us,
            pacing_gain: bbr.pacing_gain,
            cwnd_gain: bbr.cwnd_gain,
            elapsed_time,
        },
        tcp: Tcp::of(info, elapsed_time),
        origin: "server",
        test,
        unsent_limit,
    };
    serde_json::to_string(&message).unwrap_or_default()
}

/// The time until the next message: exponential, so that no period of the path is missed
/// (RFC 3432), within the specification's bounds. `draw` is uniform.
pub(super) fn interval(draw: u64) -> Duration {
    // In (0, 1]: its logarithm is finite.
    let uniform = ((draw >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    MEAN_INTERVAL.mul_f64(-uniform.ln()).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn clients_find_what_they_read() {
        let info = TcpInfo {
            bytes_received: Some(u64::MAX),
            rtt_us: 50_100,
            min_rtt_us: Some(50_000),
            snd_mss: 1448,
            ..TcpInfo::default()
        };
        let ends = ConnectionInfo::new(
            "[::ffff:192.0.2.7]:4000".parse().unwrap(),
            "[2001:db8::1]:443".parse().unwrap(),
            "u".to_owned(),
        );
        let text = message("upload", &ends, Duration::ZERO, 5, &info, (None, None));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value["ConnectionInfo"],
            json!({"Client": "192.0.2.7:4000", "Server": "[2001:db8::1]:443", "UUID": "u"})
        );
        assert_eq!(value["AppInfo"], json!({"ElapsedTime": 1, "NumBytes": 5}));
        assert_eq!(
            value["BBRInfo"],
            json!({"BW": 0, "MinRTT": 0, "PacingGain": 0, "CwndGain": 0, "ElapsedTime": 1})
        );
        let tcp = &value["TCPInfo"];
        assert_eq!(tcp["ElapsedTime"], json!(1), "clients divide by it");
        assert_eq!(tcp["BytesReceived"], json!(MAX_INTEGER));
        assert_eq!((&tcp["RTT"], &tcp["MinRTT"]), (&json!(50_100), &json!(50_000)));
        let read = [
            "BusyTime",
            "BytesAcked",
            "BytesSent",
            "BytesRetrans",
            "RTTVar",
            "RWndLimited",
            "SndBufLimited",
            "SndCwnd",
            "SndMSS",
            "DeliveryRate",
            "PacingRate",
            "NotsentBytes",
            "AppLimited",
        ];
        for name in read {
            assert!(tcp[name].is_u64(), "{name} in {text}");
        }
        assert_eq!((&value["Origin"], &value["Test"]), (&json!("server"), &json!("upload")));
    }

    #[test]
    fn intervals_are_exponential_within_their_bounds() {
        assert_eq!(interval(u64::MAX), MIN_INTERVAL);
        assert_eq!(interval(0), MAX_INTERVAL);
        let draws = (0..10_000u64).map(|n| n * (u64::MAX / 10_000));
        let mean = draws.map(|draw| interval(draw).as_secs_f64()).sum::<f64>() / 10_000.0;
        // The mean of an exponential of 250 ms that is cut at 25 and 625 ms: 25 + 250 (e^-0.1 - e^-2.5).
        assert!((mean - 0.2307).abs() < 0.0005, "{mean}");
    }
}
