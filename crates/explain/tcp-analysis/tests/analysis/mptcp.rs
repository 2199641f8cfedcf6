//! ACKs that carry signals of MPTCP, and subflows that join.

use crate::exchange::{ACK, Exchange, SYN, Sent, sack};
use capture::LinkType;
use capture::dissect::{Layers, dissect};
use sha2::{Digest, Sha256};
use tcp_analysis::{Flags, MptcpConnections, Rules};

/// A DSS option with these flags and a data-level acknowledgement of 4 bytes.
fn dss(flags: u8, ack: u32) -> Vec<u8> {
    [&[30, 8, 0x20, flags | 1][..], &ack.to_be_bytes()].concat()
}

fn is_duplicate(exchange: &mut Exchange, options: Vec<u8>) -> bool {
    exchange.ack_with(2001, 1000, options).flags.has(Flags::DUPLICATE_ACK)
}

#[test]
fn signals_are_no_duplicates() {
    let mut exchange = Exchange::open(Rules::Wireshark44);
    exchange.data(1001, 1000);
    exchange.ack_with(2001, 1000, dss(0, 7));
    // What repeats without a change is one.
    assert!(is_duplicate(&mut exchange, dss(0, 7)));
    let add_address = vec![30, 8, 0x30, 4, 10, 0, 1, 1];
    let remove_address = vec![30, 4, 0x40, 4];
    let priority = vec![30, 4, 0x50, 4];
    for signal in [add_address, remove_address, priority, dss(0x10, 7)] {
        assert!(!is_duplicate(&mut exchange, signal.clone()), "{signal:?}");
    }
    // Data of another subflow arrived; with SACK, there is a hole in this one.
    assert!(!is_duplicate(&mut exchange, dss(0, 8)));
    assert!(is_duplicate(&mut exchange, [dss(0, 9), sack(&[(3001, 4001)])].concat()));
    assert!(is_duplicate(&mut exchange, Vec::new()));
}

/// Adds a segment of the stream.
fn add(connections: &mut MptcpConnections, stream: u32, flags: u16, options: Vec<u8>) {
    let bytes = Sent { flags, options, ..Sent::default() }.packet();
    let mut layers = Layers::new();
    dissect(LinkType::RAW, &bytes, bytes.len() as u32, &mut layers);
    connections.add(stream, &layers.tcp(&bytes).unwrap());
}

fn capable(version: u8, keys: &[[u8; 8]]) -> Vec<u8> {
    let length = 4 + 8 * keys.len() as u8;
    [&[30, length, version, 0x81][..], keys.as_flattened()].concat()
}

fn join(token: [u8; 4]) -> Vec<u8> {
    [&[30, 12, 0x10, 1][..], &token, &[9; 4]].concat()
}

#[test]
fn subflows_belong_to_the_connection_of_their_token() {
    let (client, server) = ([1; 8], [2; 8]);
    let token = |hash: &[u8]| [hash[0], hash[1], hash[2], hash[3]];
    let mut connections = MptcpConnections::default();
    add(&mut connections, 0, SYN, capable(1, &[]));
    add(&mut connections, 0, SYN | ACK, capable(1, &[server]));
    add(&mut connections, 0, ACK, capable(1, &[client, server]));
    // Another one, of version 0.
    add(&mut connections, 2, SYN, capable(0, &[[3; 8]]));
    add(&mut connections, 3, SYN, Vec::new());
    // From either end; of a connection whose beginning was not captured, twice.
    add(&mut connections, 4, SYN, join(token(&Sha256::digest(server))));
    add(&mut connections, 5, SYN, join(token(&Sha256::digest(client))));
    add(&mut connections, 6, SYN, join(token(&sha1::Sha1::digest([3; 8]))));
    add(&mut connections, 7, SYN, join([7; 4]));
    add(&mut connections, 8, SYN, join([7; 4]));
    assert_eq!(connections.connections(), [vec![0, 4, 5], vec![2, 6], vec![7, 8]]);
    assert_eq!(connections.of(3), None);
    let subflow = connections.of(5).unwrap();
    assert_eq!((subflow.connection, subflow.is_joined), (0, true));
    assert!(!connections.of(0).unwrap().is_joined);
}
