//! A connection as a measurement, from where it was seen.

use crate::connection::Connection;
use crate::sampler::Sampler;
use capture::dissect::PacketDirection as Side;
use record::{Caveat, Direction, Measurement, Protocol, ReceiverSample, Stream, TestSpec};
use units::{BitRate, ByteCount};

/// A stream that was sampled.
#[derive(Debug)]
pub struct Sampled<'a> {
    /// Its connection at the end.
    pub connection: &'a Connection,
    /// Its samples.
    pub sampler: Sampler,
    /// Whether its sender is known to have had data at all times, as a test's does.
    pub is_bulk: bool,
    /// What the capture as a whole hides of it.
    pub caveats: Vec<Caveat>,
}

/// What a capture of a connection does not show of the data of `direction`.
#[must_use]
pub fn caveats(connection: &Connection, direction: Side) -> Vec<Caveat> {
    let (data, _) = connection.pair(direction);
    if connection.is_one_way() {
        let has_data = data.packets > 0;
        return vec![if has_data { Caveat::DataOnly } else { Caveat::AcknowledgementsOnly }];
    }
    let receiver = direction.reverse();
    let scale_at_least = connection.proven_scale(receiver).filter(|scale| *scale > 0);
    Vec::from_iter(connection.lacks_syn(receiver).then_some(Caveat::NoHandshake { scale_at_least }))
}

/// What a test was asked for, where the capture shows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requested<'a> {
    /// The congestion control.
    pub congestion: Option<&'a str>,
    /// The rate of each stream (`-b`).
    pub rate: Option<BitRate>,
    /// The pacing rate of each socket (`--fq-rate`).
    pub pacing: Option<BitRate>,
    /// The size of the socket buffers (`-w`).
    pub window: Option<ByteCount>,
}

/// The measurement of streams that ran at the same time, in the same direction, to
/// `target`. Where the sender's view is not known, its samples are left out: they would show
/// the ACKs of the host that captures, with an RTT of nothing.
#[must_use]
pub fn measurement(
    target: (&str, u16),
    requested: Requested<'_>,
    streams: Vec<Sampled<'_>>,
    notes: Vec<String>,
) -> Measurement {
    let started = streams.iter().map(|stream| stream.connection.first_ns).min().unwrap_or(0);
    let mut spec = TestSpec {
        target: target.0.to_owned(),
        port: target.1,
        protocol: Protocol::Tcp,
        direction: Direction::Forward,
        streams: u32::try_from(streams.len()).unwrap_or(u32::MAX),
        congestion: requested.congestion.map(str::to_owned),
        rate_bps: requested.rate,
        fq_rate_bps: requested.pacing,
        window_bytes: requested.window,
        ..TestSpec::default()
    };
    let mut all = Vec::new();
    for (id, mut sampled) in (1..).zip(streams) {
        let (direction, point) = (sampled.sampler.direction(), sampled.sampler.point());
        sampled.sampler.finish(sampled.connection);
        let activity = sampled.sampler.activity().map(|(activity, _)| activity);
        let segment_sizes = sampled.sampler.segment_sizes(sampled.connection);
        sampled.caveats.extend(caveats(sampled.connection, direction));
        let has_sender = sampled.sampler.has_sender();
        let (mut sender, receiver) = sampled.sampler.into_samples();
        let is_bbr = requested.congestion.is_some_and(|name| name.starts_with("bbr"));
        for sample in &mut sender {
            sample.pacing_rate_bps = sample.pacing_rate_bps.filter(|_| !is_bbr);
            sample.max_pacing_rate_bps = requested.pacing.map(BitRate::bps);
        }
        // Otherwise all that was acknowledged would seem to be read at that moment, which only
        // the receiver knows.
        let shows_reader = !has_sender || window_shrinks(&receiver);
        let seconds = receiver.last().map_or(0.0, |sample| sample.t_s);
        spec.seconds = spec.seconds.max(seconds);
        let retransmits = sampled.connection.retransmissions(direction).total();
        all.push(Stream {
            id,
            watched: !sampled.is_bulk,
            captured: Some(point),
            caveats: sampled.caveats,
            activity,
            segment_sizes,
            congestion: requested.congestion.map(str::to_owned),
            sent_bytes: sender.last().map_or(0, |sample| sample.written_bytes),
            received_bytes: receiver.last().map_or(0, |sample| sample.received_bytes),
            sent_seconds: seconds,
            received_seconds: seconds,
            retransmits: Some(u64::from(retransmits)),
            sender: if has_sender { sender } else { Vec::new() },
            receiver: if shows_reader { receiver } else { Vec::new() },
            ..Stream::default()
        });
    }
    Measurement {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: started / 1_000_000_000,
        spec,
        peer: "capture".to_owned(),
        streams: all,
        notes,
        ..Measurement::default()
    }
}

/// Whether the window was well below what it had been before for a good part of the time: then
/// data that the receiver had not read took its place.
fn window_shrinks(samples: &[ReceiverSample]) -> bool {
    const WELL_BELOW: f64 = 0.8;
    const PART: f64 = 0.2;
    let (mut largest, mut below) = (0, 0_u32);
    for window in samples.iter().filter_map(|sample| sample.window_bytes) {
        largest = largest.max(window);
        below += u32::from((window as f64) < WELL_BELOW * largest as f64);
    }
    f64::from(below) > PART * samples.len() as f64
}
