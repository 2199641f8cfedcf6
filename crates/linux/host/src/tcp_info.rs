//! State of a TCP socket in the kernel: `TCP_INFO`, `SO_MEMINFO`, and the
//! congestion control.
//!
//! `struct tcp_info` has grown with almost every kernel. We pass the layout of
//! Linux 6.7 and accept any length: a field beyond it is `None`, never a zero
//! that looks like a measurement.

use crate::sys;
use std::{
    fs, io,
    mem::{offset_of, size_of},
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

/// `struct tcp_info` of `include/uapi/linux/tcp.h`, in the kernel's order.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Raw {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    /// `snd_wscale` in the low four bits, `rcv_wscale` in the high four.
    wscales: u8,
    /// Bit 0 `delivery_rate_app_limited`, bits 1 and 2 `fastopen_client_fail`.
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

// SAFETY: integers.
unsafe impl sys::Plain for Raw {}

/// "No threshold yet" (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// One `TCP_INFO` reading. Counters start with the connection; `None` means that
/// this kernel does not report the field, or has no value yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Connection state (`TCP_ESTABLISHED` is 1).
    pub state: u8,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Shift of the windows the peer advertises, 0 to 14.
    pub snd_wscale: u8,
    /// Shift of the windows we advertise, 0 to 14.
    pub rcv_wscale: u8,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Segment size used for sending, bytes of payload.
    pub snd_mss: u32,
    /// Segment size received from the peer.
    pub rcv_mss: u32,
    /// Path MTU.
    pub pmtu: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Of those, selectively acknowledged.
    pub sacked: u32,
    /// Of those, marked lost.
    pub lost: u32,
    /// Of those, retransmitted and still in flight.
    pub retrans: u32,
    /// Smoothed RTT, µs.
    pub rtt_us: u32,
    /// Mean deviation of the RTT, µs.
    pub rttvar_us: u32,
    /// Minimum RTT, µs.
    pub min_rtt_us: Option<u32>,
    /// The receiver's RTT estimate, µs; zero until known.
    pub rcv_rtt_us: u32,
    /// Slow-start threshold in segments; `None` while infinite.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Receive window clamp that the kernel grows towards, bytes.
    pub rcv_ssthresh: u32,
    /// Bytes that the receiving program reads per RTT.
    pub rcv_space: u32,
    /// Reordering that the sender tolerates, segments.
    pub reordering: u32,
    /// Retransmitted segments.
    pub total_retrans: u32,
    /// Pacing rate, byte/s; `None` where unlimited.
    pub pacing_rate: Option<u64>,
    /// Its limit (`SO_MAX_PACING_RATE`), byte/s; `None` where unlimited.
    pub max_pacing_rate: Option<u64>,
    /// Payload bytes acknowledged, the SYN counted as one.
    pub bytes_acked: Option<u64>,
    /// Payload bytes received in order.
    pub bytes_received: Option<u64>,
    /// Segments sent, of every kind.
    pub segs_out: Option<u32>,
    /// Segments received, of every kind.
    pub segs_in: Option<u32>,
    /// Bytes written by the program and not sent yet.
    pub notsent_bytes: Option<u32>,
    /// Data segments received.
    pub data_segs_in: Option<u32>,
    /// Data segments sent.
    pub data_segs_out: Option<u32>,
    /// The kernel's delivery rate estimate, byte/s.
    pub delivery_rate: Option<u64>,
    /// Whether that estimate is application-limited.
    pub delivery_rate_app_limited: bool,
    /// Time with data to send or in flight, µs.
    pub busy_us: Option<u64>,
    /// Of that, rwnd-limited time, µs.
    pub rwnd_limited_us: Option<u64>,
    /// Of that, sndbuf-limited time, µs.
    pub sndbuf_limited_us: Option<u64>,
    /// Segments delivered, including those out of order.
    pub delivered: Option<u32>,
    /// Of those, marked with congestion experienced.
    pub delivered_ce: Option<u32>,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Retransmitted payload bytes.
    pub bytes_retrans: Option<u64>,
    /// Duplicates the peer reported (spurious retransmissions).
    pub dsack_dups: Option<u32>,
    /// Number of reordering events.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// Window the peer advertises, bytes (Linux 5.4).
    pub snd_wnd: Option<u32>,
    /// Window we advertise, bytes (Linux 6.2).
    pub rcv_wnd: Option<u32>,
    /// Number of times the flow was rehashed after a timeout (Linux 6.2).
    pub rehash: Option<u32>,
    /// Retransmission timeouts (Linux 6.7).
    pub total_rto: Option<u16>,
    /// Time spent recovering from timeouts, ms (Linux 6.7).
    pub total_rto_time_ms: Option<u32>,
}

/// All ones means unlimited; kernels with 32-bit rates extend theirs.
fn is_limited(rate: &u64) -> bool {
    *rate != 0 && *rate != u64::MAX && *rate != u64::from(u32::MAX)
}

impl TcpInfo {
    /// Reads a connected TCP socket.
    ///
    /// # Errors
    /// The error of `getsockopt`: the socket is not TCP, or is closed.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let mut raw = Raw::default();
        let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
        Ok(Self::decode(&raw, length))
    }

    /// As [`TcpInfo::of`], from the bytes of the struct, as sock_diag returns it.
    /// Fields beyond the end are `None`, or zero if every kernel has them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut raw = Raw::default();
        let length = bytes.len().min(size_of::<Raw>());
        // SAFETY: both are at least `length` long and apart, and Raw is plain
        // integers, so any bytes are valid.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                std::ptr::from_mut(&mut raw).cast::<u8>(),
                length,
            );
        }
        Self::decode(&raw, length)
    }

    /// `length`: number of bytes of `raw` that the kernel filled.
    fn decode(raw: &Raw, length: usize) -> Self {
        macro_rules! field {
            ($field:ident) => {
                (offset_of!(Raw, $field) + size_of_val(&raw.$field) <= length).then_some(raw.$field)
            };
        }
        TcpInfo {
            state: raw.state,
            ca_state: raw.ca_state,
            snd_wscale: raw.wscales & 0x0f,
            rcv_wscale: raw.wscales >> 4,
            rto: Duration::from_micros(u64::from(raw.rto)),
            snd_mss: raw.snd_mss,
            rcv_mss: raw.rcv_mss,
            pmtu: raw.pmtu,
            unacked: raw.unacked,
            sacked: raw.sacked,
            lost: raw.lost,
            retrans: raw.retrans,
            rtt_us: raw.rtt,
            rttvar_us: raw.rttvar,
            // All ones until the first measurement.
            min_rtt_us: field!(min_rtt).filter(|&us| us != u32::MAX),
            rcv_rtt_us: raw.rcv_rtt,
            snd_ssthresh: field!(snd_ssthresh).filter(|&segments| segments < INFINITE_SSTHRESH),
            snd_cwnd: raw.snd_cwnd,
            rcv_ssthresh: raw.rcv_ssthresh,
            rcv_space: raw.rcv_space,
            reordering: raw.reordering,
            total_retrans: raw.total_retrans,
            pacing_rate: field!(pacing_rate).filter(is_limited),
            max_pacing_rate: field!(max_pacing_rate).filter(is_limited),
            bytes_acked: field!(bytes_acked),
            bytes_received: field!(bytes_received),
            segs_out: field!(segs_out),
            segs_in: field!(segs_in),
            notsent_bytes: field!(notsent_bytes),
            data_segs_in: field!(data_segs_in),
            data_segs_out: field!(data_segs_out),
            delivery_rate: field!(delivery_rate),
            delivery_rate_app_limited: raw.flags & 1 != 0,
            busy_us: field!(busy_time),
            rwnd_limited_us: field!(rwnd_limited),
            sndbuf_limited_us: field!(sndbuf_limited),
            delivered: field!(delivered),
            delivered_ce: field!(delivered_ce),
            bytes_sent: field!(bytes_sent),
            bytes_retrans: field!(bytes_retrans),
            dsack_dups: field!(dsack_dups),
            reord_seen: field!(reord_seen),
            rcv_ooopack: field!(rcv_ooopack),
            snd_wnd: field!(snd_wnd),
            rcv_wnd: field!(rcv_wnd),
            rehash: field!(rehash),
            total_rto: field!(total_rto),
            total_rto_time_ms: field!(total_rto_time),
        }
    }

    /// Payload bytes known to have arrived, in order or not: acknowledged bytes plus
    /// SACKed segments. `delivered` counts segments of any size: multiplied by the
    /// MSS it would overstate the rate of a program that writes short segments, for
    /// instance 150 Mbit/s instead of 100.
    #[must_use]
    pub fn delivered_bytes(&self) -> u64 {
        let beyond = u64::from(self.sacked) * u64::from(self.snd_mss);
        self.bytes_acked.unwrap_or(0) + beyond
    }

    /// Segments in flight as the kernel counts them: `packets_out - (sacked_out + lost_out) +
    /// retrans_out` (`tcp_packets_in_flight` in Linux `include/net/tcp.h`).
    #[must_use]
    pub fn in_flight_segments(&self) -> u32 {
        self.unacked
            .saturating_sub(self.sacked.saturating_add(self.lost))
            .saturating_add(self.retrans)
    }
}

/// Memory of a socket (`SO_MEMINFO`, Linux 4.12), bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Received and not read yet, including overhead.
    pub receive_used: u32,
    /// Size of the receive buffer, part of which is advertised as window.
    pub receive_buffer: u32,
    /// Written and not acknowledged yet, including overhead.
    pub send_used: u32,
    /// Size of the send buffer.
    pub send_buffer: u32,
}

impl MemInfo {
    /// Reads a socket.
    ///
    /// # Errors
    /// The error of `getsockopt`: the kernel is older than 4.12, or the socket is closed.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let mut words = [0u32; 9];
        let length = sys::get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
        if length < 6 * size_of::<u32>() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(Self::from_words(words))
    }

    /// Of nine words `SK_MEMINFO_RMEM_ALLOC`, `RCVBUF`, `SNDBUF` and `WMEM_QUEUED`; `WMEM_ALLOC` is
    /// what devices have not sent yet.
    pub(crate) fn from_words(words: [u32; 9]) -> Self {
        let [receive_used, receive_buffer, _, send_buffer, _, send_used, ..] = words;
        MemInfo { receive_used, receive_buffer, send_used, send_buffer }
    }
}

/// What BBR says of a socket (`TCP_CC_INFO`, `struct tcp_bbr_info` of
/// `include/uapi/linux/inet_diag.h`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BbrInfo {
    /// Estimated bandwidth, bytes/s.
    pub bandwidth: u64,
    /// Minimum RTT, µs.
    pub min_rtt_us: u32,
    /// Pacing gain, 256 for 1.
    pub pacing_gain: u32,
    /// Gain of the congestion window, 256 for 1.
    pub cwnd_gain: u32,
}

impl BbrInfo {
    /// Reads a socket; `None` where its congestion control is not BBR.
    ///
    /// # Errors
    /// The error of `getsockopt`.
    pub fn of(socket: &impl AsFd) -> io::Result<Option<Self>> {
        // Other congestion controls answer with less, or with a structure of their own.
        if !congestion(socket)?.starts_with("bbr") {
            return Ok(None);
        }
        let mut words = [0u32; 5];
        let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut words)?;
        let [low, high, min_rtt_us, pacing_gain, cwnd_gain] = words;
        let bandwidth = u64::from(high) << 32 | u64::from(low);
        let whole = length == size_of_val(&words);
        Ok(whole.then_some(BbrInfo { bandwidth, min_rtt_us, pacing_gain, cwnd_gain }))
    }
}

/// Why a congestion control cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel does not have it.
    #[error(
        "congestion control '{name}' is not available (available: {available}); try: modprobe tcp_{name}"
    )]
    Unknown {
        /// The name.
        name: String,
        /// What `/proc/sys/net/ipv4/tcp_available_congestion_control` lists.
        available: String,
    },
    /// It exists, but requires privileges.
    #[error(
        "congestion control '{name}' requires privileges; run as root, or add it to net.ipv4.tcp_allowed_congestion_control"
    )]
    Forbidden {
        /// The name.
        name: String,
    },
    /// Any other error of `setsockopt`.
    #[error("cannot set congestion control '{name}': {source}")]
    Other {
        /// The name.
        name: String,
        /// The system error.
        source: io::Error,
    },
}

/// Time for which the peer of a socket has acknowledged nothing, while retransmissions or probes
/// are due to it; `None` if less than three in a row are unanswered. A peer that has closed its
/// window answers probes, of which then at most one is under way.
///
/// # Errors
/// As [`TcpInfo::of`].
pub fn unanswered_for(socket: &impl AsFd) -> io::Result<Option<Duration>> {
    const UNANSWERED: u8 = 3;
    let mut raw = Raw::default();
    sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
    let is_unanswered = raw.retransmits.max(raw.probes) >= UNANSWERED;
    Ok(is_unanswered.then(|| Duration::from_millis(raw.last_ack_recv.into())))
}

/// Maximum length of a name (`TCP_CA_NAME_MAX`), including the NUL.
const NAME_MAX: usize = 16;

/// Sets the congestion control of a socket.
///
/// # Errors
/// The kernel does not have it, or reserves it for root.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> Result<(), CongestionError> {
    let own = || name.chars().filter(|c| !c.is_control()).take(40).collect::<String>();
    // The kernel would truncate a longer name, which could then match another one.
    if name.is_empty() || name.len() >= NAME_MAX || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(CongestionError::Unknown { name: own(), available: available_congestion() });
    }
    let length = libc::socklen_t::try_from(name.len()).unwrap_or(0);
    // SAFETY: the pointer and length describe `name`, which outlives the call.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            length,
        )
    };
    if code == 0 {
        return Ok(());
    }
    let source = io::Error::last_os_error();
    Err(match source.raw_os_error() {
        Some(libc::ENOENT) => {
            CongestionError::Unknown { name: own(), available: available_congestion() }
        }
        Some(libc::EPERM) => CongestionError::Forbidden { name: own() },
        _ => CongestionError::Other { name: own(), source },
    })
}

/// The congestion control of a socket.
///
/// # Errors
/// The error of `getsockopt`.
pub fn congestion(socket: &impl AsFd) -> io::Result<String> {
    let mut name = [0u8; NAME_MAX];
    let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
    let name = name.get(..length).unwrap_or(&name);
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The available congestion controls, as the kernel lists them: without modules
/// that are not loaded.
#[must_use]
pub fn available_congestion() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

mod sample;

pub use sample::{receiver_sample, sender_sample};

#[cfg(test)]
mod tests;
