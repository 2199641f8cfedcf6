//! Explains a recording of `longhaul watch --record`.

use super::{Explained, unreadable};
use crate::{Field, Problem};
use record::{ConnectionId, Finding};
use report::untrusted;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use store::RecordedConnection;
use watch::Transfer;

/// The version of [`ExplainedRecording`] in JSON. Version 2 has the findings of
/// `longhaul.test/2`.
const SCHEMA: &str = "longhaul.explained-recording/2";

/// The connections of a recording.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedRecording {
    /// Name and version of the document.
    pub schema: &'static str,
    /// The version of Longhaul that recorded it.
    pub version: String,
    /// Its start, seconds since 1970.
    pub started_unix_s: u64,
    /// The interval between samples, in seconds.
    pub interval_s: f64,
    /// Those with traffic.
    pub connections: Vec<ExplainedConnection>,
}

/// A connection of a recording.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedConnection {
    /// Addresses and owner.
    #[serde(flatten)]
    pub who: ConnectionId,
    /// Its first sample, in seconds since the recording began.
    pub from_s: f64,
    /// Its last sample.
    pub to_s: f64,
    /// Payload, in bytes.
    pub bytes: u64,
    /// True if this host sent more than it received.
    pub sends: bool,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Its limit.
    #[serde(flatten)]
    pub finding: Finding,
}

/// Explains every connection, or selects one.
pub(super) fn explain(path: &Path, which: Option<&str>) -> Result<Explained, Problem> {
    let recording = store::load_recording(path).map_err(unreadable)?;
    let head = &recording.head;
    let mut all = with_traffic(&recording);
    if all.is_empty() {
        return Err(unreadable(format!(
            "{} contains no connection with traffic; record for longer",
            path.display()
        )));
    }
    if let Some(which) = which {
        let (_, transfer) = all.swap_remove(select(&all, which)?);
        return Ok(Explained::Measurement(Box::new(transfer.measurement)));
    }
    Ok(Explained::Recording(ExplainedRecording {
        schema: SCHEMA,
        version: head.version.clone(),
        started_unix_s: head.started_unix_s,
        interval_s: head.interval_s,
        connections: all.into_iter().map(|(one, transfer)| of(one, transfer)).collect(),
    }))
}

/// The connections with traffic.
fn with_traffic(recording: &store::Recording) -> Vec<(&RecordedConnection, Transfer)> {
    let transfer =
        |one: &RecordedConnection| watch::transfer(&one.who, &one.samples, Some(&recording.head));
    recording.connections.iter().filter_map(|one| Some((one, transfer(one)?))).collect()
}

/// The connections with traffic, the largest first, or the one that was selected, each with the
/// lower one of its ports.
pub(crate) fn transfers(
    path: &Path,
    which: Option<&str>,
) -> Result<Vec<(super::Transfer, Option<u16>)>, Problem> {
    let recording = store::load_recording(path).map_err(unreadable)?;
    let mut all = with_traffic(&recording);
    if let Some(which) = which {
        let selected = select(&all, which)?;
        all = vec![all.swap_remove(selected)];
    }
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.measurement.received()));
    let of = |(one, transfer): (&RecordedConnection, Transfer)| {
        let ends = [&one.who.local, &one.who.remote].map(|end| end.parse::<SocketAddr>().ok());
        let port = ends.into_iter().flatten().map(|end| end.port()).min();
        let name = format!("{} to {}", one.who.local, one.who.remote);
        (super::Transfer { name, measurement: transfer.measurement }, port)
    };
    Ok(all.into_iter().take(super::MAX_TRANSFERS).map(of).collect())
}

/// The place of a connection by its number from 1, its id, or its local or remote address.
fn select(all: &[(&RecordedConnection, Transfer)], which: &str) -> Result<usize, Problem> {
    let number = which.parse().ok().and_then(|number: usize| number.checked_sub(1));
    let named = |who: &ConnectionId| who.id == which || who.remote == which || who.local == which;
    let place = number.filter(|place| *place < all.len());
    place.or_else(|| all.iter().position(|(one, _)| named(&one.who))).ok_or_else(|| {
        let which = untrusted::excerpt(which, 60);
        let message = format!("the recording has no connection '{which}'");
        let accepted = format!("a number from 1 to {}, or HOST:PORT", all.len());
        Problem::field(Field::Connection, message, accepted)
    })
}

fn span(one: &RecordedConnection) -> (f64, f64) {
    let at =
        |sample: Option<&record::ConnectionSample>| sample.map_or(0.0, |sample| sample.sent.t_s);
    (at(one.samples.first()), at(one.samples.last()))
}

fn of(one: &RecordedConnection, transfer: Transfer) -> ExplainedConnection {
    let ((from_s, to_s), stream) = (span(one), transfer.measurement.streams.first());
    ExplainedConnection {
        who: one.who.clone(),
        from_s,
        to_s,
        bytes: transfer.measurement.received().bytes(),
        sends: stream.is_some_and(|stream| !stream.reverse),
        retransmits: stream.and_then(|stream| stream.retransmits),
        finding: transfer.finding,
    }
}
