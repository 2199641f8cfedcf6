//! Connections in native mode.

use crate::native_path::{CLIENT, NativePath, SERVER, config, identity, key};
use crate::path::{self, bottleneck, ms, unlimited};
use control::Algorithm;
use link::{LinkConfig, Loss, Reorder};
use std::time::Duration;
use udt::{CloseReason, Handshake, NativeConnection, PeerAddress, Request, SendLimit, Sequence};
use units::Nanos;

fn lossy([forward, reverse]: [LinkConfig; 2], loss: &str) -> [LinkConfig; 2] {
    let bernoulli = || Loss::Bernoulli(loss.parse().unwrap());
    [
        LinkConfig { loss: bernoulli(), seed: 5, ..forward },
        LinkConfig { loss: bernoulli(), seed: 6, ..reverse },
    ]
}

#[test]
fn streams_arrive_whole_under_any_control_and_loss() {
    for algorithm in [Algorithm::Bbr3, Algorithm::NewReno, Algorithm::Cubic] {
        for loss in ["0%", "1%", "5%"] {
            let mut path = NativePath::new(lossy(bottleneck(50, 40, 1.0), loss), algorithm);
            path.run_until(|path| path.client.is_established());
            let time = path.transfer(3_000_000);
            assert!(time < 60.0, "{algorithm:?} {loss}: {time:.1} s");
            path.client.close();
            path.run_until(|path| path.client.closed().is_some());
            assert_eq!(path.client.closed(), Some(CloseReason::Local));
        }
    }
}

/// Packets of more than the path's MTU vanish, in both directions and from the first on.
#[test]
fn a_smaller_mtu_is_found_while_data_flows() {
    for mtu in [1_499, 1_400, 1_000, 560] {
        for loss in ["0%", "2%"] {
            let links = lossy(bottleneck(50, 40, 1.0), loss)
                .map(|link| LinkConfig { mtu: Some(mtu), ..link });
            let mut path = NativePath::established(links, Algorithm::Bbr3);
            let time = path.transfer(3_000_000);
            assert!(time < 3.0, "{mtu} {loss}: {time:.1} s");
            path.run_for(Duration::from_secs(4), |_| {});
            let (carries, drops) = path.client.smaller_packets().unwrap();
            let payload = mtu as usize - 28;
            assert!(carries <= payload && payload < drops, "{carries} to {drops} for {payload}");
            assert!(drops - carries <= 8 && path.client.packet_bytes() == carries);
        }
    }
    let mut path = NativePath::established(bottleneck(50, 40, 1.0), Algorithm::Bbr3);
    path.transfer(3_000_000);
    assert_eq!(path.client.smaller_packets(), None);
    assert_eq!(path.client.packet_bytes(), 1_472);
}

/// What is in flight cannot be cut again: the connection ends, and says what arrives.
#[test]
fn a_path_whose_mtu_falls_ends_the_connection_and_an_outage_does_not() {
    let mut path = NativePath::established(bottleneck(50, 40, 1.0), Algorithm::Bbr3);
    path.saturate(Duration::from_secs(1));
    path.tamper = |datagram| {
        if datagram.len() > 1_000 {
            datagram.clear();
        }
    };
    path.saturate(Duration::from_secs(4));
    let closed = path.client.closed();
    assert_eq!(closed, Some(CloseReason::PathMtu(1_472)));
    let mut path = NativePath::established(bottleneck(50, 40, 1.0), Algorithm::Bbr3);
    path.saturate(Duration::from_secs(1));
    path.tamper = |datagram| datagram.clear();
    path.saturate(Duration::from_secs(5));
    path.tamper = |_| {};
    path.saturate(Duration::from_secs(10));
    assert!(path.saturate(Duration::from_secs(2)) > 30e6);
    assert_eq!((path.client.closed(), path.client.packet_bytes()), (None, 1_472));
}

#[test]
fn both_directions_carry_streams_at_once() {
    let [forward, _] = bottleneck(50, 20, 1.0);
    let links = lossy([forward.clone(), forward], "1%");
    let mut path = NativePath::established(links, Algorithm::Bbr3);
    let mut back = 0;
    let block = [7; 10_000];
    path.run_for(Duration::from_secs(2), |path| {
        while path.client.write(&block) == block.len() {}
        while path.server.write(&block) == block.len() {}
        path.server.discard();
        back += path.client.discard();
    });
    assert!(back > 1_000_000, "{back}");
    assert!(path.server.statistics(path.now).received.packets > 3_000);
}

#[test]
fn random_loss_costs_bbr_little() {
    for (mbit, rtt_ms, loss, seconds, least) in [
        (100, 50, "0%", 30, 0.95),
        (100, 50, "1%", 30, 0.88),
        (100, 2, "1%", 10, 0.88),
        (1_000, 100, "1%", 4, 0.9),
    ] {
        let [forward, reverse] = bottleneck(mbit, rtt_ms, 1.0);
        let loss = Loss::Bernoulli(loss.parse().unwrap());
        let forward = LinkConfig { loss: loss.clone(), seed: 5, ..forward };
        let mut path = NativePath::established([forward, reverse], Algorithm::Bbr3);
        path.saturate(Duration::from_secs(2));
        let payload = path.client.payload_bytes() as f64 / 1_500.0 * mbit as f64 * 1e6;
        let share = path.saturate(Duration::from_secs(seconds)) / payload;
        println!("{mbit} Mbit/s x {rtt_ms} ms, {loss:?}: {share:.3}");
        assert!(share > least, "{mbit} Mbit/s x {rtt_ms} ms, {loss:?}: {share:.3}");
    }
}

#[test]
fn reordering_is_learnt_and_no_loss() {
    let [forward, reverse] = bottleneck(100, 40, 1.0);
    let reorder = Some(Reorder { share: "2%".parse().unwrap(), by: ms(3) });
    let forward = LinkConfig { reorder, seed: 5, ..forward };
    let mut path = NativePath::established([forward, reverse], Algorithm::Cubic);
    path.saturate(Duration::from_secs(2));
    let before = path.client.statistics(path.now).sent.retransmitted;
    let goodput = path.saturate(Duration::from_secs(5));
    let statistics = path.client.statistics(path.now);
    assert!(goodput > 60e6, "{:.1} Mbit/s", goodput / 1e6);
    let retransmitted = statistics.sent.retransmitted - before;
    assert!(retransmitted * 500 < statistics.sent.packets, "{retransmitted}");
}

#[test]
fn a_receiver_that_reads_slowly_limits_the_sender_and_nothing_is_lost() {
    let mut path = NativePath::established(bottleneck(500, 20, 1.0), Algorithm::Bbr3);
    let zeros = vec![0; 1 << 16];
    path.run_for(Duration::from_secs(2), |path| while path.client.write(&zeros) > 0 {});
    let statistics = path.client.statistics(path.now);
    assert_eq!(statistics.limit, Some(SendLimit::ReceiveWindow));
    assert!(path.server.statistics(path.now).received.discarded < 10);
    let mut read = 0;
    path.run_for(Duration::from_secs(1), |path| {
        read += path.server.discard();
        while path.client.write(&zeros) > 0 {}
    });
    assert!(read > 30_000_000, "it goes on: {read}");
}

#[test]
fn a_lost_acknowledgement_that_opens_the_window_is_asked_for() {
    let mut path = NativePath::established(bottleneck(500, 20, 1.0), Algorithm::Bbr3);
    let zeros = vec![0; 1 << 16];
    path.run_for(Duration::from_secs(2), |path| while path.client.write(&zeros) > 0 {});
    // All that the server sends is lost while the application reads.
    path.tamper_reverse = |datagram| datagram.clear();
    path.run_for(ms(100), |path| {
        path.server.discard();
    });
    path.tamper_reverse = |_| {};
    let mut read = 0;
    path.run_for(Duration::from_secs(1), |path| {
        read += path.server.discard();
        while path.client.write(&zeros) > 0 {}
    });
    assert!(read > 20_000_000, "{read}");
}

#[test]
fn an_end_with_another_key_is_refused() {
    let links = || unlimited(20);
    let mut path = NativePath::with_keys(links(), Algorithm::Bbr3, (key(9), key(1)));
    path.run_until(|path| path.client.closed().is_some());
    assert_eq!(path.client.closed(), Some(CloseReason::Authentication));
    let mut path = NativePath::with_keys(links(), Algorithm::Bbr3, (key(2), key(9)));
    path.run_for(Duration::from_secs(20), |path| {
        path.client.write(b"secret");
        let mut buffer = [0; 16];
        assert_eq!(path.server.read(&mut buffer), 0);
        assert!(!path.server.is_established());
    });
    // It waits for the right one.
    assert_eq!(path.server.closed(), None);
}

#[test]
fn a_server_without_native_mode_is_no_reason_to_send_in_the_clear() {
    let mut listener = udt::Listener::new([1; 32], 4);
    let (now, mut out) = (Nanos(0), Vec::new());
    let config = config(3, Algorithm::Bbr3);
    let mut client = NativeConnection::client(now, config, SERVER, &identity(1), key(2)).unwrap();
    client.poll_transmit(now, 1, &mut out).unwrap();
    let Ok(udt::Packet::Control(_, udt::Control::Handshake(asked))) = udt::Packet::parse(&out)
    else {
        panic!("no handshake")
    };
    let accepts = path::config(2, path::NATIVE);
    let udt::Incoming::Reply(answer) = listener.on_handshake(now, &CLIENT, &asked, &accepts) else {
        panic!("no answer")
    };
    assert!(answer.len() <= out.len());
    client.receive(now, now, SERVER, [&answer[..]]);
    assert_eq!(client.closed(), Some(CloseReason::NoNativeMode));
}

#[test]
fn a_silent_server_is_given_up_after_three_seconds() {
    let config = config(3, Algorithm::Bbr3);
    let mut client =
        NativeConnection::client(Nanos(0), config, SERVER, &identity(1), key(2)).unwrap();
    let mut out = Vec::new();
    while client.closed().is_none() {
        let now = client.next_timeout().unwrap();
        client.on_timeout(now);
        while client.poll_transmit(now, 1, &mut out).is_some() {}
        assert!(now <= Nanos(0).plus(Duration::from_secs(3)));
    }
    assert_eq!(client.closed(), Some(CloseReason::HandshakeTimeout));
}

#[test]
fn spoofed_requests_get_no_more_than_they_are_and_keep_nothing() {
    let mut server =
        NativeConnection::server(Nanos(0), config(4, Algorithm::Bbr3), identity(2), key(1));
    let mut out = Vec::new();
    let asked = |request, cookie| Handshake {
        version: udt::VERSION,
        socket_type: 1,
        initial_sequence: Sequence::new(0),
        packet_bytes: 1_472,
        flow_window: 100,
        request,
        socket_id: 7,
        cookie,
        peer_address: [0; 4],
        native: Some(99),
    };
    for index in 0..10_000_u32 {
        let from = PeerAddress { address: [3; 16], port: index as u16, zone: 0 };
        let request = if index % 2 == 0 { Request::Induction } else { Request::Conclusion };
        let mut datagram = Vec::new();
        let handshake = udt::Control::Handshake(asked(request, index));
        handshake.write(udt::ControlHeader::default(), &mut datagram);
        server.receive(Nanos(0), Nanos(0), from, [&datagram[..]]);
        while let Some(transmit) = server.poll_transmit(Nanos(0), 1, &mut out) {
            assert_eq!(transmit.to, Some(from));
            assert!(out.len() <= datagram.len());
        }
    }
    assert_eq!(server.next_timeout(), None, "no client is half-open");
    // The right client is served all the same.
    let mut path = NativePath::new(unlimited(20), Algorithm::Bbr3);
    path.server = server;
    path.run_until(|path| path.client.is_established() && path.server.is_established());
}

#[test]
fn third_parties_do_not_disturb_an_open_connection() {
    let mut path = NativePath::established(bottleneck(50, 20, 1.0), Algorithm::Bbr3);
    // What someone on the path can copy: headers with the right connection ID.
    path.tamper = |datagram| {
        if datagram.len() % 3 == 0 {
            let last = datagram.len() - 1;
            datagram[last] ^= 1;
        }
    };
    let mut out = Vec::new();
    for control in [
        udt::Control::Shutdown,
        udt::Control::Ack(udt::Ack { next: Sequence::new(50), full: None }),
        udt::Control::KeepAlive,
    ] {
        for destination in [0, 7] {
            let header = udt::ControlHeader { timestamp_us: 0, destination };
            out.clear();
            control.write(header, &mut out);
            let (now, from) = (path.now, CLIENT);
            path.server.receive(now, now, from, [&out[..]]);
            path.client.receive(now, now, SERVER, [&out[..]]);
        }
    }
    path.tamper = |_| {};
    let time = path.transfer(2_000_000);
    assert!(time < 2.0, "{time:.2}");
}

#[test]
fn a_replayed_or_changed_packet_changes_nothing() {
    let mut path = NativePath::established(unlimited(10), Algorithm::Bbr3);
    path.client.write(b"once");
    let mut out = Vec::new();
    let now = path.now;
    let mut sent = Vec::new();
    while path.client.poll_transmit(now, 1, &mut out).is_some() {
        sent.push(out.clone());
    }
    let mut buffer = [0; 16];
    for datagram in &sent {
        for at in 0..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 0x10;
            path.server.receive(now, now, CLIENT, [&changed[..]]);
            assert_eq!(path.server.read(&mut buffer), 0);
            assert_eq!(path.server.closed(), None);
        }
        let before = path.server.statistics(now).received.packets;
        for _ in 0..3 {
            path.server.receive(now, now, CLIENT, [&datagram[..]]);
        }
        assert!(path.server.statistics(now).received.packets <= before + 1);
    }
    assert_eq!(path.server.read(&mut buffer), 4);
}

#[test]
fn a_client_may_change_its_address() {
    let mut path = NativePath::established(bottleneck(20, 40, 1.0), Algorithm::Bbr3);
    path.saturate(Duration::from_secs(2));
    let moved = PeerAddress { address: [8; 16], port: 9, zone: 0 };
    path.client_address = moved;
    path.saturate(Duration::from_secs(2));
    assert_eq!(path.server.peer_address(), Some(moved));
    let goodput = path.saturate(Duration::from_secs(3));
    assert!(goodput > 15e6, "{:.1} Mbit/s", goodput / 1e6);
}

#[test]
fn an_address_that_does_not_answer_gets_three_times_what_came_from_it() {
    let mut path = NativePath::established(unlimited(10), Algorithm::Bbr3);
    path.client.write(b"hello");
    let (now, mut out) = (path.now, Vec::new());
    path.client.poll_transmit(now, 1, &mut out).unwrap();
    // Someone on the path sends the client's packet from a victim's address.
    let victim = PeerAddress { address: [66; 16], port: 66, zone: 0 };
    path.server.receive(now, now, victim, [&out[..]]);
    path.run_for(Duration::from_secs(20), |_| {});
    assert_eq!(path.server.peer_address(), Some(CLIENT));
    assert!(path.sent_elsewhere > 0 && path.sent_elsewhere <= 3 * out.len());
}

#[test]
fn idle_connections_stay_open_and_broken_ones_end() {
    let mut path = NativePath::established(unlimited(20), Algorithm::Bbr3);
    path.run_for(Duration::from_secs(120), |_| {});
    assert!(path.client.is_established() && path.server.is_established());
    path.tamper = |datagram| datagram.clear();
    path.run_for(Duration::from_secs(31), |_| {});
    assert_eq!(path.server.closed(), Some(CloseReason::TimedOut));
}

#[test]
fn the_queue_of_the_path_shows_in_one_way_delays() {
    let mut path = NativePath::established(bottleneck(20, 40, 4.0), Algorithm::Cubic);
    path.saturate(Duration::from_secs(20));
    let mut most = Duration::ZERO;
    let zeros = vec![0; 1 << 16];
    path.run_for(Duration::from_secs(5), |path| {
        while path.client.write(&zeros) > 0 {}
        path.server.discard();
        let queueing = path.client.statistics(path.now).queueing.unwrap();
        most = most.max(Duration::from_nanos(queueing.nanos()));
    });
    assert!((ms(60)..ms(170)).contains(&most), "{most:?}");
}

/// A wake-up for each packet would cost more than the packets.
#[test]
fn high_rates_leave_in_trains() {
    let mut path = NativePath::established(bottleneck(1_000, 20, 1.0), Algorithm::Bbr3);
    path.saturate(Duration::from_secs(1));
    let before = (path.packets, path.trains);
    path.saturate(Duration::from_secs(1));
    let mean = (path.packets - before.0) as f64 / (path.trains - before.1) as f64;
    assert!(mean > 20.0, "{mean:.1} packets a train");
}

/// Packets that come later than sixteen acknowledgements ago are acknowledged all the same.
#[test]
fn very_late_packets_are_no_loss_either() {
    let [forward, reverse] = bottleneck(50, 60, 1.0);
    let reorder = Some(Reorder { share: "5%".parse().unwrap(), by: ms(45) });
    let forward = LinkConfig { reorder, seed: 5, ..forward };
    let mut path = NativePath::established([forward, reverse], Algorithm::Bbr3);
    let time = path.transfer(10_000_000);
    assert!(time < 5.0, "{time:.1} s");
    // The last one alone is late.
    path.run_for(ms(500), |_| {});
    assert!(path.client.is_flushed());
}

#[test]
fn a_client_that_the_server_has_given_up_begins_anew() {
    let mut path = NativePath::new(unlimited(100), Algorithm::Bbr3);
    // The answer with the server's ID is on its way.
    path.run_for(ms(160), |_| {});
    let anew = NativePath::new(unlimited(100), Algorithm::Bbr3).server;
    path.server = anew;
    path.run_until(|path| path.client.is_established() && path.server.is_established());
    assert!(path.now < Nanos(0).plus(Duration::from_secs(2)));
    path.transfer(10_000);
}

#[test]
fn what_is_closed_before_it_is_open_stays_closed() {
    let mut path = NativePath::new(unlimited(20), Algorithm::Bbr3);
    path.client.close();
    assert_eq!(path.client.closed(), Some(CloseReason::Local));
    let mut path = NativePath::new(unlimited(20), Algorithm::Bbr3);
    path.client.finish();
    path.run_until(|path| path.server.is_established());
    path.run_for(Duration::from_secs(1), |path| {
        path.server.discard();
    });
    assert!(path.server.is_finished());
}
