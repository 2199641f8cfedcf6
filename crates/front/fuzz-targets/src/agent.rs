//! Messages of an agent, and of whoever started one.

use remote::protocol::{
    Clock, FlowReply, Lines, MAX_FLOWS, MAX_REPLY, MAX_REQUEST, Probe, Reply, Request, Started,
    parse_reply, parse_request, start_skew, write,
};
use std::time::Duration;

/// The lines of a stream in pieces of 7 bytes.
fn lines(input: &[u8], most: usize) -> Vec<Vec<u8>> {
    let (mut found, mut lines) = (Vec::new(), Lines::default());
    for piece in input.chunks(7) {
        lines.push(piece);
        while let Ok(Some(line)) = lines.next_line(most) {
            found.push(line);
        }
    }
    found
}

/// What an agent reads. What is read is written and read once more.
pub(crate) fn requests(input: &[u8]) {
    for line in lines(input, MAX_REQUEST) {
        let Ok(request) = parse_request(&line) else { continue };
        if let Request::Run { flows, .. } = &request {
            assert!((1..=MAX_FLOWS).contains(&flows.len()));
        }
        let again = write(&request).unwrap_or_default();
        if again.len() <= MAX_REQUEST {
            assert_eq!(parse_request(again.as_bytes()), Ok(request));
        }
    }
}

/// What whoever started an agent reads, with the clock and the figures that it makes of it.
pub(crate) fn replies(input: &[u8]) {
    let (mut clock, mut started) = (Clock::default(), Vec::new());
    for (number, line) in (0u64..).zip(lines(input, MAX_REPLY)) {
        let Ok(reply) = parse_reply(&line) else { continue };
        match reply {
            Reply::Time { clock_ns, .. } => {
                let sent = Duration::from_millis(number);
                let received = sent + Duration::from_millis(1);
                clock.add(Probe { sent, received, remote: Duration::from_nanos(clock_ns) });
                let Some(offset) = clock.offset(received) else { continue };
                let _ = offset.to_remote(received);
                let here = offset.to_here_ns(Duration::from_nanos(clock_ns));
                let late_ns = here.unwrap_or_default();
                started.push(Started { late_ns, uncertainty_ns: offset.uncertainty_ns });
            }
            Reply::Ran { flows } => {
                for flow in flows {
                    let FlowReply::Measured { measurement, .. } = flow else { continue };
                    assert!(measurement.path.is_none());
                    let _ = diagnose::explain(&measurement);
                }
            }
            _ => {}
        }
    }
    let _ = start_skew(&started);
}
