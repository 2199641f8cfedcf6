//! The largest packet that a way carries, found by sending some.
//!
//! Echoes that may not be cut are sent in several sizes at a time. Those that
//! come back bound it from below, those that two tries leave unanswered or that
//! a router calls too big from above. Where routers say so, that takes two round
//! trips; where they drop without a word, about five timeouts (RFC 4821 calls
//! that a black hole).

use crate::ReachError;
use crate::echo::Echoes;
use crate::prober::{Aim, Heard, Prober, What};
use host::{clock, socket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Sizes tried at a time.
const AT_ONCE: u32 = 8;

/// The most tries of a run; 64 KiB take five rounds of two tries each.
const MOST_TRIES: u16 = 200;

/// How soon an interruption is seen.
const GLANCE: Duration = Duration::from_millis(50);

/// The largest packet of IP.
const LARGEST: u32 = 65_535;

/// EMSGSIZE: the device carries no packet of that size.
const TOO_LONG: i32 = 90;

/// What a way carries, in bytes of a whole IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMtu {
    /// The largest that was tried: what was asked for, as far as IP has packets
    /// of that size.
    pub tried: u32,
    /// The largest that arrived and came back; `None` where none did.
    pub arrived: Option<u32>,
    /// The least that did not; `None` where all did.
    pub missing: Option<u32>,
    /// The least MTU that a router told, and who.
    pub told: Option<(IpAddr, u32)>,
    /// Echoes sent.
    pub sent: u16,
}

/// What is known so far.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Surely carried.
    low: u32,
    /// Surely not.
    high: u32,
    /// What a router said, not tried yet.
    hint: Option<u32>,
}

impl Search {
    /// The sizes to try next, ascending; none once it is found.
    fn sizes(&self) -> Vec<u32> {
        let room = self.high.saturating_sub(self.low);
        if room <= 1 {
            return Vec::new();
        }
        if let Some(hint) = self.hint.filter(|hint| (self.low + 1..self.high).contains(hint)) {
            // If it is right, the next one up does not pass.
            return if hint + 1 < self.high { vec![hint, hint + 1] } else { vec![hint] };
        }
        let steps = AT_ONCE.min(room - 1);
        let mut sizes: Vec<u32> =
            (1..=steps).map(|step| self.low + room * step / (steps + 1)).collect();
        sizes.dedup();
        sizes.retain(|size| *size > self.low && *size < self.high);
        sizes
    }

    fn arrived(&mut self, size: u32) {
        self.low = self.low.max(size);
        // A reordered answer may contradict; what arrived counts.
        self.high = self.high.max(self.low + 1);
    }

    fn missing(&mut self, size: u32) {
        if size > self.low {
            self.high = self.high.min(size);
        }
    }
}

/// Finds the largest packet to `to`, no more than `most` bytes (the device's
/// MTU). Answers are waited for as long as `timeout`. Where `stop` says so it
/// ends with what is known.
///
/// # Errors
/// [`ReachError::Privileges`] where this user may send no echoes; otherwise no
/// route, or the system's own.
pub fn path_mtu(
    to: IpAddr,
    most: u32,
    timeout: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<PathMtu, ReachError> {
    let aim = Aim { to: SocketAddr::new(to, 0), bind: None, tos: None, ttl: None };
    // The least that every way carries (RFC 791, RFC 8200), and an echo's headers.
    let (floor, headers) = if aim.is_v6() { (1_280, 48) } else { (576, 28) };
    let echoes = Echoes::open(aim, 0)?;
    echoes
        .never_cut(|file| socket::set_mtu_probing(file, aim.is_v6()))
        .map_err(|error| aim.refusal(error))?;
    let most = most.clamp(floor, LARGEST);
    let mut run = Run { echoes, headers, timeout, next: 0 };
    let failed = |source| ReachError::System { operation: "probe the MTU", address: to, source };

    let first = if most > floor { vec![floor, most] } else { vec![floor] };
    let answers = run.round(&first, stop).map_err(failed)?;
    let passes = |size| answers.contains(&size);
    let done = |arrived, missing, run: &Run| PathMtu {
        tried: most,
        arrived,
        missing,
        told: run.echoes.told(),
        sent: run.next,
    };
    if passes(most) {
        return Ok(done(Some(most), None, &run));
    }
    if !passes(floor) {
        return Ok(done(None, Some(floor), &run));
    }
    let mut search = Search { low: floor, high: most, hint: run.hint() };
    while run.next < MOST_TRIES && !stop() {
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
    echoes: Echoes,
    headers: u32,
    timeout: Duration,
    next: u16,
}

impl Run {
    fn hint(&self) -> Option<u32> {
        self.echoes.told().map(|(_, mtu)| mtu)
    }

    /// The sizes that came back. Those that did not are tried once more, unless
    /// somebody said that they are too big.
    fn round(&mut self, sizes: &[u32], stop: &dyn Fn() -> bool) -> io::Result<Vec<u32>> {
        let mut arrived = Vec::new();
        let mut open = sizes.to_vec();
        for _ in 0..2 {
            let mut sent = Vec::new();
            for size in std::mem::take(&mut open) {
                let payload = usize::try_from(size.saturating_sub(self.headers));
                self.echoes.resize(payload.unwrap_or_default());
                self.next += 1;
                match self.echoes.send(self.next, None) {
                    Ok(_) => sent.push((self.next, size)),
                    Err(error) if error.raw_os_error() == Some(TOO_LONG) => {}
                    Err(error) => return Err(error),
                }
            }
            let until = clock::now() + self.timeout;
            let mut heard = Vec::new();
            while !sent.is_empty() && clock::now() < until && !stop() {
                self.echoes.wait(GLANCE)?;
                self.echoes.hear(&mut heard)?;
                for heard in heard.drain(..) {
                    Self::judge(&heard, &mut sent, &mut arrived);
                }
            }
            open = sent.into_iter().map(|(_, size)| size).collect();
            // What is larger than what somebody called too big need not be tried again.
            open.retain(|size| self.hint().is_none_or(|mtu| *size <= mtu));
            if open.is_empty() {
                break;
            }
        }
        Ok(arrived)
    }

    fn judge(heard: &Heard, sent: &mut Vec<(u16, u32)>, arrived: &mut Vec<u32>) {
        let Some(at) = sent.iter().position(|(seq, _)| *seq == heard.seq) else { return };
        match &heard.what {
            What::Reply => arrived.push(sent.remove(at).1),
            What::Unreached(_) | What::Closed | What::Expired => {
                sent.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a way that carries `mtu`, and counts rounds.
    fn found(floor: u32, most: u32, mtu: u32) -> (u32, usize) {
        let mut search = Search { low: floor, high: most, hint: None };
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
    fn the_search_ends_at_the_byte() {
        for most in [577, 578, 1_400, 1_500, 9_000, 65_535] {
            for mtu in [576, 577, 1_280, 1_372, 1_492, 8_999, 65_534] {
                if mtu < most {
                    let (low, rounds) = found(576, most, mtu);
                    assert_eq!(low, mtu);
                    assert!(rounds <= 6, "{most} {mtu}: {rounds}");
                }
            }
        }
    }

    #[test]
    fn a_hint_is_tried_with_its_neighbour() {
        let mut search = Search { low: 576, high: 9_000, hint: Some(1_400) };
        assert_eq!(search.sizes(), [1_400, 1_401]);
        search.arrived(1_400);
        search.missing(1_401);
        search.hint = None;
        assert!(search.sizes().is_empty());
        // Out of range it counts for nothing.
        let odd = Search { low: 576, high: 600, hint: Some(9_000) };
        assert!(odd.sizes().iter().all(|size| (577..600).contains(size)));
    }

    #[test]
    fn answers_that_contradict_end_it_too() {
        let mut search = Search { low: 576, high: 700, hint: None };
        search.arrived(900);
        assert!((search.low, search.high) == (900, 901) && search.sizes().is_empty());
        search.missing(100);
        assert_eq!(search.low, 900);
    }
}
