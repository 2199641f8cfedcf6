//! Limited unsent data, over loopback.

use crate::test_server::{TestServer, check, run};
use perf::client::{TcpOptions, Transport};
use record::{Direction, Measurement};
use stall_retry::retry;
use units::{BitRate, ByteCount};

/// The least limit.
const MIN: ByteCount = ByteCount::from_bytes(1 << 20);
/// The rate from which unsent data is limited.
const FAST: BitRate = BitRate::from_bps(5_000_000_000);

/// TCP whose unsent data is limited.
fn limited() -> Transport {
    Transport::Tcp(TcpOptions { limits_unsent: true, ..TcpOptions::default() })
}

fn is_limited(m: &Measurement) -> bool {
    m.notes.iter().any(|note| note.contains("unsent data limited"))
}

#[test]
fn an_end_that_sends_limits_its_unsent_data_if_asked() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        // A handshake that took over 2 ms, as in a stall, is one of a longer path.
        retry(|| {
            let mut config = server.config();
            (config.direction, config.streams, config.transport) = (direction, 2, limited());
            let measured = run(&config).unwrap();
            check(&measured, &config);
            assert!(measured.spec.limits_unsent);
            let limit = measured.unsent_limit();
            let slowest = [false, true].map(|reverse| {
                let own = measured.streams.iter().filter(|stream| stream.reverse == reverse);
                own.map(|stream| stream.received_bytes).sum::<u64>()
            });
            let slowest = slowest.into_iter().filter(|bytes| *bytes > 0).min().unwrap_or(0);
            let rate = BitRate::from_bps((8.0 * slowest as f64 / measured.seconds()) as u64);
            assert!(limit.is_some() || rate < FAST, "{direction:?}, {rate}");
            assert!(limit.is_none_or(|limit| limit >= MIN), "{limit:?}");
            assert_eq!(is_limited(&measured), limit.is_some(), "{:?}", measured.notes);
        });
    }
}

#[test]
fn the_kernel_has_the_buffers_unless_asked() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        let measured = run(&config).unwrap();
        assert!(measured.unsent_limit().is_none() && !is_limited(&measured));
        // A buffer that was asked for is not limited.
        (config.transport, config.window) = (limited(), Some(ByteCount::from_bytes(1 << 20)));
        let measured = run(&config).unwrap();
        assert!(!measured.spec.limits_unsent && measured.unsent_limit().is_none());
    }
}
