//! A copy as lines of text: its progress, and its result.

use super::{CopyDocument, Figures, Transport};
use report::entries;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// The rate shown is the mean over this time.
const WINDOW: Duration = Duration::from_secs(3);
/// The interval between changes of the line.
const REFRESH: Duration = Duration::from_millis(250);

/// The progress in one line, which replaces the one before.
#[derive(Debug)]
pub struct ProgressLine {
    began: Instant,
    shown: Option<Instant>,
    /// Bytes that were done, at times in the window.
    recent: VecDeque<(Instant, u64)>,
}

/// Bytes that are done: written by the receiver, or there already.
fn done(figures: &Figures) -> u64 {
    figures.written_bytes + figures.kept_bytes
}

impl ProgressLine {
    /// Of a copy that began then.
    #[must_use]
    pub fn new(began: Instant) -> Self {
        ProgressLine { began, shown: None, recent: VecDeque::new() }
    }

    /// The line, of fewer than `width` characters, if it is time for another.
    pub fn next(&mut self, now: Instant, figures: &Figures, width: usize) -> Option<String> {
        if self.shown.is_some_and(|shown| now.duration_since(shown) < REFRESH) {
            return None;
        }
        self.shown = Some(now);
        while self.recent.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.recent.pop_front();
        }
        self.recent.push_back((now, figures.written_bytes));
        let rate = self.rate(now, figures.written_bytes);
        let more = if figures.is_listed { "" } else { "+" };
        let (done, total) = (done(figures), figures.listed_bytes);
        let percent = if total == 0 { 100.0 } else { done as f64 * 100.0 / total as f64 };
        let left = match rate.bps() {
            0 => String::new(),
            bps if figures.is_listed => {
                let seconds = total.saturating_sub(done) as f64 * 8.0 / bps as f64;
                format!(", {} left", duration(seconds))
            }
            _ => String::new(),
        };
        let elapsed = duration(now.duration_since(self.began).as_secs_f64());
        let line = format!(
            "{elapsed}  {percent:3.0} % of {}{more}  {rate}  {} of {}{more} entries{left}",
            ByteCount::from_bytes(total),
            figures.entries,
            figures.listed_entries,
        );
        Some(line.chars().take(width.saturating_sub(1)).collect())
    }

    fn rate(&self, now: Instant, written: u64) -> BitRate {
        let Some((since, before)) = self.recent.front() else { return BitRate::ZERO };
        let seconds = now.duration_since(*since).as_secs_f64();
        if seconds < 0.1 {
            return BitRate::ZERO;
        }
        let bits = written.saturating_sub(*before) as f64 * 8.0;
        BitRate::from_bps((bits / seconds) as u64)
    }
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, _) => format!("{seconds:.1} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// The result as text; `limit` says what limited the rate, if it was limited.
#[must_use]
pub fn text(of: &CopyDocument, limit: Option<&str>) -> String {
    let transport = match of.transport {
        Transport::UdtNative => "UDT (native mode, encrypted)",
        Transport::Tcp => "TCP (TLS)",
    };
    let mut text = format!(
        "{}, {} in {} over {transport}: {}\n",
        entries(of.entries),
        ByteCount::from_bytes(of.bytes),
        duration(of.elapsed_s),
        BitRate::from_bps(of.rate_bps),
    );
    if of.kept_bytes > 0 {
        let kept = ByteCount::from_bytes(of.kept_bytes);
        text.push_str(&format!("{kept} already existed or are holes; verified\n"));
    }
    if of.resumed > 0 {
        text.push_str(&format!("continued {} times after lost connections\n", of.resumed));
    }
    let percent = |share: f64| format!("{:.0} % of the time", share * 100.0);
    match (of.limited_by, limit) {
        (Some("network"), Some(limit)) => text.push_str(&format!("limited by {limit}\n")),
        (Some("network"), None) => text.push_str("limited by the network\n"),
        (Some("source-disk"), _) => {
            let share = percent(of.source_disk_limited);
            text.push_str(&format!("disk-limited: the network waited for the source {share}\n"));
        }
        (Some(_), _) => {
            let share = percent(of.destination_disk_limited);
            text.push_str(&format!(
                "disk-limited: the network waited for the destination {share}\n"
            ));
        }
        (None, _) => {}
    }
    if of.failed > 0 {
        text.push_str(&format!("not copied: {}\n", entries(of.failed)));
    }
    text
}
