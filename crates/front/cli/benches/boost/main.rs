//! What `longhaul boost` promises: `cargo bench -p longhaul-cli --bench boost`.
//!
//! `relay`: a pair on loopback beside two haproxies that splice, the same bytes in turns. `window`:
//! hosts with a 64 KiB window over 100 Mbit/s and 173 ms, from second 5 to 30. `gigabit`: 1 Gbit/s and
//! 100 ms without and with loss, beside two haproxies. `tls`: TLS beside plaintext over 1 Gbit/s and
//! 20 ms. `udt`: a session over UDT beside one over TCP, at 1 % loss. `object`: 1 MB over a lane that carried 10 MB and idled. `text`: the documentation over 100
//! Mbit/s, compressed. `ciphertext`: random bytes on loopback with and without `--compress`. `kills`:
//! 1 GB with `--mux` while its connection is killed 20 times. `capped`: `--mux` with small buffers, one connection
//! beside eight. `keystroke`: a byte that is answered.
//! `flows`: 2,000 new ones a second. `idle`: 10,000 that carry nothing.
//! `programs`: curl, rsync, git, rclone and smbclient beside the gain that `boost plan` predicts.
//! `predictions`: the same of paths and options that a seed draws; the predictions are written first.
//! `haproxy`, `curl`, `zstd` and `python3` are programs of their own, which must be installed; a program of
//! `programs` that is missing is a row that says what to install.

mod capped;
mod flow_rate;
mod gigabit;
mod hosts;
mod idle;
mod keystroke;
mod lab;
mod meter;
mod planned;
mod predictions;
mod programs;
mod reduction;
mod relay;
mod sessions;
mod sites;

use bench_harness::{Arguments, Fallible, heading, in_sandbox};
use std::process::ExitCode;

const HELP: &str = "\
cargo bench -p longhaul-cli --bench boost -- [--rounds N] [--short] [PART]...
PART: relay, window, gigabit, tls, udt, object, text, ciphertext, kills, capped, keystroke, flows, idle,
      programs, predictions (all of them)
--rounds N: runs of each figure (5; of programs 1)
--only TEXT: of programs and gigabit, the rows whose names contain TEXT, as in 'curl, 64 KiB'
--seed N: of predictions, what is drawn (a fresh one)
--number N: of predictions, one of the 24 rows
--write FILE: of predictions, where they are written before anything is measured";

/// The program under test.
const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

/// A part of the benchmark.
#[derive(Clone, Copy)]
enum Part {
    Relay,
    Window,
    Gigabit,
    Tls,
    Udt,
    Object,
    Text,
    Ciphertext,
    Programs,
    Predictions,
    Kills,
    Capped,
    Keystroke,
    Flows,
    Idle,
}

fn main() -> ExitCode {
    bench_harness::run(HELP, measure)
}

fn measure(mut arguments: Arguments) -> Fallible<()> {
    let is_short = arguments.flag("--short");
    let asked = arguments.count("--rounds")?;
    let rounds = asked.unwrap_or(if is_short { 1 } else { 5 });
    let only: String = arguments.value("--only")?.unwrap_or_default();
    let seed = arguments.value("--seed")?.unwrap_or_else(bench_harness::fresh_seed);
    let number = arguments.count("--number")?;
    let written = arguments.value("--write")?;
    let parts = arguments.parts(&[
        ("relay", Part::Relay),
        ("window", Part::Window),
        ("gigabit", Part::Gigabit),
        ("tls", Part::Tls),
        ("udt", Part::Udt),
        ("object", Part::Object),
        ("text", Part::Text),
        ("ciphertext", Part::Ciphertext),
        ("programs", Part::Programs),
        ("predictions", Part::Predictions),
        ("kills", Part::Kills),
        ("capped", Part::Capped),
        ("keystroke", Part::Keystroke),
        ("flows", Part::Flows),
        ("idle", Part::Idle),
    ])?;
    heading();
    for part in parts {
        match part {
            Part::Relay => relay::measure(rounds, is_short)?,
            Part::Window => lab::window(rounds, is_short)?,
            Part::Gigabit => in_sandbox(|| gigabit::measure(rounds, is_short, &only))?,
            Part::Tls => in_sandbox(|| gigabit::tls(rounds, is_short))?,
            Part::Udt => in_sandbox(|| gigabit::udt(rounds, is_short))?,
            Part::Object => lab::object(rounds)?,
            Part::Text => reduction::text(rounds)?,
            Part::Ciphertext => reduction::ciphertext(rounds, is_short)?,
            Part::Programs => programs::measure(asked.unwrap_or(1), is_short, &only)?,
            Part::Predictions => predictions::measure(seed, number, written.clone(), is_short)?,
            Part::Kills => sessions::measure(is_short)?,
            Part::Capped => in_sandbox(|| capped::measure(rounds, is_short))?,
            Part::Keystroke => keystroke::measure(is_short)?,
            Part::Flows => in_sandbox(|| flow_rate::measure(is_short))?,
            Part::Idle => idle::measure(is_short)?,
        }
    }
    Ok(())
}
