//! What `longhaul boost` promises: `cargo bench -p longhaul-cli --bench boost`.
//!
//! `relay`: a pair on loopback beside two haproxies that splice, the same bytes in turns. `window`:
//! hosts with a 64 KiB window over 100 Mbit/s and 173 ms, from second 5 to 30. `tls`: TLS beside
//! plaintext over 1 Gbit/s and 20 ms. `object`: 1 MB over a lane that carried 10 MB and idled.
//! `text`: the documentation over 100 Mbit/s, compressed. `ciphertext`: random bytes on loopback with
//! and without `--compress`. `kills`: 1 GB with `--mux` while its connection is killed 20 times.
//! `haproxy`, `curl`, `zstd` and `python3` are programs of their own, which must be installed.

mod lab;
mod reduction;
mod relay;
mod sessions;

use bench_harness::{Arguments, Fallible, heading};
use std::process::ExitCode;

const HELP: &str = "cargo bench -p longhaul-cli --bench boost [-- [--rounds N] [--short] \
    [relay] [window] [tls] [object] [text] [ciphertext] [kills]]";

/// The program under test.
const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

/// A part of the benchmark.
#[derive(Clone, Copy)]
enum Part {
    Relay,
    Window,
    Tls,
    Object,
    Text,
    Ciphertext,
    Kills,
}

fn main() -> ExitCode {
    bench_harness::run(HELP, measure)
}

fn measure(mut arguments: Arguments) -> Fallible<()> {
    let is_short = arguments.flag("--short");
    let rounds = arguments.count("--rounds")?.unwrap_or(if is_short { 1 } else { 5 });
    let parts = arguments.parts(&[
        ("relay", Part::Relay),
        ("window", Part::Window),
        ("tls", Part::Tls),
        ("object", Part::Object),
        ("text", Part::Text),
        ("ciphertext", Part::Ciphertext),
        ("kills", Part::Kills),
    ])?;
    heading();
    for part in parts {
        match part {
            Part::Relay => relay::measure(rounds, is_short)?,
            Part::Window => lab::window(rounds, is_short)?,
            Part::Tls => lab::tls(rounds, is_short)?,
            Part::Object => lab::object(rounds)?,
            Part::Text => reduction::text(rounds)?,
            Part::Ciphertext => reduction::ciphertext(rounds, is_short)?,
            Part::Kills => sessions::measure(is_short)?,
        }
    }
    Ok(())
}
