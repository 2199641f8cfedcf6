//! What the boxes add to the time of a keystroke: a byte that is answered, beside one that goes to the
//! target directly, in turns.

use crate::relay::boost;
use bench_harness::{Fallible, median, note, row};
use host::clock::now;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const KEYSTROKES: usize = 1_000;
const SHORT: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// The share of the keystrokes that the promise is about.
const SHARE: f64 = 0.99;

/// Answers every byte of every connection.
fn echo(listener: TcpListener) {
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_nodelay(true);
            thread::spawn(move || {
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
            });
        }
    });
}

/// The time of one, ms.
fn press(stream: &mut TcpStream) -> Fallible<f64> {
    let began = now();
    stream.write_all(&[1])?;
    stream.read_exact(&mut [0])?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

fn percentile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() as f64 * SHARE) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

pub(crate) fn measure(is_short: bool) -> Fallible<()> {
    let modes = [("plain", &[][..], 1.0), ("--compress", &["--compress"][..], 6.0)];
    for (name, flags, promised) in modes {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let target = listener.local_addr()?;
        echo(listener);
        let chain = boost(target, [flags, flags])?;
        let mut streams =
            [TcpStream::connect(target)?, TcpStream::connect(("127.0.0.1", chain.port))?];
        let mut times = [Vec::new(), Vec::new()];
        for stream in &streams {
            stream.set_nodelay(true)?;
        }
        for _ in 0..if is_short { SHORT } else { KEYSTROKES } {
            for (stream, times) in streams.iter_mut().zip(&mut times) {
                thread::sleep(PAUSE);
                times.push(press(stream)?);
            }
        }
        let [direct, mut boosted] = times;
        let added = median(&boosted) - median(&direct);
        note(&format!("boost: a keystroke, {name}: added, median"), &format!("{added:.3} ms"));
        let added = percentile(&mut boosted) - median(&direct);
        row(
            &format!("boost: a keystroke, {name}: added, 99 of 100"),
            &format!("{promised:.0} ms"),
            &format!("{added:.3} ms"),
            added <= promised,
        );
    }
    Ok(())
}
