//! Which TCP segments the path carries. Where full-size packets vanish without an ICMP message
//! (RFC 2923), TCP stalls: each connection first carries a line of more than a segment in
//! both directions, and where that does not arrive, several connections at once try smaller ones.

use super::far_side::AT_ONCE;
use crate::CopyError;
use crate::transport::tls::Tls;
use host::clock;
use std::time::{Duration, Instant};

/// Sizes that are tried beside full ones, bytes, descending: those of PPPoE, tunnels, mobile
/// networks, and what every path carries.
const SIZES: [u32; AT_ONCE - 1] = [1_440, 1_400, 1_340, 1_200, 1_000, 730, 500];
/// Segments of messages that need no rate.
pub(crate) const SMALL: u32 = 500;
/// Headers of IPv4 and IPv6 with TCP's, bytes.
const IPV4_HEADERS: u32 = 40;
const IPV6_HEADERS: u32 = 60;

/// What a connection waits for a full-size segment: two retransmissions.
const ANSWER: Duration = Duration::from_millis(700);
/// More than that on a long path: a handshake, and a retransmission.
const ROUND_TRIPS: u32 = 4;

/// The line that shows what arrives, and its answer, begin with it.
const WORD: &str = "segments";
/// Bytes of such a line at most, its end not counted.
pub(crate) const MAX_TRIAL: usize = 16_000;

/// The range that the path MTU is in, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PathMtu {
    /// Packets of this size arrive.
    pub carries: u32,
    /// Packets of this size do not; `None`: those of the link's size.
    pub drops: Option<u32>,
}

impl PathMtu {
    /// By the UDP payloads of packets that arrived and that did not.
    pub(crate) fn of_udp(carries: usize, drops: usize, is_ipv6: bool) -> Self {
        // TCP's header has 12 bytes more than UDP's.
        let tcp = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).saturating_sub(12);
        PathMtu::of(tcp(carries), Some(tcp(drops)), is_ipv6)
    }

    /// By the sizes of segments that arrived and that did not.
    fn of(carries: u32, drops: Option<u32>, is_ipv6: bool) -> Self {
        let headers = if is_ipv6 { IPV6_HEADERS } else { IPV4_HEADERS };
        PathMtu { carries: carries + headers, drops: drops.map(|drops| drops + headers) }
    }
}

/// Whether a line asks for an answer of more than a segment.
pub(crate) fn is_trial(line: &str) -> bool {
    line.starts_with(WORD)
}

/// A line of more than a segment of this connection.
pub(crate) fn trial_line(tls: &Tls) -> String {
    let bytes = (tls.segment_bytes() as usize + 100).min(MAX_TRIAL);
    format!("{WORD:-<bytes$}")
}

/// Until when full-size segments have to arrive on a connection.
pub(super) fn deadline(tls: &Tls, until: Instant) -> Instant {
    (clock::now() + ANSWER + tls.rtt() * ROUND_TRIPS).min(until)
}

/// Waits until full-size segments have arrived in both directions.
///
/// # Errors
/// They do not, or the connection failed.
pub(super) fn check(tls: &mut Tls, until: Instant) -> Result<(), CopyError> {
    let line = trial_line(tls);
    tls.send_line(&line, until)?;
    let answer = tls.receive_line(MAX_TRIAL, until)?;
    match is_trial(&answer) {
        true => Ok(()),
        false => Err(CopyError::Protocol("it did not answer a line".into())),
    }
}

/// The largest of [`SIZES`] with which `connect` succeeds; all are tried at the same time, beside
/// full segments. `None` if those arrive, or none do: size is not the reason.
pub(super) fn find(
    is_ipv6: bool,
    connect: &(impl Fn(Option<u32>) -> Result<Tls, CopyError> + Sync),
) -> Option<(u32, PathMtu)> {
    let sizes: Vec<Option<u32>> = [None].into_iter().chain(SIZES.map(Some)).collect();
    let tried: Vec<bool> = std::thread::scope(|scope| {
        let begin = |size: &Option<u32>| {
            let size = *size;
            std::thread::Builder::new().spawn_scoped(scope, move || connect(size))
        };
        let begun: Vec<_> = sizes.iter().map(begin).collect();
        let arrived = begun.into_iter().map(|one| match one {
            Ok(thread) => thread.join().is_ok_and(|connected| connected.is_ok()),
            Err(_) => false,
        });
        arrived.collect()
    });
    let at = tried.iter().position(|arrived| *arrived)?;
    let drops = sizes[at.checked_sub(1)?];
    sizes[at].map(|size| (size, PathMtu::of(size, drops, is_ipv6)))
}
