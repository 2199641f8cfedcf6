//! All connections, by socket cookie.

use crate::select::{Selection, Sort};
use crate::track::{Track, rates};
use host::sock_diag::Connection;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The tracked connections of the host.
#[derive(Debug, Default)]
pub(crate) struct Table {
    tracks: HashMap<u64, Track>,
    poll: u64,
    t_s: f64,
}

impl Table {
    /// Starts a poll, `t_s` seconds after the first.
    pub(crate) fn begin(&mut self, t_s: f64) {
        self.poll += 1;
        self.t_s = t_s;
    }

    /// Takes in one connection of the current poll.
    pub(crate) fn update(&mut self, connection: &Connection<'_>) {
        let (poll, t_s) = (self.poll, self.t_s);
        match self.tracks.get_mut(&connection.cookie) {
            // A dump may contain a connection twice.
            Some(track) if track.poll == poll => {}
            Some(track) => track.update(poll, t_s, connection),
            None => {
                self.tracks.insert(connection.cookie, Track::new(poll, t_s, connection));
            }
        }
    }

    /// Ends a poll: connections that were not in it have ended.
    pub(crate) fn end(&mut self) {
        let poll = self.poll;
        self.tracks.retain(|_, track| track.poll == poll);
    }

    /// The number of connections of the host.
    pub(crate) fn len(&self) -> usize {
        self.tracks.len()
    }

    pub(crate) fn get(&self, cookie: u64) -> Option<&Track> {
        self.tracks.get(&cookie)
    }

    pub(crate) fn get_mut(&mut self, cookie: u64) -> Option<&mut Track> {
        self.tracks.get_mut(&cookie)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Track)> {
        self.tracks.iter().map(|(cookie, track)| (*cookie, track))
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Track> {
        self.tracks.values_mut()
    }

    /// The connections that match, apart from the text filter.
    pub(crate) fn matching(&self, selection: &Selection) -> impl Iterator<Item = (u64, &Track)> {
        self.all().filter(move |(_, track)| {
            selection.matches_addresses(track.local, track.remote)
                && (selection.pid.is_none() || track.wanted == Some(true))
                && (!selection.busy || track.is_active())
        })
    }
}

/// The first `top` connections in an order.
pub(crate) fn first(mut all: Vec<(u64, &Track)>, sort: Sort, top: usize) -> Vec<(u64, &Track)> {
    let order = |a: &(u64, &Track), b: &(u64, &Track)| compare(sort, a, b);
    if top < all.len() {
        all.select_nth_unstable_by(top, order);
        all.truncate(top);
    }
    all.sort_unstable_by(order);
    all
}

/// Samples over which rates are averaged for sorting, so that rows do not swap at
/// every poll.
const SORT_SAMPLES: usize = 5;

/// Its rate in both directions over the last samples.
fn rate(track: &Track) -> u64 {
    let from = track.history.len().saturating_sub(SORT_SAMPLES);
    let rates = track.history.get(from).and_then(|before| rates(before, &track.now));
    rates.map_or(0, |(sent, received)| sent.bps().saturating_add(received.bps()))
}

/// Largest first; ties by rate, then by length of history, so that rows keep their
/// places.
fn compare(sort: Sort, a: &(u64, &Track), b: &(u64, &Track)) -> Ordering {
    let key = |track: &Track| match sort {
        Sort::Rate => 0.0,
        Sort::Rtt => f64::from(track.now.sent.rtt_us),
        // Retransmissions of this interval first; ties by the total.
        Sort::Retransmits => {
            let total = track.now.sent.retransmits as f64;
            track.retransmits() as f64 + total / (total + 1.0) / 2.0
        }
        Sort::Limit => track.shares().map_or(0.0, |s| s.receive_window + s.send_buffer),
    };
    let (one, other) = (a.1, b.1);
    key(other)
        .total_cmp(&key(one))
        .then_with(|| rate(other).cmp(&rate(one)))
        .then_with(|| other.history.len().cmp(&one.history.len()))
        .then_with(|| a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests;
