//! New flows: so many a second, each of which sends a byte and waits for one.

use crate::sites::{Sites, TARGET};
use bench_harness::{Fallible, median, note, row};
use host::clock::now;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const PATH: &str = "rate=1gbit,rtt=0.2ms";
const PER_SECOND: u32 = 2_000;
const SECONDS: u32 = 10;
/// Threads that begin flows in turns: more than are open at a time.
const STARTERS: u32 = 64;
/// A flow that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(5);
/// A flow that begins later than that was not begun at its time.
const LATE: Duration = Duration::from_millis(100);

/// Answers each connection's byte on so many threads, until the process ends.
pub(crate) fn echo(listener: &TcpListener) {
    for _ in 0..4 {
        let Ok(listener) = listener.try_clone() else { return };
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_ok() {
                    let _ = stream.write_all(&byte);
                }
            }
        });
    }
}

/// What became of the flows of one thread.
#[derive(Default)]
struct Flows {
    /// Times of those that were answered, ms.
    times: Vec<f64>,
    failed: u32,
    late: u32,
}

fn one(port: u16) -> std::io::Result<()> {
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[1])?;
    stream.read_exact(&mut [0])
}

/// Begins every `STARTERS`-th flow at its time.
fn starter(first: u32, total: u32, begun: Instant, port: u16) -> Flows {
    let mut flows = Flows::default();
    for number in (first..total).step_by(STARTERS as usize) {
        let due = begun + Duration::from_secs(1) * number / PER_SECOND;
        thread::sleep(due.saturating_duration_since(now()));
        let at = now();
        flows.late += u32::from(at.saturating_duration_since(due) > LATE);
        match one(port) {
            Ok(()) => flows.times.push(at.elapsed().as_secs_f64() * 1e3),
            Err(_) => flows.failed += 1,
        }
    }
    flows
}

pub(crate) fn measure(is_short: bool) -> Fallible<()> {
    let total = PER_SECOND * if is_short { 2 } else { SECONDS };
    for (name, flags) in [("lanes that are used again", &[][..]), ("--mux", &["--mux"][..])] {
        let (flows, not_valid) = Sites::over(PATH, "cubic", |sites| {
            let listener =
                sites.far().namespace.run(|| TcpListener::bind(("0.0.0.0", TARGET)))??;
            echo(&listener);
            let near = [&["--insecure"][..], flags].concat();
            let chain = sites.boxes([&near, &["--insecure"]])?;
            let namespace = &sites.near().namespace;
            let begun = now() + Duration::from_millis(200);
            thread::scope(|scope| {
                let starters: Vec<_> = (0..STARTERS)
                    .map(|first| {
                        let work = move || starter(first, total, begun, chain.port);
                        scope.spawn(move || namespace.run(work))
                    })
                    .collect();
                let mut all = Flows::default();
                for starter in starters {
                    let flows = starter.join().map_err(|_| "a starter panicked")??;
                    all.times.extend(flows.times);
                    all.failed += flows.failed;
                    all.late += flows.late;
                }
                Ok(all)
            })
        })?;
        if let Some(reason) = not_valid {
            println!("  {name} is not valid: {reason}");
        }
        let answered = flows.times.len();
        row(
            &format!("boost: {PER_SECOND} flows/s, {name}: answered of {total}"),
            &total.to_string(),
            &format!("{answered}, {} begun late", flows.late),
            answered == total as usize && flows.late * 100 < total,
        );
        note("boost: median time of a flow", &format!("{:.2} ms", median(&flows.times)));
    }
    Ok(())
}
