//! What is sent: TCP connections from the client to the server of a lab.

use bench_harness::Fallible;
use host::clock;
use lab::Lab;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// The server's port.
pub(crate) const PORT: u16 = 7421;

/// Longest blocking of a read or a write, and so of the end.
const BLOCKING: Duration = Duration::from_millis(100);

/// What connections carry, all at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Traffic {
    /// So many connections without end.
    Bulk(usize),
    /// Connections with bursts and pauses: many segments are the last ones for a while.
    Bursts { streams: usize, bytes: usize, pause: Duration },
    /// One connection after the other, each with so many bytes.
    Connections { streams: usize, bytes: usize, pause: Duration },
    /// Single small segments.
    Thin { streams: usize, bytes: usize, every: Duration },
}

impl Traffic {
    const fn streams(self) -> usize {
        match self {
            Traffic::Bulk(streams)
            | Traffic::Bursts { streams, .. }
            | Traffic::Connections { streams, .. }
            | Traffic::Thin { streams, .. } => streams,
        }
    }
}

/// Sends for a time.
///
/// # Errors
/// The server cannot listen.
pub(crate) fn run(lab: &Lab, traffic: Traffic, time: Duration) -> Fallible<()> {
    let address = SocketAddr::new(lab.server().ipv4.into(), PORT);
    let listener = lab.server().namespace.run(|| TcpListener::bind(address))??;
    listener.set_nonblocking(true)?;
    let end = clock::now() + time;
    thread::scope(|scope| {
        scope.spawn(|| accept(scope, &listener, end));
        for _ in 0..traffic.streams() {
            scope.spawn(move || {
                let _ = lab.client().namespace.run(|| send(address, traffic, end));
            });
        }
    });
    Ok(())
}

fn accept<'scope>(scope: &'scope Scope<'scope, '_>, listener: &TcpListener, end: Instant) {
    while clock::now() < end {
        match listener.accept() {
            Ok((stream, _)) => {
                scope.spawn(move || receive(&stream, end));
            }
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Reads to the end of the connection.
fn receive(mut stream: &TcpStream, end: Instant) {
    let mut buffer = vec![0; 128 * 1024];
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(BLOCKING));
    while clock::now() < end {
        match stream.read(&mut buffer) {
            Ok(1..) => {}
            Err(error) if is_pause(&error) => {}
            _ => return,
        }
    }
}

fn send(address: SocketAddr, traffic: Traffic, end: Instant) {
    while clock::now() < end {
        let left = end - clock::now();
        let Ok(stream) = TcpStream::connect_timeout(&address, left.max(BLOCKING)) else { return };
        let _ = stream.set_write_timeout(Some(BLOCKING));
        let _ = stream.set_read_timeout(Some(BLOCKING));
        match traffic {
            Traffic::Bulk(_) => while write(&stream, 128 * 1024, end) {},
            Traffic::Bursts { bytes, pause, .. } => {
                while write(&stream, bytes, end) {
                    thread::sleep(pause);
                }
            }
            Traffic::Thin { bytes, every, .. } => {
                let _ = stream.set_nodelay(true);
                while write(&stream, bytes, end) {
                    thread::sleep(every);
                }
            }
            Traffic::Connections { bytes, pause, .. } => {
                write(&stream, bytes, end);
                let _ = stream.shutdown(Shutdown::Write);
                receive(&stream, end);
                thread::sleep(pause);
                continue;
            }
        }
        // What is queued is discarded: nothing is sent after the end.
        let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        return;
    }
}

/// False at the end of the time, or of the connection.
fn write(mut stream: &TcpStream, bytes: usize, end: Instant) -> bool {
    let block = vec![0x5a; bytes];
    let mut rest = block.as_slice();
    while !rest.is_empty() {
        if clock::now() >= end {
            return false;
        }
        match stream.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if is_pause(&error) => {}
            Err(_) => return false,
        }
    }
    true
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
