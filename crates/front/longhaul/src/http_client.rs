//! Connections to the HTTP servers of speed tests: the URL, TCP, and TLS where it asks for it.

mod certificates;
mod url;

pub(crate) use url::Endpoint;

use crate::{Fault, Problem, StopFlag};
use host::clock;
use host::resolve::{self, Family};
use host::tcp_info::{self, MemInfo, TcpInfo};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use units::ByteCount;

/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;
/// Time for a TCP handshake, and for one of TLS.
const HANDSHAKE_TIME: Duration = Duration::from_secs(7);
/// The interval at which a stop is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a client's work in this thread until it ends or `stop` is raised.
pub(crate) fn block_on<T>(
    work: impl Future<Output = Result<T, Problem>>,
    stop: &StopFlag,
) -> Result<T, Problem> {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        Problem::new(Fault::Host, format!("cannot wait for connections: {error}"))
    })?;
    let stopped = async {
        while !stop.is_raised() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            done = work => done,
            () = stopped => Err(Problem::new(Fault::Interrupted, "interrupted")),
        }
    })
}

/// How to reach a server: its address, and whom to trust.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// A connection, and how long each handshake took.
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) socket: Socket,
    pub(crate) tcp: Duration,
    pub(crate) tls: Option<Duration>,
}

/// A duplicate of a connection's descriptor, for its `TCP_INFO`.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    pub(crate) fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(&self.0).ok()
    }

    pub(crate) fn memory(&self) -> Option<MemInfo> {
        MemInfo::of(&self.0).ok()
    }

    pub(crate) fn set_unsent_limit(&self, bytes: ByteCount) -> io::Result<()> {
        host::socket::set_unsent_limit(&self.0, Some(bytes))
    }

    pub(crate) fn congestion(&self) -> Option<String> {
        tcp_info::congestion(&self.0).ok()
    }
}

/// Resolves the name of a server, and connects to the first address that answers, for a test whose
/// connections all go there. `protocols` are offered by ALPN (RFC 7301).
pub(crate) async fn find(
    endpoint: &Endpoint,
    family: Family,
    insecure: bool,
    protocols: &[&[u8]],
    stop: &StopFlag,
) -> Result<(Server, Connected), Problem> {
    let tls = match endpoint.is_encrypted {
        false => None,
        true => {
            let name = ServerName::try_from(endpoint.host.clone())
                .map_err(|_| Problem::new(Fault::Request, "the host is no name for TLS"))?;
            Some((certificates::config(insecure, protocols)?, name))
        }
    };
    let found = resolve::resolve(&endpoint.host, endpoint.port, family, None, &|| stop.is_raised());
    let Some(addresses) = found.map_err(|error| Problem::new(Fault::Request, error))? else {
        return Err(Problem::new(Fault::Interrupted, "interrupted"));
    };
    let mut failed = Problem::new(Fault::Peer, "the server has no address");
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        let server = Server { address, tls: tls.clone() };
        match server.connect().await {
            Ok(connected) => return Ok((server, connected)),
            Err(problem) => failed = problem,
        }
    }
    Err(failed)
}

impl Server {
    /// Opens one more connection.
    pub(crate) async fn connect(&self) -> Result<Connected, Problem> {
        let address = self.address;
        let problem = |what: &str, error: io::Error| {
            Problem::new(Fault::Peer, format!("{what} {address}: {error}"))
        };
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let began = clock::now();
        let opened = timeout(HANDSHAKE_TIME, TcpStream::connect(address)).await;
        let plain =
            opened.map_err(late).flatten().map_err(|error| problem("cannot connect to", error))?;
        let tcp = began.elapsed();
        let socket = plain.set_nodelay(true).and_then(|()| plain.as_fd().try_clone_to_owned());
        let socket = Socket(socket.map_err(|error| Problem::new(Fault::Host, error))?);
        let Some((config, name)) = &self.tls else {
            return Ok(Connected { stream: Stream::Plain(plain), socket, tcp, tls: None });
        };
        let began = clock::now();
        let shaken = TlsConnector::from(config.clone()).connect(name.clone(), plain);
        let secure = timeout(HANDSHAKE_TIME, shaken).await.map_err(late).flatten();
        let secure = secure.map_err(|error| certificates::explained(problem("TLS with", error)))?;
        let tls = Some(began.elapsed());
        Ok(Connected { stream: Stream::Tls(Box::new(secure)), socket, tcp, tls })
    }
}

/// A stream with or without TLS.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The protocol that both ends agreed on; `None` without TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
