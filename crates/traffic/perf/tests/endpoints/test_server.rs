//! A longhaul server on its own port, and short tests against it.

use perf::client::EndAfter;
use perf::{
    Event, PerfError, ServerEvent, StopFlag,
    client::{self, ClientConfig},
    server::{Server, ServerConfig},
};
use record::{Direction, Measurement, Protocol};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

/// A running server; stops when dropped, and must stop without an error.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) events: Arc<Mutex<Vec<ServerEvent>>>,
    stop: StopFlag,
    thread: Option<JoinHandle<Result<(), PerfError>>>,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        TestServer::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig {
            bind: Some(IpAddr::from([127, 0, 0, 1])),
            port: 0,
            ..ServerConfig::default()
        };
        change(&mut config);
        let server = Server::bind(&config).unwrap();
        let address = server.local_addr();
        let stop = StopFlag::new();
        let events = Arc::new(Mutex::new(Vec::new()));
        let (flag, log) = (stop.clone(), Arc::clone(&events));
        let thread = thread::spawn(move || {
            server.serve(&flag, &|event: ServerEvent| log.lock().unwrap().push(event))
        });
        TestServer { address, events, stop, thread: Some(thread) }
    }

    /// A one-second test against it.
    pub(crate) fn config(&self) -> ClientConfig {
        short(self.address)
    }

    /// Waits for a matching event of the server.
    pub(crate) fn wait_for(&self, fits: impl Fn(&ServerEvent) -> bool) -> ServerEvent {
        for _ in 0..3000 {
            if let Some(event) = self.events.lock().unwrap().iter().find(|event| fits(event)) {
                return event.clone();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no matching event; the events were {:?}", self.events.lock().unwrap());
    }

    /// Waits for a server that ends by itself.
    pub(crate) fn join(mut self) -> Result<(), PerfError> {
        self.thread.take().unwrap().join().unwrap()
    }

    /// Checks that the server still serves tests.
    pub(crate) fn check_serving(&self) {
        let mut config = self.config();
        // Not a time, in which a busy machine may carry nothing.
        config.end = EndAfter::Blocks(1);
        let measured = run(&config).unwrap();
        assert!(measured.received().bytes() > 0);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A one-second test of the server at `address`.
pub(crate) fn short(address: SocketAddr) -> ClientConfig {
    let mut config = ClientConfig::new(address.ip().to_string());
    config.ports = address.port()..=address.port();
    config.end = EndAfter::Seconds(1.0);
    config.watch_load = Duration::ZERO;
    config
}

pub(crate) fn run(config: &ClientConfig) -> Result<Measurement, PerfError> {
    client::run(config, &mut |_| (), &StopFlag::new()).map(|report| report.measurement)
}

pub(crate) fn run_with_events(config: &ClientConfig) -> (Measurement, Vec<Event>) {
    let mut events = Vec::new();
    let measured = client::run(config, &mut |event| events.push(event), &StopFlag::new());
    (measured.unwrap().measurement, events)
}

/// Checks the invariants of every completed test.
pub(crate) fn check(measured: &Measurement, config: &ClientConfig) {
    let ids: Vec<u32> = measured.streams.iter().map(|stream| stream.id).collect();
    let both = u32::from(config.direction == Direction::Both) + 1;
    let expected: Vec<u32> = (0..config.streams * both).map(iperf3_proto::stream_id).collect();
    assert_eq!(ids, expected);
    for stream in &measured.streams {
        assert!(stream.received_bytes > 0, "{measured:?}");
        // The warm-up ends at different bytes at the two ends.
        assert!(
            config.omit_seconds > 0 || stream.received_bytes <= stream.sent_bytes,
            "{stream:?}"
        );
        assert!(stream.sent_seconds > 0.0 && stream.received_seconds > 0.0);
        let connected = config.transport.protocol() != Protocol::Udp;
        assert_eq!(stream.congestion.is_some(), connected);
        assert_eq!(stream.retransmits.is_some(), connected, "{stream:?}");
        assert_eq!(stream.datagrams.is_some(), !connected);
        if stream.reverse {
            assert!(stream.receiver.len() >= 2, "{stream:?}");
        } else if connected {
            assert!(stream.sender.len() >= 2, "{stream:?}");
        }
        assert!(stream.sender.windows(2).all(|pair| pair[0].t_s < pair[1].t_s));
        assert!(stream.receiver.windows(2).all(|pair| pair[0].t_s < pair[1].t_s));
        for sample in &stream.sender {
            // The kernel counts the SYN as a byte.
            assert!(sample.acked_bytes <= sample.written_bytes + 1, "{sample:?}");
            assert!(sample.mss_bytes > 0 && sample.cwnd_bytes > 0);
        }
    }
    assert!(measured.host.cores >= 1 && measured.host.tcp_rmem.is_some());
    assert_eq!(measured.schema, record::MEASUREMENT_SCHEMA);
}
