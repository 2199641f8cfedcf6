//! Errors of a test, each with its remedy.

use host::remedy;
use iperf3_proto::{FrameError, OrderError, ParamError, Refusal, Role};
use problem::{Fault, Field, Problem};
use std::{io, net::SocketAddr, path::PathBuf, time::Duration};
use units::BitRate;

/// Why a test or a server failed. Every message is one line: operation,
/// object, remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfError {
    /// An invalid setting.
    #[error("{what}: {accepted}")]
    Setting {
        /// The field of the configuration.
        field: Field,
        /// The setting and its value.
        what: String,
        /// The valid range or values.
        accepted: String,
    },
    /// The host name has no address of the requested family.
    #[error(transparent)]
    Resolve(#[from] host::resolve::ResolveError),
    /// The requested local address or interface does not belong to this host.
    #[error(
        "cannot bind to {address}: {}",
        remedy::with_advice(source, "'ip address' lists this host's addresses")
    )]
    Bind {
        /// The address.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The requested congestion control is unavailable.
    #[error(transparent)]
    Congestion(#[from] host::tcp_info::CongestionError),
    /// The connection could not be established.
    #[error(
        "cannot connect to {address}: {}",
        remedy::of_connect(source, "longhaul server, or iperf3 -s")
    )]
    Connect {
        /// The server.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The server cannot listen on its port.
    #[error("cannot listen on {address}: {source}; {remedy}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        remedy: &'static str,
    },
    /// The server is running another test.
    #[error(
        "the server {address} is busy running another test; retry later, or start a server on another port"
    )]
    Busy {
        /// The server.
        address: SocketAddr,
    },
    /// The server sent an error code.
    #[error("the server {address} refused the test: {refusal}")]
    Refused {
        /// The server.
        address: SocketAddr,
        /// The code.
        refusal: Refusal,
    },
    /// The server was stopped.
    #[error("the server {address} was stopped {point}; restart it, then repeat the test")]
    ServerStopped {
        /// The server.
        address: SocketAddr,
        /// Point of the protocol, such as `during the test`.
        point: &'static str,
    },
    /// The client was interrupted.
    #[error("the client {address} was interrupted by its user {point}")]
    ClientStopped {
        /// The client.
        address: SocketAddr,
        /// Point of the protocol, such as `during the test`.
        point: &'static str,
    },
    /// The other end closed or reset the control connection.
    #[error(
        "the {role} {address} closed the control connection {point}; check that it is running, and its output"
    )]
    Vanished {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// Point of the protocol, such as `during the test`.
        point: &'static str,
    },
    /// The other end keeps the connection open and sends nothing.
    #[error(
        "the {role} {address} sent nothing for {} s {point}; check whether it hangs or the path is down", waited.as_secs()
    )]
    Silent {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// Point of the protocol, such as `during the test`.
        point: &'static str,
        /// The timeout.
        waited: Duration,
    },
    /// The other end keeps the connection open and has not sent all of a message, or read it.
    #[error(
        "the {role} {address} did not complete {what} within {} s {point}; check whether it hangs or the path is down", waited.as_secs()
    )]
    Incomplete {
        /// The message, and whether it was to be sent or read: "sending its results".
        what: String,
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// Point of the protocol, such as `during the test`.
        point: &'static str,
        /// The timeout of the whole message.
        waited: Duration,
    },
    /// A message that violates the protocol.
    #[error("the {role} {address} violated the protocol: {source}")]
    Order {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// The message and the point of the protocol.
        source: OrderError,
    },
    /// A framed message that cannot be parsed.
    #[error("cannot read the {what} of the {role} {address}: {source}")]
    Frame {
        /// Parameters or results.
        what: &'static str,
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// The parse error.
        source: FrameError,
    },
    /// Messages of other sessions use up the memory limit for messages.
    #[error(
        "refused the {role} {address}: other sessions use up the memory limit for messages; retry later, or allow fewer concurrent tests"
    )]
    OutOfMessageMemory {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
    },
    /// A parameter out of range.
    #[error("the client {address} sent an invalid parameter: {source}")]
    Parameter {
        /// The client.
        address: SocketAddr,
        /// The parameter and its range.
        source: ParamError,
    },
    /// A client requested what this server does not offer.
    #[error("the client {address} requested {what}")]
    NotOffered {
        /// The client.
        address: SocketAddr,
        /// The request and the limit.
        what: String,
    },
    /// A client whose test exceeds this server's capacity.
    #[error("the client {address} was refused: {why}")]
    NotAdmitted {
        /// The client.
        address: SocketAddr,
        /// The limit that was reached.
        why: String,
    },
    /// A test without a stream made way for another client's.
    #[error(
        "closed the test of the client {address}, which had opened no stream yet: the server is full, and others wait"
    )]
    Evicted {
        /// The client.
        address: SocketAddr,
    },
    /// Not all streams arrived.
    #[error(
        "only {arrived} of {requested} streams of the client {address} arrived; check for a firewall that drops connections"
    )]
    StreamsMissing {
        /// The client.
        address: SocketAddr,
        /// Streams that arrived.
        arrived: usize,
        /// Streams requested.
        requested: u32,
    },
    /// A stream failed while the control connection was open.
    #[error("stream {id} to {address} failed during the test: {reason}")]
    StreamBroke {
        /// iperf3's stream id.
        id: u32,
        /// The far end.
        address: SocketAddr,
        /// The kernel's error, and what to do.
        reason: String,
    },
    /// The test exceeded its watchdog's limit.
    #[error(
        "closed the test of the client {address}, which did not end within {} s; check whether the client hangs", limit.as_secs()
    )]
    Expired {
        /// The client.
        address: SocketAddr,
        /// The watchdog's limit.
        limit: Duration,
    },
    /// No test data was received from the other end.
    #[error(
        "received no data from the {role} {address} for {} s; check for a firewall that drops the streams", waited.as_secs()
    )]
    NoData {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// No test data was acknowledged by the other end.
    #[error(
        "the {role} {address} acknowledged no data for {} s; check whether the path is down, or drops full-size packets (longhaul doctor tests both)", waited.as_secs()
    )]
    Stalled {
        /// The other end's role.
        role: Role,
        /// Its address.
        address: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// The server did not reply to the datagram that opens a UDP stream.
    #[error(
        "the server {address} did not reply by UDP within {} s; allow UDP to and from that port in the firewalls", waited.as_secs()
    )]
    NoAnswer {
        /// The server.
        address: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// The server did not reply to the datagrams that open a UDT stream.
    #[error(
        "the server {address} did not reply by UDP within {} ms: UDT needs `longhaul server` \
         there, and UDP to and from that port allowed in the firewalls; without UDT the test \
         uses TCP, unencrypted", waited.as_millis()
    )]
    NoUdt {
        /// The server.
        address: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// UDT loses packets without a queue and delivers little: the path may police UDP.
    #[error(
        "the path to {address} may police UDP: UDT loses packets without a queue and delivers \
         {delivered}; without UDT the test uses TCP"
    )]
    Policed {
        /// The server.
        address: SocketAddr,
        /// What it delivers.
        delivered: BitRate,
    },
    /// The client's traffic exceeds the server's limit.
    #[error("the client {address} exceeded a limit: {limit}")]
    OverLimit {
        /// The client.
        address: SocketAddr,
        /// Which limit.
        limit: String,
    },
    /// The file to send or to write.
    #[error(
        "cannot use {}: {}",
        path.display(),
        remedy::with_advice(source, "check the path, permissions and free space")
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The system gives no random numbers, and tests have cookies and keys.
    #[error(transparent)]
    NoRandomNumbers(io::Error),
    /// A failed login.
    #[error("{0}")]
    Login(String),
    /// Stopped by the user before there was anything to report.
    #[error("interrupted before the test ran")]
    Interrupted,
    /// A system call failed.
    #[error("cannot {operation} ({address}): {}", remedy::with_advice(source, ""))]
    System {
        /// The operation.
        operation: &'static str,
        /// The other end.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
}

impl From<PerfError> for Problem {
    fn from(error: PerfError) -> Self {
        match error {
            PerfError::Setting { field, what, accepted } => Problem::field(field, what, accepted),
            PerfError::Interrupted => Problem::new(Fault::Interrupted, error),
            _ if error.is_usage() => Problem::new(Fault::Request, error),
            _ => Problem::new(Fault::Peer, error),
        }
    }
}

impl PerfError {
    /// Whether a test that ends with it has what this end measured until then.
    pub(crate) const fn leaves_measurement(&self) -> bool {
        matches!(
            self,
            PerfError::NoData { .. }
                | PerfError::Stalled { .. }
                | PerfError::StreamBroke { .. }
                | PerfError::Vanished { .. }
                | PerfError::Silent { .. }
        )
    }

    /// Whether the command line was wrong rather than the test: exit code 2
    /// instead of 1.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            PerfError::Setting { .. }
                | PerfError::Resolve(_)
                | PerfError::Bind { .. }
                | PerfError::Congestion(_)
                | PerfError::File { .. }
                | PerfError::Login(_)
        )
    }

    /// Whether the user interrupted it.
    #[must_use]
    pub const fn is_interruption(&self) -> bool {
        matches!(self, PerfError::Interrupted)
    }
}
