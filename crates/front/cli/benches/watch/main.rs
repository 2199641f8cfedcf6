//! What `longhaul watch` promises: `cargo bench -p longhaul-cli --bench watch`.
//!
//! 5000 idle and 50 busy sockets over the loopback of a network namespace of its
//! own; twenty looks a second apart, each asked of the kernel, compared, judged and
//! drawn at 200 columns. Medians.

use bench_harness::{Fallible, heading, median, row};
use host::netlink::Netlink;
use host::{clock, cpu, limits};
use report::terminal::{self, Style, Viewport};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use watch::{Selection, Sort, Watcher};

/// Pairs, of which each end is a socket.
const IDLE: usize = 2500;
const BUSY: usize = 25;

const LOOKS: usize = 20;
const INTERVAL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    bench_harness::run_in_sandbox("cargo bench -p longhaul-cli --bench watch", |arguments| {
        arguments.end()?;
        measure()
    })
}

fn measure() -> Fallible<()> {
    limits::raise_open_files()?;
    let network = host::netns::NetNs::create()?;
    // For good: threads that are started from here on belong to it as well.
    host::netns::enter(std::os::fd::AsFd::as_fd(&network))?;
    let netlink = Netlink::open()?;
    netlink.bring_up(netlink.index("lo")?, None, None)?;
    let idle = pairs(IDLE)?;
    for (near, far) in pairs(BUSY)? {
        carry(near, far);
    }
    let mut watcher = Watcher::open(Selection::default(), Sort::Rate)?;
    let style = Style { colour: true, width: 200, unicode: true };
    let room = Viewport { lines: 60, selected: None };
    let mut refresh = || -> Fallible<(usize, usize)> {
        watcher.poll()?;
        let report = watcher.report(room.lines);
        let text = terminal::watch(&report, "rate", room, &style);
        Ok((report.sockets, report.busy * usize::from(text.lines().count() > 50)))
    };
    // The first look finds the owners, once.
    let begun = clock::now();
    refresh()?;
    let first = begun.elapsed();
    let (mut times, mut shares, mut counts) = (Vec::new(), Vec::new(), (0, 0));
    for _ in 0..LOOKS {
        thread::sleep(INTERVAL);
        let (begun, spent) = (clock::now(), cpu::this_thread()?);
        counts = refresh()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        shares.push((cpu::this_thread()? - spent).as_secs_f64() / INTERVAL.as_secs_f64());
    }
    heading();
    let (sockets, busy) = counts;
    let expected = (2 * (IDLE + BUSY), 2 * BUSY);
    row(
        "watch: sockets seen",
        &expected.0.to_string(),
        &sockets.to_string(),
        sockets == expected.0,
    );
    row("watch: of those busy", &expected.1.to_string(), &busy.to_string(), busy == expected.1);
    let (time, share) = (median(&times), median(&shares) * 100.0);
    row("watch: a refresh takes", "100 ms", &format!("{time:.1} ms"), time <= 100.0);
    row("watch: share of a core, once a second", "5 %", &format!("{share:.2} %"), share <= 5.0);
    println!("  the first, which finds the owners: {:.1} ms", first.as_secs_f64() * 1e3);
    drop(idle);
    Ok(())
}

fn pairs(count: usize) -> Fallible<Vec<(TcpStream, TcpStream)>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    (0..count).map(|_| Ok((TcpStream::connect(address)?, listener.accept()?.0))).collect()
}

/// Keeps a pair busy for as long as the process lives: 64 kB every 20 ms.
fn carry(mut near: TcpStream, mut far: TcpStream) {
    thread::spawn(move || {
        while near.write_all(&[7; 64 << 10]).is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    thread::spawn(move || {
        let mut block = [0; 64 << 10];
        while far.read(&mut block).is_ok_and(|length| length > 0) {}
    });
}
