//! What can go wrong in a test, with the remedy in the same line.

use crate::extra::Who;
use iperf3::{FrameError, OrderError, ParamError, Refusal};
use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

/// Why a test or a server did not work. Every message is one line: the
/// operation, the object, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A setting that cannot be.
    #[error("{what}: {remedy}")]
    Setting {
        /// The setting and its value.
        what: String,
        /// What would be right.
        remedy: String,
    },
    /// The host's name has no address of the family asked.
    #[error("cannot resolve '{host}': {reason}; check the name, or give an address")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver answered.
        reason: String,
    },
    /// The local address asked for is not this host's.
    #[error("cannot bind to {address}: {source}; 'ip address' lists this host's addresses")]
    Bind {
        /// The address.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The congestion control asked for cannot be used.
    #[error(transparent)]
    Congestion(#[from] host::tcp_info::CongestionError),
    /// Nobody answered.
    #[error("cannot connect to {address}: {source}; {remedy}")]
    Connect {
        /// The server.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
        /// What to try.
        remedy: &'static str,
    },
    /// The server's port cannot be had.
    #[error("cannot listen on {address}: {source}; {remedy}")]
    Listen {
        /// The address asked.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
        /// What to try.
        remedy: &'static str,
    },
    /// The server runs another test.
    #[error(
        "the server {address} is busy running another test; try again later, or start one on another port"
    )]
    Busy {
        /// The server.
        address: SocketAddr,
    },
    /// The server sent an error.
    #[error("the server {address} refused the test: {refusal}")]
    Refused {
        /// The server.
        address: SocketAddr,
        /// Its code, with its meaning.
        refusal: Refusal,
    },
    /// The server was told to stop.
    #[error("the server {address} was stopped {point}; start it again there, then repeat the test")]
    ServerStopped {
        /// The server.
        address: SocketAddr,
        /// Where the conversation stood.
        point: &'static str,
    },
    /// The client was told to stop.
    #[error("the client {address} was interrupted by its user {point}")]
    ClientStopped {
        /// The client.
        address: SocketAddr,
        /// Where the conversation stood.
        point: &'static str,
    },
    /// The other end closed or reset the control connection.
    #[error(
        "the {who} {address} closed the control connection {point}; see whether it still runs, or what it printed"
    )]
    Vanished {
        /// Which end.
        who: Who,
        /// Its address.
        address: SocketAddr,
        /// Where the conversation stood.
        point: &'static str,
    },
    /// The other end keeps the connection and says nothing.
    #[error(
        "the {who} {address} said nothing for {} s {point}; see whether it hangs, or the path broke", waited.as_secs()
    )]
    Silent {
        /// Which end.
        who: Who,
        /// Its address.
        address: SocketAddr,
        /// Where the conversation stood.
        point: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// A message that does not belong.
    #[error("the {who} {address} does not keep to the protocol: {source}")]
    Order {
        /// Which end.
        who: Who,
        /// Its address.
        address: SocketAddr,
        /// The message and where it came.
        source: OrderError,
    },
    /// A framed message that cannot be read.
    #[error("cannot read the {what} of the {who} {address}: {source}")]
    Frame {
        /// Parameters or results.
        what: &'static str,
        /// Which end.
        who: Who,
        /// Its address.
        address: SocketAddr,
        /// What is wrong with it.
        source: FrameError,
    },
    /// A parameter out of bounds.
    #[error("the client {address} asked for what cannot be: {source}")]
    Parameter {
        /// The client.
        address: SocketAddr,
        /// The parameter and its bounds.
        source: ParamError,
    },
    /// A client asked for what this server does not offer.
    #[error("the client {address} asked for {what}")]
    NotOffered {
        /// The client.
        address: SocketAddr,
        /// What it was.
        what: String,
    },
    /// Not all streams arrived.
    #[error(
        "only {arrived} of {asked} streams of the client {address} arrived; is a firewall dropping some?"
    )]
    StreamsMissing {
        /// The client.
        address: SocketAddr,
        /// How many came.
        arrived: usize,
        /// How many were asked.
        asked: u32,
    },
    /// A stream failed while the control connection lived.
    #[error(
        "stream {id} to {address} broke during the test: {reason}; repeat it, and look for a middlebox that resets connections"
    )]
    StreamBroke {
        /// iperf3's stream id.
        id: u32,
        /// The far end.
        address: SocketAddr,
        /// What the kernel answered.
        reason: String,
    },
    /// The test outlived its watchdog.
    #[error(
        "the test of the client {address} did not end within {} s and was closed; see whether the client hangs", limit.as_secs()
    )]
    Expired {
        /// The client.
        address: SocketAddr,
        /// The watchdog's limit.
        limit: Duration,
    },
    /// The far end takes the connection and sends nothing.
    #[error(
        "nothing arrived from the {who} {address} for {} s; look for a firewall that drops the streams", waited.as_secs()
    )]
    NoData {
        /// Which end.
        who: Who,
        /// Its address.
        address: SocketAddr,
        /// How long was waited.
        waited: Duration,
    },
    /// A datagram's greeting was never answered.
    #[error(
        "the server {address} did not answer on UDP within {} s; let that port's datagrams through the firewalls, both ways", waited.as_secs()
    )]
    NoAnswer {
        /// The server.
        address: SocketAddr,
        /// How long was waited.
        waited: Duration,
    },
    /// The clients' traffic is over the server's limit.
    #[error("the client {address} went over the limit: {limit}")]
    OverLimit {
        /// The client.
        address: SocketAddr,
        /// Which limit.
        limit: String,
    },
    /// The file to send or to fill.
    #[error("cannot open {}: {source}; check the path and its permissions", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A login that did not work.
    #[error("{0}")]
    Login(String),
    /// Stopped by the user before there was anything to report.
    #[error("interrupted before the test ran")]
    Interrupted,
    /// The system refused something it rarely refuses.
    #[error("cannot {operation} ({address}): {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// With whom.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl ProbeError {
    /// Whether the command was wrong, as against the work having failed: exit
    /// code 2 rather than 1.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            ProbeError::Setting { .. }
                | ProbeError::Resolve { .. }
                | ProbeError::Bind { .. }
                | ProbeError::Congestion(_)
                | ProbeError::File { .. }
                | ProbeError::Login(_)
        )
    }

    /// Whether the user ended it.
    #[must_use]
    pub const fn is_interruption(&self) -> bool {
        matches!(self, ProbeError::Interrupted)
    }
}
