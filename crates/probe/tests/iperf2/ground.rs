//! A server of ours on a port of its own, and short tests against any.

use iperf2::{Amount, ServerReport};
use probe::StopFlag;
use probe::iperf2::client::{self, ClientConfig};
use probe::iperf2::server::{Server, ServerConfig};
use probe::iperf2::{Event, Iperf2Error, Row};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A running server; it must end well when dropped.
pub(crate) struct Ground {
    pub(crate) address: SocketAddr,
    events: Arc<Mutex<Vec<Event>>>,
    stop: StopFlag,
    thread: Option<JoinHandle<Result<(), Iperf2Error>>>,
}

impl Ground {
    pub(crate) fn new(udp: bool) -> Self {
        Ground::with(udp, |_| ())
    }

    pub(crate) fn with(udp: bool, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig { bind: Some(HERE), udp, ..ServerConfig::default() };
        change(&mut config);
        let server = Server::bind(&config).unwrap();
        let (address, stop) = (server.local_addr(), StopFlag::new());
        let events = Arc::new(Mutex::new(Vec::new()));
        let (flag, log) = (stop.clone(), Arc::clone(&events));
        let serve = move || server.serve(&flag, &|event| log.lock().unwrap().push(event));
        Ground { address, events, stop, thread: Some(thread::spawn(serve)) }
    }

    pub(crate) fn config(&self, udp: bool) -> ClientConfig {
        short(self.address.port(), udp)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for the whole rows of so many streams.
    pub(crate) fn totals(&self, count: usize) -> Vec<Row> {
        for _ in 0..3000 {
            let rows = totals(&self.events());
            if rows.len() >= count {
                return rows;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server told {:?}", self.events());
    }

    /// Waits for trouble and gives its words.
    pub(crate) fn trouble(&self) -> String {
        for _ in 0..3000 {
            let found = self.events().into_iter().find_map(|event| match event {
                Event::Trouble { why, .. } => Some(why),
                _ => None,
            });
            if let Some(why) = found {
                return why;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server told {:?}", self.events());
    }

    /// The server still does what it is for.
    pub(crate) fn serves(&self, udp: bool) {
        let config =
            ClientConfig { amount: Amount::Time(Duration::from_millis(200)), ..self.config(udp) };
        assert!(totals(&run(&config).unwrap())[0].bytes > 0);
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.stop.raise();
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// A second at a rate that both ends hold.
pub(crate) fn short(port: u16, udp: bool) -> ClientConfig {
    ClientConfig {
        port,
        udp,
        amount: Amount::Time(Duration::from_secs(1)),
        pace: Some(iperf2::Pace::Bits(50_000_000)),
        length: (!udp).then_some(16 * 1024),
        listen_port: Some(free_port(udp)),
        ..ClientConfig::new("127.0.0.1")
    }
}

pub(crate) fn run(config: &ClientConfig) -> Result<Vec<Event>, Iperf2Error> {
    let events = Mutex::new(Vec::new());
    client::run(config, &|event| events.lock().unwrap().push(event), &StopFlag::new())?;
    Ok(events.into_inner().unwrap())
}

/// A port that nobody has.
pub(crate) fn free_port(udp: bool) -> u16 {
    if udp {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    } else {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }
}

/// The whole rows of streams, by their numbers.
pub(crate) fn totals(events: &[Event]) -> Vec<Row> {
    let mut rows: Vec<Row> = events
        .iter()
        .filter_map(|event| match event {
            Event::Row(row) if row.whole && row.label.is_some() => Some(*row),
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

/// Within a quarter: what a sender made of the rate it was asked for, on a machine
/// that may stand still.
pub(crate) fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= 0.25 * b as f64
}

/// Within 2 %.
pub(crate) fn close(a: u64, b: u64) -> bool {
    a > 0 && a.abs_diff(b) as f64 <= 0.02 * a.max(b) as f64
}
