use super::*;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn the_layout_matches_the_kernel() {
    // Offsets of include/uapi/linux/tcp.h: an error would shift all later fields.
    assert_eq!(offset_of!(Raw, rto), 8);
    assert_eq!(offset_of!(Raw, pacing_rate), 104);
    assert_eq!(offset_of!(Raw, delivery_rate), 160);
    assert_eq!(offset_of!(Raw, delivered), 192);
    assert_eq!(offset_of!(Raw, snd_wnd), 228);
    assert_eq!(offset_of!(Raw, rcv_wnd), 232);
    assert_eq!(size_of::<Raw>(), 248);
}

#[test]
fn a_live_connection_is_read() {
    let (mut near, mut far) = pair();
    near.write_all(&[7; 5000]).unwrap();
    far.read_exact(&mut [0; 5000]).unwrap();
    let info = TcpInfo::of(&near).unwrap();
    assert_eq!(info.state, 1);
    assert!(info.snd_mss > 500 && info.snd_cwnd > 0, "{info:?}");
    assert!(info.snd_wscale <= 14 && info.rcv_wscale <= 14);
    assert_eq!(info.snd_ssthresh, None);
    assert_eq!(TcpInfo::of(&far).unwrap().bytes_received, Some(5000));
    assert!(MemInfo::of(&far).unwrap().receive_buffer > 1000);
}

#[test]
fn fields_beyond_a_short_struct_are_none() {
    let raw = Raw { min_rtt: 5, snd_wnd: 9, rtt: 7, wscales: 0xa7, flags: 3, ..Raw::default() };
    let old = TcpInfo::decode(&raw, 104);
    assert_eq!((old.rtt_us, old.min_rtt_us, old.snd_wnd, old.busy_us), (7, None, None, None));
    assert_eq!((old.snd_wscale, old.rcv_wscale), (7, 10));
    assert!(old.delivery_rate_app_limited);
    // One byte short of snd_wnd, and just enough.
    assert_eq!(TcpInfo::decode(&raw, 231).snd_wnd, None);
    assert_eq!(TcpInfo::decode(&raw, 232).snd_wnd, Some(9));
}

#[test]
fn unknown_values_are_none() {
    let raw = Raw {
        min_rtt: u32::MAX,
        snd_ssthresh: INFINITE_SSTHRESH,
        pacing_rate: u64::MAX,
        ..Raw::default()
    };
    let info = TcpInfo::decode(&raw, size_of::<Raw>());
    assert_eq!((info.min_rtt_us, info.snd_ssthresh, info.pacing_rate), (None, None, None));
}

#[test]
fn congestion_control_is_set_and_refused() {
    let (near, _far) = pair();
    set_congestion(&near, "reno").unwrap();
    assert_eq!(congestion(&near).unwrap(), "reno");
    for name in ["", "nonesuch", "a-name-that-is-much-too-long", "re\no"] {
        let error = set_congestion(&near, name).unwrap_err();
        assert!(matches!(error, CongestionError::Unknown { .. }), "{name}: {error}");
        assert!(error.to_string().contains("reno"), "{error}");
    }
    assert!(TcpInfo::of(&std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
}
