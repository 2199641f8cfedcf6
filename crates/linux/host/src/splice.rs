//! Moving bytes between sockets without copying them, through a pipe (splice(2)).

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A pipe that never blocks, and how many bytes are in it.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    length: usize,
}

impl Pipe {
    /// A pipe for about `size` bytes. The kernel counts pages, of which each fragment of a packet
    /// takes one, and gives less where the pages of this user's pipes have reached
    /// `fs.pipe-user-pages-soft`.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn new(size: usize) -> io::Result<Self> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = rustix::pipe::pipe_with(flags)?;
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, size);
        Ok(Pipe { reader, writer, length: 0 })
    }

    /// Bytes in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// True without bytes in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes up to `most` bytes from a socket into the empty pipe. Zero means end of stream.
    ///
    /// # Errors
    /// `WouldBlock` if the socket has none; otherwise the system error.
    pub fn fill(&mut self, socket: &impl AsFd, most: usize) -> io::Result<usize> {
        let moved = splice(socket, &self.writer, most)?;
        self.length += moved;
        Ok(moved)
    }

    /// Gives what is in the pipe to a socket, as much as that takes.
    ///
    /// # Errors
    /// `WouldBlock` if the socket takes none; otherwise the system error.
    pub fn drain(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        let moved = splice(&self.reader, socket, self.length)?;
        self.length = self.length.saturating_sub(moved);
        Ok(moved)
    }
}

fn splice(from: &impl AsFd, to: &impl AsFd, most: usize) -> io::Result<usize> {
    loop {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        match rustix::pipe::splice(from, None, to, None, most, flags) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_pass_through_a_pipe() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let ((mut first, from), (to, mut last)) = (connect(), connect());
        from.set_nonblocking(true).unwrap();
        to.set_nonblocking(true).unwrap();
        let mut pipe = Pipe::new(1 << 18).unwrap();
        assert_eq!(pipe.fill(&from, 100).unwrap_err().kind(), ErrorKind::WouldBlock);
        first.write_all(b"0123456789").unwrap();
        crate::wait::ready(&from, false, std::time::Duration::from_secs(10)).unwrap();
        assert_eq!((pipe.fill(&from, 7).unwrap(), pipe.len()), (7, 7));
        assert_eq!(pipe.drain(&to).unwrap(), 7);
        assert!(pipe.is_empty());
        let mut got = [0; 7];
        last.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"0123456");
        drop(first);
        assert_eq!(pipe.fill(&from, 100).unwrap(), 3);
        crate::wait::ready(&from, false, std::time::Duration::from_secs(10)).unwrap();
        drop(pipe);
        let mut next = Pipe::new(1 << 18).unwrap();
        let end = loop {
            match next.fill(&from, 100) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                end => break end,
            }
        };
        assert_eq!(end.unwrap(), 0);
    }
}
