//! Connects flows to their targets: a name is resolved once, each address is checked, and one address
//! is tried after another.

use crate::policy::DestinationPolicy;
use crate::resolver::{self, Answer, Resolver};
use crate::sockets;
use lane::{Refusal, Target, TargetHost};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of the connection to a target, over all of its addresses.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most of it for one address while others are left.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);
/// Most addresses of a target.
pub(crate) const MAX_ADDRESSES: usize = 8;

/// What is to happen next for a flow.
#[derive(Debug)]
pub(crate) enum Step {
    /// Its name is looked up, or it is nobody's any more.
    Wait,
    /// Wait for this socket to be connected.
    Connect(TcpStream),
    Refuse(Refusal),
}

/// A target that is being connected.
struct Attempt {
    /// The number of the flow among all of this thread.
    number: u64,
    target: Target,
    addresses: VecDeque<SocketAddr>,
    /// Why the last address failed.
    failure: Refusal,
    /// When the current address is given up.
    next_at: Instant,
    /// When the name is given up, and then the target.
    until: Instant,
}

/// The targets of a thread that are being connected, by the number of what carries the flow.
pub(crate) struct Connector {
    policy: Arc<dyn DestinationPolicy>,
    resolver: Resolver,
    attempts: HashMap<usize, Attempt>,
    count: u64,
}

impl Connector {
    pub(crate) fn new(policy: Arc<dyn DestinationPolicy>, resolver: Resolver) -> Self {
        Connector { policy, resolver, attempts: HashMap::new(), count: 0 }
    }

    /// Begins with the target of a flow of a near box; `answer` takes a name's addresses to
    /// [`Connector::resolved`], with the number that it is given.
    pub(crate) fn begin(
        &mut self,
        id: usize,
        target: &Target,
        near: IpAddr,
        now: Instant,
        answer: impl FnOnce(u64) -> Answer,
    ) -> Step {
        self.count += 1;
        let (number, until) = (self.count, now + resolver::TIMEOUT);
        let attempt = Attempt {
            number,
            target: target.clone(),
            addresses: VecDeque::new(),
            failure: Refusal::Unreachable,
            next_at: until,
            until,
        };
        self.attempts.insert(id, attempt);
        let step = self.look_up(id, near, now, answer);
        self.end_if_refused(id, step)
    }

    fn look_up(
        &mut self,
        id: usize,
        near: IpAddr,
        now: Instant,
        answer: impl FnOnce(u64) -> Answer,
    ) -> Result<Step, Refusal> {
        let Some(attempt) = self.attempts.get(&id) else { return Ok(Step::Wait) };
        self.policy.before_resolving(&attempt.target)?;
        match &attempt.target.host {
            TargetHost::Address(address) => {
                let address = SocketAddr::from((*address, attempt.target.port));
                self.found(id, &[address], now)
            }
            TargetHost::Name(name) => {
                let (name, port) = (name.clone(), attempt.target.port);
                self.resolver.ask(name, port, near, answer(attempt.number))?;
                Ok(Step::Wait)
            }
            TargetHost::NameServer => {
                let servers = host::resolve::name_servers().into_iter();
                let port = Target::NAME_SERVER.port;
                let servers: Vec<_> = servers.map(|ip| (ip, port).into()).collect();
                self.found(id, &servers, now)
            }
        }
    }

    fn found(&mut self, id: usize, found: &[SocketAddr], now: Instant) -> Result<Step, Refusal> {
        let Some(attempt) = self.attempts.get_mut(&id) else { return Ok(Step::Wait) };
        let mut allowed = self.policy.after_resolving(&attempt.target, found)?;
        allowed.truncate(MAX_ADDRESSES);
        attempt.addresses = allowed.into();
        attempt.until = now + CONNECT_TIMEOUT;
        self.connect_next(id, now)
    }

    /// Connects to the next address.
    fn connect_next(&mut self, id: usize, now: Instant) -> Result<Step, Refusal> {
        let Some(attempt) = self.attempts.get_mut(&id) else { return Ok(Step::Wait) };
        while now < attempt.until
            && let Some(address) = attempt.addresses.pop_front()
        {
            let remaining = attempt.until.saturating_duration_since(now);
            attempt.next_at = now + address_timeout(remaining, attempt.addresses.len());
            match sockets::connect_target(address) {
                Ok(stream) => return Ok(Step::Connect(stream)),
                Err(error) => attempt.failure = refusal(&error),
            }
        }
        Err(attempt.failure)
    }

    fn end_if_refused(&mut self, id: usize, step: Result<Step, Refusal>) -> Step {
        step.unwrap_or_else(|refusal| {
            self.attempts.remove(&id);
            Step::Refuse(refusal)
        })
    }

    /// The answer to a query; late ones are of no use.
    pub(crate) fn resolved(
        &mut self,
        id: usize,
        number: u64,
        found: Result<Vec<SocketAddr>, Refusal>,
        now: Instant,
    ) -> Step {
        if self.attempts.get(&id).is_none_or(|attempt| attempt.number != number) {
            return Step::Wait;
        }
        let step = found.and_then(|found| self.found(id, &found, now));
        self.end_if_refused(id, step)
    }

    /// An address has failed.
    pub(crate) fn failed(&mut self, id: usize, failure: Refusal, now: Instant) -> Step {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            attempt.failure = failure;
        }
        let step = self.connect_next(id, now);
        self.end_if_refused(id, step)
    }

    /// The flow needs no target any more, or has one.
    pub(crate) fn end(&mut self, id: usize) {
        self.attempts.remove(&id);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Flows whose address or name has had its time.
    pub(crate) fn late(&self, now: Instant) -> Vec<usize> {
        let late = self.attempts.iter().filter(|(_, attempt)| now >= attempt.next_at);
        late.map(|(id, _)| *id).collect()
    }
}

/// The share of the remaining time that an address has, with so many behind it.
fn address_timeout(remaining: Duration, others: usize) -> Duration {
    match u32::try_from(others) {
        Ok(0) => remaining,
        Ok(others) => (remaining / (others + 1)).min(ADDRESS_TIMEOUT),
        Err(_) => Duration::ZERO,
    }
}

/// The reason that near is told.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        // A target may reset what its system has accepted before this host has seen it connected.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Refusal::Refused,
        io::ErrorKind::TimedOut => Refusal::TimedOut,
        _ if host::socket::is_exhausted(error) => Refusal::Busy,
        _ => Refusal::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_has_more_than_its_share() {
        let seconds = Duration::from_secs;
        assert_eq!(address_timeout(seconds(10), 0), seconds(10));
        assert_eq!(address_timeout(seconds(10), 1), ADDRESS_TIMEOUT);
        assert_eq!(address_timeout(seconds(4), 1), seconds(2));
        assert_eq!(address_timeout(seconds(10), 7), Duration::from_millis(1250));
    }
}
