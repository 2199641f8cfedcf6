//! `--mux --udt`: sessions that UDT carries.

use crate::boxes::{LONG, Pair, Setup, accept, target, until};
use crate::sessions::{Middle, receive, send};
use boost::{Event, FlowEnd};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Near's address of far in these tests: far itself is at 127.0.0.1.
const OTHER: [u8; 4] = [127, 0, 0, 2];

fn with_udt() -> [Setup; 2] {
    [false, true].map(|with_tls| Setup {
        with_tls,
        mux: true,
        udt: true,
        lanes: 1,
        ..Setup::default()
    })
}

/// Flows in both directions at once, each byte of which is checked.
fn transfer(pair: &Pair, listener: &std::net::TcpListener, flows: usize, bytes: usize) {
    let flows: Vec<_> = (0..flows).map(|_| (pair.connect(), accept(listener))).collect();
    std::thread::scope(|scope| {
        for (index, (application, server)) in flows.iter().enumerate() {
            let count = index * bytes;
            scope.spawn(move || send(application, count));
            scope.spawn(move || send(server, count / 2));
            scope.spawn(move || receive(server, count, |_| {}));
            scope.spawn(move || receive(application, count / 2, |_| {}));
        }
    });
}

/// Passes datagrams on between near and far, and drops one in `drops` of each direction. Counts them.
fn relay(drops: usize) -> (u16, Arc<AtomicUsize>) {
    let near_side = UdpSocket::bind(SocketAddr::from((OTHER, 0))).unwrap();
    let port = near_side.local_addr().unwrap().port();
    let far_side = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    far_side.connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let near = Arc::new(std::sync::Mutex::new(None));
    let (inward, outward) = (near_side.try_clone().unwrap(), far_side.try_clone().unwrap());
    std::thread::spawn({
        let (near, count) = (Arc::clone(&near), Arc::clone(&count));
        move || {
            let mut buffer = vec![0; 65_536];
            while let Ok((length, from)) = inward.recv_from(&mut buffer) {
                *host::lock::lock(&near) = Some(from);
                if count.fetch_add(1, Ordering::Relaxed) % drops != drops - 1 {
                    let _ = outward.send(&buffer[..length]);
                }
            }
        }
    });
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            // Far does not wait yet.
            let Ok(length) = far_side.recv(&mut buffer) else { continue };
            let Some(to) = *host::lock::lock(&near) else { continue };
            if counted.fetch_add(1, Ordering::Relaxed) % drops != drops - 1 {
                let _ = near_side.send_to(&buffer[..length], to);
            }
        }
    });
    (port, count)
}

#[test]
fn udt_carries_flows_in_both_directions_through_losses() {
    for setup in with_udt() {
        let (listener, address) = target();
        let middle = Middle::at(SocketAddr::from((OTHER, 0)));
        let (port, datagrams) = relay(50);
        let setup = Setup { via: Some(middle.address), udt_port: Some(port), ..setup };
        let pair = Pair::new(address, &setup);
        middle.start(pair.far_address);
        transfer(&pair, &listener, 12, 100_000);
        until(|| (pair.far_totals().active_flows == 0).then_some(()));
        let (near, far) = (pair.near_totals(), pair.far_totals());
        assert_eq!((near.flows, near.reset, far.flows, far.reset), (12, 0, 12, 0));
        assert_eq!(near.lanes, 1, "UDT is the only one that has carried the session");
        let datagrams = datagrams.load(Ordering::Relaxed);
        assert!(datagrams > 5_000, "{datagrams} datagrams carried 10 MB");
    }
}

#[test]
fn a_reset_and_a_refusal_pass_over_udt() {
    let [_, setup] = with_udt();
    let (listener, address) = target();
    let pair = Pair::new(address, &setup);
    let (mut application, mut server) = (pair.connect(), accept(&listener));
    // Far has noticed that the target is connected.
    application.write_all(b"a").unwrap();
    server.read_exact(&mut [0]).unwrap();
    host::socket::set_reset_on_close(&server, true).unwrap();
    drop(server);
    assert_eq!(pair.near.flow_end(0), FlowEnd::PeerReset);
    drop((application, listener));
    let _refused = pair.connect();
    assert!(matches!(pair.near.flow_end(1), FlowEnd::Refused(_)));
}

#[test]
fn where_udp_does_not_pass_tcp_carries_the_session() {
    for setup in with_udt() {
        let (listener, address) = target();
        let middle = Middle::at(SocketAddr::from((OTHER, 0)));
        let pair = Pair::new(address, &Setup { via: Some(middle.address), ..setup });
        middle.start(pair.far_address);
        transfer(&pair, &listener, 4, 100_000);
        let why = pair.near.event(|event| match event {
            Event::UdtBlocked { why, .. } => Some(why.clone()),
            _ => None,
        });
        assert!(why.contains("firewall"), "{why}");
        let near = pair.near_totals();
        assert_eq!((near.lanes, near.flows, near.reset), (2, 4, 0), "{near:?}");
    }
}

#[test]
fn a_port_that_is_taken_leaves_the_session_to_tcp() {
    let [setup, _] = with_udt();
    let (listener, address) = target();
    let taken = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = taken.local_addr().unwrap().port();
    let pair = Pair::new(address, &Setup { udt_port: Some(port), ..setup });
    transfer(&pair, &listener, 4, 10_000);
    let is_blocked = |event: &Event| matches!(event, Event::UdtBlocked { .. }).then_some(());
    pair.near.event(is_blocked);
    assert_eq!((pair.near_totals().lanes, pair.near_totals().reset), (1, 0));
}

#[test]
fn a_box_that_ends_in_order_tells_the_other_one_at_once() {
    let [_, setup] = with_udt();
    let (listener, address) = target();
    let pair = Pair::new(address, &setup);
    transfer(&pair, &listener, 3, 1_000);
    until(|| (pair.far_totals().active_lanes == 1).then_some(()));
    pair.near.drain.raise();
    until(|| pair.near.has_ended().then_some(()));
    let since = host::clock::now();
    until(|| (pair.far_totals().active_lanes == 0).then_some(()));
    let passed = since.elapsed();
    assert!(passed < LONG / 2 && LONG > Duration::from_secs(10), "{passed:?}");
}
