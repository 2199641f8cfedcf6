//! Path MTU discovery by echo requests with the DF bit.
//!
//! Several sizes are probed at a time. A reply is a lower bound; two unanswered probes
//! or a "packet too big" error are an upper bound. If routers report the MTU, discovery
//! takes two RTTs; in an MTU black hole (RFC 4821), about five timeouts.

use crate::ProbeError;
use crate::echo::EchoProber;
use crate::prober::{Outcome, Prober, Response, Target};
use host::address::with_port;
use host::{clock, socket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Sizes probed at a time.
const CONCURRENT_SIZES: u32 = 8;

/// Maximum number of probes; 64 KiB take five rounds of two attempts each.
const MAX_PROBES: u16 = 200;

/// Maximum delay until an interruption is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum size of an IP packet, bytes.
const MAX_PACKET: u32 = 65_535;

/// The packet exceeds the device's MTU.
const EMSGSIZE: i32 = 90;

/// The result of a discovery; sizes in bytes of the whole IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMtu {
    /// The largest size that was probed: the requested one, within the limits of IP.
    pub tried: u32,
    /// The largest size with a reply; `None` without replies.
    pub arrived: Option<u32>,
    /// The smallest size without a reply; `None` if all were answered.
    pub missing: Option<u32>,
    /// The smallest MTU that a router reported, and its address.
    pub told: Option<(IpAddr, u32)>,
    /// Number of echo requests sent.
    pub sent: u16,
}

/// The state of the search.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Known to pass.
    low: u32,
    /// Known not to pass.
    high: u32,
    /// Reported by a router, not probed yet.
    hint: Option<u32>,
}

impl Search {
    /// The sizes to probe next, ascending; empty when the search is complete.
    fn sizes(&self) -> Vec<u32> {
        let room = self.high.saturating_sub(self.low);
        if room <= 1 {
            return Vec::new();
        }
        if let Some(hint) = self.hint.filter(|hint| (self.low + 1..self.high).contains(hint)) {
            // If the report is right, the next size does not pass.
            return if hint + 1 < self.high { vec![hint, hint + 1] } else { vec![hint] };
        }
        let steps = CONCURRENT_SIZES.min(room - 1);
        let mut sizes: Vec<u32> =
            (1..=steps).map(|step| self.low + room * step / (steps + 1)).collect();
        sizes.dedup();
        sizes.retain(|size| *size > self.low && *size < self.high);
        sizes
    }

    fn arrived(&mut self, size: u32) {
        self.low = self.low.max(size);
        // After contradictory results the larger size counts.
        self.high = self.high.max(self.low + 1);
    }

    fn missing(&mut self, size: u32) {
        if size > self.low {
            self.high = self.high.min(size);
        }
    }
}

/// Finds the largest packet to `to`, up to `max_size` bytes (the device's MTU). Each
/// probe has the timeout `timeout`. `stop` ends the search with the result so far.
///
/// # Errors
/// [`ProbeError::Privileges`] if this user may not send echo requests; no route; errors
/// of the system.
pub fn path_mtu(
    to: SocketAddr,
    max_size: u32,
    timeout: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<PathMtu, ProbeError> {
    let target = Target { to: with_port(to, 0), bind: None, tos: None, ttl: None };
    // The minimum MTU (RFC 791, RFC 8200), and the length of IP and ICMP headers.
    let (floor, headers) = if target.is_v6() { (1_280, 48) } else { (576, 28) };
    let prober = EchoProber::open(target, 0)?;
    prober
        .configure(|file| socket::set_mtu_probing(file, target.is_v6()))
        .map_err(|error| target.open_error(error))?;
    let max_size = max_size.clamp(floor, MAX_PACKET);
    let mut run = Run { prober, headers, timeout, next: 0 };
    let failed =
        |source| ProbeError::System { operation: "probe the MTU", address: to.ip(), source };

    let first = if max_size > floor { vec![floor, max_size] } else { vec![floor] };
    let answers = run.round(&first, stop).map_err(failed)?;
    let passes = |size| answers.contains(&size);
    let done = |arrived, missing, run: &Run| PathMtu {
        tried: max_size,
        arrived,
        missing,
        told: run.prober.reported_mtu(),
        sent: run.next,
    };
    if passes(max_size) {
        return Ok(done(Some(max_size), None, &run));
    }
    if !passes(floor) {
        return Ok(done(None, Some(floor), &run));
    }
    let mut search = Search { low: floor, high: max_size, hint: run.hint() };
    while run.next < MAX_PROBES && !stop() {
        let sizes = search.sizes();
        if sizes.is_empty() {
            break;
        }
        search.hint = None;
        let before = run.hint();
        let answers = run.round(&sizes, stop).map_err(failed)?;
        if stop() {
            break;
        }
        for size in sizes {
            if answers.contains(&size) { search.arrived(size) } else { search.missing(size) }
        }
        search.hint = run.hint().filter(|_| run.hint() != before);
    }
    Ok(done(Some(search.low), Some(search.high), &run))
}

struct Run {
    prober: EchoProber,
    headers: u32,
    timeout: Duration,
    next: u16,
}

impl Run {
    fn hint(&self) -> Option<u32> {
        self.prober.reported_mtu().map(|(_, mtu)| mtu)
    }

    /// Probes these sizes and returns those with a reply. Unanswered ones are probed
    /// twice, unless a router reported a smaller MTU.
    fn round(&mut self, sizes: &[u32], stop: &dyn Fn() -> bool) -> io::Result<Vec<u32>> {
        let mut arrived = Vec::new();
        let mut open = sizes.to_vec();
        for _ in 0..2 {
            let mut sent = Vec::new();
            for size in std::mem::take(&mut open) {
                let payload = usize::try_from(size.saturating_sub(self.headers));
                self.prober.resize(payload.unwrap_or_default());
                self.next += 1;
                match self.prober.send(self.next, None) {
                    Ok(_) => sent.push((self.next, size)),
                    Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {}
                    Err(error) => return Err(error),
                }
            }
            let until = clock::now() + self.timeout;
            let mut responses = Vec::new();
            while !sent.is_empty() && clock::now() < until && !stop() {
                self.prober.wait(POLL_INTERVAL)?;
                self.prober.receive(&mut responses)?;
                for response in responses.drain(..) {
                    Self::take(&response, &mut sent, &mut arrived);
                }
            }
            open = sent.into_iter().map(|(_, size)| size).collect();
            // Sizes above a reported MTU need no second attempt.
            open.retain(|size| self.hint().is_none_or(|mtu| *size <= mtu));
            if open.is_empty() {
                break;
            }
        }
        Ok(arrived)
    }

    fn take(response: &Response, sent: &mut Vec<(u16, u32)>, arrived: &mut Vec<u32>) {
        let Some(at) = sent.iter().position(|(seq, _)| *seq == response.seq) else { return };
        match &response.outcome {
            Outcome::Reply => arrived.push(sent.remove(at).1),
            Outcome::Unreachable(_) | Outcome::Closed | Outcome::Expired => {
                sent.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a path of this MTU; returns the result and the number of rounds.
    fn found(floor: u32, max_size: u32, mtu: u32) -> (u32, usize) {
        let mut search = Search { low: floor, high: max_size, hint: None };
        let mut rounds = 0;
        loop {
            let sizes = search.sizes();
            if sizes.is_empty() {
                return (search.low, rounds);
            }
            rounds += 1;
            assert!(rounds < 20, "{search:?}");
            for size in sizes {
                if size <= mtu { search.arrived(size) } else { search.missing(size) }
            }
        }
    }

    #[test]
    fn the_search_is_exact() {
        for max_size in [577, 578, 1_400, 1_500, 9_000, 65_535] {
            for mtu in [576, 577, 1_280, 1_372, 1_492, 8_999, 65_534] {
                if mtu < max_size {
                    let (low, rounds) = found(576, max_size, mtu);
                    assert_eq!(low, mtu);
                    assert!(rounds <= 6, "{max_size} {mtu}: {rounds}");
                }
            }
        }
    }

    #[test]
    fn a_reported_mtu_is_probed_with_the_next_size() {
        let mut search = Search { low: 576, high: 9_000, hint: Some(1_400) };
        assert_eq!(search.sizes(), [1_400, 1_401]);
        search.arrived(1_400);
        search.missing(1_401);
        search.hint = None;
        assert!(search.sizes().is_empty());
        // Out of range it is ignored.
        let odd = Search { low: 576, high: 600, hint: Some(9_000) };
        assert!(odd.sizes().iter().all(|size| (577..600).contains(size)));
    }

    #[test]
    fn contradictory_results_end_the_search() {
        let mut search = Search { low: 576, high: 700, hint: None };
        search.arrived(900);
        assert!((search.low, search.high) == (900, 901) && search.sizes().is_empty());
        search.missing(100);
        assert_eq!(search.low, 900);
    }
}
