//! Where a UDT test continues over TCP: UDP is blocked, or policed and TCP carries more.

use super::{Measured, TestArgs, attempt, failure, latency, path_mtu};
use crate::console::Console;
use crate::failure::Failure;
use diagnose::repeats;
use perf::client::{self, ClientConfig};
use perf::{PerfError, StopFlag};
use record::{Direction, Protocol};
use report::terminal;
use units::BitRate;

/// A trial of TCP: what it may take for slow start, and what it is measured over, in s.
const TRIAL_OMIT_S: u32 = 1;
const TRIAL_S: f64 = 2.0;
/// A test of less than this is over before a trial is worth it, s.
const MIN_TEST_S: f64 = 5.0;
/// What TCP has to carry, as a multiple of UDT's rate.
const ADVANTAGE: f64 = 1.5;

/// One test as requested by `config`, with RTT probes if `probed`. Where UDP does not reach
/// the server, or is policed, over TCP instead of UDT: not in native mode, which is encrypted.
pub(super) fn transfer(
    args: &TestArgs,
    config: &ClientConfig,
    probed: bool,
    console: &mut Console,
    stop: &StopFlag,
) -> Result<Measured, Failure> {
    let port = args.modes.latency_port.unwrap_or(latency::PORT);
    if probed && args.port.contains(&port) {
        return Err(Failure::usage(format!(
            "cannot probe port {port}: the test's server listens there and would take each probe \
             for a client; give another --latency-port (a closed port works)"
        )));
    }
    let probed = probed.then_some(port);
    let plain_udt = config.protocol == Protocol::Udt && !config.is_native();
    let path_mtu = if plain_udt { path_mtu::below_the_route(args, stop) } else { None };
    let config = &ClientConfig { path_mtu, ..config.clone() };
    let noted = path_mtu.map(|mtu| {
        format!("the path MTU is {mtu} bytes, less than the route's: UDT sends smaller packets")
    });
    if let Some(note) = &noted {
        say(note, console);
    }
    let mut measured = carried(args, config, probed, plain_udt, console, stop)?;
    if let Some(note) = noted {
        measured.measurement.notes.insert(0, note.clone());
        measured.printed.push(note);
    }
    Ok(measured)
}

/// One test, over TCP where UDT does not reach the server.
fn carried(
    args: &TestArgs,
    config: &ClientConfig,
    probed: Option<u16>,
    plain_udt: bool,
    console: &mut Console,
    stop: &StopFlag,
) -> Result<Measured, Failure> {
    if !plain_udt || args.no_fallback {
        return attempt(args, config, probed, console, stop).map_err(failure);
    }
    let checked = ClientConfig { stops_if_policed: is_worth_a_trial(config), ..config.clone() };
    let (note, chosen) = match attempt(args, &checked, probed, console, stop) {
        Err(PerfError::NoUdt { waited, .. }) => {
            let note = format!(
                "switched from UDT to TCP: no reply by UDP within {} ms; UDP is blocked on the \
                 path, or the server is not longhaul's",
                waited.as_millis()
            );
            (note, config.over_tcp())
        }
        Err(PerfError::Policed { delivered, .. }) => {
            say(
                &format!(
                    "UDT loses packets without a queue and delivers {delivered}: UDP may be \
                     policed; trying TCP for 3 s"
                ),
                console,
            );
            trial(config, delivered, stop)?
        }
        ended => return ended.map_err(failure),
    };
    say(&note, console);
    let mut measured = attempt(args, &chosen, probed, console, stop).map_err(failure)?;
    measured.measurement.notes.insert(0, note.clone());
    measured.printed.push(note);
    Ok(measured)
}

/// Whether a test is long enough, free to choose its rate, and sends from here.
fn is_worth_a_trial(config: &ClientConfig) -> bool {
    let is_timed = config.bytes.is_none() && config.blocks.is_none();
    is_timed
        && config.seconds >= MIN_TEST_S
        && config.rate.is_none()
        && config.direction == Direction::Forward
}

/// Measures TCP for a moment. What to continue with, and why.
fn trial(
    config: &ClientConfig,
    udt: BitRate,
    stop: &StopFlag,
) -> Result<(String, ClientConfig), Failure> {
    let over_tcp = config.over_tcp();
    let short = ClientConfig { seconds: TRIAL_S, omit_seconds: TRIAL_OMIT_S, ..over_tcp.clone() };
    let trial = client::run(&short, &mut |_| (), stop).map_err(failure)?;
    let tcp = repeats::figures(&trial.measurement).throughput_bps;
    Ok(if tcp.as_f64() >= udt.as_f64() * ADVANTAGE {
        (
            format!("switched from UDT to TCP: UDT carried {udt}, TCP {tcp}; UDP is policed"),
            over_tcp,
        )
    } else {
        (format!("continuing over UDT: it carried {udt}, TCP {tcp}"), config.clone())
    })
}

fn say(note: &str, console: &mut Console) {
    let style = console.err;
    console.say(terminal::notes(&[note.to_owned()], &style).trim_end());
}
