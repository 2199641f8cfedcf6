//! Recordings of `longhaul watch`: lines of JSON, read one by one.

use crate::{LoadError, shown};
use record::{ConnectionId, RECORDING_SCHEMA, RecordingHead, RecordingLine, Seen};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line that is read, in bytes: far more than any look takes.
const LONGEST: u64 = 64 << 10;

/// Looks that are kept of a connection; of more, every second one goes.
const MOST_LOOKS: usize = 20_000;

/// What was seen of a host's connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// When, how often, on what host.
    pub head: RecordingHead,
    /// Its connections, in the order in which they came.
    pub connections: Vec<Recorded>,
}

/// One connection of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Which one.
    pub who: ConnectionId,
    /// The looks at it, oldest first.
    pub seen: Vec<Seen>,
}

/// Whether the file at `path` begins as a recording does. One that cannot be read
/// is none; reading it as anything else will say why.
#[must_use]
pub fn is_recording(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let Ok(file) = File::open(path) else { return false };
    let mut line = Vec::new();
    let read = BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line);
    let head = serde_json::from_slice::<Head>(&line);
    read.is_ok() && head.is_ok_and(|head| head.schema.starts_with("longhaul.recording/"))
}

/// Reads a recording. A last line that was broken off is left out: the program was
/// killed while it wrote.
///
/// # Errors
/// [`LoadError`], with the line that is wrong.
pub fn load_recording(path: &Path) -> Result<Recording, LoadError> {
    let unreadable = |source: io::Error| LoadError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let (mut text, mut number) = (Vec::new(), 0u64);
    let mut head: Option<RecordingHead> = None;
    let mut connections: Vec<Recorded> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    loop {
        text.clear();
        number += 1;
        let length = (&mut file).take(LONGEST).read_until(b'\n', &mut text).map_err(unreadable)?;
        let wrong = |why: String| LoadError::Line { path: path.to_owned(), number, why };
        if text.last() != Some(&b'\n') {
            if length as u64 == LONGEST {
                return Err(wrong("it is longer than 64 KiB".to_owned()));
            }
            // The end, or what was broken off there.
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
            RecordingLine::Connection(who) => match places.get(&who.id) {
                Some(place) => {
                    if let Some(known) = connections.get_mut(*place) {
                        known.who = who;
                    }
                }
                None => {
                    places.insert(who.id.clone(), connections.len());
                    connections.push(Recorded { who, seen: Vec::new() });
                }
            },
            RecordingLine::Look { id, seen } => {
                let place = places.get(&id).and_then(|place| connections.get_mut(*place));
                let Some(connection) = place else {
                    return Err(wrong("it is of a connection that was not told before".to_owned()));
                };
                keep(&mut connection.seen, seen);
            }
        }
    }
    let head = head.ok_or_else(|| LoadError::Line {
        path: path.to_owned(),
        number: 1,
        why: "there is nothing in it".to_owned(),
    })?;
    Ok(Recording { head, connections })
}

/// What goes back in time is left out; of too many looks every second one goes,
/// the first never.
fn keep(all: &mut Vec<Seen>, seen: Seen) {
    if all.last().is_some_and(|last| last.sent.t_s >= seen.sent.t_s) {
        return;
    }
    if all.len() >= MOST_LOOKS {
        let mut keep = false;
        all.retain(|_| {
            keep = !keep;
            keep
        });
    }
    all.push(seen);
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
        let look = |t_s: f64| RecordingLine::Look {
            id: "1f".to_owned(),
            seen: Seen { sent: Sample { t_s, ..Sample::default() }, ..Seen::default() },
        };
        let json = |line: &RecordingLine| serde_json::to_string(line).unwrap();
        vec![
            serde_json::to_string(&head).unwrap(),
            json(&RecordingLine::Connection(who(None))),
            json(&look(0.0)),
            json(&RecordingLine::Connection(who(Some("sender")))),
            json(&look(1.0)),
            json(&look(0.5)),
        ]
    }

    fn loaded(text: &str) -> (bool, Result<Recording, String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.ndjson");
        fs::write(&path, text).unwrap();
        (is_recording(&path), load_recording(&path).map_err(|error| error.to_string()))
    }

    #[test]
    fn what_was_recorded_is_read() {
        let text = lines().join("\n") + "\n";
        let (is_one, recording) = loaded(&text);
        let recording = recording.unwrap();
        assert!(is_one && recording.connections.len() == 1);
        let one = &recording.connections[0];
        assert_eq!(one.who.program.as_deref(), Some("sender"), "the owner became known");
        let times: Vec<f64> = one.seen.iter().map(|seen| seen.sent.t_s).collect();
        assert_eq!(times, [0.0, 1.0], "time does not go back");
        // Killed while it wrote: all but the last line is there, at any length.
        for cut in [1, 10, 200] {
            let recording = loaded(&text[..text.len() - cut]).1.unwrap();
            assert_eq!(recording.connections[0].seen.len(), 2);
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        let good = lines();
        let joined = |lines: &[&str]| lines.join("\n") + "\n";
        let newer = good[0].replace("recording/1", "recording/2");
        for (text, says) in [
            (String::new(), "nothing in it"),
            (joined(&["{}"]), "line 1"),
            (joined(&[&newer, &good[1]]), "the longhaul that wrote it"),
            (joined(&[&good[0], "{\"other\":1}"]), "line 2"),
            (joined(&[&good[0], &good[2]]), "not told before"),
            (joined(&[&good[0], &"x".repeat(70_000)]), "64 KiB"),
            (joined(&["\0\0"]), "line 1"),
        ] {
            let error = loaded(&text).1.unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{says}: {error}");
        }
        assert!(loaded(&joined(&[&newer])).0 && !loaded("{\"schema\":\"longhaul.test/1\"}\n").0);
        assert!(!is_recording(Path::new("/nonexistent")));
        assert!(load_recording(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_long_recording_stays_bounded() {
        let mut all = Vec::new();
        for look in 0..MOST_LOOKS as u32 * 3 {
            let sent = Sample { t_s: f64::from(look), ..Sample::default() };
            keep(&mut all, Seen { sent, ..Seen::default() });
        }
        assert!(all.len() <= MOST_LOOKS && all[0].sent.t_s == 0.0);
    }
}
