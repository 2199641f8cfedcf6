//! What two longhauls tell each other beyond iperf3: one optional key in the
//! parameters (the client's version) and one in the results (samples, CPU,
//! notes). A real iperf3 looks keys up by name and never sees either.

use record::{Datagrams, ReceiverSample, Sample};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::fmt;

/// Most samples taken from a peer for one stream.
const MOST_ROWS: usize = 6_000;

/// Which end of a test someone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Answers tests.
    Server,
    /// Asks for them.
    Client,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Who::Server => "server",
            Who::Client => "client",
        })
    }
}

/// How our client announces itself in the parameters.
pub(crate) fn announcement() -> Value {
    json!({ "version": crate::VERSION })
}

/// The version in a peer's announcement or results, shortened to what may be printed.
pub(crate) fn announced_version(value: &Value) -> Option<String> {
    let version = value.get("version")?.as_str()?;
    Some(version.chars().filter(char::is_ascii_graphic).take(32).collect())
}

/// The results' extra.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Extra {
    pub(crate) version: String,
    /// Most CPU one sending thread of that end used, as a share of one core.
    pub(crate) sender_cpu: Option<f64>,
    /// How long that thread waited for a core, likewise.
    pub(crate) sender_core_wait: Option<f64>,
    /// Most CPU one receiving thread of that end used, likewise.
    pub(crate) receiver_cpu: Option<f64>,
    /// How long that thread waited for a core, likewise.
    pub(crate) receiver_core_wait: Option<f64>,
    /// What that end noticed.
    pub(crate) notes: Vec<String>,
    pub(crate) streams: Vec<ExtraStream>,
}

/// One stream's samples, as columns: each key is written once.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ExtraStream {
    pub(crate) id: u32,
    pub(crate) congestion: Option<String>,
    /// What that end received; UDP only.
    pub(crate) datagrams: Option<Datagrams>,
    sender: Value,
    receiver: Value,
}

impl ExtraStream {
    pub(crate) fn new(
        id: u32,
        congestion: Option<String>,
        datagrams: Option<Datagrams>,
        sender: &[Sample],
        receiver: &[ReceiverSample],
    ) -> Self {
        let (sender, receiver) = (columns(sender), columns(receiver));
        ExtraStream { id, congestion, datagrams, sender, receiver }
    }

    /// The samples; what cannot be read is left out.
    pub(crate) fn samples(&self) -> (Vec<Sample>, Vec<ReceiverSample>) {
        (rows(&self.sender), rows(&self.receiver))
    }
}

impl Extra {
    /// Reads a peer's extra; `None` where it is not one.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let mut extra: Extra = serde_json::from_value(value.clone()).ok()?;
        extra.version = announced_version(value)?;
        for cpu in [
            &mut extra.sender_cpu,
            &mut extra.sender_core_wait,
            &mut extra.receiver_cpu,
            &mut extra.receiver_core_wait,
        ] {
            *cpu = cpu.filter(|share| share.is_finite() && *share >= 0.0);
        }
        for datagrams in extra.streams.iter_mut().filter_map(|stream| stream.datagrams.as_mut()) {
            // One for each length up to 8, and for each power of two above.
            datagrams.loss_bursts.truncate(70);
        }
        // A peer's words go to our terminal: few, short, without control characters.
        extra.notes.truncate(16);
        for note in &mut extra.notes {
            *note = note.chars().filter(|c| !c.is_control()).take(300).collect();
        }
        Some(extra)
    }
}

fn columns<T: Serialize>(samples: &[T]) -> Value {
    let mut table = Map::new();
    for sample in samples {
        if let Ok(Value::Object(row)) = serde_json::to_value(sample) {
            for (key, value) in row {
                if let Value::Array(column) = table.entry(key).or_insert(Value::Array(Vec::new())) {
                    column.push(value);
                }
            }
        }
    }
    Value::Object(table)
}

fn rows<T: DeserializeOwned>(table: &Value) -> Vec<T> {
    let Value::Object(table) = table else { return Vec::new() };
    let lengths = table.values().filter_map(|column| Some(column.as_array()?.len()));
    let count = lengths.min().unwrap_or(0).min(MOST_ROWS);
    (0..count)
        .filter_map(|at| {
            let row: Map<String, Value> = table
                .iter()
                .filter_map(|(key, column)| Some((key.clone(), column.get(at)?.clone())))
                .collect();
            serde_json::from_value(Value::Object(row)).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_as_columns() {
        let samples: Vec<Sample> = (0..3u32)
            .map(|i| Sample {
                t_s: f64::from(i),
                min_rtt_us: (i > 0).then_some(i),
                ..Sample::default()
            })
            .collect();
        let sent = Extra {
            version: "9".into(),
            streams: vec![ExtraStream::new(1, None, None, &samples, &[])],
            ..Extra::default()
        };
        let back = Extra::read(&serde_json::to_value(&sent).unwrap()).unwrap();
        assert_eq!(back.streams[0].samples(), (samples, Vec::new()));
    }

    #[test]
    fn a_strange_extra_is_passed_over() {
        for value in [
            json!(null),
            json!(7),
            json!({"version": 7}),
            json!({"streams": 1, "version": "1"}),
            json!({"version": "1", "streams": [{"id": -4}]}),
        ] {
            assert!(Extra::read(&value).is_none(), "{value}");
        }
        let value = json!({"version": "1\u{1b}[2J", "streams": [
            {"id": 1, "sender": {"t_s": [0, "x"], "mss_bytes": 5}, "receiver": [1]}]});
        let extra = Extra::read(&value).unwrap();
        assert_eq!(extra.version, "1[2J");
        assert_eq!(extra.streams[0].samples(), (Vec::new(), Vec::new()));
    }
}
