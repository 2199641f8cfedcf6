//! What limited a transfer: samples in, a finding out.
//!
//! [`explain`] reads one [`Measurement`] and answers with one [`Finding`]: the
//! limit, the share of time by the sending kernel's own clocks, the goodput
//! that the limit's equation predicts, and one sentence with the remedy. Pure:
//! no I/O, no clock; it does not know where samples come from, and samples
//! that make no sense are left out, never trusted.
//!
//! | step | room |
//! |---|---|
//! | counters against time, over all streams | `curve` |
//! | where the ramp-up ends | `steady` |
//! | time by cause | `shares` |
//! | round trips, windows, loss, flatness over the steady part | `evidence` |
//! | whether losses come as a policer's do | `bucket` |
//! | which cause it was | `judge`, and `network` for what the clocks cannot tell |
//! | the same, where only the receiver tells | `receiver` |
//! | how sure that is | `confidence` |
//! | what the equation of that cause gives | `predict` |
//! | in plain words | `sentence`; of a connection that was only watched, `brief` |
//! | what would help, and how much | `remedy` |
//! | UDP, which has no clocks | `datagrams` |
//!
//! Beside that: what a load adds to round trips ([`latency`]), and what several
//! tests come to and whether two results differ ([`repeats`]).

mod brief;
mod bucket;
mod confidence;
mod curve;
mod datagrams;
mod evidence;
mod judge;
pub mod latency;
mod network;
mod overflow;
mod predict;
mod receiver;
mod remedy;
pub mod repeats;
mod sentence;
mod shares;
mod steady;

pub use remedy::Goal;
pub use shares::shares_between;

use evidence::Evidence;
use record::{Confidence, Direction, Finding, Limit, Measurement, Protocol};

/// Says what limited the transfer.
///
/// Of a test in both directions it explains what the client sent; the other
/// part is to be had from [`Measurement::one_way`].
///
/// `shares` are `None` where the sending kernel's clocks are not at hand for every
/// stream, and `limit` where the receiver cannot tell it either; throughput and
/// sentence are always there.
#[must_use]
pub fn explain(m: &Measurement) -> Finding {
    explain_for(m, Goal::of_path(m))
}

/// The same, with remedies for a path of which the rate and the round trip are
/// given, for want of a known path.
#[must_use]
pub fn explain_for(m: &Measurement, goal: Option<Goal>) -> Finding {
    let there;
    let m = if m.spec.direction == Direction::Both {
        there = m.one_way(false);
        &there
    } else {
        m
    };
    let evidence = Evidence::gather(m);
    if m.spec.protocol == Protocol::Udp {
        let (limit, sentence) = datagrams::explain(m, &evidence);
        return Finding {
            throughput_bps: evidence.goodput,
            average_bps: evidence.average,
            steady: evidence.steady,
            predicted_bps: None,
            equation: None,
            limit,
            confidence: limit.filter(|limit| *limit != Limit::Unknown).map(|_| Confidence::Likely),
            shares: None,
            min_rtt: None,
            loaded_rtt: None,
            sentence,
            remedies: Vec::new(),
        };
    }
    let shares = shares::over(m, evidence.steady.from_s, evidence.steady.to_s);
    let limit = match shares {
        Some(shares) => Some(judge::limit(m, &evidence, &shares)),
        None => receiver::limit(m, &evidence),
    };
    let prediction = limit.and_then(|limit| predict::goodput(limit, m, &evidence));
    let sentence = if judge::is_watched(m) {
        brief::of(limit, shares, prediction.as_ref(), m, &evidence)
    } else {
        sentence::of(limit, shares, prediction.as_ref(), m, &evidence)
    };
    let (predicted_bps, equation) = prediction.map(|p| (p.rate, p.equation)).unzip();
    Finding {
        throughput_bps: evidence.goodput,
        average_bps: evidence.average,
        steady: evidence.steady,
        predicted_bps,
        equation,
        limit,
        confidence: limit.and_then(|limit| confidence::of(limit, m, &evidence, shares.as_ref())),
        shares,
        min_rtt: evidence.min_rtt,
        loaded_rtt: evidence.loaded_rtt,
        sentence,
        remedies: limit
            .map_or_else(Vec::new, |limit| remedy::of(limit, goal.as_ref(), m, &evidence)),
    }
}
