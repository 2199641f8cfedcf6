//! The log's writer: a log reader that stalls delays no test.

use super::lines::Lines;
use crate::console::Console;
use longhaul::server::ServerEvent;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Capacity of the queue to the log's writer, in lines.
const QUEUE: usize = 4096;
/// Timeout for writing the queued lines at the end.
const FLUSH: Duration = Duration::from_secs(1);

/// The queue of a thread that writes the log. Lines that exceed it are dropped and counted.
pub(super) struct LogQueue {
    lines: Lines,
    queue: SyncSender<String>,
    dropped: u64,
    /// Closed once everything is written.
    written: Receiver<()>,
}

impl LogQueue {
    pub(super) fn start(console: &Console, lines: Lines) -> std::io::Result<Self> {
        let (queue, waiting) = sync_channel(QUEUE);
        let (end, written) = channel();
        let console = console.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(console, &waiting, &end))?;
        Ok(LogQueue { lines, queue, dropped: 0, written })
    }

    pub(super) fn put(&mut self, event: &ServerEvent) {
        for line in self.lines.of(event) {
            self.put_line(line);
        }
    }

    pub(super) fn put_line(&mut self, line: String) {
        if self.dropped > 0 {
            let notice = self.lines.of(&ServerEvent::LeftOut { count: self.dropped });
            let notice = notice.concat();
            if matches!(self.queue.try_send(notice), Err(TrySendError::Full(_))) {
                self.dropped += 1;
                return;
            }
            self.dropped = 0;
        }
        if matches!(self.queue.try_send(line), Err(TrySendError::Full(_))) {
            self.dropped += 1;
        }
    }

    /// Writes the last lines, unless the log's reader has stalled.
    pub(super) fn finish(self) {
        drop(self.queue);
        let _ = self.written.recv_timeout(FLUSH);
    }
}

/// Writes lines until the queue is closed, then drops `_end`.
fn write(mut console: Console, lines: &Receiver<String>, _end: &Sender<()>) {
    for line in lines {
        console.log(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::server::lines::{Form, tests::interval};

    #[test]
    fn a_stalled_reader_costs_lines_but_no_time() {
        let (queue, waiting) = sync_channel(3);
        let mut log =
            LogQueue { lines: Lines::new(Form::Json), queue, dropped: 0, written: channel().1 };
        for _ in 0..100 {
            log.put(&interval(1, None));
        }
        assert_eq!(waiting.try_iter().filter(|line| line.contains("interval")).count(), 3);
        log.put(&interval(1, None));
        let after: Vec<String> = waiting.try_iter().collect();
        assert!(after[0].contains("\"left_out\"") && after[0].contains(":97"), "{after:?}");
        assert_eq!(after.len(), 2);
    }
}
