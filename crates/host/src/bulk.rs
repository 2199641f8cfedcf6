//! Zero-copy transfers: from a file to a socket, and discarding received bytes.

use crate::sys;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::ptr;

/// Discards up to `most` received bytes of a TCP socket without copying them
/// (tcp(7), `MSG_TRUNC`). Zero means end of stream.
///
/// # Errors
/// The system error.
pub fn discard(socket: &impl AsFd, most: usize) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer.
    let got = unsafe { libc::recv(fd, ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Sends `count` bytes from the start of `file` over a socket, without copying
/// where the kernel can (sendfile(2)). Returns the number of bytes sent.
///
/// # Errors
/// The system error.
pub fn send_file(socket: &impl AsFd, file: &File, count: usize) -> io::Result<usize> {
    let mut from: libc::off_t = 0;
    let (to, file) = (socket.as_fd().as_raw_fd(), file.as_raw_fd());
    // SAFETY: both descriptors are open and the offset outlives the call.
    let sent = unsafe { libc::sendfile(to, file, &raw mut from, count) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Creates an anonymous file in memory with this content (memfd_create(2)).
///
/// # Errors
/// The system error, if memory or descriptors have run out.
pub fn memory_file(content: &[u8]) -> io::Result<File> {
    let name = CString::new("payload").unwrap_or_default();
    // SAFETY: the name is a C string that outlives the call.
    let raw = sys::check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and ours.
    let mut file = unsafe { File::from_raw_fd(raw) };
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_are_sent_and_discarded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut to, _) = listener.accept().unwrap();
        let file = memory_file(b"0123456789").unwrap();
        assert_eq!(send_file(&from, &file, 10).unwrap(), 10);
        assert_eq!(send_file(&from, &file, 4).unwrap(), 4, "always from its start");
        drop(from);
        let mut gone = 0;
        while gone < 7 {
            gone += discard(&to, 7 - gone).unwrap();
        }
        let mut rest = String::new();
        to.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "7890123");
        assert_eq!(discard(&to, 1).unwrap(), 0);
    }
}
