//! Messages arrive whole, in the order asked for, or are dropped.

use crate::path::{NATIVE, PAYLOAD, Path, bottleneck, config, ms, pattern};
use link::{LinkConfig, Loss, PacketList};
use std::sync::Arc;
use std::time::Duration;
use udt::{Config, SocketType};

fn messages() -> Config {
    Config { socket_type: SocketType::Message, ..config(1, NATIVE) }
}

/// The path with these packets of the client lost, by number from 1. Two are of the
/// handshake.
fn losing(packets: &[u64]) -> Path {
    let [forward, reverse] = bottleneck(20, 20, 2.0);
    let list: PacketList = packets.iter().map(|packet| *packet..=*packet).collect();
    let lossy = LinkConfig { loss: Loss::List(Arc::new(list)), ..forward };
    Path::established([lossy, reverse], messages())
}

/// Reads until nothing has arrived for a second.
fn read_all(path: &mut Path) -> Vec<Vec<u8>> {
    let mut read = Vec::new();
    path.run_for(Duration::from_secs(1), |path| {
        let mut buffer = [0; 100_000];
        while let Some(length) = path.server().read_message(&mut buffer) {
            read.push(buffer[..length.unwrap()].to_vec());
        }
    });
    read
}

#[test]
fn messages_keep_their_boundaries() {
    let lengths = [1, PAYLOAD as usize, PAYLOAD as usize + 1, 50_000, 0, 7];
    let sent: Vec<Vec<u8>> =
        lengths.iter().zip(0..).map(|(length, at)| pattern(at, *length)).collect();
    let mut path = losing(&[]);
    for message in &sent {
        assert!(path.client.write_message(message, true, None));
    }
    assert_eq!(read_all(&mut path), sent);
    assert_eq!(path.client.write(b"no stream"), 0);
}

#[test]
fn a_buffer_that_is_too_short_leaves_the_message() {
    let mut path = losing(&[]);
    assert!(path.client.write_message(b"message", true, None));
    path.run_for(ms(100), |_| {});
    assert_eq!(path.server().read_message(&mut [0; 3]), Some(Err(7)));
    assert_eq!(path.server().read_message(&mut [0; 9]), Some(Ok(7)));
    assert_eq!(path.server().read_message(&mut [0; 9]), None);
}

#[test]
fn a_message_longer_than_the_buffer_is_not_accepted() {
    let mut path = losing(&[]);
    let longest = path.client.max_message();
    assert!(!path.client.write_message(&vec![0; longest + 1], true, None));
    assert!(path.client.write_message(&vec![0; longest], true, None));
}

#[test]
fn only_messages_in_order_wait_for_a_lost_one() {
    for (in_order, expected) in [(true, *b"abcd"), (false, *b"bcda")] {
        // The first message is lost.
        let mut path = losing(&[3]);
        for name in *b"abcd" {
            assert!(path.client.write_message(&[name; 3_000], in_order, None));
        }
        let names: Vec<u8> = read_all(&mut path).iter().map(|message| message[0]).collect();
        assert_eq!(names, expected, "in order: {in_order}");
    }
}

#[test]
fn a_message_that_is_late_is_dropped_and_the_next_delivered() {
    let mut path = losing(&[3]);
    let expires = path.now.plus(ms(5));
    assert!(path.client.write_message(&[b'a'; 3_000], true, Some(expires)));
    assert!(path.client.write_message(&[b'b'; 3_000], true, None));
    let read = read_all(&mut path);
    assert_eq!(read, [vec![b'b'; 3_000]]);
    assert!(path.client.is_flushed());
}
