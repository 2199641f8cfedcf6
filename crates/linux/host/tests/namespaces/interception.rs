//! A namespace whose connections to any address are accepted by one listener.

use host::diversion::Diverted;
use host::netlink::{Netlink, Route};
use host::netns::NetNs;
use host::program::{Identity, Reaper, Streams};

use host::sysctl;
use host::tproxy::{Arriving, Tproxy};
use host::transparent::{self, Accepting};
use host::veth::Veth;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::role::TIMEOUT;

/// Addresses of the namespace's own, by which connections come.
const OWN: [&str; 2] = ["192.0.0.1", "fd00::1"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Runs in a sandbox.
pub(crate) fn run() -> i32 {
    let namespace = NetNs::create().unwrap();
    namespace.run(intercepted).unwrap();
    programs_are_the_caller(&namespace);
    0
}

fn intercepted() {
    let netlink = Netlink::open().unwrap();
    let lo = netlink.index("lo").unwrap();
    netlink.bring_up(lo, None, None).unwrap();
    for own in OWN.map(address) {
        netlink.add_address(lo, own).unwrap();
        netlink.own_all_addresses(lo, own).unwrap();
    }
    let listener = transparent::listen(Accepting::Anywhere, 0).unwrap();
    let port = listener.local_addr().unwrap().port();
    let rules = Tproxy::start("longhaul", port, Arriving::Anywhere { except: 53 }).unwrap();

    for (target, own) in [("198.51.100.7:443", OWN[0]), ("[2001:db8::7]:65535", OWN[1])] {
        let target: SocketAddr = target.parse().unwrap();
        let mut client = TcpStream::connect_timeout(&target, TIMEOUT).unwrap();
        assert_eq!(client.local_addr().unwrap().ip(), address(own));
        let (mut server, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_canonical(), address(own));
        let local = server.local_addr().unwrap();
        assert_eq!((local.ip().to_canonical(), local.port()), (target.ip(), target.port()));
        client.write_all(b"there").unwrap();
        server.write_all(b"back").unwrap();
        drop(server);
        let mut read = String::new();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        // Unread bytes make the end a RST; what came before it is there.
        let _ = client.read_to_string(&mut read);
        assert_eq!(read, "back");
    }

    // Programs may connect to their own servers.
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    TcpStream::connect(own.local_addr().unwrap()).unwrap();
    assert!(own.accept().unwrap().1.ip().is_loopback());
    let refused = |text: &str| {
        let target: SocketAddr = text.parse().unwrap();
        TcpStream::connect_timeout(&target, TIMEOUT).unwrap_err().kind()
    };
    assert_eq!(refused("127.0.0.1:1"), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(refused("198.51.100.7:53"), std::io::ErrorKind::ConnectionRefused);
    // QUIC falls back to TCP at once.
    let quic = UdpSocket::bind("0.0.0.0:0").unwrap();
    quic.connect("198.51.100.7:443").unwrap();
    quic.set_read_timeout(Some(TIMEOUT)).unwrap();
    quic.send(b"initial").unwrap();
    let error = quic.recv(&mut [0; 9]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);

    drop(rules);
    assert_eq!(refused("198.51.100.7:443"), std::io::ErrorKind::ConnectionRefused);
}

/// A gateway between a client and nowhere: what comes from the client is accepted.
pub(crate) fn gateway() -> i32 {
    let [gateway, client, outside] = [(); 3].map(|()| NetNs::create().unwrap());
    const ENDS: [[&str; 2]; 2] = [["10.0.0.1", "fd00::1"], ["10.0.0.2", "fd00::2"]];
    const UPLINK: [[&str; 2]; 2] = [["10.1.0.1", "fd01::1"], ["10.1.0.2", "fd01::2"]];
    let prepare = |device: &str, [own, peer]: [[&str; 2]; 2], gateway: bool| {
        let netlink = Netlink::open().unwrap();
        let lo = netlink.index("lo").unwrap();
        netlink.bring_up(lo, None, None).unwrap();
        let device = netlink.index(device).unwrap();
        netlink.bring_up(device, None, None).unwrap();
        for (own, peer) in own.map(address).into_iter().zip(peer.map(address)) {
            netlink.add_address(device, own).unwrap();
            let host = if own.is_ipv4() { 32 } else { 128 };
            let any = if own.is_ipv4() { "0.0.0.0" } else { "::" };
            let route = |prefix, length| Route {
                device,
                prefix,
                length,
                source: Some(own),
                congestion: None,
            };
            netlink.add_routes([route(peer, host)]).unwrap();
            if !gateway {
                netlink.add_routes([route(address(any), 0)]).unwrap();
            }
        }
    };
    for (name, to, ends) in [("lan", &client, ENDS), ("wan", &outside, UPLINK)] {
        let pair = Veth { name, peer: "up", address: [2, 0, 0, 0, 0, 1], longest_train: None };
        gateway.run(|| Netlink::open().unwrap().add_veth(pair, to).unwrap()).unwrap();
        gateway.run(|| prepare(name, [ends[0], ends[1]], true)).unwrap();
        to.run(|| prepare("up", [ends[1], ends[0]], false)).unwrap();
    }
    let connect = |to: &str| {
        let to: SocketAddr = to.parse().unwrap();
        client.run(|| TcpStream::connect_timeout(&to, TIMEOUT).map(drop)).unwrap()
    };
    // What is not diverted is dropped: the gateway does not forward.
    let is_dropped = |to: &str| {
        let (to, brief) = (to.parse().unwrap(), Duration::from_millis(200));
        client.run(|| TcpStream::connect_timeout(&to, brief)).unwrap().is_err()
    };
    let is_accepted = |listener: &TcpListener, to: &str| {
        connect(to).unwrap();
        let (stream, from) = listener.accept().unwrap();
        let local = stream.local_addr().unwrap();
        let to: SocketAddr = to.parse().unwrap();
        assert_eq!((local.ip().to_canonical(), local.port()), (to.ip(), to.port()));
        assert!(ENDS[1].map(address).contains(&from.ip().to_canonical()));
    };
    let netlink = gateway.run(|| Netlink::open().unwrap()).unwrap();
    let listener = gateway.run(|| transparent::listen(Accepting::At("lan"), 443).unwrap()).unwrap();
    let ports = Diverted::Ports { device: "lan".to_owned(), ports: vec![443..=443, 8000..=8999] };
    gateway.run(|| netlink.divert(&ports).unwrap()).unwrap();
    is_accepted(&listener, "198.51.100.7:443");
    is_accepted(&listener, "[2001:db8::7]:443");
    assert!(is_dropped("198.51.100.7:80"));
    // The listener is the device's: not that of the uplink, not that of the gateway's programs.
    let refused = |from: &NetNs, to: &str| {
        let to: SocketAddr = to.parse().unwrap();
        let connected = from.run(|| TcpStream::connect_timeout(&to, TIMEOUT)).unwrap();
        assert_eq!(connected.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused, "{to}");
    };
    for own in ["10.1.0.1:443", "[fd01::1]:443"] {
        refused(&outside, own);
    }
    for own in ["127.0.0.1:443", "10.1.0.1:443", "[fd01::1]:443"] {
        refused(&gateway, own);
    }
    let is_own = |text: &str| {
        let address = text.parse().unwrap();
        gateway.run(|| transparent::is_own(address)).unwrap()
    };
    for own in ["10.0.0.1:443", "10.1.0.1:1", "[fd00::1]:443", "127.0.0.9:1", "[::1]:9"] {
        assert!(is_own(own), "{own}");
    }
    for other in ["10.0.0.2:443", "198.51.100.7:443", "[fd00::2]:443", "[2001:db8::7]:443"] {
        assert!(!is_own(other), "{other}");
    }
    // A second start finds what the first one left.
    assert!(gateway.run(|| netlink.divert(&ports)).unwrap().is_err());
    assert_eq!(gateway.run(|| netlink.end_diversion().unwrap()).unwrap(), 4);
    assert_eq!(gateway.run(|| netlink.end_diversion().unwrap()).unwrap(), 0);
    assert!(is_dropped("198.51.100.7:443"));

    let rules = gateway.run(|| Tproxy::start("longhaul", 443, Arriving::At("lan")).unwrap());
    gateway.run(|| netlink.divert(&Diverted::Marked).unwrap()).unwrap();
    is_accepted(&listener, "198.51.100.7:80");
    is_accepted(&listener, "[2001:db8::7]:65535");
    // The gateway's own services.
    let own = connect("10.0.0.1:22").unwrap_err().kind();
    assert_eq!(own, std::io::ErrorKind::ConnectionRefused);
    // Servers behind the gateway answer those outside.
    let forwarding = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    gateway.run(|| forwarding.map(|name| sysctl::write(name, "1").unwrap())).unwrap();
    for address in ENDS[1].map(address) {
        let server = client.run(|| TcpListener::bind((address, 8080)).unwrap()).unwrap();
        let to = server.local_addr().unwrap();
        outside.run(|| TcpStream::connect_timeout(&to, TIMEOUT).unwrap()).unwrap();
        assert!(UPLINK[1].map(self::address).contains(&server.accept().unwrap().1.ip()));
    }
    gateway.run(|| forwarding.map(|name| sysctl::write(name, "0").unwrap())).unwrap();
    drop(rules);
    assert!(is_dropped("198.51.100.7:80"));
    assert_eq!(gateway.run(|| netlink.end_diversion().unwrap()).unwrap(), 2);
    0
}

/// User and group are those outside, without privileges for anyone but root.
fn programs_are_the_caller(namespace: &NetNs) {
    let mut reaper = Reaper::start(None);
    reaper.set_identity(Identity::Caller);
    let (user, root) = (host::sandbox::user(), host::sandbox::user() == 0);
    let test = format!("test $(id -u) = {user} && ! ip link set lo down 2> /dev/null");
    let test = if root { "test $(id -u) = 0" } else { &test };
    let words = ["sh", "-c", test].map(Into::into);
    let program = reaper.start_program(namespace, &words, Streams::Errors).unwrap();
    assert_eq!(program.wait_at_most(TIMEOUT), Some(0));
}
