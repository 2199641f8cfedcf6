//! The TCP streams of a capture file: one pass over all of them, and a second one that
//! samples those to explain.

use super::reading::{self, Capture};
use crate::console::Console;
use capture::dissect::{Direction, FlowKey};
use clap::ValueEnum;
use perf::StopFlag;
use record::Measurement;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use tcp_analysis::iperf3::{Control, Parameters, cookie};
use tcp_analysis::{
    CapturePoint, Connection, Rules, Sampled, Sampler, Streams, Vantage, measurement,
};

/// The version of Wireshark whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum RulesArg {
    /// Wireshark 3.7 to 4.0
    #[value(name = "wireshark-4.0")]
    Wireshark40,
    /// Wireshark 4.4
    #[default]
    #[value(name = "wireshark-4.4")]
    Wireshark44,
}

impl RulesArg {
    pub(super) fn rules(self) -> Rules {
        match self {
            RulesArg::Wireshark40 => Rules::Wireshark40,
            RulesArg::Wireshark44 => Rules::Wireshark44,
        }
    }
}

/// Connections of iperf3 that are followed for a test's parameters.
const MOST_CONTROLS: usize = 256;

/// Payload from which a stream is worth explaining.
const LEAST_PAYLOAD: u64 = 100_000;

/// A capture with its streams.
pub(crate) struct Analysis {
    pub(super) capture: Capture,
    pub(super) streams: Streams,
    controls: HashMap<u32, Control>,
    /// Parameters of the iperf3 tests that began in the capture.
    pub(crate) tests: Vec<Parameters>,
}

/// Reads and analyses a file.
///
/// # Errors
/// One line: the file cannot be opened, or is no capture.
pub(crate) fn analyse(
    path: &Path,
    rules: RulesArg,
    stop: &StopFlag,
    console: &mut Console,
) -> Result<Analysis, String> {
    let mut streams = Streams::new(rules.rules());
    let mut controls: HashMap<u32, Control> = HashMap::new();
    let mut tests = Vec::new();
    let capture = reading::read_segments(path, stop, console, |packet, stream, segment| {
        streams.add(stream, packet.number, packet.time_ns, segment);
        let begins = controls.len() < MOST_CONTROLS && cookie(segment.payload).is_some();
        if begins || !controls.is_empty() {
            let control = if begins {
                Some(controls.entry(stream.number).or_default())
            } else {
                controls.get_mut(&stream.number)
            };
            if let Some(control) = control
                && streams.get(stream.number).is_some_and(|(_, it)| {
                    it.client().is_none_or(|client| client == segment.direction)
                })
                && let Some(parameters) = control.add(segment)
            {
                tests.push(parameters);
            }
        }
    })?;
    Ok(Analysis { capture, streams, controls, tests })
}

/// A stream that was explained: its number and what was measured.
pub(crate) struct Explained {
    pub(crate) stream: u32,
    pub(crate) measurement: Measurement,
}

impl Analysis {
    /// The largest streams by payload that are worth explaining, at most `most`.
    pub(crate) fn largest(&self, most: usize) -> Vec<u32> {
        let mut all: Vec<(u64, u32)> = self
            .streams
            .iter()
            .map(|(number, _, connection)| {
                (connection.traffic(connection.data_direction()).2, number)
            })
            .filter(|(payload, _)| *payload >= LEAST_PAYLOAD)
            .collect();
        all.sort_unstable_by_key(|(payload, number)| (std::cmp::Reverse(*payload), *number));
        all.into_iter().take(most).map(|(_, number)| number).collect()
    }

    /// Reads the file again and measures `wanted` as seen from where it was captured.
    ///
    /// # Errors
    /// As [`analyse`].
    pub(crate) fn explain(
        &self,
        path: &Path,
        wanted: &[u32],
        stop: &StopFlag,
        console: &mut Console,
    ) -> Result<Vec<Explained>, String> {
        let mut samplers: HashMap<u32, (Connection, Sampler)> = HashMap::new();
        for number in wanted {
            if let Some((_, connection)) = self.streams.get(*number) {
                let direction = connection.data_direction();
                let sampler = Sampler::new(direction, connection.duration_ns());
                samplers.insert(*number, (Connection::default(), sampler));
            }
        }
        let rules = Rules::default();
        reading::read_segments(path, stop, console, |packet, stream, segment| {
            if let Some((connection, sampler)) = samplers.get_mut(&stream.number) {
                let place = tcp_analysis::PacketPosition {
                    packet: packet.number,
                    time_ns: packet.time_ns,
                    reuses_ports: stream.reuses_ports,
                };
                let found = connection.add(rules, place, segment);
                sampler.add(connection, packet.time_ns, segment, &found);
            }
        })?;
        let each = wanted.iter().filter_map(|number| {
            let (connection, sampler) = samplers.remove(number)?;
            let (key, _) = self.streams.get(*number)?;
            Some(self.measured(*number, key, &connection, sampler))
        });
        Ok(each.collect())
    }

    fn measured(
        &self,
        stream: u32,
        key: &FlowKey,
        connection: &Connection,
        sampler: Sampler,
    ) -> Explained {
        let direction = connection.data_direction();
        let receiver = end(key, direction.reverse());
        let test = self.test_of(stream);
        let congestion =
            test.and_then(|test| test.json.get("congestion")).and_then(|name| name.as_str());
        let mut notes = vec![format!("captured {}", place(&connection.vantage(direction)))];
        let counts = connection.retransmissions(direction);
        if counts.total() > 0 {
            let kinds = tcp_analysis::Kind::ALL.iter().filter(|kind| counts.of(**kind) > 0);
            let texts: Vec<String> = kinds
                .map(|kind| {
                    format!(
                        "{} {} (first: packet {})",
                        counts.of(*kind),
                        kind.name().replace('_', " "),
                        counts.first_packet[*kind as usize]
                    )
                })
                .collect();
            notes.push(format!("retransmissions: {}", texts.join(", ")));
        }
        let sampled = Sampled { connection, sampler, is_bulk: self.controls.contains_key(&stream) };
        let target = (receiver.ip().to_string(), receiver.port());
        let measurement = measurement((&target.0, target.1), congestion, vec![sampled], notes);
        Explained { stream, measurement }
    }

    /// The iperf3 test that a stream belongs to.
    pub(crate) fn test_of(&self, stream: u32) -> Option<&Parameters> {
        let cookie = self.controls.get(&stream)?.cookie()?;
        self.tests.iter().find(|test| test.cookie == cookie)
    }
}

/// Address and port of the side that sends in `direction`.
pub(super) fn end(key: &FlowKey, direction: Direction) -> SocketAddr {
    match direction {
        Direction::AToB => SocketAddr::new(key.a_address(), key.a_port),
        Direction::BToA => SocketAddr::new(key.b_address(), key.b_port),
    }
}

/// Where a capture was made, in words.
pub(super) fn place(vantage: &Vantage) -> String {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |it| units::percent_with(it, 2));
    match vantage.point {
        CapturePoint::Sender => "at the sender".to_owned(),
        CapturePoint::Receiver => "at the receiver".to_owned(),
        CapturePoint::Between => format!(
            "between the ends: {} of the RTT is on the sender's side (± {})",
            share(vantage.position),
            share(vantage.uncertainty)
        ),
        CapturePoint::Unknown => "at an unknown point of the path".to_owned(),
    }
}
