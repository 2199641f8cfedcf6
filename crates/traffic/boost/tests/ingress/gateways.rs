//! A gateway with one host behind it, beside far and servers.

use crate::stage::{SERVERS, inside};
use boost::gateway::{self, CleanedUp, Gateway};
use boost::program::{NetworkError, Ports, ProgramNetwork};
use boost::{Ending, Event, Listener, Near, Transparent, sockets};
use host::diversion::Diverted;
use host::netlink::{Netlink, Route};
use host::netns::NetNs;
use host::stop::StopFlag;
use host::veth::Veth;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(30);

const GATEWAY: &str = "10.0.0.1";
const CLIENT: &str = "10.0.0.2";

pub(crate) fn alone() {
    inside("gateway");
}

fn connect_to_client(client: &NetNs) {
    let pair = Veth { name: "lan", peer: "up", address: [2, 0, 0, 0, 0, 1], longest_train: None };
    Netlink::open().unwrap().add_veth(pair, client).unwrap();
    let prepare = |device: &str, own: &str, to: &str, length: u8| {
        let netlink = Netlink::open().unwrap();
        let device = netlink.index(device).unwrap();
        netlink.bring_up(device, None, None).unwrap();
        let (own, prefix): (IpAddr, IpAddr) = (own.parse().unwrap(), to.parse().unwrap());
        netlink.add_address(device, own).unwrap();
        let source = Some(own);
        netlink.add_routes([Route { device, prefix, length, source, congestion: None }]).unwrap();
    };
    prepare("lan", GATEWAY, CLIENT, 32);
    client.run(|| prepare("up", CLIENT, "0.0.0.0", 0)).unwrap();
}

/// Runs in a sandbox.
pub(crate) fn play(near: Near) {
    // Locks are there, beside those of the host.
    let own = ["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"];
    assert!(Command::new("mount").args(own).status().unwrap().success());
    let client = NetNs::create().unwrap();
    connect_to_client(&client);
    let lan =
        |ports: &[u16]| Gateway { device: "lan".to_owned(), ports: Ports::Listed(ports.into()) };
    // The servers' port.
    let failed = lan(&[80]).open().unwrap_err();
    assert!(matches!(failed, NetworkError::PortInUse(80)), "{failed}");
    let mut diversion = lan(&[82, 81, 81]).open().unwrap();

    // All listeners for applications have the same buffer.
    let any = sockets::application_listener(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let wanted = host::socket::receive_buffer(&any).unwrap();
    let mut network = ProgramNetwork::create(&Ports::Listed(vec![80])).unwrap();
    for listener in network.take_listeners().iter().chain(&diversion.listeners) {
        assert_eq!(host::socket::receive_buffer(listener).unwrap(), wanted);
    }

    // Neither a second start nor its supervisor touches the rules of the first one.
    for ports in [&[83][..], &[80], &[81]] {
        let failed = lan(ports).open().unwrap_err();
        assert!(matches!(failed, NetworkError::Running), "{failed}");
        assert_eq!(gateway::clean_up().unwrap(), CleanedUp::Running);
    }

    let (sender, events) = channel();
    let (stop, drain) = (StopFlag::new(), StopFlag::new());
    let (is_own, accepts_while_draining) = (host::transparent::is_own, true);
    let ingress = Arc::new(Transparent { name_server: None, is_own, accepts_while_draining });
    let listeners = diversion.listeners.drain(..);
    let listeners = listeners.map(|socket| Listener { socket, ingress: ingress.clone() }).collect();
    let (ending, report) = ((stop.clone(), drain), move |event| sender.send(event).unwrap());
    let serving = std::thread::spawn(move || {
        near.serve(listeners, Ending { stop: &ending.0, drain: &ending.1 }, &report).unwrap();
    });
    let next = |is_wanted: fn(&Event) -> bool| {
        let next = || events.recv_timeout(TIMEOUT).unwrap();
        std::iter::repeat_with(next).find(is_wanted).unwrap()
    };
    let end = |to: &str| {
        let to: SocketAddr = to.parse().unwrap();
        // The reset may arrive before connect(2) returns.
        let read = |mut stream: TcpStream| {
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.read(&mut [0])
        };
        let connect = || TcpStream::connect_timeout(&to, TIMEOUT);
        client.run(connect).unwrap().and_then(read).unwrap_err().kind()
    };
    // Far has no route there.
    assert_eq!(end("198.51.100.9:81"), ErrorKind::ConnectionReset);
    let Event::FlowEnded(flow) = next(|event| matches!(event, Event::FlowEnded(_))) else { return };
    assert_eq!(flow.target.to_string(), "198.51.100.9:81");
    for own in [GATEWAY, SERVERS[0]] {
        assert_eq!(end(&format!("{own}:81")), ErrorKind::ConnectionReset);
        let is_end =
            |event: &Event| matches!(event, Event::FlowEnded(_) | Event::RequestRefused { .. });
        let event = next(is_end);
        assert!(matches!(event, Event::RequestRefused { .. }), "{event:?}");
    }
    // Not at the device.
    let local = TcpStream::connect((SERVERS[0], 81)).unwrap_err();
    assert_eq!(local.kind(), ErrorKind::ConnectionRefused);

    stop.raise();
    serving.join().unwrap();
    drop(diversion);
    // Rules that nobody holds the lock of, as after kill -9, go.
    let netlink = Netlink::open().unwrap();
    netlink.divert(&Diverted::Marked).unwrap();
    assert_eq!(gateway::clean_up().unwrap(), CleanedUp::Whole);
    assert_eq!(netlink.end_diversion().unwrap(), 0);
    drop(lan(&[81]).open().unwrap());
}
