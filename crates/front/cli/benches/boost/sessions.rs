//! `--mux`: 1 GB while the connection between the boxes is killed twenty times.

use crate::LONGHAUL;
use crate::relay::{Chain, free_port, start, wait_for};
use bench_harness::{Fallible, row};
use host::lock::lock;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

const KILLS: u64 = 20;

/// Connections through the middle, both ends.
type Open = Arc<Mutex<Vec<[TcpStream; 2]>>>;

/// Passes connections on to far.
fn pass_on(listener: TcpListener, far: SocketAddr, open: Open) {
    std::thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let Ok(far) = TcpStream::connect(far) else { continue };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
            lock(&open).push([near, far]);
        }
    });
}

fn kill(open: &Open) -> u64 {
    let all = std::mem::take(&mut *lock(open));
    for end in all.iter().flatten() {
        let _ = end.shutdown(Shutdown::Both);
    }
    all.len() as u64
}

/// Reads to the end and compares with the piece, repeated; returns bytes and kills.
fn receive(mut stream: TcpStream, piece: &[u8], bytes: u64, open: &Open) -> Fallible<(u64, u64)> {
    let (mut got, mut killed, mut buffer) = (0_u64, 0, vec![0; 1 << 16]);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok((got, killed));
        }
        let at = usize::try_from(got % piece.len() as u64)?;
        let expected = piece.iter().cycle().skip(at);
        if !buffer.iter().take(count).eq(expected.take(count)) {
            return Err(format!("wrong bytes from {got} on").into());
        }
        got += count as u64;
        if killed < KILLS && got > bytes / (KILLS + 2) * (killed + 1) {
            killed += kill(open);
        }
    }
}

pub(crate) fn measure(is_short: bool) -> Fallible<()> {
    let target = TcpListener::bind("127.0.0.1:0")?;
    let middle = TcpListener::bind("127.0.0.1:0")?;
    let (port, lanes) = (free_port()?, free_port()?);
    let (listen, allowed) = (lanes.to_string(), target.local_addr()?.to_string());
    let far = ["boost", "far", "--insecure", "-l", &listen, "--allow", &allowed];
    let mut chain = Chain { port, programs: vec![start(Command::new(LONGHAUL).args(far))?] };
    wait_for(lanes)?;
    let (through, open) = (middle.local_addr()?.to_string(), Open::default());
    pass_on(middle, SocketAddr::from(([127, 0, 0, 1], lanes)), Arc::clone(&open));
    let forward = format!("{port}:{}", target.local_addr()?);
    let near = ["boost", "near", "--insecure", "--mux", "--far", &through, "-L", &forward];
    chain.programs.push(start(Command::new(LONGHAUL).args(near))?);
    let mut first = None;
    while first.is_none() {
        wait_for(port)?;
        // The connection by which the port was tried.
        first = target.accept().ok();
    }
    let bytes: u64 = if is_short { 100_000_000 } else { 1_000_000_000 };
    let piece = host::random::incompressible(1_000_008);
    let (got, killed) = std::thread::scope(|scope| -> Fallible<(u64, u64)> {
        let reader = scope.spawn(|| -> Fallible<(u64, u64)> {
            let (stream, _) = target.accept()?;
            receive(stream, &piece, bytes, &open)
        });
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        let mut left = bytes;
        while left > 0 {
            let part = piece.len().min(usize::try_from(left)?);
            stream.write_all(piece.get(..part).unwrap_or(&piece))?;
            left -= part as u64;
        }
        stream.shutdown(Shutdown::Write)?;
        reader.join().map_err(|_| "the receiver failed")?
    })?;
    row(
        "boost --mux: connections killed, bytes lost or doubled",
        "20, 0",
        &format!("{killed}, {}", bytes.abs_diff(got)),
        killed >= KILLS && got == bytes,
    );
    Ok(())
}
