//! The machine's limit: a sender and a receiver without a protocol, with the settings that were
//! found fastest here (docs/design/traffic.md). `measure --bare receive PORT STREAMS READ BUFFER`
//! reads so many bytes in a call, over a buffer of so many, and prints Gbit/s; `measure --bare send HOST PORT STREAMS THREADS SECONDS`, where the threads are those of
//! congestion control that paces.

use crate::Fallible;
use host::{bulk, socket, tcp_info, wait::Poller};
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const BLOCK: usize = 128 << 10;
/// Blocks in one call of a sender.
const BLOCKS: usize = 4;

/// The options after `--bare`.
pub(crate) fn main(options: &[String]) -> Fallible<()> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match options[..] {
        ["receive", port, streams, read, buffer] => {
            receive(port.parse()?, streams.parse()?, read.parse()?, buffer.parse()?)
        }
        ["send", host, port, streams, threads, seconds] => {
            let lasts = Duration::from_secs_f64(seconds.parse()?);
            send(host, port.parse()?, streams.parse()?, threads.parse()?, lasts)
        }
        _ => Err(
            "--bare receive PORT STREAMS READ BUFFER, or send HOST PORT STREAMS THREADS SECONDS"
                .into(),
        ),
    }
}

fn receive(port: u16, streams: usize, most: usize, buffer: usize) -> Fallible<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let accepted: Vec<_> =
        (0..streams).map(|_| Ok(listener.accept()?.0)).collect::<Fallible<_>>()?;
    let began = host::clock::now();
    let read_all = move |stream: TcpStream| {
        let _ = socket::set_receive_low_water_mark(&stream, most);
        let (mut buffer, mut bytes) = (vec![0; buffer], 0);
        while let Ok(got @ 1..) = bulk::read_over(&stream, &mut buffer, most) {
            bytes += got;
        }
        bytes
    };
    let threads: Vec<_> =
        accepted.into_iter().map(|stream| thread::spawn(move || read_all(stream))).collect();
    let bytes: usize = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
    println!("{}", bytes as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e9);
    Ok(())
}

fn send(host: &str, port: u16, streams: usize, shared: usize, lasts: Duration) -> Fallible<()> {
    let connected: Vec<_> =
        (0..streams).map(|_| TcpStream::connect((host, port))).collect::<std::io::Result<_>>()?;
    let paces = tcp_info::congestion(&connected[0])?.starts_with("bbr");
    let threads = if paces { shared.min(streams) } else { streams };
    let mut groups: Vec<Vec<TcpStream>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, stream) in connected.iter().enumerate() {
        groups[at % threads].push(stream.try_clone()?);
    }
    let senders: Vec<_> =
        groups.into_iter().map(|group| thread::spawn(move || write_all(&group))).collect();
    thread::sleep(lasts);
    connected.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Write)));
    senders.into_iter().for_each(|sender| drop(sender.join()));
    Ok(())
}

/// Writes to each stream in turn until one of them is shut down.
fn write_all(streams: &[TcpStream]) -> std::io::Result<()> {
    let block = vec![1; BLOCK];
    let slices = [IoSlice::new(&block); BLOCKS];
    if let [stream] = streams {
        loop {
            let mut stream = stream;
            let _bytes = stream.write_vectored(&slices)?;
        }
    }
    let (mut poller, mut ready) = (Poller::new()?, Vec::new());
    for (token, stream) in streams.iter().enumerate() {
        stream.set_nonblocking(true)?;
        poller.add_for_writing(stream, token)?;
    }
    loop {
        poller.wait(None, &mut ready)?;
        for &token in &ready {
            let mut stream = &streams[token];
            match stream.write_vectored(&slices) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }
}
