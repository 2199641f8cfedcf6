//! Waiting for many sockets that are each registered once, for reading and writing
//! (epoll(7), edge-triggered).

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Events of one call; the kernel reports the rest by the next one.
const MAX_EVENTS: usize = 256;

/// What has changed at a socket since the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The token that it was added with.
    pub token: u64,
    /// It may be readable: bytes, the end of the stream, or an error.
    pub readable: bool,
    /// It may be writable, or has connected.
    pub writable: bool,
    /// It has failed, such as by an RST of its peer.
    pub failed: bool,
}

/// Reports every change of readiness once: whoever reads or writes goes on until the call would
/// block, and remembers where it did not.
#[derive(Debug)]
pub struct EdgePoller {
    epoll: OwnedFd,
}

impl EdgePoller {
    /// A poller without sockets.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(EdgePoller { epoll })
    }

    /// Adds a socket, which is removed when its last descriptor is closed.
    ///
    /// # Errors
    /// `AlreadyExists` if that descriptor was added already; otherwise the system error.
    pub fn add(&mut self, file: &impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(token), flags)?)
    }

    /// Removes a socket that stays open.
    ///
    /// # Errors
    /// `NotFound` if it was not added; otherwise the system error.
    pub fn remove(&mut self, file: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, file)?)
    }

    /// Waits until something has changed or `timeout` has passed, and puts the changes into
    /// `edges`.
    ///
    /// # Errors
    /// The system error; after an interruption by a signal nothing has changed.
    pub fn wait(&mut self, timeout: Duration, edges: &mut Vec<Edge>) -> io::Result<()> {
        edges.clear();
        let timeout =
            Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut space = [MaybeUninit::uninit(); MAX_EVENTS];
        let events = match epoll::wait(&self.epoll, &mut space, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        edges.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Edge {
                token: data.u64(),
                readable: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: failed || flags.contains(EventFlags::OUT),
                failed: flags.contains(EventFlags::ERR),
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn a_change_is_reported_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut poller = EdgePoller::new().unwrap();
        poller.add(&server, 7).unwrap();
        let mut edges = Vec::new();
        poller.wait(LONG, &mut edges).unwrap();
        let writable = Edge { token: 7, readable: false, writable: true, failed: false };
        assert_eq!(edges, [writable]);
        poller.wait(Duration::ZERO, &mut edges).unwrap();
        assert_eq!(edges, []);
        client.write_all(b"x").unwrap();
        poller.wait(LONG, &mut edges).unwrap();
        assert_eq!(edges, [Edge { readable: true, ..writable }]);
        server.read_exact(&mut [0]).unwrap();
        socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        poller.wait(LONG, &mut edges).unwrap();
        assert!(edges[0].failed && edges[0].readable, "{edges:?}");
        poller.remove(&server).unwrap();
        assert!(poller.remove(&server).is_err());
    }
}
