//! The kernel's tracepoints of TCP senders, in an instance of tracefs of our own.

use crate::traffic::PORT;
use bench_harness::Fallible;
use host::clock;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An instance, removed when dropped.
#[derive(Debug)]
pub(crate) struct Tracepoints {
    instance: PathBuf,
    owner: u32,
}

/// What happened at a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Congestion state: `TCP_CA_Open` and so on, 0 to 4.
    State(u8),
    /// One or more segments in a row were retransmitted.
    Retransmit,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// ns since the lab's start.
    pub(crate) at_ns: i64,
    /// The sender's port.
    pub(crate) port: u16,
    pub(crate) what: What,
}

const TRACEFS: &str = "/sys/kernel/tracing";
const MARK: &str = "longhaul-kinds";

/// For each core.
const BUFFER_KIB: u32 = 8192;

impl Tracepoints {
    /// Enables the tracepoints.
    ///
    /// # Errors
    /// They cannot be used here; the remedy.
    pub(crate) fn create() -> Fallible<Self> {
        let owner = std::process::id();
        let instance = Path::new(TRACEFS).join(format!("instances/longhaul-kinds-{owner}"));
        fs::create_dir(&instance).map_err(|error| {
            format!(
                "the tracepoints of TCP cannot be used here, so there is no ground truth: \
                 {TRACEFS}: {error}; run as root where tracefs is mounted \
                 (mount -t tracefs none {TRACEFS})"
            )
        })?;
        let this = Tracepoints { instance, owner };
        this.write("trace_clock", "mono")?;
        this.write("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in ["tcp_cong_state_set", "tcp_retransmit_skb"] {
            this.write(&format!("events/tcp/{event}/filter"), &format!("dport == {PORT}"))?;
            this.write(&format!("events/tcp/{event}/enable"), "1")?;
        }
        Ok(this)
    }

    fn write(&self, file: &str, text: &str) -> Fallible<()> {
        let path = self.instance.join(file);
        fs::write(&path, text).map_err(|error| {
            format!("the tracepoints of TCP cannot be used here: {}: {error}", path.display())
        })?;
        Ok(())
    }

    /// Forgets what there is, and marks this moment.
    pub(crate) fn begin(&self) -> Fallible<Instant> {
        fs::File::create(self.instance.join("trace"))?;
        let before = clock::now();
        self.write("trace_marker", MARK)?;
        Ok(before + before.elapsed() / 2)
    }

    /// The events since then, with times since `epoch`.
    pub(crate) fn events(&self, marked: Instant, epoch: Instant) -> Fallible<Vec<Event>> {
        let text = fs::read_to_string(self.instance.join("trace"))?;
        let written = text.lines().find_map(|line| line.split_once("entries-written: "));
        let complete = written
            .and_then(|(_, counts)| counts.split_whitespace().next()?.split_once('/'))
            .is_some_and(|(kept, written)| kept == written);
        if !complete {
            return Err("the kernel's trace buffer was too small".into());
        }
        let mut lines = text.lines().filter_map(line);
        let (mark_ns, _) =
            lines.find(|(_, rest)| rest.contains(MARK)).ok_or("the mark is not in the trace")?;
        let since_epoch = signed_ns(marked.saturating_duration_since(epoch))
            - signed_ns(epoch.saturating_duration_since(marked));
        let events = lines.filter_map(|(at_ns, rest)| {
            let (port, what) = event(rest)?;
            Some(Event { at_ns: at_ns - mark_ns + since_epoch, port, what })
        });
        Ok(events.collect())
    }
}

impl Drop for Tracepoints {
    fn drop(&mut self) {
        // The process inside the sandbox has a copy.
        if self.owner == std::process::id() {
            let _ = fs::remove_dir(&self.instance);
        }
    }
}

fn signed_ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Time in ns, and what comes after it: `task-1 [000] ..s2. 36062.297524: tcp_...: ...`.
fn line(text: &str) -> Option<(i64, &str)> {
    let (head, rest) = text.split_once(": ").filter(|_| !text.starts_with('#'))?;
    let (seconds, micros) = head.split_whitespace().next_back()?.split_once('.')?;
    Some((seconds.parse::<i64>().ok()? * 1_000_000_000 + micros.parse::<i64>().ok()? * 1000, rest))
}

fn event(rest: &str) -> Option<(u16, What)> {
    let (name, fields) = rest.split_once(": ")?;
    let value = |key: &str| {
        fields.split_whitespace().find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
    };
    let what = match name {
        "tcp_cong_state_set" => What::State(value("cong_state")?.parse().ok()?),
        // One that failed is not in the capture.
        "tcp_retransmit_skb" if value("err").is_none_or(|error| error == "0") => What::Retransmit,
        _ => return None,
    };
    Some((value("sport")?.parse().ok()?, what))
}
