//! The network of a test: near, far and servers, with addresses of documentation as if they were
//! public, and no way out.

use boost::destination::Destinations;
use boost::program::{NameServer, Ports, Program, Signals};
use boost::{
    Ending, Event, Far, FarConfig, LaneOptions, Listener, Near, NearConfig, PairKey, Proxy,
    Timeouts, keys, sockets,
};
use control::Algorithm;
use host::clock;
use host::netlink::Netlink;
use host::netns::{self, NetNs};
use host::sandbox::{self, Ended};
use host::stop::StopFlag;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The environment variable with a role's name; arguments follow.
const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// `nobody` on every system.
const USER: &str = "65534";

/// The servers' addresses: HTTP at port 80, a sink at port 9, one at port 7 that answers a second
/// after the end and never closes; and the name server's.
pub(crate) const SERVERS: [&str; 2] = ["198.51.100.7", "2001:db8::7"];
const NAME_SERVER: &str = "192.0.2.53";

/// Where near's proxy listens; the token is "secret" at the second one.
pub(crate) const PROXY: &str = "127.0.0.1:1080";
pub(crate) const PROXY_WITH_TOKEN: &str = "127.0.0.1:1081";

/// Destinations that far allows.
const ALLOWED: [&str; 4] = ["198.51.100.0/24:1-65535", "[2001:db8::/32]:*", "*:80", "localhost:80"];

pub(crate) fn is_asked() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// True if a test's network can be made, also as an ordinary user.
pub(crate) fn is_available(as_user: bool) -> bool {
    let made = play(as_user, "program", &["far", "all", "true"]);
    made.is_ok_and(|output| output.status.success())
}

fn command(as_user: bool, role: &str, arguments: &[&str]) -> Command {
    let mut command = if as_user {
        // The user may not be able to reach the program: passes a copy as standard input.
        let mut command = Command::new("setpriv");
        let ids = [format!("--reuid={USER}"), format!("--regid={USER}")];
        command.args(ids).args(["--clear-groups", "/proc/self/fd/0"]);
        command.stdin(std::fs::File::open("/proc/self/exe").unwrap());
        command
    } else {
        let mut command = Command::new("/proc/self/exe");
        command.stdin(Stdio::null());
        command
    };
    command.env(ROLE, role).args(arguments);
    command
}

/// What this program prints in a role.
fn play(as_user: bool, role: &str, arguments: &[&str]) -> std::io::Result<Output> {
    command(as_user, role, arguments).output()
}

/// A command in a network of its own, behind near.
pub(crate) fn program(name_server: &str, ports: &str, words: &[&str]) -> Output {
    play(false, "program", &[&[name_server, ports], words].concat()).unwrap()
}

/// The same, with `--mux`.
pub(crate) fn program_over_mux(words: &[&str]) -> Output {
    play(false, "mux", &[&["far", "all"], words].concat()).unwrap()
}

/// The same, started as an ordinary user.
pub(crate) fn program_of_user(words: &[&str]) -> Output {
    play(true, "program", &[&["far", "all"], words].concat()).unwrap()
}

/// The same, still running.
pub(crate) fn start_program(words: &[&str]) -> Command {
    command(false, "program", &[&["far", "all"], words].concat())
}

/// The same, with a far box that never answers.
pub(crate) fn start_unanswered(words: &[&str]) -> Command {
    command(false, "silent", &[&["far", "all"], words].concat())
}

/// A command in the network of near and far, where the proxy listens.
pub(crate) fn beside(words: &[&str]) -> Output {
    play(false, "beside", words).unwrap()
}

/// A test's function in the network of near and far.
pub(crate) fn inside(name: &str) {
    let output = play(false, name, &[]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Plays the role in a sandbox.
pub(crate) fn run() -> i32 {
    let role = std::env::var(ROLE).unwrap();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match sandbox::run(|| in_sandbox(&role, &words)).unwrap() {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

fn in_sandbox(role: &str, words: &[OsString]) -> i32 {
    let configuration = format!("nameserver {NAME_SERVER}\noptions timeout:2 attempts:2\n");
    sandbox::bind_file(c"/etc/resolv.conf", &configuration).unwrap();
    let network = NetNs::create().unwrap();
    netns::enter(network.as_fd()).unwrap();
    addresses();
    servers();
    let far = if role == "silent" { start_silent_far() } else { start_far() };
    // Without a key, a lane is ready once TCP is.
    let key = || PairKey::of_near(&keys::generate().unwrap()[0]).unwrap();
    let key = || (role == "silent").then(key);
    let mux = role == "mux";
    let near = || Near::new(NearConfig { key: key(), mux, ..near_config(far) });
    match role {
        "program" | "mux" | "silent" => {
            let (name_server, ports) = (words[0].to_str().unwrap(), words[1].to_str().unwrap());
            let program = Program {
                command: words[2..].to_vec(),
                name_server: match name_server {
                    "far" => NameServer::Far,
                    _ => NameServer::Near,
                },
                ports: match ports {
                    "all" => Ports::All,
                    ports => {
                        Ports::Listed(ports.split(',').map(|port| port.parse().unwrap()).collect())
                    }
                },
            };
            let report = |event| match event {
                Event::FlowEnded(flow) if flow.end.is_reset() => eprintln!("reset: {:?}", flow.end),
                _ => {}
            };
            match program.run(&near(), &Signals::watch(), &report) {
                Ok(ran) => ran.code,
                Err(error) => {
                    eprintln!("{error}");
                    99
                }
            }
        }
        "beside" => {
            start_proxies(near());
            let status = Command::new(&words[0]).args(&words[1..]).status().unwrap();
            status.code().unwrap_or(100)
        }
        "gateway" => {
            crate::gateways::play(near());
            0
        }
        name => {
            let events = start_proxies(near());
            crate::attacks::play(name, &events);
            0
        }
    }
}

fn addresses() {
    let netlink = Netlink::open().unwrap();
    let lo = netlink.index("lo").unwrap();
    netlink.bring_up(lo, None, None).unwrap();
    for address in SERVERS.into_iter().chain([NAME_SERVER]) {
        netlink.add_address(lo, address.parse().unwrap()).unwrap();
    }
    // The kernel makes an IPv6 address usable in a work queue of its own.
    let until = clock::now() + Duration::from_secs(20);
    while UdpSocket::bind((SERVERS[1], 0)).is_err() {
        assert!(clock::now() < until, "{} is still tentative", SERVERS[1]);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn near_config(far: SocketAddr) -> NearConfig {
    NearConfig {
        far: vec![far],
        key: None,
        lanes: 2,
        mux: false,
        udt: None,
        connections: None,
        compresses: false,
        options: LaneOptions::default(),
        timeouts: Timeouts::default(),
        max_flows: 20_000,
        direct_rate: None,
        threads: 1,
    }
}

fn start_far() -> SocketAddr {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = sockets::lane_listener(any, &LaneOptions::default()).unwrap();
    let address = listener.local_addr().unwrap();
    let rules = ALLOWED.map(|rule| rule.parse().unwrap()).to_vec();
    let is_own = Box::new(move |target: SocketAddr| target.port() == address.port());
    let far = Far::new(FarConfig {
        keys: None,
        policy: Arc::new(Destinations::new(rules, is_own)),
        compresses: false,
        udt: Algorithm::Bbr3,
        udt_ports: None,
        timeouts: Timeouts::default(),
        max_lanes: 20_000,
        threads: 1,
    });
    thread::spawn(move || {
        let (stop, drain) = (StopFlag::new(), StopFlag::new());
        far.serve(vec![listener], Ending { stop: &stop, drain: &drain }, &|_| {}).unwrap();
    });
    address
}

/// One that accepts, says so, and never answers.
fn start_silent_far() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let lanes = listener.incoming().inspect(|_| println!("connected"));
        drop(lanes.collect::<Vec<_>>());
    });
    address
}

/// Returns what near reports.
fn start_proxies(near: Near) -> Receiver<Event> {
    let listeners = [(PROXY, None), (PROXY_WITH_TOKEN, Some("secret"))].map(|(address, token)| {
        let socket = sockets::application_listener(address.parse().unwrap()).unwrap();
        let ingress = Arc::new(Proxy { token: token.map(socks::Token::new) });
        Listener { socket, ingress }
    });
    let (sender, events) = channel();
    thread::spawn(move || {
        let (stop, drain) = (StopFlag::new(), StopFlag::new());
        // Most tests do not listen.
        let report = |event| drop(sender.send(event));
        near.serve(listeners.into(), Ending { stop: &stop, drain: &drain }, &report).unwrap();
    });
    events
}

/// HTTP, a sink that answers with the count of bytes, and DNS.
fn servers() {
    for address in SERVERS {
        let listen = |port| TcpListener::bind((address.parse::<IpAddr>().unwrap(), port)).unwrap();
        let (http, sink, keeper) = (listen(80), listen(9), listen(7));
        thread::spawn(move || {
            let kept = keeper.incoming().map(|stream| {
                let mut stream = stream.unwrap();
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                thread::sleep(Duration::from_secs(1));
                // Its client may have gone.
                let _ = stream.write_all(b"late");
                stream
            });
            drop(kept.collect::<Vec<_>>());
        });
        thread::spawn(move || http.incoming().for_each(|stream| serve_http(stream.unwrap())));
        thread::spawn(move || {
            for stream in sink.incoming() {
                let count = std::io::copy(&mut stream.unwrap(), &mut std::io::sink()).unwrap();
                // Standard error is the test's.
                eprintln!("sink: {count} bytes");
            }
        });
    }
    let name_server: IpAddr = NAME_SERVER.parse().unwrap();
    let (udp, tcp) = (
        UdpSocket::bind((name_server, 53)).unwrap(),
        TcpListener::bind((name_server, 53)).unwrap(),
    );
    thread::spawn(move || {
        let mut query = [0; 2000];
        loop {
            let (length, from) = udp.recv_from(&mut query).unwrap();
            udp.send_to(&answer(&query[..length], "udp"), from).unwrap();
        }
    });
    thread::spawn(move || {
        for stream in tcp.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut length = [0; 2];
                while stream.read_exact(&mut length).is_ok() {
                    let mut query = vec![0; u16::from_be_bytes(length).into()];
                    stream.read_exact(&mut query).unwrap();
                    let answer = answer(&query, "tcp");
                    let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                    stream.write_all(&[&length[..], &answer].concat()).unwrap();
                }
            });
        }
    });
}

fn serve_http(mut stream: std::net::TcpStream) {
    thread::spawn(move || {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let body = format!("{} at {}", head.lines().next().unwrap(), stream.local_addr().unwrap());
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all((head + &body).as_bytes()).unwrap();
    });
}

/// `www.example` is the server; `metadata.example` a service that must not be reached; a `big.example`
/// has many records over TCP; no other name exists. `over.example` has the address 198.51.100.1 if
/// it was asked over UDP and .2 over TCP.
fn answer(query: &[u8], over: &str) -> Vec<u8> {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] > 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..at + 1 + length]).into_owned());
        at += 1 + length;
    }
    let end = at + 5;
    let is_a = query[at + 1..at + 3] == [0, 1];
    let name = labels.join(".").to_ascii_lowercase();
    let addresses: Vec<[u8; 4]> = match (name.as_str(), over) {
        ("www.example", _) => vec![[198, 51, 100, 7]],
        ("metadata.example", _) => vec![[169, 254, 169, 254]],
        ("private.example", _) => vec![[10, 0, 0, 1], [127, 0, 0, 1]],
        ("over.example", "udp") => vec![[198, 51, 100, 1]],
        ("over.example", _) => vec![[198, 51, 100, 2]],
        ("big.example", _) => (0..100).map(|last| [198, 51, 100, last]).collect(),
        _ => Vec::new(),
    };
    let exists = !addresses.is_empty();
    let addresses = if is_a { addresses } else { Vec::new() };
    let mut answer = query[..end].to_vec();
    answer[2] |= 0x80;
    answer[3] = if exists { 0x80 } else { 0x83 };
    answer[6..12].copy_from_slice(&[0, addresses.len().try_into().unwrap(), 0, 0, 0, 0]);
    for address in addresses {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address);
    }
    if over == "udp" && answer.len() > 512 {
        answer.truncate(end);
        answer[2] |= 2;
        answer[6..8].copy_from_slice(&[0, 0]);
    }
    answer
}
