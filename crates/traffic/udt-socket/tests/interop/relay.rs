//! A path between two sockets on the loopback device that loses, reorders and duplicates
//! datagrams.

use host::{clock, wait};
use link::{Limit, Link, LinkConfig, Queue, Rate, Reorder, Train};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use units::{ByteCount, Nanos, nanos};

/// A relay that runs until dropped.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a relay does to the datagrams of each direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Impairments {
    pub(crate) loss: &'static str,
    pub(crate) reordered: &'static str,
    pub(crate) duplicated: &'static str,
}

impl Relay {
    /// A relay to `server`, with 10 ms of RTT.
    pub(crate) fn start(server: SocketAddr, impairments: Impairments) -> Relay {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(server).unwrap();
        for socket in [&near, &far] {
            socket.set_nonblocking(true).unwrap();
            let _ = host::socket::set_receive_buffer(socket, ByteCount::from_bytes(8 << 20));
        }
        let address = near.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || relay(&near, &far, impairments, &stopped));
        Relay { address, stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn link(impairments: Impairments, seed: u64) -> Link<Vec<u8>> {
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(1 << 30)));
    let by = Duration::from_millis(2);
    Link::new(LinkConfig {
        loss: link::Loss::Bernoulli(impairments.loss.parse().unwrap()),
        reorder: Some(Reorder { share: impairments.reordered.parse().unwrap(), by }),
        duplicate: impairments.duplicated.parse().unwrap(),
        seed,
        ..LinkConfig::new(Rate::Unlimited, Duration::from_millis(5), queue)
    })
}

fn relay(near: &UdpSocket, far: &UdpSocket, impairments: Impairments, stop: &AtomicBool) {
    wait::precise_timers();
    let began = clock::now();
    let (mut forward, mut reverse) = (link(impairments, 1), link(impairments, 2));
    let mut client = None;
    let mut buffer = [0; 2_048];
    while !stop.load(Ordering::Relaxed) {
        let now = || Nanos(nanos(clock::now() - began));
        while let Ok((length, from)) = near.recv_from(&mut buffer) {
            client = Some(from);
            forward.arrive(now(), Train::single(28 + length as u32), buffer[..length].to_vec());
        }
        while let Ok(length) = far.recv(&mut buffer) {
            reverse.arrive(now(), Train::single(28 + length as u32), buffer[..length].to_vec());
        }
        while let Some(delivery) = forward.release(now()) {
            let _ = far.send(&delivery.payload);
        }
        while let Some(delivery) = reverse.release(now()) {
            let _ = near.send_to(&delivery.payload, client.unwrap());
        }
        let due = [forward.next_due(), reverse.next_due()].into_iter().flatten().min();
        let timeout = due.map_or(Duration::from_millis(20), |due| due.since(now()));
        let _ = wait::readable([near.as_fd(), far.as_fd()], Some(timeout));
    }
}
