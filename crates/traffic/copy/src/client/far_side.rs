//! The far end of a copy, and the connections to it.

use super::CONNECT;
use super::segments::{self, PathMtu};
use crate::hello::{self, ClientHello, MAX_LINE, ServerHello};
use crate::request::CopyRequest;
use crate::transport::tls::Tls;
use crate::{CopyError, sockets};
use control::Algorithm;
use host::address::{canonical, with_port};
use host::clock;
use host::lock::lock;
use host::resolve::Family;
use host::stop::StopFlag;
use pinned_tls::{Identity, PublicKey};
use problem::Field;
use remote::{Agent, Launcher};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::thread::Builder;
use std::time::Duration;
use udt_socket::{NativeKeys, NativeSocket};

/// What a TCP connection says that carries the control messages, and any other.
pub(crate) const CONTROL_LANE: &str = "control";
const DATA_LANE: &str = "data";
/// UDP that does not answer within this time is taken for blocked.
const UDT_ANSWER: Duration = Duration::from_millis(2_500);
/// TCP connections that are established at a time: half of what a server allows an address.
pub(super) const AT_ONCE: usize = 8;

/// A far end that waits for connections.
pub(super) struct FarSide {
    /// The handle that keeps the far end alive until the copy is over.
    _bootstrap: Box<dyn std::any::Any + Send + Sync>,
    identity: Identity,
    key: PublicKey,
    addresses: Vec<SocketAddr>,
    udp_port: Option<u16>,
    tcp_port: u16,
    /// The segments that the path carries, where it does not carry full-size ones.
    segments: Mutex<Option<(u32, PathMtu)>>,
}

impl FarSide {
    /// Reaches a server by its token, or starts the far end over ssh.
    pub(super) fn reach(
        request: &CopyRequest,
        host: &str,
        stop: &StopFlag,
    ) -> Result<Self, CopyError> {
        match &request.token {
            Some(token) => FarSide::by_token(request, host, token),
            None => FarSide::by_ssh(request, host, stop),
        }
    }

    fn by_token(request: &CopyRequest, host: &str, token: &str) -> Result<Self, CopyError> {
        let [own, server] = hello::token_identities(token)?;
        let host = host.rsplit('@').next().unwrap_or(host);
        let mut last = CopyError::Connection(format!("{host} has no address"));
        for address in resolve(host, request.port)? {
            let until = clock::now() + CONNECT;
            let connect = || -> Result<Tls, CopyError> {
                let stream = begin(address, own.public_key(), Some(segments::SMALL), CONNECT)?;
                let mut tls = Tls::client(stream, &own, server.public_key())?;
                tls.handshake(until).map_err(|error| match error {
                    // A server that does not know the key says no more than that.
                    CopyError::Connection(why) => CopyError::Connection(format!(
                        "{why} (during the handshake: does the server have this token?)"
                    )),
                    error => error,
                })?;
                Ok(tls)
            };
            match connect() {
                Ok(mut tls) => {
                    let identity = hello::fresh_identity()?;
                    let ours = ClientHello::new(identity.public_key(), request.target);
                    tls.send_line(&hello::write(&ours)?, until)?;
                    let line = tls.receive_line(MAX_LINE, until)?;
                    let hello = hello::read::<ServerHello>(&line)?;
                    let bootstrap = Box::new(tls);
                    return far_side(bootstrap, identity, &hello, vec![address]);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn by_ssh(request: &CopyRequest, host: &str, stop: &StopFlag) -> Result<Self, CopyError> {
        let identity = hello::fresh_identity()?;
        let ours = ClientHello::new(identity.public_key(), request.target);
        let launcher = Launcher::Ssh {
            ssh: request.ssh.clone(),
            host: host.to_owned(),
            program: request.far_program.clone(),
        };
        let started = Agent::start_copy(&launcher, hello::to_value(&ours)?, stop);
        let (far, answer) = started.map_err(|error| CopyError::remote(&error))?;
        let hello = hello::from_value::<ServerHello>(answer)?;
        let addresses =
            addresses_of(host, hello.address, || remote::resolved_host(&request.ssh, host));
        far_side(Box::new(far), identity, &hello, addresses?)
    }

    /// Connects over UDT; `None` if UDP is blocked.
    pub(super) fn connect_udt(
        &self,
        algorithm: Algorithm,
    ) -> Result<Option<NativeSocket>, CopyError> {
        let (Some(port), Some(address)) = (self.udp_port, self.addresses.first()) else {
            return Ok(None);
        };
        let keys = NativeKeys { identity: &self.identity, peer: self.key, algorithm };
        NativeSocket::connect(with_port(*address, port), &keys, UDT_ANSWER, || false)
            .map_err(CopyError::socket)
    }

    /// Connects `streams` times over TCP; of the connections, the one at `control` carries
    /// the control messages.
    pub(super) fn connect_tcp(
        &self,
        streams: u32,
        timeout: Duration,
        control: Option<u32>,
    ) -> Result<Vec<Tls>, CopyError> {
        let mut last = CopyError::Connection("the far end has no address".into());
        for address in &self.addresses {
            let server = with_port(*address, self.tcp_port);
            match self.connect_all(server, streams, timeout) {
                Ok(lanes) => return join(lanes, timeout, control),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl FarSide {
    /// Connects so many times with the largest segments that the path carries.
    fn connect_all(
        &self,
        server: SocketAddr,
        streams: u32,
        timeout: Duration,
    ) -> Result<Vec<Tls>, CopyError> {
        let mut lanes = Vec::new();
        if lock(&self.segments).is_none() {
            let soon = |size| self.lane(server, size, timeout, true).map_err(CopyError::from);
            match self.lane(server, None, timeout, true) {
                Ok(lane) => lanes.push(Ok(lane)),
                Err(LaneError::Segments(_)) => {
                    *lock(&self.segments) = segments::find(server.is_ipv6(), &soon);
                }
                Err(LaneError::Other(error)) => return Err(error),
            }
        }
        let known = lock(&self.segments).map(|(segment, _)| segment);
        let lane = || self.lane(server, known, timeout, false).map_err(CopyError::from);
        let others = vec![(); streams.max(1) as usize - lanes.len()];
        lanes.extend(others.chunks(AT_ONCE).flat_map(|some| at_once(some.len(), &lane)));
        lanes.into_iter().collect()
    }

    /// One more connection, over which segments of full size have passed, `soon` if they have to be
    /// as fast as the path lets them.
    fn lane(
        &self,
        server: SocketAddr,
        segment: Option<u32>,
        timeout: Duration,
        soon: bool,
    ) -> Result<Tls, LaneError> {
        let until = clock::now() + timeout;
        let stream = begin(server, self.identity.public_key(), segment, timeout)?;
        let mut tls = Tls::client(stream, &self.identity, self.key)?;
        let deadline = |tls: &Tls| if soon { segments::deadline(tls, until) } else { until };
        let limit = deadline(&tls);
        let checked = tls.handshake(limit).and_then(|()| {
            let limit = deadline(&tls);
            segments::check(&mut tls, limit)
        });
        match checked {
            Err(error @ CopyError::Connection(_)) => Err(LaneError::Segments(error)),
            other => Ok(other.map(|()| tls)?),
        }
    }

    /// The path MTU, where full-size segments vanish.
    pub(super) fn path_mtu(&self) -> Option<PathMtu> {
        lock(&self.segments).map(|(_, mtu)| mtu)
    }
}

/// The reason a connection cannot be used.
enum LaneError {
    /// It was made, and then what was sent did not arrive: the segments may be too large.
    Segments(CopyError),
    Other(CopyError),
}

impl From<CopyError> for LaneError {
    fn from(error: CopyError) -> Self {
        LaneError::Other(error)
    }
}

impl From<LaneError> for CopyError {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Segments(error) | LaneError::Other(error) => error,
        }
    }
}

/// Makes connections part of the session, once there are all of them: one that joined and is
/// then given up would end the session.
fn join(
    mut lanes: Vec<Tls>,
    timeout: Duration,
    control: Option<u32>,
) -> Result<Vec<Tls>, CopyError> {
    let until = clock::now() + timeout;
    for (index, lane) in lanes.iter_mut().enumerate() {
        let is_control = control.is_some_and(|control| control as usize == index);
        lane.send_line(if is_control { CONTROL_LANE } else { DATA_LANE }, until)?;
    }
    Ok(lanes)
}

/// Connects so many times at the same time.
fn at_once(
    count: usize,
    connect: &(impl Fn() -> Result<Tls, CopyError> + Sync),
) -> Vec<Result<Tls, CopyError>> {
    std::thread::scope(|scope| {
        let begun: Vec<_> =
            (0..count).map(|_| Builder::new().spawn_scoped(scope, connect)).collect();
        let failed = |why: &str| Err(CopyError::Local(format!("cannot connect: {why}")));
        begun
            .into_iter()
            .map(|begun| match begun {
                Ok(thread) => thread.join().unwrap_or_else(|_| failed("the thread failed")),
                Err(error) => failed(&error.to_string()),
            })
            .collect()
    })
}

fn far_side(
    bootstrap: Box<dyn std::any::Any + Send + Sync>,
    identity: Identity,
    hello: &ServerHello,
    addresses: Vec<SocketAddr>,
) -> Result<FarSide, CopyError> {
    let (key, udp_port, tcp_port) = (hello.key()?, hello.udp_port, hello.tcp_port);
    let segments = Mutex::default();
    Ok(FarSide { _bootstrap: bootstrap, identity, key, addresses, udp_port, tcp_port, segments })
}

/// The addresses of a host that ssh reached: those of the name that the user gave, and of the
/// one that ssh's own configuration has for it, which `resolved` gives. The far end says at
/// which of them it was `reached`; that one comes first. It cannot name any other, or it could
/// have this host connect to whatever it likes.
fn addresses_of(
    host: &str,
    reached: Option<IpAddr>,
    resolved: impl FnOnce() -> Option<String>,
) -> Result<Vec<SocketAddr>, CopyError> {
    let name = host.rsplit('@').next().unwrap_or(host);
    let of = |name: &str| -> Vec<SocketAddr> {
        resolve(name, 0).unwrap_or_default().into_iter().map(canonical).collect()
    };
    let reached = reached.map(|address| address.to_canonical());
    let is_known = |all: &[SocketAddr]| {
        reached.is_none_or(|reached| all.iter().any(|one| one.ip() == reached))
    };
    let mut addresses = of(name);
    if (addresses.is_empty() || !is_known(&addresses))
        && let Some(other) = resolved()
    {
        let others = of(&other);
        addresses.extend(others.into_iter().filter(|_| other != name));
    }
    if addresses.is_empty() {
        return Err(CopyError::Connection(format!(
            "{name} has no address here, and addresses that the far end reports are not used: give \
             one, as in {} 'ssh -o HostName=ADDRESS'",
            Field::Ssh
        )));
    }
    // Stable: the others keep their order.
    addresses.sort_by_key(|address| Some(address.ip()) != reached);
    addresses.dedup();
    Ok(addresses)
}

fn begin(
    server: SocketAddr,
    client: PublicKey,
    segment: Option<u32>,
    timeout: Duration,
) -> Result<std::net::TcpStream, CopyError> {
    use std::io::Write;
    let mut stream = sockets::connect(server, segment, timeout)?;
    stream.write_all(&hello::preamble(client)).map_err(CopyError::socket)?;
    Ok(stream)
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, CopyError> {
    let found = host::resolve::resolve(host, port, Family::Any, None, &|| false);
    found.map(Option::unwrap_or_default).map_err(|error| CopyError::Connection(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_end_names_only_addresses_that_the_host_has() {
        let reached = |address: &str| Some(address.parse().unwrap());
        let found = |host, reached, resolved: Option<&str>| {
            let all = addresses_of(host, reached, || resolved.map(str::to_owned));
            all.map(|all| all.iter().map(|one| one.ip().to_string()).collect::<Vec<_>>())
        };
        let typed = Ok(vec!["192.0.2.1".to_owned()]);
        for named in [None, reached("192.0.2.1"), reached("::ffff:192.0.2.1"), reached("10.0.0.1")]
        {
            assert_eq!(found("me@192.0.2.1", named, None), typed, "{named:?}");
        }
        // An alias of ssh's configuration.
        let alias = "an-alias.invalid";
        assert_eq!(found(alias, reached("192.0.2.1"), Some("192.0.2.1")), typed);
        assert_eq!(found(alias, reached("10.0.0.1"), Some("192.0.2.1")), typed);
        for named in [None, reached("10.0.0.1")] {
            let refused = found(alias, named, None);
            assert!(
                matches!(&refused, Err(CopyError::Connection(why)) if why.contains("HostName="))
            );
        }
        let both = found("192.0.2.1", reached("192.0.2.2"), Some("192.0.2.2"));
        assert_eq!(both, Ok(vec!["192.0.2.2".to_owned(), "192.0.2.1".to_owned()]));
    }
}
