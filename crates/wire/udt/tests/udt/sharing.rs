//! Flows that start one after the other through one bottleneck.

use crate::path::{CLIENT, NATIVE, bottleneck, config};
use link::{Link, LinkConfig, Train};
use std::time::Duration;
use udt::{Config, Connection, Incoming, Listener, Packet};
use units::Nanos;

/// Both ends of a flow, and the bytes that it received in each second since the first one began.
struct Transfer {
    client: Connection,
    server: Option<Connection>,
    listener: Listener,
    accepts: Config,
    series: Vec<u64>,
}

impl Transfer {
    fn new(now: Nanos, number: usize, seed: u64, seconds: usize) -> Self {
        let ours = Config { seed: seed + number as u64, ..config(2 * number as u32 + 1, NATIVE) };
        let accepts = Config { socket_id: 2 * number as u32 + 2, ..ours };
        Transfer {
            client: Connection::client(now, ours),
            server: None,
            listener: Listener::new([9; 32], 4),
            accepts,
            series: vec![0; seconds],
        }
    }

    /// A datagram arrives at the server's socket; gives the answer to a handshake.
    fn arrive(&mut self, now: Nanos, datagram: &[u8]) -> Option<Vec<u8>> {
        let Ok(Packet::Control(header, udt::Control::Handshake(handshake))) =
            Packet::parse(datagram)
        else {
            self.server.as_mut()?.receive(now, now, [datagram]);
            return None;
        };
        if header.destination != 0 {
            self.server.as_mut()?.receive(now, now, [datagram]);
            return None;
        }
        match self.listener.on_handshake(now, &CLIENT, &handshake, &self.accepts) {
            Incoming::Ignore => None,
            Incoming::Reply(answer) => Some(answer),
            Incoming::Accept(answer, connection) => {
                self.server = Some(*connection);
                Some(answer)
            }
        }
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let server = self.server.as_ref().and_then(Connection::next_timeout);
        self.client.next_timeout().into_iter().chain(server).min()
    }

    fn on_timeout(&mut self, now: Nanos, zeros: &[u8]) {
        self.client.on_timeout(now);
        while self.client.is_established() && self.client.write(zeros) == zeros.len() {}
        if let Some(server) = &mut self.server {
            server.on_timeout(now);
            self.series[(now.0 / 1_000_000_000) as usize] += server.discard();
        }
    }
}

/// Rates of flows that begin at `starts`, in s, and send until the end: Mbit/s in each second.
fn rates(
    [forward, reverse]: [LinkConfig; 2],
    starts: &[u64],
    seconds: u64,
    seed: u64,
) -> Vec<Vec<f64>> {
    let (mut forward, mut reverse) = (Link::new(forward), Link::new(reverse));
    let mut flows: Vec<Transfer> = Vec::new();
    let (mut now, end) = (Nanos(0), Nanos(seconds * 1_000_000_000));
    let zeros = vec![0; 1 << 16];
    let train = |datagram: &[u8]| Train::single(28 + datagram.len() as u32);
    while now < end {
        let start = |at: usize| starts.get(at).map(|s| Nanos(0).plus(Duration::from_secs(*s)));
        if start(flows.len()).is_some_and(|start| start <= now) {
            flows.push(Transfer::new(now, flows.len(), seed, seconds as usize + 1));
        }
        for (number, flow) in flows.iter_mut().enumerate() {
            let mut out = Vec::new();
            while let Some(sent) = flow.client.poll_transmit(now, 64, &mut out) {
                for datagram in out.chunks(sent.packet_bytes) {
                    forward.arrive(now, train(datagram), (number, datagram.to_vec()));
                }
            }
            let Some(server) = &mut flow.server else { continue };
            while let Some(sent) = server.poll_transmit(now, 64, &mut out) {
                for datagram in out.chunks(sent.packet_bytes) {
                    reverse.arrive(now, train(datagram), (number, datagram.to_vec()));
                }
            }
        }
        let timeouts = flows.iter().filter_map(Transfer::next_timeout);
        let due = [forward.next_due(), reverse.next_due(), start(flows.len()), Some(end)];
        now = now.max(timeouts.chain(due.into_iter().flatten()).min().unwrap());
        while let Some(delivery) = forward.release(now) {
            let (number, datagram) = delivery.payload;
            if let Some(answer) = flows[number].arrive(now, &datagram) {
                reverse.arrive(now, train(&answer), (number, answer));
            }
        }
        while let Some(delivery) = reverse.release(now) {
            let (number, datagram) = &delivery.payload;
            flows[*number].client.receive(now, now, [&datagram[..]]);
        }
        flows.iter_mut().for_each(|flow| flow.on_timeout(now, &zeros));
    }
    let mbit = |bytes: &u64| *bytes as f64 * 8.0 / 1e6;
    flows.iter().map(|flow| flow.series.iter().map(mbit).collect()).collect()
}

/// Jain's index over the flows' means between two seconds.
fn jain(rates: &[Vec<f64>], from: usize, to: usize) -> f64 {
    let means = rates.iter().map(|rate| rate[from..to].iter().sum::<f64>());
    let (sum, squares) = means.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (rates.len() as f64 * squares)
}

/// The last flow begins before a full queue, and has half a minute.
#[test]
fn staggered_flows_share_the_path_fairly() {
    for seed in 0..3 {
        let rates = rates(bottleneck(100, 50, 1.0), &[0, 15, 30], 60, seed * 10 + 1);
        let index = jain(&rates, 45, 60);
        println!("seed {seed}: Jain's index {index:.3}");
        assert!(index >= 0.95, "seed {seed}: Jain's index {index:.3}, {rates:.0?}");
    }
}
