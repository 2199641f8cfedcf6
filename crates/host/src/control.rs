//! A way to talk to a running lab: a socket with a name, and lines of text.
//!
//! The socket is an *abstract* one (unix(7)): its name is in no file system and
//! goes with the process that bound it, however that ends. Abstract names
//! belong to a network namespace, so both ends have to be in the machine's.

use crate::{clock, sys, wait, world};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The longest line, in bytes and without its end: 1 MiB, a lab of 250 hosts
/// and 500 links twice over.
pub const LONGEST_LINE: usize = 1024 * 1024;

/// The longest name of a lab, in bytes.
pub const LONGEST_NAME: usize = 64;

/// How long a lab may take to have room for one more caller.
const PATIENCE: Duration = Duration::from_secs(5);

/// `__SO_ACCEPTCON` in the flags of /proc/net/unix: the socket listens.
const LISTENS: u32 = 1 << 16;

/// The end of a lab that waits for callers.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
}

/// A conversation in lines, from either end.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    peer: Peer,
    /// What was read beyond the last line.
    pending: Vec<u8>,
}

/// Who is at the other end, in the numbers of our own namespaces.
#[derive(Debug, Clone, Copy)]
struct Peer {
    process: libc::pid_t,
    user: libc::uid_t,
}

impl Listener {
    /// Takes the name for a lab of this user: letters, digits, `-`, `_`, `.`.
    ///
    /// # Errors
    /// `AddrInUse` where a lab has that name; `InvalidInput` for one that
    /// cannot be a name; otherwise the system's own.
    pub fn bind(name: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&address(world::user(), name)?)?;
        socket.listen(libc::SOMAXCONN)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket: OwnedFd::from(socket).into() })
    }

    /// Waits for a caller for at most `timeout` (`None`: for as long as it
    /// takes); none came where it gives `None`. Only the same user and root
    /// are let in; anyone else is hung up on.
    ///
    /// An ordinary user's lab cannot tell the machine's root from strangers,
    /// as neither has a number in its user namespace, and lets neither in.
    ///
    /// # Errors
    /// The system's own.
    pub fn accept(&self, timeout: Option<Duration>) -> io::Result<Option<Connection>> {
        let since = clock::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(since.elapsed()));
            let [called] = wait::readable([self.socket.as_fd()], left)?;
            if called {
                match self.socket.accept() {
                    Ok((stream, _)) => match Connection::with(stream) {
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                        connection => return connection.map(Some),
                    },
                    // Called and hung up again.
                    Err(error) if is_passing(&error) => {}
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

/// Calls the lab `name` of this user.
///
/// # Errors
/// `NotFound` where no such lab runs; `PermissionDenied` where a stranger has
/// taken that name; `TimedOut` where the lab takes no more callers;
/// `InvalidInput` for what cannot be a name; otherwise the system's own.
pub fn connect(name: &str) -> io::Result<Connection> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A Unix socket's connect waits for room in the other's queue, as long as
    // a write would wait.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&address(world::user(), name)?).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            io::Error::new(io::ErrorKind::NotFound, format!("no lab {name} is running"))
        }
        io::ErrorKind::WouldBlock => timed_out(),
        _ => error,
    })?;
    Connection::with(OwnedFd::from(socket).into())
}

/// The names of this user's running labs, in order.
///
/// A stranger can take a name, but not answer by it: [`connect`] refuses.
///
/// # Errors
/// The system's own where it does not list its sockets.
pub fn running() -> io::Result<Vec<String>> {
    // /proc/net is that of the process's first thread; ours may be elsewhere.
    let list = std::fs::read("/proc/thread-self/net/unix")?;
    let mut names = names(&String::from_utf8_lossy(&list), world::user());
    names.sort();
    names.dedup();
    Ok(names)
}

/// The names in /proc/net/unix: a line is an address, a reference count, the
/// protocol, flags, type, state and inode, and then the name with `@` for NUL.
fn names(list: &str, user: u32) -> Vec<String> {
    let prefix = format!("@longhaul-lab/{user}/");
    let name = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        let name = fields.nth(3)?.strip_prefix(prefix.as_str())?;
        (flags & LISTENS != 0 && is_name(name)).then(|| name.to_owned())
    };
    list.lines().filter_map(name).collect()
}

fn is_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits)
}

fn address(user: u32, name: &str) -> io::Result<SockAddr> {
    if !is_name(name) {
        let text = format!(
            "a lab's name is 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    SockAddr::unix(OsStr::from_bytes(format!("\0longhaul-lab/{user}/{name}").as_bytes()))
}

impl Connection {
    fn with(stream: UnixStream) -> io::Result<Self> {
        let peer = Peer::of(&stream)?;
        // SAFETY: no arguments, cannot fail.
        let own = unsafe { libc::geteuid() };
        if peer.user != own && peer.user != 0 {
            let text = "the process at the other end belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Connection { stream, peer, pending: Vec::new() })
    }

    /// The process at the other end: the one that called, or the one that
    /// listened. `None` where it has no number in our PID namespace, as a
    /// caller has none inside a lab.
    #[must_use]
    pub fn peer_pid(&self) -> Option<u32> {
        u32::try_from(self.peer.process).ok().filter(|process| *process != 0)
    }

    /// Sends one line, within `limit`. After an error the conversation is over:
    /// part of the line may have been sent.
    ///
    /// # Errors
    /// `InvalidInput` for more than one line or more than [`LONGEST_LINE`];
    /// `TimedOut`; `BrokenPipe` where the other end has gone.
    pub fn send_line(&mut self, line: &str, limit: Duration) -> io::Result<()> {
        if line.contains('\n') || line.len() > LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not one line of at most 1 MiB",
            ));
        }
        let since = clock::now();
        let bytes = [line.as_bytes(), b"\n"].concat();
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            self.stream.set_write_timeout(Some(remaining(since, limit)?))?;
            match self.stream.write(left) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives the next line, within `limit`; `None` where the other end has
    /// hung up after its last one. What came of a line in time is kept for the
    /// next call.
    ///
    /// # Errors
    /// `TimedOut`; `UnexpectedEof` where the other end hung up within a line;
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
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line above 1 MiB"));
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
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The stream itself, for what is no longer in lines, and what came of it
    /// already after the last line received.
    #[must_use]
    pub fn into_stream(self) -> (Vec<u8>, UnixStream) {
        // Either end may be quiet for as long as it likes from here on.
        let _ = self.stream.set_read_timeout(None);
        let _ = self.stream.set_write_timeout(None);
        (self.pending, self.stream)
    }

    /// Whether the other end still holds its side. While it does, its process
    /// lives, and [`Connection::peer_pid`] is no other's number.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let mut entry =
            libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one live entry.
        unsafe { libc::poll(&raw mut entry, 1, 0) == 0 }
    }
}

impl Peer {
    fn of(stream: &UnixStream) -> io::Result<Self> {
        let mut credentials = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
        let mut length = libc::socklen_t::try_from(size_of_val(&credentials)).unwrap_or_default();
        // SAFETY: the structure and its length live across the call.
        sys::check(unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut length,
            )
        })?;
        Ok(Peer { process: credentials.pid, user: credentials.uid })
    }
}

/// What is left of `limit`.
fn remaining(since: Instant, limit: Duration) -> io::Result<Duration> {
    limit.checked_sub(since.elapsed()).filter(|left| !left.is_zero()).ok_or_else(timed_out)
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other end does not answer in time")
}

/// Whether to look again: the time is up, a signal came, or a caller has gone.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_once_it_listens_and_of_its_own_user() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 100 @longhaul-lab/1000/one\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 101 @longhaul-lab/1000/two\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 102 @longhaul-lab/100/three\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 103 @longhaul-lab/1000/a/b\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 104 /run/longhaul-lab/1000/x\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 105\n";
        assert_eq!(names(list, 1000), ["one"]);
    }

    #[test]
    fn names_are_plain_and_short() {
        let longest = "n".repeat(LONGEST_NAME);
        assert!(is_name("a-b_c.9") && is_name(&longest));
        for wrong in ["", "a b", "a/b", "a\nb", "ä", &format!("{longest}n")] {
            assert!(!is_name(wrong), "{wrong:?}");
            assert!(address(0, wrong).is_err());
        }
    }

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Connection::with(ours).unwrap(), theirs)
    }

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn lines_arrive_whole_whatever_the_pieces() {
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
            (Connection::with(ours).unwrap(), Connection::with(theirs).unwrap());
        let longest = "x".repeat(LONGEST_LINE);
        let sender = std::thread::spawn(move || {
            theirs.send_line(&longest, LONG).unwrap();
            let refused = theirs.send_line(&(longest + "x"), LONG).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(theirs.send_line("a\nb", LONG).unwrap_err().kind(), refused.kind());
            // A peer that keeps no such promise.
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
    fn a_peer_that_does_not_read_holds_nobody_up() {
        let (mut ours, theirs) = pair();
        let line = "x".repeat(LONGEST_LINE);
        let stuck = (0..1000).find_map(|_| ours.send_line(&line, SHORT).err());
        assert_eq!(stuck.unwrap().kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[test]
    fn half_a_line_is_an_error() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"half").unwrap();
        drop(theirs);
        assert_eq!(ours.receive_line(LONG).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
