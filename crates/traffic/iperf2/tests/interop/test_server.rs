//! A running server of ours, and short tests against any server.

use host::stop::StopFlag;
use iperf2::client::{self, ClientConfig};
use iperf2::server::{Server, ServerConfig};
use iperf2::{Event, IntervalReport, Iperf2Error};
use iperf2_proto::{Amount, ClientHeader, Datagram, ServerReport};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A running server; it must end without error when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    events: Arc<Mutex<Vec<Event>>>,
    stop: StopFlag,
    thread: Option<JoinHandle<Result<(), Iperf2Error>>>,
}

impl TestServer {
    pub(crate) fn new(udp: bool) -> Self {
        TestServer::with(udp, |_| ())
    }

    pub(crate) fn with(udp: bool, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config =
            ServerConfig { bind: Some((HERE, 0).into()), udp, ..ServerConfig::default() };
        change(&mut config);
        let server = Server::bind(&config).unwrap();
        let (address, stop) = (server.local_addr(), StopFlag::new());
        let events = Arc::new(Mutex::new(Vec::new()));
        let (flag, log) = (stop.clone(), Arc::clone(&events));
        let serve = move || server.serve(&flag, &|event| log.lock().unwrap().push(event));
        TestServer { address, events, stop, thread: Some(thread::spawn(serve)) }
    }

    pub(crate) fn config(&self, udp: bool) -> ClientConfig {
        short(self.address.port(), udp)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for the totals of so many streams.
    pub(crate) fn totals(&self, count: usize) -> Vec<IntervalReport> {
        for _ in 0..3000 {
            let rows = totals(&self.events());
            if rows.len() >= count {
                return rows;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("events: {:?}", self.events());
    }

    /// Waits for an error of a peer and returns its reason.
    pub(crate) fn peer_error(&self) -> String {
        for _ in 0..3000 {
            let found = self.events().into_iter().find_map(|event| match event {
                Event::PeerError { reason, .. } => Some(reason),
                _ => None,
            });
            if let Some(reason) = found {
                return reason;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("events: {:?}", self.events());
    }

    /// Asserts that the server still serves.
    pub(crate) fn serves(&self, udp: bool) {
        let config =
            ClientConfig { amount: Amount::Time(Duration::from_millis(200)), ..self.config(udp) };
        assert!(totals(&run(&config).unwrap())[0].bytes > 0);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.raise();
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// One second at a rate that both endpoints sustain.
pub(crate) fn short(port: u16, udp: bool) -> ClientConfig {
    ClientConfig {
        port,
        udp,
        amount: Amount::Time(Duration::from_secs(1)),
        pace: Some(iperf2_proto::Pace::Bits(50_000_000)),
        length: (!udp).then_some(16 * 1024),
        listen_port: Some(stall_retry::free_port()),
        ..ClientConfig::new("127.0.0.1")
    }
}

pub(crate) fn run(config: &ClientConfig) -> Result<Vec<Event>, Iperf2Error> {
    let events = Mutex::new(Vec::new());
    client::run(config, &|event| events.lock().unwrap().push(event), &StopFlag::new())?;
    Ok(events.into_inner().unwrap())
}

/// The totals of streams, by id.
pub(crate) fn totals(events: &[Event]) -> Vec<IntervalReport> {
    let mut rows: Vec<IntervalReport> = events
        .iter()
        .filter_map(|event| match event {
            Event::Interval(row) if row.whole && row.label.is_some() => Some(*row),
            _ => None,
        })
        .collect();
    rows.sort_by_key(|row| row.label.unwrap().id);
    rows
}

pub(crate) fn reports(events: &[Event]) -> Vec<ServerReport> {
    let report = |event: &Event| match event {
        Event::Report { report, .. } => Some(*report),
        _ => None,
    };
    events.iter().filter_map(report).collect()
}

pub(crate) fn sent(events: &[Event]) -> Vec<u64> {
    let sent = |event: &Event| match event {
        Event::Sent { datagrams, .. } => Some(*datagrams),
        _ => None,
    };
    events.iter().filter_map(sent).collect()
}

/// Within 25 %: the rate of a sender on a machine that may stall.
pub(crate) fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= 0.25 * b as f64
}

/// Within 2 %.
pub(crate) fn close(a: u64, b: u64) -> bool {
    a > 0 && a.abs_diff(b) as f64 <= 0.02 * a.max(b) as f64
}

/// A datagram of `length` bytes.
pub(crate) fn datagram(
    number: u64,
    last: bool,
    header: Option<&ClientHeader>,
    length: usize,
) -> Vec<u8> {
    let mut bytes = vec![0; length];
    if let Some(header) = header {
        bytes[16..76].copy_from_slice(&header.encode_datagram());
    }
    Datagram { number, last, sent: Duration::from_secs(1) }.encode(&mut bytes);
    bytes
}
