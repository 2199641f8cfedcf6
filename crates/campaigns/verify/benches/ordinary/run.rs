//! A run in the lab.

use crate::app;
use crate::cases::Case;
use bench_harness::Fallible;
use lab::{Lab, Options, PacketRecord};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use topology::Plan;

/// Bytes of each packet: all headers.
const SNAPLEN: usize = 120;

/// The certificate allows 1 % of the packets to be late; where few packets pass, a long pause of the
/// emulator is less, and would have a cause outside of the path.
const MAX_LATENESS: Duration = Duration::from_millis(100);

const PORT: u16 = 8080;

/// Payload of a segment over a path with an MTU of 1500 bytes.
const MSS: u32 = 1448;

/// Time that a connection may take over a path with losses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What was recorded.
pub(crate) struct Run {
    /// Why the emulation was not that of the path; empty if it was valid.
    pub(crate) not_valid: Vec<String>,
    pub(crate) records: Vec<PacketRecord>,
    /// The share of the time in which the sender had nothing to send.
    pub(crate) idle_share: f64,
}

pub(crate) fn run(case: &Case, seed: u64) -> Fallible<Run> {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(case.number as u64);
    let path = format!("{},seed={seed}", case.path).parse()?;
    // Half of the buffer becomes window.
    let window = case.window.map(|window| {
        let bytes = (2.0 * window) as u64;
        ("net.ipv4.tcp_rmem".to_owned(), format!("4096 {} {bytes}", bytes.min(131_072)))
    });
    let plan = Plan::pair(path, case.congestion.name(), &Vec::from_iter(window), true);
    let lab = Lab::start(&plan, Options { shared: true, ..Options::default() })?;
    let watch = lab.watch(None, SNAPLEN)?;
    let records =
        thread::spawn(move || -> Vec<PacketRecord> { watch.records.iter().flatten().collect() });
    let idle_share = transfer(case, &lab);
    let report = lab.finish()?;
    let records = records.join().map_err(|_| "the capture panicked")?;
    let link = report.links.into_iter().next().ok_or("a lab without a link")?;
    let mut not_valid = link.path.reasons;
    let late = link.path.achieved.lateness_us.max;
    if Duration::from_micros(late) > MAX_LATENESS {
        not_valid.push(format!("a packet was released {} ms late", late / 1000));
    }
    Ok(Run { not_valid, records, idle_share: idle_share? })
}

fn transfer(case: &Case, lab: &Lab) -> Fallible<f64> {
    let (client, server) = (lab.client(), lab.server());
    let address = SocketAddr::new(server.ipv4.into(), PORT);
    let listener = server.namespace.run(|| TcpListener::bind(address))??;
    lab.begin();
    let client =
        client.namespace.run(|| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT))??;
    let server = accept(&listener)?;
    for socket in [&client, &server] {
        socket.set_nodelay(case.no_delay)?;
    }
    let (sender, receiver) =
        if case.server_sends { (&server, &client) } else { (&client, &server) };
    // Nagle's algorithm holds less than a segment (RFC 1122, section 4.2.3.4).
    let held = if case.no_delay { 0 } else { MSS };
    let idle = app::run(&case.steps, case.seconds, held, sender, receiver)?;
    // The last packets pass.
    drop((client, server));
    thread::sleep(case.rtt + Duration::from_millis(50));
    Ok(idle)
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    // The last packet of the handshake may have been lost.
    listener.set_nonblocking(true)?;
    for _ in 0..CONNECT_TIMEOUT.as_millis() {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}
