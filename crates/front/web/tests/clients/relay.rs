//! A path of a limited rate before a server: a whole test at the loopback's rate takes both cores.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// What each direction of a connection carries at most: 32 KiB in 1 ms are 262 Mbit/s.
const CHUNK: usize = 32_768;
const PAUSE: Duration = Duration::from_millis(1);

/// Starts it, for as long as the process lasts.
pub(crate) fn start(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let back = TcpStream::connect(server).unwrap();
            let (reader, writer) = (client.try_clone().unwrap(), back.try_clone().unwrap());
            thread::spawn(move || carry(reader, writer));
            thread::spawn(move || carry(back, client));
        }
    });
    address
}

/// Carries what one end sends to the other, until it closes.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; CHUNK];
    while let Ok(read) = from.read(&mut bytes)
        && read > 0
        && bytes.get(..read).is_some_and(|read| to.write_all(read).is_ok())
    {
        thread::sleep(PAUSE);
    }
    // The other end is told, or has gone.
    drop(to.shutdown(Shutdown::Write));
}
