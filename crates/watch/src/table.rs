//! All connections, by their cookies.

use crate::select::{Selection, Sort};
use crate::track::{Track, rates};
use host::sock_diag::Connection;
use std::cmp::Ordering;
use std::collections::HashMap;

/// What is known of every connection of the host.
#[derive(Debug, Default)]
pub(crate) struct Table {
    tracks: HashMap<u64, Track>,
    look: u64,
    t_s: f64,
}

impl Table {
    /// Another look begins, `t_s` seconds after the first.
    pub(crate) fn begin(&mut self, t_s: f64) {
        self.look += 1;
        self.t_s = t_s;
    }

    /// One connection in it.
    pub(crate) fn see(&mut self, connection: &Connection<'_>) {
        let (look, t_s) = (self.look, self.t_s);
        match self.tracks.get_mut(&connection.cookie) {
            // The kernel may tell one twice.
            Some(track) if track.look == look => {}
            Some(track) => track.see(look, t_s, connection),
            None => {
                self.tracks.insert(connection.cookie, Track::new(look, t_s, connection));
            }
        }
    }

    /// It is over: what was not in it has ended.
    pub(crate) fn end(&mut self) {
        let look = self.look;
        self.tracks.retain(|_, track| track.look == look);
    }

    /// Connections of the host.
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

    /// Those that are wanted, but for their owners.
    pub(crate) fn matching(&self, selection: &Selection) -> impl Iterator<Item = (u64, &Track)> {
        self.all().filter(move |(_, track)| {
            selection.takes_ends(track.local, track.remote)
                && (selection.pid.is_none() || track.wanted == Some(true))
                && (!selection.busy || track.has_moved())
        })
    }
}

/// The first `top` of them in an order.
pub(crate) fn first(mut all: Vec<(u64, &Track)>, sort: Sort, top: usize) -> Vec<(u64, &Track)> {
    let order = |a: &(u64, &Track), b: &(u64, &Track)| compare(sort, a, b);
    if top < all.len() {
        all.select_nth_unstable_by(top, order);
        all.truncate(top);
    }
    all.sort_unstable_by(order);
    all
}

/// Looks over which rates are compared: by one alone, rows would change places at
/// every look.
const SMOOTHED: usize = 5;

/// What it carried, both ways, over its last looks.
fn rate(track: &Track) -> u64 {
    let from = track.history.len().saturating_sub(SMOOTHED);
    let rates = track.history.get(from).and_then(|before| rates(before, &track.now));
    rates.map_or(0, |(sent, received)| sent.bps().saturating_add(received.bps()))
}

/// Largest first; of equals what carries more, then what began earlier, so that
/// rows that say nothing new stay where they are.
fn compare(sort: Sort, a: &(u64, &Track), b: &(u64, &Track)) -> Ordering {
    let key = |track: &Track| match sort {
        Sort::Rate => 0.0,
        Sort::Rtt => f64::from(track.now.sent.rtt_us),
        // Of this interval first, and then of those before it.
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
