//! The machine's limit: a sender and a receiver without a protocol, with the settings that were
//! found fastest here (docs/design/traffic.md).
//!
//! - `measure --bare receive PORT STREAMS READ BUFFER MARK` reads so many bytes in a call, over a
//!   buffer of so many, is woken by so many, and prints Gbit/s.
//! - `measure --bare send HOST PORT STREAMS THREADS SECONDS`: the threads are those of congestion
//!   control that paces. `reference` in the place of THREADS: sendfile(2), a thread for each stream.

use bench_harness::Fallible;
use host::{bulk, socket, tcp_info, wait::Poller};
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const BLOCK: usize = 128 << 10;
/// Blocks in one call of a sender.
const BLOCKS: usize = 4;

/// The options after `--bare`.
pub(crate) fn main(options: &[String]) -> Fallible<()> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match options[..] {
        ["receive", port, streams, read, buffer, mark] => {
            let [most, buffer, mark] = [read.parse()?, buffer.parse()?, mark.parse()?];
            receive(port.parse()?, streams.parse()?, most, buffer, mark)
        }
        ["send", host, port, streams, threads, seconds] => {
            let lasts = Duration::from_secs_f64(seconds.parse()?);
            let threads = Some(threads).filter(|it| *it != "reference").map(str::parse);
            send(host, port.parse()?, streams.parse()?, threads.transpose()?, lasts)
        }
        _ => Err("--bare receive PORT STREAMS READ BUFFER MARK, \
                  or send HOST PORT STREAMS THREADS SECONDS"
            .into()),
    }
}

fn receive(port: u16, streams: usize, most: usize, buffer: usize, mark: usize) -> Fallible<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let accepted: Vec<_> =
        (0..streams).map(|_| Ok(listener.accept()?.0)).collect::<Fallible<_>>()?;
    let began = host::clock::now();
    let read_all = move |stream: TcpStream| {
        let _ = socket::set_receive_low_water_mark(&stream, mark);
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

fn send(
    host: &str,
    port: u16,
    streams: usize,
    shared: Option<usize>,
    lasts: Duration,
) -> Fallible<()> {
    let connected: Vec<_> =
        (0..streams).map(|_| TcpStream::connect((host, port))).collect::<std::io::Result<_>>()?;
    let paces = tcp_info::congestion(&connected[0])?.starts_with("bbr");
    let threads = shared.filter(|_| paces).unwrap_or(streams).min(streams);
    let mut groups: Vec<Vec<TcpStream>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, stream) in connected.iter().enumerate() {
        groups[at % threads].push(stream.try_clone()?);
    }
    let block = vec![1; BLOCK];
    let file = shared.is_none().then(|| bulk::file_to_send(&block)).transpose()?.map(Arc::new);
    let senders = groups.into_iter().map(|group| {
        let (block, file) = (block.clone(), file.clone());
        thread::spawn(move || match (file, &group[..]) {
            (Some(file), [stream]) => send_all(stream, &file),
            _ => write_all(&group, &block),
        })
    });
    let senders: Vec<_> = senders.collect();
    thread::sleep(lasts);
    connected.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Write)));
    senders.into_iter().for_each(|sender| drop(sender.join()));
    Ok(())
}

/// Sends the file again and again until the stream is shut down.
fn send_all(stream: &TcpStream, file: &File) -> std::io::Result<()> {
    loop {
        let _bytes = bulk::send_file(stream, file, BLOCK)?;
    }
}

/// Writes to each stream in turn until one of them is shut down.
fn write_all(streams: &[TcpStream], block: &[u8]) -> std::io::Result<()> {
    let slices = [IoSlice::new(block); BLOCKS];
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
