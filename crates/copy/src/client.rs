//! A copy from the user's side.

use crate::hello::{self, ClientHello, MAX_LINE, ServerHello};
use crate::progress::{Figures, Progress};
use crate::receiver;
use crate::server::local_destination;
use crate::ssh::FarEnd;
use crate::transport::tls::Tls;
use crate::transport::udt::{Keys, Udt};
use crate::transport::{Session, Transport};
use crate::{CopyError, sender, sockets, walk};
use control::Algorithm;
use copy_proto::message::{Message, Request};
use host::clock;
use host::stop::StopFlag;
use pinned_tls::{Identity, PublicKey};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};
use units::BitRate;

/// What a TCP connection says that carries the control messages, and any other.
pub(crate) const CONTROL_LANE: &str = "control";
const DATA_LANE: &str = "data";
/// UDP that does not answer within this time is taken for blocked.
const UDT_ANSWER: Duration = Duration::from_millis(2_500);
const CONNECT: Duration = Duration::from_secs(10);
/// Pauses before a copy whose connection failed is continued.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// One end of a copy, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// A path of this host.
    Local(Vec<u8>),
    /// A path of another.
    Remote(Remote),
}

/// A path of another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// `HOST` or `USER@HOST`.
    pub host: String,
    /// Relative to the home directory, or to the server's root.
    pub path: Vec<u8>,
}

/// Which transport to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// UDT; TCP where UDP is blocked.
    Auto,
    /// One of them, or none.
    Only(Transport),
}

/// What to copy, and how.
#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// All local, or all of one host.
    pub sources: Vec<End>,
    /// Local if they are not, and the other way round.
    pub destination: End,
    /// With a token: a `longhaul server --root` runs there. Else ssh starts the far end.
    pub token: Option<String>,
    /// The server's port.
    pub port: u16,
    /// The ssh command with its options.
    pub ssh: Vec<String>,
    /// The program to start over ssh.
    pub far_program: String,
    /// Transport.
    pub transport: Choice,
    /// TCP connections.
    pub streams: u32,
    /// Congestion control of UDT, of what this end sends; a fixed rate also of what the far
    /// end sends.
    pub algorithm: Algorithm,
    /// Most that the sender sends; `None`: what the network takes.
    pub limit: Option<BitRate>,
}

/// What a copy did.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What carried it at the end.
    pub transport: Transport,
    /// Seconds from the request to the end.
    pub seconds: f64,
    /// Share of that time in which the sender waited for the network, 0 to 1; only where
    /// this end sends.
    pub network_limited: Option<f64>,
    /// Share in which the network waited for the sender's disk.
    pub source_limited: f64,
    /// Share in which the network waited for the receiver's disk.
    pub destination_limited: f64,
    /// Times that the connection failed and the copy was continued.
    pub resumed: u32,
    /// What was done.
    pub figures: Figures,
    /// Entries that failed, with the reason: the first 100.
    pub problems: Vec<String>,
}

/// Who sends, once the plan is checked.
enum Direction {
    Upload { sources: Vec<Vec<u8>>, to: Remote },
    Download { host: String, sources: Vec<Vec<u8>>, to: Vec<u8> },
}

/// Copies, and continues where a connection fails. `connected` learns what carries it.
///
/// # Errors
/// Why the copy ended early.
pub fn copy(
    plan: &CopyPlan,
    progress: &Progress,
    stop: &StopFlag,
    connected: &mut dyn FnMut(Transport),
) -> Result<Summary, CopyError> {
    // Without it there are fewer descriptors.
    let _ = host::limits::raise_open_files();
    let direction = direction(plan)?;
    let mut began = None;
    let (mut transport, mut resumed) = (plan.transport, 0);
    loop {
        let (before, attempt_began) = (progress.figures(), clock::now());
        let attempt = Attempt { plan, direction: &direction, transport, progress, stop };
        let error = match attempt.run(connected) {
            Ok(mut summary) => {
                summary.resumed = resumed;
                summary.seconds += began
                    .map_or(0.0, |began: Instant| began.elapsed().as_secs_f64() - summary.seconds);
                return Ok(summary);
            }
            Err(error) => error,
        };
        let (CopyError::Connection(_), Some(pause)) = (&error, PAUSES.get(resumed as usize)) else {
            return Err(error);
        };
        // It never worked.
        if resumed == 0 && progress.figures().listed_entries == 0 {
            return Err(error);
        }
        // UDP that carries nothing may be blocked behind the handshake.
        if progress.figures().written_bytes == before.written_bytes && transport == Choice::Auto {
            transport = Choice::Only(Transport::Tcp);
        }
        let until = clock::now() + *pause;
        while clock::now() < until && !stop.is_raised() {
            std::thread::sleep(Duration::from_millis(50));
        }
        resumed += 1;
        began.get_or_insert(attempt_began);
        progress.restart();
    }
}

fn direction(plan: &CopyPlan) -> Result<Direction, CopyError> {
    let wrong = |text: &str| Err(CopyError::Local(text.to_owned()));
    match &plan.destination {
        End::Remote(to) => {
            let mut sources = Vec::new();
            for source in &plan.sources {
                let End::Local(path) = source else {
                    return wrong("one side is this host: copy to it first, then from it");
                };
                sources.push(path.clone());
            }
            // Everything is checked before a connection is made.
            let found = walk::local_sources(&sources)?;
            walk::check_names(&found)?;
            Ok(Direction::Upload { sources, to: to.clone() })
        }
        End::Local(to) => {
            let (mut sources, mut host) = (Vec::new(), None);
            for source in &plan.sources {
                let End::Remote(remote) = source else {
                    return wrong("one of both sides is HOST:PATH; for local copies use cp");
                };
                if host.get_or_insert(&remote.host) != &&remote.host {
                    return wrong("all sources are on one host");
                }
                sources.push(remote.path.clone());
            }
            let Some(host) = host else { return wrong("nothing to copy") };
            destination(to, &sources)?;
            Ok(Direction::Download { host: host.clone(), sources, to: to.clone() })
        }
    }
}

/// Where a download goes. Only names that were asked for are accepted.
fn destination(to: &[u8], sources: &[Vec<u8>]) -> Result<receiver::Destination, CopyError> {
    let last = |path: &Vec<u8>| {
        path.split(|byte| *byte == b'/')
            .rfind(|name| !matches!(*name, b"" | b"."))
            .map(<[u8]>::to_vec)
    };
    // `.` asks for everything there.
    let expected: Option<Vec<_>> = sources.iter().map(last).collect();
    let has_wildcard = |path: &Vec<u8>| path.iter().any(|byte| b"*?[".contains(byte));
    let is_one = sources.len() == 1 && expected.is_some() && !sources.iter().any(has_wildcard);
    local_destination(to, if is_one { 1 } else { 2 }, expected)
}

struct Attempt<'a> {
    plan: &'a CopyPlan,
    direction: &'a Direction,
    transport: Choice,
    progress: &'a Progress,
    stop: &'a StopFlag,
}

/// A far end that waits for connections.
struct FarSide {
    /// What keeps the far end alive until the copy is over.
    _bootstrap: Box<dyn std::any::Any>,
    identity: Identity,
    key: PublicKey,
    addresses: Vec<IpAddr>,
    udp_port: Option<u16>,
    tcp_port: u16,
}

impl Attempt<'_> {
    fn run(&self, connected: &mut dyn FnMut(Transport)) -> Result<Summary, CopyError> {
        let host = match self.direction {
            Direction::Upload { to, .. } => &to.host,
            Direction::Download { host, .. } => host,
        };
        let far = match &self.plan.token {
            Some(token) => self.reach_server(host, token)?,
            None => self.reach_ssh(host)?,
        };
        let session = &Session::new(self.stop.clone());
        std::thread::scope(|scope| {
            let udt = match self.transport {
                Choice::Only(Transport::Tcp) => None,
                Choice::Auto | Choice::Only(Transport::UdtNative) => self.connect_udt(&far)?,
            };
            let transport = match udt {
                Some(mut udt) => {
                    scope.spawn(move || udt.carry(session, true));
                    Transport::UdtNative
                }
                None if self.transport == Choice::Only(Transport::UdtNative) => {
                    return Err(CopyError::Connection(
                        "UDP does not get through; use --transport tcp".into(),
                    ));
                }
                None => {
                    for (index, mut tls) in self.connect_tcp(&far)?.into_iter().enumerate() {
                        scope.spawn(move || tls.carry(session, index == 0));
                    }
                    Transport::Tcp
                }
            };
            connected(transport);
            let result = self.transfer(session, transport);
            if let Err(error) = &result {
                session.fail(error.clone());
            }
            result
        })
    }

    /// The rate that UDT is to keep.
    fn target(&self) -> Option<BitRate> {
        match self.plan.algorithm {
            Algorithm::FixedRate(rate) => Some(rate),
            _ => None,
        }
    }

    /// Most that file data is sent at: TCP cannot keep a target, but it must not exceed it.
    fn limit_bps(&self, transport: Transport) -> u64 {
        let target = self.target().filter(|_| transport == Transport::Tcp);
        self.plan.limit.or(target).map_or(0, BitRate::bps)
    }

    fn transfer(&self, session: &Session, transport: Transport) -> Result<Summary, CopyError> {
        let began = clock::now();
        let limit_bps = self.limit_bps(transport);
        session.limit(limit_bps);
        let is_upload = match self.direction {
            Direction::Upload { sources, to } => {
                let sources = walk::local_sources(sources)?;
                let count = u32::try_from(sources.len()).unwrap_or(u32::MAX);
                let destination = to.path.clone();
                ask(session, Request::Receive { destination, sources: count })?;
                sender::send(session, self.progress, sources)?;
                true
            }
            Direction::Download { sources, to, .. } => {
                let destination = destination(to, sources)?;
                ask(session, Request::Send { limit_bps, sources: sources.clone() })?;
                receiver::receive(session, self.progress, &destination)?;
                false
            }
        };
        let elapsed = began.elapsed();
        let share =
            |time: Duration| (time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)).min(1.0);
        let (full, empty) = session.waits();
        let figures = self.progress.figures();
        Ok(Summary {
            transport,
            seconds: elapsed.as_secs_f64(),
            network_limited: is_upload.then(|| share(full)),
            source_limited: match is_upload {
                true => share(empty),
                false => share(Duration::from_nanos(figures.sender_waited_ns)),
            },
            destination_limited: share(Duration::from_nanos(figures.receiver_waited_ns)),
            resumed: 0,
            problems: self.progress.problems(),
            figures,
        })
    }

    fn reach_server(&self, host: &str, token: &str) -> Result<FarSide, CopyError> {
        let [own, server] = hello::token_identities(token)?;
        let host = host.rsplit('@').next().unwrap_or(host);
        let mut last = CopyError::Connection(format!("{host} has no address"));
        for address in resolve(host, self.plan.port)? {
            let until = clock::now() + CONNECT;
            let connect = || -> Result<Tls, CopyError> {
                let stream = begin(address, own.public_key())?;
                let mut tls = Tls::client(stream, &own, server.public_key())?;
                tls.handshake(until).map_err(|error| match error {
                    // A server that does not know the key says no more than that.
                    CopyError::Connection(why) => CopyError::Connection(format!(
                        "{why} (in the handshake: has the server this token?)"
                    )),
                    error => error,
                })?;
                Ok(tls)
            };
            match connect() {
                Ok(mut tls) => {
                    let identity = hello::fresh_identity()?;
                    let ours = ClientHello::new(identity.public_key(), self.target());
                    tls.send_line(&hello::write(&ours)?, until)?;
                    let line = tls.receive_line(MAX_LINE, until)?;
                    let hello = hello::read::<ServerHello>(&line)?;
                    let bootstrap = Box::new(tls);
                    return far_side(bootstrap, identity, &hello, vec![address.ip()]);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn reach_ssh(&self, host: &str) -> Result<FarSide, CopyError> {
        let mut far = FarEnd::start(&self.plan.ssh, host, &self.plan.far_program)?;
        let identity = hello::fresh_identity()?;
        let ours = hello::write(&ClientHello::new(identity.public_key(), self.target()))?;
        let hello = hello::read::<ServerHello>(&far.exchange(&ours, host)?)?;
        let name = host.rsplit('@').next().unwrap_or(host);
        // A name that only ssh knows has the address that ssh reached.
        let mut addresses: Vec<IpAddr> = resolve(name, 0)
            .map(|all| all.into_iter().map(|address| address.ip()).collect())
            .unwrap_or_default();
        if let Some(address) = hello.address
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
        far_side(Box::new(far), identity, &hello, addresses)
    }

    fn connect_udt(&self, far: &FarSide) -> Result<Option<Udt>, CopyError> {
        let (Some(port), Some(address)) = (far.udp_port, far.addresses.first()) else {
            return Ok(None);
        };
        let keys = Keys { identity: &far.identity, peer: far.key, algorithm: self.plan.algorithm };
        Udt::connect((*address, port).into(), &keys, UDT_ANSWER)
    }

    fn connect_tcp(&self, far: &FarSide) -> Result<Vec<Tls>, CopyError> {
        let mut last = CopyError::Connection("the far end has no address".into());
        for address in &far.addresses {
            let lane = |index: u32| -> Result<Tls, CopyError> {
                let until = clock::now() + CONNECT;
                let stream = begin((*address, far.tcp_port).into(), far.identity.public_key())?;
                let mut tls = Tls::client(stream, &far.identity, far.key)?;
                tls.handshake(until)?;
                tls.send_line(if index == 0 { CONTROL_LANE } else { DATA_LANE }, until)?;
                Ok(tls)
            };
            match (0..self.plan.streams.max(1)).map(lane).collect() {
                Ok(lanes) => return Ok(lanes),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn far_side(
    bootstrap: Box<dyn std::any::Any>,
    identity: Identity,
    hello: &ServerHello,
    addresses: Vec<IpAddr>,
) -> Result<FarSide, CopyError> {
    let (key, udp_port, tcp_port) = (hello.key()?, hello.udp_port, hello.tcp_port);
    Ok(FarSide { _bootstrap: bootstrap, identity, key, addresses, udp_port, tcp_port })
}

fn ask(session: &Session, request: Request) -> Result<(), CopyError> {
    session.send(&Message::Request(request))?;
    match session.receive()? {
        Some(Message::Accepted) => Ok(()),
        Some(Message::Refused(reason)) => Err(CopyError::Refused(reason)),
        Some(_) => Err(CopyError::Protocol("it did not answer the request".into())),
        None => Err(CopyError::Connection("the peer closed it".into())),
    }
}

fn begin(server: SocketAddr, client: PublicKey) -> Result<std::net::TcpStream, CopyError> {
    use std::io::Write;
    let mut stream = sockets::connect(server, CONNECT)?;
    stream.write_all(&hello::preamble(client)).map_err(CopyError::socket)?;
    Ok(stream)
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, CopyError> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (bare, port)
        .to_socket_addrs()
        .map(Iterator::collect)
        .map_err(|error| CopyError::Connection(format!("{host}: {error}")))
}
