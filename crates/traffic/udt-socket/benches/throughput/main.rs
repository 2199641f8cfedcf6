//! UDT memory to memory beside libudt 4.11: `cargo bench -p longhaul-udt-socket`.
//!
//! Two hosts, a veth pair, packets of 1500 bytes, libudt with buffers of 256 MB, the
//! unencrypted wire format (the native mode is encrypted), five alternating runs of 4 s, medians.

#[path = "../../../../front/cli/benches/measure/pair.rs"]
mod pair;

use bench_harness::{Fallible, median, rounds};
use control::Algorithm;
use pair::{Pair, SERVER};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use udt::{
    Config, Connection, Endpoint, Identity, Listener, NativeConfig, NativeConnection, Sequence,
};
use udt_socket::{Driver, Next};
use units::{ByteCount, Nanos};

const REPEATS: usize = 5;
const SECONDS: &str = "4";
const PORT: &str = "9500";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, of_end)) if first == "end" => bench_harness::run("", |_| end(of_end)),
        _ => bench_harness::run_in_sandbox("cargo bench -p longhaul-udt-socket", |arguments| {
            arguments.end()?;
            measure()
        }),
    }
}

/// One end of a transfer of ours: what libudt's peer prints, too.
fn end(arguments: &[String]) -> Fallible<()> {
    let [name, role, address, port, seconds] = arguments else {
        return Err("five arguments".into());
    };
    let address: SocketAddr = format!("{address}:{port}").parse()?;
    let time = Duration::from_secs_f64(seconds.parse()?);
    let sends = role == "connect";
    let socket = UdpSocket::bind(if sends { "0.0.0.0:0".parse()? } else { address })?;
    // As libudt's peer asks for; more than the system's limit needs the right to exceed it.
    let _ = host::socket::set_receive_buffer(&socket, ByteCount::from_bytes(12 << 20));
    if sends {
        socket.connect(address)?;
    }
    let mut driver = Driver::new(socket)?;
    if let Some(name) = name.strip_prefix("native ") {
        let mut connection = native(driver.now(), name, sends.then_some(address))?;
        return transfer(&mut driver, &mut connection, sends.then_some(time));
    }
    let algorithm = Algorithm::for_udt(name).ok_or("no such congestion control")?;
    let config = Config::new(7, Sequence::new(1), algorithm);
    let mut connection = if sends {
        Connection::client(driver.now(), config)
    } else {
        let mut listener = Listener::new([1; 32], 1);
        let timeout = Nanos(20_000_000_000);
        let accepted = udt_socket::accept(&driver, &mut listener, &config, |now| now > timeout)?;
        accepted.ok_or("no client")?.1
    };
    transfer(&mut driver, &mut connection, sends.then_some(time))
}

/// A client of that server, or a server.
fn native(now: Nanos, name: &str, server: Option<SocketAddr>) -> Fallible<NativeConnection> {
    let algorithm = Algorithm::for_native(name).ok_or("no such congestion control")?;
    let config = NativeConfig {
        packet_bytes: NativeConfig::IPV4_PACKET_BYTES,
        max_buffer: Config::MAX_BUFFER,
        algorithm,
        secret: host::random::secret()?,
    };
    let [own, peer] = [1, 2].map(|seed| Identity::new(&[seed; 32]));
    let (own, peer) = (own?, peer?);
    Ok(match server {
        Some(server) => {
            let address = udt_socket::peer_address(server);
            NativeConnection::client(now, config, address, &own, peer.public_key())?
        }
        None => NativeConnection::server(now, config, peer, own.public_key()),
    })
}

/// Sends for that time, or receives until the peer closes.
fn transfer<E: Endpoint>(
    driver: &mut Driver,
    connection: &mut E,
    sends: Option<Duration>,
) -> Fallible<()> {
    let (began, mut bytes, block) = (driver.now(), 0, vec![0; 1 << 20]);
    let until = sends.map(|time| began.plus(time));
    driver.run(connection, &mut |now: Nanos, connection: &mut E| {
        let Some(until) = until else {
            bytes += connection.discard();
            return Next::OnEvent;
        };
        if now >= until {
            connection.abort(udt::CloseReason::Local);
            return Next::Never;
        }
        loop {
            let written = connection.write(&block);
            bytes += written as u64;
            if written < block.len() {
                return Next::At(until);
            }
        }
    })?;
    let seconds = driver.now().since(began).as_secs_f64();
    let cpu = host::cpu::this_thread()?.as_secs_f64();
    println!("{bytes} {seconds:.6} {cpu:.6}");
    Ok(())
}

/// Gbit/s that arrived, and CPU seconds of both ends for each second.
struct Run {
    gbps: f64,
    cpu: f64,
}

fn run(pair: &Pair, program: &[&str]) -> Fallible<Run> {
    let start = |host: usize, role: &str, time: &str| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args([role, SERVER, PORT, time]);
        pair.spawn(host, command.stdout(Stdio::piped()))
    };
    let receiver = start(1, "listen", "0")?;
    std::thread::sleep(Duration::from_millis(300));
    let sender = start(0, "connect", SECONDS)?;
    let mut figures = Vec::new();
    for child in [sender, receiver] {
        let output = child.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        // libudt's listener says first that it listens.
        let line = text.lines().last().ok_or("no result")?;
        let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        figures.push(numbers?);
    }
    let [sent, received] = &figures[..] else { return Err("no result".into()) };
    let seconds: f64 = SECONDS.parse()?;
    Ok(Run { gbps: received[0] * 8e-9 / seconds, cpu: (sent[2] + received[2]) / seconds })
}

fn measure() -> Fallible<()> {
    let built = build()?;
    let (own, theirs) = (std::env::current_exe()?, built.display().to_string());
    let own = own.display().to_string();
    let pair = Pair::start()?;
    let names = ["udt", "reno", "native bbr", "native reno"];
    let mut programs = names.map(|name| vec![&*own, "end", name]).to_vec();
    programs.push(vec![&theirs, "throughput"]);
    let runs = rounds(&programs, REPEATS, |program, _| run(&pair, program))?;
    let [ours @ .., others] = &runs[..] else { return Err("no runs".into()) };
    let (gbps, cpu) = medians(others);
    println!("{:<32} {:>10} {:>8} {:>8} {:>8}", "", "Gbit/s", "ratio", "CPUs", "ratio");
    println!("{:<32} {gbps:>10.2} {:>8} {cpu:>8.2}", "libudt", "");
    println!("{:<32} {:>10} {:>8} {:>8} {:>8}", "promised", "", 4, "", 1);
    for (name, runs) in names.iter().zip(ours) {
        let (own_gbps, own_cpu) = medians(runs);
        let (faster, dearer) = (own_gbps / gbps, own_cpu / cpu);
        println!(
            "{:<32} {own_gbps:>10.2} {faster:>8.2} {own_cpu:>8.2} {dearer:>8.2}",
            format!("ours, --cc {name}")
        );
    }
    Ok(())
}

/// Medians of throughput and CPU.
fn medians(runs: &[Run]) -> (f64, f64) {
    let of = |figure: fn(&Run) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
    (of(|run| run.gbps), of(|run| run.cpu))
}

/// Builds the tests' peer with libudt.
fn build() -> Fallible<PathBuf> {
    let program = std::env::temp_dir().join(format!("udt-peer-{}", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/peer.cpp");
    let status = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(&program)
        .args([source, "-ludt", "-lpthread"])
        .status()?;
    if status.success() { Ok(program) } else { Err("the peer does not compile".into()) }
}
