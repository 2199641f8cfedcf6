//! Reads recordings of `longhaul watch`: lines of JSON.

use crate::{LoadError, shown};
use host::file::open_regular;
use record::{ConnectionId, ConnectionSample, RECORDING_SCHEMA, RecordingHead, RecordingLine};
use serde::Deserialize;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Maximum length of a line, bytes.
const MAX_LINE: u64 = 64 << 10;

/// Maximum number of samples of a connection; beyond it, every second one is
/// discarded.
const MAX_SAMPLES: usize = 20_000;

/// Maximum number of samples of all connections, a few hundred bytes each; beyond
/// it, every second one of each connection is discarded.
const MAX_TOTAL_SAMPLES: usize = 500_000;

/// Maximum number of connections: those of a busy server in a day.
const MAX_CONNECTIONS: usize = 200_000;

/// Samples of a host's connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Start time, interval and host.
    pub head: RecordingHead,
    /// The connections, in the order of their first lines.
    pub connections: Vec<RecordedConnection>,
}

/// One connection of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedConnection {
    /// Addresses and owner.
    pub who: ConnectionId,
    /// Its samples, oldest first.
    pub samples: Vec<ConnectionSample>,
}

/// Whether the first line of the file at `path` is that of a recording; `false` if the
/// file cannot be read.
#[must_use]
pub fn is_recording(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let Ok(file) = open_regular(path) else { return false };
    let mut line = Vec::new();
    let read = BufReader::new(file.take(MAX_LINE)).read_until(b'\n', &mut line);
    let head = serde_json::from_slice::<Head>(&line);
    read.is_ok() && head.is_ok_and(|head| head.schema.starts_with("longhaul.recording/"))
}

/// Loads a recording. An incomplete last line is ignored: the program was killed while
/// writing it.
///
/// # Errors
/// [`LoadError`], with the number of an invalid line.
pub fn load_recording(path: &Path) -> Result<Recording, LoadError> {
    let unreadable = |source: io::Error| LoadError::Read { path: path.to_owned(), source };
    let file = open_regular(path).map_err(|error| unreadable(error.into()))?;
    read_recording(path, BufReader::new(file))
}

/// Reads a recording from an open file; `path` is only used in errors.
///
/// # Errors
/// As [`load_recording`].
pub fn read_recording(path: &Path, mut file: impl BufRead) -> Result<Recording, LoadError> {
    let unreadable = |source: io::Error| LoadError::Read { path: path.to_owned(), source };
    let mut total = 0;
    let (mut text, mut number) = (Vec::new(), 0u64);
    let mut head: Option<RecordingHead> = None;
    let mut connections: Vec<RecordedConnection> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    loop {
        text.clear();
        number += 1;
        let length = (&mut file).take(MAX_LINE).read_until(b'\n', &mut text).map_err(unreadable)?;
        let wrong = |why: String| LoadError::Line { path: path.to_owned(), number, why };
        if text.last() != Some(&b'\n') {
            if length as u64 == MAX_LINE {
                return Err(wrong("longer than 64 KiB".to_owned()));
            }
            // The end of the file, or an incomplete last line.
            break;
        }
        if head.is_none() {
            let first: RecordingHead =
                serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
            if first.schema != RECORDING_SCHEMA {
                let schema = shown(&first.schema);
                return Err(LoadError::Version { path: path.to_owned(), schema });
            }
            head = Some(first);
            continue;
        }
        match serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))? {
            RecordingLine::Connection(who) => match by_id.get(&who.id) {
                Some(index) => {
                    if let Some(known) = connections.get_mut(*index) {
                        known.who = who;
                    }
                }
                None if connections.len() >= MAX_CONNECTIONS => {
                    return Err(wrong(format!("more than {MAX_CONNECTIONS} connections")));
                }
                None => {
                    by_id.insert(who.id.clone(), connections.len());
                    connections.push(RecordedConnection { who, samples: Vec::new() });
                }
            },
            RecordingLine::Sample { id, seen } => {
                let connection = by_id.get(&id).and_then(|index| connections.get_mut(*index));
                let Some(connection) = connection else {
                    return Err(wrong("sample of an unknown connection".to_owned()));
                };
                let before = connection.samples.len();
                push(&mut connection.samples, seen);
                total = (total + connection.samples.len()).saturating_sub(before);
                if total > MAX_TOTAL_SAMPLES {
                    total = thin(&mut connections);
                }
            }
        }
    }
    let head = head.ok_or_else(|| LoadError::Line {
        path: path.to_owned(),
        number: 1,
        why: "the file is empty".to_owned(),
    })?;
    Ok(Recording { head, connections })
}

/// Appends a sample unless it goes back in time; halves the samples beyond the limit.
fn push(all: &mut Vec<ConnectionSample>, sample: ConnectionSample) {
    if all.last().is_some_and(|last| last.sent.t_s >= sample.sent.t_s) {
        return;
    }
    if all.len() >= MAX_SAMPLES {
        halve(all);
    }
    all.push(sample);
}

/// Discards every second sample, never the first.
fn halve(all: &mut Vec<ConnectionSample>) {
    let mut keep = false;
    all.retain(|_| {
        keep = !keep;
        keep
    });
}

/// Halves the samples of every connection and returns how many are left.
fn thin(connections: &mut [RecordedConnection]) -> usize {
    for connection in &mut *connections {
        halve(&mut connection.samples);
        connection.samples.shrink_to_fit();
    }
    connections.iter().map(|connection| connection.samples.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{HostFacts, Sample};
    use std::fs;

    fn lines() -> Vec<String> {
        let head = RecordingHead {
            schema: RECORDING_SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            started_unix_s: 1_700_000_000,
            interval_s: 1.0,
            host: HostFacts::default(),
        };
        let who = |program: Option<&str>| ConnectionId {
            id: "1f".to_owned(),
            local: "10.0.0.1:5000".to_owned(),
            remote: "10.0.0.2:80".to_owned(),
            pid: program.map(|_| 7),
            program: program.map(str::to_owned),
            uid: 0,
            congestion: Some("cubic".to_owned()),
        };
        let sample = |t_s: f64| RecordingLine::Sample {
            id: "1f".to_owned(),
            seen: ConnectionSample {
                sent: Sample { t_s, ..Sample::default() },
                ..ConnectionSample::default()
            },
        };
        let json = |line: &RecordingLine| serde_json::to_string(line).unwrap();
        vec![
            serde_json::to_string(&head).unwrap(),
            json(&RecordingLine::Connection(who(None))),
            json(&sample(0.0)),
            json(&RecordingLine::Connection(who(Some("sender")))),
            json(&sample(1.0)),
            json(&sample(0.5)),
        ]
    }

    fn loaded(text: &str) -> (bool, Result<Recording, String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.ndjson");
        fs::write(&path, text).unwrap();
        (is_recording(&path), load_recording(&path).map_err(|error| error.to_string()))
    }

    #[test]
    fn a_recording_is_read_back() {
        let text = lines().join("\n") + "\n";
        let (is_one, recording) = loaded(&text);
        let recording = recording.unwrap();
        assert!(is_one && recording.connections.len() == 1);
        let one = &recording.connections[0];
        assert_eq!(one.who.program.as_deref(), Some("sender"), "the owner became known");
        let times: Vec<f64> = one.samples.iter().map(|sample| sample.sent.t_s).collect();
        assert_eq!(times, [0.0, 1.0], "time does not go back");
        // Cut off within the last line, as when killed: the other lines are read.
        for cut in [1, 10, 200] {
            let recording = loaded(&text[..text.len() - cut]).1.unwrap();
            assert_eq!(recording.connections[0].samples.len(), 2);
        }
    }

    #[test]
    fn invalid_files_are_refused_with_the_line_number() {
        let good = lines();
        let joined = |lines: &[&str]| lines.join("\n") + "\n";
        let newer = good[0].replace("recording/1", "recording/2");
        for (text, expected) in [
            (String::new(), "is empty"),
            (joined(&["{}"]), "line 1"),
            (joined(&[&newer, &good[1]]), "the version of longhaul that wrote it"),
            (joined(&[&good[0], "{\"other\":1}"]), "line 2"),
            (joined(&[&good[0], &good[2]]), "unknown connection"),
            (joined(&[&good[0], &"x".repeat(70_000)]), "64 KiB"),
            (joined(&["\0\0"]), "line 1"),
        ] {
            let error = loaded(&text).1.unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{expected}: {error}");
        }
        assert!(loaded(&joined(&[&newer])).0 && !loaded("{\"schema\":\"longhaul.test/1\"}\n").0);
        assert!(!is_recording(Path::new("/nonexistent")));
        assert!(load_recording(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_long_recording_stays_bounded() {
        let mut all = Vec::new();
        for second in 0..MAX_SAMPLES as u32 * 3 {
            let sent = Sample { t_s: f64::from(second), ..Sample::default() };
            push(&mut all, ConnectionSample { sent, ..ConnectionSample::default() });
        }
        assert!(all.len() <= MAX_SAMPLES && all[0].sent.t_s == 0.0);
    }
}
