//! A program that knows nothing of routes: one connection that sends.

use bench_harness::Fallible;
use host::clock;
use lab::Lab;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// When a transfer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// After so many bytes: its goodput is that of all of it, from the first SYN to the last ACK.
    Bytes(u64),
    /// After so many seconds: its goodput is the receiver's, without the first ones.
    Seconds { all: u64, skipped: u64 },
}

/// The longest wait for a transfer, beyond its own time.
const GRACE: Duration = Duration::from_secs(60);

/// The goodput from the client to the server, in Mbit/s.
pub(crate) fn goodput(lab: &Lab, to: SocketAddr, length: Length) -> Fallible<f64> {
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let listener = server.run(|| TcpListener::bind(to))??;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(|| receive(&listener, length))?);
        let sent = client.run(|| send(to, length))??;
        let received = receiving.join().map_err(|_| "the receiver panicked")??;
        Ok(match length {
            Length::Bytes(bytes) => bytes as f64 * 8e-6 / sent.as_secs_f64(),
            Length::Seconds { .. } => received,
        })
    })
}

/// Sends, and returns the time until the other end has everything.
fn send(to: SocketAddr, length: Length) -> Fallible<Duration> {
    let begun = clock::now();
    let mut stream = TcpStream::connect(to)?;
    stream.set_write_timeout(Some(GRACE))?;
    stream.set_read_timeout(Some(GRACE))?;
    let block = [0; 64 << 10];
    match length {
        Length::Bytes(bytes) => {
            let mut left = usize::try_from(bytes)?;
            while left > 0 {
                let part = block.get(..left.min(block.len())).unwrap_or(&block);
                stream.write_all(part)?;
                left -= part.len();
            }
        }
        Length::Seconds { all, .. } => {
            while begun.elapsed() < Duration::from_secs(all) {
                stream.write_all(&block)?;
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // The other end closes once it has read to the end.
    let _ = stream.read(&mut [0])?;
    Ok(begun.elapsed())
}

/// Reads to the end; the rate in Mbit/s after the skipped seconds, until the sender stops.
fn receive(listener: &TcpListener, length: Length) -> Fallible<f64> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(GRACE))?;
    let begun = clock::now();
    let (mut counted, mut block) = (0, vec![0; 256 << 10]);
    loop {
        let read = stream.read(&mut block)?;
        if read == 0 {
            break;
        }
        if let Length::Seconds { all, skipped } = length {
            let now = begun.elapsed().as_secs_f64();
            let is_counted = now >= skipped as f64 && now < all as f64;
            counted += if is_counted { read } else { 0 };
        }
    }
    Ok(match length {
        Length::Bytes(_) => 0.0,
        Length::Seconds { all, skipped } => counted as f64 * 8e-6 / (all - skipped) as f64,
    })
}
