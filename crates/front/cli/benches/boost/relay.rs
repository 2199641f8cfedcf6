//! A pair on loopback beside two haproxies in a row.

use crate::LONGHAUL;
use bench_harness::{Fallible, Ratios, median, note, rounds, row};
use host::clock;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time that a relay has to listen.
const START: Duration = Duration::from_secs(10);

/// A chain of two relays from a port to the target.
pub(crate) struct Chain {
    pub(crate) port: u16,
    pub(crate) programs: Vec<Child>,
}

impl Drop for Chain {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

impl Chain {
    /// CPU time of its programs so far.
    pub(crate) fn cpu_seconds(&self) -> Fallible<f64> {
        let times = self.programs.iter().map(|program| {
            let text = std::fs::read_to_string(format!("/proc/{}/stat", program.id()))?;
            // utime and stime (proc(5)), in ticks of 10 ms; the name before may have spaces.
            let after = text.rsplit_once(')').ok_or("no name in stat")?.1;
            let ticks = after.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
            Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
        });
        times.sum()
    }
}

pub(crate) fn free_port() -> Fallible<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub(crate) fn start(command: &mut Command) -> Fallible<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.map_err(|error| format!("cannot start {name}: {error}; apt-get install {name}").into())
}

pub(crate) fn wait_for(port: u16) -> Fallible<()> {
    let until = clock::now() + START;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if clock::now() > until {
            return Err(format!("nothing listens on port {port}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn haproxy(folder: &Path, target: SocketAddr) -> Fallible<Chain> {
    let (port, second) = (free_port()?, free_port()?);
    let file = folder.join("haproxy.cfg");
    let text = format!(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n \
         option splice-auto\n\
         listen a\n bind 127.0.0.1:{port}\n server b 127.0.0.1:{second}\n\
         listen b\n bind 127.0.0.1:{second}\n server t {target}\n"
    );
    std::fs::write(&file, text)?;
    let program = start(Command::new("haproxy").arg("-db").arg("-f").arg(&file))?;
    wait_for(port)?;
    Ok(Chain { port, programs: vec![program] })
}

/// The program under test with room for 20,000 sockets, where this process may give it.
pub(crate) fn roomy() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n 65536 2>/dev/null; exec "$0" "$@""#, LONGHAUL]);
    command
}

/// A pair with these flags at the near and at the far box.
pub(crate) fn boost(target: SocketAddr, flags: [&[&str]; 2]) -> Fallible<Chain> {
    let [near_flags, far_flags] = flags;
    let (port, lanes) = (free_port()?, free_port()?);
    let (listen, allowed) = (lanes.to_string(), target.to_string());
    let far = ["boost", "far", "--insecure", "-l", &listen, "--allow", &allowed];
    let far = start(roomy().args(far).args(far_flags))?;
    let mut chain = Chain { port, programs: vec![far] };
    wait_for(lanes)?;
    let (far, forward) = (format!("127.0.0.1:{lanes}"), format!("{port}:{target}"));
    let near = ["boost", "near", "--insecure", "--far", &far, "-L", &forward];
    chain.programs.push(start(roomy().args(near).args(near_flags))?);
    wait_for(port)?;
    Ok(chain)
}

/// Rate of so many bytes through a chain in bit/s.
fn carry(port: u16, target: &TcpListener, bytes: u64) -> Fallible<f64> {
    carry_piece(port, target, bytes, &vec![7; 1 << 18])
}

/// The same with one buffer of 256 KiB, written repeatedly.
pub(crate) fn carry_piece(
    port: u16,
    target: &TcpListener,
    bytes: u64,
    piece: &[u8],
) -> Fallible<f64> {
    let began = clock::now();
    let received = std::thread::scope(|scope| -> Fallible<u64> {
        let reader = scope.spawn(|| -> std::io::Result<u64> {
            let (mut all, mut buffer) = (0, vec![0; 1 << 18]);
            // The connections by which the ports were tried come first, and are empty.
            while all == 0 {
                let (mut stream, _) = target.accept()?;
                loop {
                    match stream.read(&mut buffer)? {
                        0 => break,
                        count => all += count as u64,
                    }
                }
            }
            Ok(all)
        });
        if let Err(error) = send(port, bytes, piece) {
            // The receiver waits for bytes.
            TcpStream::connect(target.local_addr()?)?.write_all(&[0])?;
            return Err(error);
        }
        reader.join().map_err(|_| "the receiver failed")?.map_err(Into::into)
    })?;
    if received != bytes {
        return Err(format!("{received} of {bytes} bytes arrived").into());
    }
    Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64())
}

fn send(port: u16, bytes: u64, piece: &[u8]) -> Fallible<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let mut left = bytes;
    while left > 0 {
        let count = left.min(1 << 18);
        let part = piece.get(..usize::try_from(count)?).unwrap_or(piece);
        stream.write_all(part)?;
        left -= count;
    }
    stream.shutdown(Shutdown::Write)?;
    Ok(())
}

pub(crate) fn measure(count: usize, is_short: bool) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let target = TcpListener::bind("127.0.0.1:0")?;
    let address = target.local_addr()?;
    let bytes = if is_short { 1_000_000_000 } else { 10_000_000_000 };
    let chains = [boost(address, [&[], &[]])?, haproxy(folder.path(), address)?];
    let figures = rounds(&chains, count, |chain, _| carry(chain.port, &target, bytes))?;
    if let [ours, theirs] = figures.as_slice() {
        let gbps = |figures: &[f64]| format!("{:.2} Gbit/s", median(figures) / 1e9);
        note("boost: a pair, plaintext, loopback", &gbps(ours));
        note("boost: two haproxies, splice", &gbps(theirs));
        let ratio = Ratios::of(ours, theirs);
        row("boost: pair to haproxy", "0.95", &ratio.to_string(), ratio.median() >= 0.95);
    }
    Ok(())
}
