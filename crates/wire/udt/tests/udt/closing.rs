//! How connections end.

use crate::path::{NATIVE, Path, bottleneck, config, unlimited};
use std::time::Duration;
use udt::{CloseReason, Config};

#[test]
fn what_was_written_before_closing_is_delivered() {
    let mut path = Path::established(bottleneck(10, 50, 1.0), config(1, NATIVE));
    assert_eq!(path.client.write(&[5; 500_000]), 500_000);
    path.client.close();
    assert_eq!(path.client.write(b"more"), 0);
    let mut read = 0;
    path.run_until(|path| {
        let mut buffer = [0; 4_096];
        let count = path.server().read(&mut buffer);
        read += count;
        path.server().is_finished()
    });
    assert_eq!(read, 500_000);
    assert_eq!(path.client.closed(), Some(CloseReason::Local));
    assert_eq!(path.server().closed(), Some(CloseReason::Peer));
}

#[test]
fn an_idle_connection_stays_open() {
    let mut path = Path::established(unlimited(50), config(1, NATIVE));
    path.run_for(Duration::from_secs(300), |_| {});
    assert!(path.client.is_established());
    assert!(path.server().is_established());
    assert_eq!(path.client.write(b"late"), 4);
    path.run_until(|path| path.server().read(&mut [0; 9]) == 4);
}

#[test]
fn a_peer_that_vanished_is_noticed_within_a_minute() {
    for writes in [false, true] {
        let ours = Config { max_buffer: 100, ..config(1, NATIVE) };
        let mut path = Path::established(unlimited(50), ours);
        path.server = None;
        path.run_until(|path| {
            if writes {
                path.client.write(&[1; 1_000]);
            }
            path.client.closed().is_some()
        });
        assert_eq!(path.client.closed(), Some(CloseReason::TimedOut));
        assert!(path.now.secs_f64() < 60.0, "{:.1} s", path.now.secs_f64());
    }
}
