//! Control socket of a running lab or box: a Unix socket that carries lines of text.
//!
//! The socket is *abstract* (unix(7)): it has no name in the file system, and
//! the name is free again when the process that bound it ends. Abstract names
//! belong to a network namespace, so both ends must be in the host's.

use crate::directory::effective_uid;
use crate::{clock, sandbox, sys, wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Maximum line length in bytes, without the newline: 1 MiB, twice what a lab
/// of 250 hosts and 500 links needs.
pub const LONGEST_LINE: usize = 1024 * 1024;

/// Maximum length of a lab's name, bytes.
pub const LONGEST_NAME: usize = 64;

/// Timeout for connecting to a lab.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay after a failed accept, when descriptors or memory have run out.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// `__SO_ACCEPTCON` in the flags of /proc/net/unix: the socket listens.
const SO_ACCEPTCON: u32 = 1 << 16;

/// What a socket belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A lab.
    Lab,
    /// A box of `boost`.
    Boost,
}

impl Owner {
    /// The first part of names.
    const fn prefix(self) -> &'static str {
        match self {
            Owner::Lab => "longhaul-lab",
            Owner::Boost => "longhaul-boost",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Owner::Lab => "lab",
            Owner::Boost => "box",
        }
    }
}

/// The listening end of a lab or a box.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
}

/// A connection that exchanges lines.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    peer: Peer,
    /// Bytes received after the last complete line.
    pending: Vec<u8>,
}

/// Credentials of the peer, as seen in our own namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) process: libc::pid_t,
    user: libc::uid_t,
}

impl Listener {
    /// Binds the name of a lab or box of this user: letters, digits, `-`, `_`, `.`.
    ///
    /// # Errors
    /// `AddrInUse` if another one already has that name; `InvalidInput` if the name is
    /// not valid; otherwise the system error.
    pub fn bind(owner: Owner, name: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&address(owner, sandbox::user(), name)?)?;
        socket.listen(libc::SOMAXCONN)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket: OwnedFd::from(socket).into() })
    }

    /// Waits at most `timeout` for a client (`None`: without limit) and returns
    /// `None` if none connected. Only the same user and root are accepted; other
    /// connections are closed.
    ///
    /// The lab of an ordinary user cannot distinguish the host's root from other
    /// users, because neither is mapped into its user namespace: it rejects both.
    ///
    /// # Errors
    /// The system error.
    pub fn accept(&self, timeout: Option<Duration>) -> io::Result<Option<Connection>> {
        let since = clock::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(since.elapsed()));
            let [called] = wait::readable([self.socket.as_fd()], left)?;
            if called {
                match self.socket.accept() {
                    // The peer is another user, or its credentials are not available.
                    Ok((stream, _)) => {
                        if let Ok(connection) = Connection::new(stream) {
                            return Ok(Some(connection));
                        }
                    }
                    // The client has disconnected already.
                    Err(error) if is_transient(&error) => {}
                    Err(error) if is_exhausted(&error) => {
                        std::thread::sleep(
                            left.map_or(ACCEPT_RETRY_DELAY, |left| left.min(ACCEPT_RETRY_DELAY)),
                        );
                    }
                    Err(error) => return Err(error),
                }
            }
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connects to the lab or box `name` of this user.
///
/// # Errors
/// `NotFound` if none of that name runs; `PermissionDenied` if another user has bound
/// that name; `TimedOut` if it does not accept the connection;
/// `InvalidInput` if the name is not valid; otherwise the system error.
pub fn connect(owner: Owner, name: &str) -> io::Result<Connection> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // connect(2) on a Unix socket waits for space in the listener's backlog, for at
    // most the write timeout.
    socket.set_write_timeout(Some(CONNECT_TIMEOUT))?;
    socket.connect(&address(owner, sandbox::user(), name)?).map_err(|error| {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                let text = format!("no {} named {name} is running", owner.noun());
                io::Error::new(io::ErrorKind::NotFound, text)
            }
            io::ErrorKind::WouldBlock => timed_out(),
            _ => error,
        }
    })?;
    Connection::new(OwnedFd::from(socket).into())
}

/// The names of this user's running labs or boxes, sorted.
///
/// Another user can bind such a name but is refused by [`connect`].
///
/// # Errors
/// The system error if the list of sockets cannot be read.
pub fn running(owner: Owner) -> io::Result<Vec<String>> {
    // /proc/net shows the namespace of the main thread, which may be another one.
    let list = std::fs::read("/proc/thread-self/net/unix")?;
    let mut names = names(&String::from_utf8_lossy(&list), owner, sandbox::user());
    names.sort();
    names.dedup();
    Ok(names)
}

/// The names in /proc/net/unix. The fields of a line: address, reference count,
/// protocol, flags, type, state, inode, name (`@` stands for NUL).
fn names(list: &str, owner: Owner, user: u32) -> Vec<String> {
    let prefix = format!("@{}/{user}/", owner.prefix());
    let name = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        let name = fields.nth(3)?.strip_prefix(prefix.as_str())?;
        (flags & SO_ACCEPTCON != 0 && is_name(name)).then(|| name.to_owned())
    };
    list.lines().filter_map(name).collect()
}

fn is_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits)
}

fn address(owner: Owner, user: u32, name: &str) -> io::Result<SockAddr> {
    if !is_name(name) {
        let noun = owner.noun();
        let text = format!(
            "a {noun} name has 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let prefix = owner.prefix();
    SockAddr::unix(OsStr::from_bytes(format!("\0{prefix}/{user}/{name}").as_bytes()))
}

impl Connection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        let peer = Peer::of_descriptor(stream.as_raw_fd())?;
        let own = effective_uid();
        if peer.user != own && peer.user != 0 {
            let text = "it belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Connection { stream, peer, pending: Vec::new() })
    }

    /// Process ID of the peer. `None` if it has none in our PID namespace, as is
    /// the case for a client outside of the lab.
    #[must_use]
    pub fn peer_pid(&self) -> Option<u32> {
        u32::try_from(self.peer.process).ok().filter(|process| *process != 0)
    }

    /// Sends one line within `limit`. After an error the connection is unusable:
    /// part of the line may have been sent.
    ///
    /// # Errors
    /// `InvalidInput` for more than one line or more than [`LONGEST_LINE`];
    /// `TimedOut`; `BrokenPipe` if the peer has disconnected.
    pub fn send_line(&mut self, line: &str, limit: Duration) -> io::Result<()> {
        if line.contains('\n') || line.len() > LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the message is not a single line of at most 1 MiB",
            ));
        }
        let since = clock::now();
        let bytes = [line.as_bytes(), b"\n"].concat();
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            self.stream.set_write_timeout(Some(remaining(since, limit)?))?;
            match self.stream.write(left) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives the next line within `limit`; `None` if the peer disconnected after
    /// its last line. A partial line is kept for the next call.
    ///
    /// # Errors
    /// `TimedOut`; `UnexpectedEof` if the peer disconnected within a line;
    /// `InvalidData` for a line longer than [`LONGEST_LINE`] or not UTF-8.
    pub fn receive_line(&mut self, limit: Duration) -> io::Result<Option<String>> {
        let since = clock::now();
        let mut searched = 0;
        let mut piece = [0; 4096];
        loop {
            let unseen = self.pending.get(searched..).unwrap_or_default();
            let end = unseen.iter().position(|byte| *byte == b'\n').map(|at| searched + at);
            searched = self.pending.len();
            if end.unwrap_or(searched) > LONGEST_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the line is longer than 1 MiB",
                ));
            }
            if let Some(end) = end {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.truncate(end);
                return String::from_utf8(line)
                    .map(Some)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.stream.set_read_timeout(Some(remaining(since, limit)?))?;
            match self.stream.read(&mut piece) {
                Ok(0) if self.pending.is_empty() => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.pending.extend_from_slice(piece.get(..length).unwrap_or_default());
                }
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The stream, for data that is not in lines, and the bytes already received
    /// after the last line.
    #[must_use]
    pub fn into_stream(self) -> (Vec<u8>, UnixStream) {
        // From here on either end may be silent for any length of time.
        let _ = self.stream.set_read_timeout(None);
        let _ = self.stream.set_write_timeout(None);
        (self.pending, self.stream)
    }

    /// Whether the peer is still connected. If so, its process exists, and
    /// [`Connection::peer_pid`] has not been reused.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let mut entry = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        poll(&mut entry, Some(&Timespec::default())) == Ok(0)
    }
}

impl Peer {
    /// Of whoever made the other end of a Unix-domain socket; an error for any other descriptor.
    pub(crate) fn of_descriptor(socket: RawFd) -> io::Result<Self> {
        let mut credentials = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
        let mut length = libc::socklen_t::try_from(size_of_val(&credentials)).unwrap_or_default();
        // SAFETY: the structure and its length live across the call.
        sys::check(unsafe {
            libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut length,
            )
        })?;
        Ok(Peer { process: credentials.pid, user: credentials.uid })
    }
}

/// Time left of `limit`.
fn remaining(since: Instant, limit: Duration) -> io::Result<Duration> {
    limit.checked_sub(since.elapsed()).filter(|left| !left.is_zero()).ok_or_else(timed_out)
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "timed out waiting for the other end")
}

/// Whether to try again: timeout, interruption, or a client that has gone.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// Whether descriptors or memory have run out (accept(2)).
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_names_of_the_user_are_found() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 100 @longhaul-lab/1000/one\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 101 @longhaul-lab/1000/two\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 102 @longhaul-lab/100/three\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 103 @longhaul-lab/1000/a/b\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 104 /run/longhaul-lab/1000/x\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 106 @longhaul-boost/1000/near-1\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 105\n";
        assert_eq!(names(list, Owner::Lab, 1000), ["one"]);
        assert_eq!(names(list, Owner::Boost, 1000), ["near-1"]);
    }

    #[test]
    fn names_are_plain_and_short() {
        let longest = "n".repeat(LONGEST_NAME);
        assert!(is_name("a-b_c.9") && is_name(&longest));
        for wrong in ["", "a b", "a/b", "a\nb", "ä", &format!("{longest}n")] {
            assert!(!is_name(wrong), "{wrong:?}");
            assert!(address(Owner::Lab, 0, wrong).is_err());
        }
    }

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Connection::new(ours).unwrap(), theirs)
    }

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn lines_are_reassembled() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"one\ntwo\nth").unwrap();
        assert_eq!(ours.receive_line(LONG).unwrap().as_deref(), Some("one"));
        assert_eq!(ours.receive_line(LONG).unwrap().as_deref(), Some("two"));
        assert_eq!(ours.receive_line(SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        theirs.write_all(b"ree\n").unwrap();
        assert_eq!(ours.receive_line(LONG).unwrap().as_deref(), Some("three"));
        assert!(ours.is_open());
        drop(theirs);
        assert!(!ours.is_open());
        assert_eq!(ours.receive_line(LONG).unwrap(), None);
        assert!(ours.send_line("x", LONG).is_err());
    }

    #[test]
    fn the_longest_line_passes_and_one_byte_more_does_not() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) =
            (Connection::new(ours).unwrap(), Connection::new(theirs).unwrap());
        let longest = "x".repeat(LONGEST_LINE);
        let sender = std::thread::spawn(move || {
            theirs.send_line(&longest, LONG).unwrap();
            let refused = theirs.send_line(&(longest + "x"), LONG).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(theirs.send_line("a\nb", LONG).unwrap_err().kind(), refused.kind());
            // A peer that does not respect the limit.
            let endless = "y".repeat(LONGEST_LINE + 1);
            theirs.stream.write_all(endless.as_bytes()).unwrap();
            theirs
        });
        assert_eq!(ours.receive_line(LONG).unwrap().unwrap().len(), LONGEST_LINE);
        let refused = ours.receive_line(LONG).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        drop(sender.join().unwrap());
    }

    #[test]
    fn a_peer_that_does_not_read_times_out() {
        let (mut ours, theirs) = pair();
        let line = "x".repeat(LONGEST_LINE);
        let stuck = (0..1000).find_map(|_| ours.send_line(&line, SHORT).err());
        assert_eq!(stuck.unwrap().kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[test]
    fn an_incomplete_line_is_an_error() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"half").unwrap();
        drop(theirs);
        assert_eq!(ours.receive_line(LONG).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
