//! Capped windows, over loopback.

use crate::test_server::{TestServer, check, run};
use record::{Direction, Measurement};

/// No receive window is capped at less.
const FLOOR: u64 = 512 << 10;

/// Each stream's advertised windows, once it has ramped up: the median and the largest.
fn windows(m: &Measurement) -> Vec<(u64, u64)> {
    let of = |stream: &record::Stream| {
        let ramped = stream.receiver.iter().filter(|sample| sample.t_s > 0.05);
        let mut all: Vec<u64> = ramped.filter_map(|sample| sample.window_bytes).collect();
        all.sort_unstable();
        Some((*all.get(all.len() / 2)?, *all.last()?))
    };
    m.streams.iter().filter_map(of).collect()
}

#[test]
fn both_ends_cap_the_windows_of_a_short_path_if_asked() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let mut config = server.config();
        (config.direction, config.streams, config.caps_windows) = (direction, 2, true);
        let measured = run(&config).unwrap();
        check(&measured, &config);
        assert!(measured.spec.caps_windows);
        let window = measured.window_cap().unwrap();
        assert!(window.bytes() >= FLOOR, "{window}");
        // Only at high rates, which not every host reaches.
        let unsent = measured.unsent_limit();
        assert!(unsent.is_none_or(|unsent| unsent.bytes() >= 128 << 10), "{unsent:?}");
        // Kernels before Linux 6.2 do not tell the window; trials raise it for a moment.
        for (median, _) in windows(&measured) {
            assert!(median <= window.bytes(), "{direction:?}: {median} above {window}");
        }
        let note = measured.notes.iter().find(|note| note.contains("--autotuning"));
        assert!(note.is_some_and(|note| note.contains("capped")), "{:?}", measured.notes);
    }
}

#[test]
fn the_kernel_has_the_windows_unless_asked() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        let measured = run(&config).unwrap();
        let stream = &measured.streams[0];
        assert_eq!((stream.window_cap_bytes, stream.unsent_limit_bytes), (None, None));
        for (_, largest) in windows(&measured) {
            assert!(largest > FLOOR, "{direction:?}: {largest}");
        }
        // A window that was asked for is not capped.
        (config.caps_windows, config.window) = (true, Some(units::ByteCount::from_bytes(1 << 20)));
        let measured = run(&config).unwrap();
        assert!(!measured.spec.caps_windows && measured.window_cap().is_none());
        assert!(measured.unsent_limit().is_none());
    }
}
