//! Lanes: reuse, many at once, what they hold of flows that stall.

use crate::boxes::{Pair, Setup, accept, both, target, until};
use boost::Event;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Echoes every connection until the test ends.
fn echo(listener: TcpListener) {
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut reader = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut reader, &mut stream);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
}

fn exchange(mut stream: TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
}

#[test]
fn a_lane_is_used_for_one_flow_after_another() {
    for setup in both() {
        let (listener, address) = target();
        echo(listener);
        let pair = Pair::new(address, &Setup { lanes: 2, ..setup });
        until(|| (pair.far_totals().active_lanes == 2).then_some(()));
        for round in 0..10 {
            exchange(pair.connect(), &vec![round; 100_000]);
            // Far says when its side of the flow is over.
            until(|| (pair.far_totals().active_flows == 0).then_some(()));
            std::thread::sleep(Duration::from_millis(5));
        }
        let totals = pair.near_totals();
        assert!(totals.lanes <= 4, "{totals:?}");
        assert!(totals.reused >= 8, "{totals:?}");
        assert_eq!((totals.flows, totals.reset), (10, 0));
    }
}

#[test]
fn two_hundred_flows_run_at_once() {
    for setup in both() {
        let (listener, address) = target();
        echo(listener);
        let pair = Pair::new(address, &setup);
        let streams: Vec<TcpStream> = (0..200).map(|_| pair.connect()).collect();
        std::thread::scope(|scope| {
            for (index, stream) in streams.into_iter().enumerate() {
                let bytes = vec![index as u8; 20_000 + index * 100];
                std::thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, move || exchange(stream, &bytes))
                    .unwrap();
            }
        });
        until(|| (pair.far_totals().active_flows == 0).then_some(()));
        until(|| (pair.near_totals().active_flows == 0).then_some(()));
        let totals = pair.near_totals();
        assert_eq!((totals.flows, totals.active_flows, totals.reset), (200, 0, 0));
    }
}

#[test]
fn idle_flows_hold_no_pipes() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    let mut flows = Vec::new();
    let bytes = vec![1; 300_000];
    for _ in 0..40 {
        let mut application = pair.connect();
        let mut server = accept(&listener);
        std::thread::scope(|scope| {
            scope.spawn(|| application.write_all(&bytes).unwrap());
            server.read_exact(&mut vec![0; bytes.len()]).unwrap();
        });
        flows.push((application, server));
    }
    // Each thread keeps a few for the next flow.
    let (near, far) = (pair.near_totals(), pair.far_totals());
    assert_eq!((near.active_flows, far.active_flows), (40, 40));
    assert!(near.pipes <= 4 && far.pipes <= 4, "{near:?} {far:?}");
}

#[test]
fn a_receiver_that_stalls_bounds_what_is_held_and_holds_up_nobody() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    let stalled: Vec<(TcpStream, TcpStream)> = (0..20)
        .map(|_| {
            let application = pair.connect();
            application.set_nonblocking(true).unwrap();
            (application, accept(&listener))
        })
        .collect();
    let piece = vec![1; 256 << 10];
    // Writes until nothing is taken for a while; counts what a box has taken but not delivered.
    let mut rounds_without = 0;
    while rounds_without < 10 {
        let taken: usize =
            stalled.iter().filter_map(|(application, _)| (&*application).write(&piece).ok()).sum();
        rounds_without = if taken == 0 { rounds_without + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(10));
    }
    let (near, far) = (pair.near_totals(), pair.far_totals());
    // A pipe, and a buffer's rest, per flow; the rest is in bounded socket buffers.
    let held_at_near = near.bytes_in - near.wan_sent.min(near.bytes_in);
    assert!(held_at_near <= 20 * (528 << 10), "{near:?}");
    assert!(far.wan_received - far.bytes_out <= 20 * (528 << 10) + 1_000_000, "{far:?}");
    // Another flow is as fast as ever.
    let mut application = pair.connect();
    let mut server = accept(&listener);
    let bytes = vec![2; 3_000_000];
    std::thread::scope(|scope| {
        scope.spawn(|| application.write_all(&bytes).unwrap());
        server.read_exact(&mut vec![0; bytes.len()]).unwrap();
    });
    // And a stalled one goes on when its receiver does.
    let (application, server) = stalled.into_iter().next().unwrap();
    drop(application);
    let mut rest = Vec::new();
    let mut server = server;
    server.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > 1 << 18 && rest.iter().all(|byte| *byte == 1));
}

#[test]
fn far_is_unreachable_once_every_address_has_failed() {
    let (listener, address) = target();
    let (_, dead) = target();
    let setup = Setup { lanes: 8, dead: Some(dead), ..Setup::default() };
    let pair = Pair::new(address, &setup);
    let (unreachable, far) = pair.near.event(|event| match event {
        Event::FarReached { far } => Some((false, *far)),
        Event::FarUnreachable { far, .. } => Some((true, *far)),
        _ => None,
    });
    assert_eq!((unreachable, far), (false, pair.far_address));
    let _client = pair.connect();
    accept(&listener);
}
