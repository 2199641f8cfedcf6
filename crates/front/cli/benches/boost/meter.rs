//! The goodput of a program at the receiving host, from its device's counter.

use bench_harness::Fallible;
use std::fs;
use std::path::Path;

/// Payload of a full segment with timestamps over its IP bytes, which devices of a lab count.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// Runs a command in a session of its own for so many seconds, after some that are skipped, then
/// ends it. Writes both counters and times, or that the command ended before.
const SCRIPT: &str = r#"#!/bin/sh
skip=$1 seconds=$2 file=$3
shift 3
now() {
    echo "$(sed -n 's/^ *lab0: *\([0-9]*\).*/\1/p' /proc/net/dev) $(date +%s.%N)"
}
setsid sh -c "$*" </dev/null >"$file.log" 2>&1 &
pid=$!
sleep "$skip"
first=$(now)
sleep "$seconds"
last=$(now)
kill -0 $pid 2>/dev/null && echo "$first $last" >"$file" || echo ended >"$file"
kill -- -$pid 2>/dev/null
wait $pid
exit 0
"#;

/// Times of a measurement, s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) skipped: u32,
    pub(crate) measured: u32,
}

/// The command that measures `command`; its figures are in `folder`.
pub(crate) fn command(times: Times, folder: &Path, command: &str) -> Fallible<String> {
    let script = folder.join("meter");
    fs::write(&script, SCRIPT)?;
    let Times { skipped, measured } = times;
    let (script, file) = (script.display(), folder.join("metered"));
    Ok(format!("sh {script} {skipped} {measured} {} \"{command}\"", file.display()))
}

/// The goodput that was measured, bit/s.
pub(crate) fn goodput(folder: &Path) -> Fallible<f64> {
    let file = folder.join("metered");
    let text = fs::read_to_string(&file)?;
    let figures: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    if let Ok([bytes, at, more, later]) = figures.as_deref() {
        return Ok((more - bytes) * 8.0 * PAYLOAD / (later - at));
    }
    let log = fs::read(file.with_extension("log")).unwrap_or_default();
    Err(format!("the program ended early: {}", String::from_utf8_lossy(&log)).into())
}
