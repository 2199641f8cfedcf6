//! The goodput of a drawn path as it is, and with the option.

use super::draw::Drawn;
use crate::LONGHAUL;
use crate::hosts::{Hosts, SMALL_WINDOW, Validity};
use crate::planned;
use bench_harness::Fallible;
use model::Congestion;
use record::{BoostKind, BoostOption};
use serde_json::Value;
use std::thread;

/// Seconds of ramp-up that are left out, and those that are measured.
const OMITTED: u32 = 8;
const MEASURED: u32 = 20;
/// The same of Reno and CUBIC under loss, whose rate varies: in several labs at the same time while
/// their sum is small.
const MEASURED_UNDER_LOSS: u32 = 80;
const TOGETHER: usize = 4;
const SMALL_SUM_BPS: f64 = 60e6;

/// Seconds of a copy.
const COPY_S: f64 = 30.0;

/// The route of every host of a lab without its congestion control.
const ROUTE: &str = "$(ip -4 route show default | sed 's/ congctl.*//')";

/// Goodput in bit/s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) direct: f64,
    pub(super) option: f64,
    pub(super) is_valid: bool,
}

impl Found {
    pub(super) fn gain(&self) -> f64 {
        self.option / self.direct
    }
}

/// Measures without and with the option.
pub(super) fn measure(
    drawn: &Drawn,
    now_bps: f64,
    option: &BoostOption,
    is_short: bool,
) -> Fallible<Found> {
    let Found { direct, is_valid, .. } = alone(drawn, now_bps, is_short)?;
    let (rate, was_valid) = match drawn.kind {
        BoostKind::Copy => copied(drawn, option)?,
        _ => accelerated(drawn, option, is_short)?,
    };
    Ok(Found { direct, option: rate, is_valid: is_valid && was_valid.0 })
}

/// The transfer as it is: `option` of what is found is the same figure.
fn alone(drawn: &Drawn, now_bps: f64, is_short: bool) -> Fallible<Found> {
    let varies = varies(drawn);
    let seconds = seconds(varies, is_short);
    let run = || tested(drawn, &test("server", seconds, ""), "", None);
    let results: Vec<(f64, Validity)> = if varies && now_bps * TOGETHER as f64 <= SMALL_SUM_BPS {
        thread::scope(|scope| {
            let runs: Vec<_> = (0..TOGETHER).map(|_| scope.spawn(run)).collect();
            let runs = runs.into_iter();
            runs.map(|run| run.join().map_err(|_| "a lab panicked")?).collect::<Fallible<_>>()
        })?
    } else {
        vec![run()?]
    };
    let direct = results.iter().map(|(rate, _)| rate).sum::<f64>() / results.len() as f64;
    let is_valid = results.iter().all(|(_, validity)| validity.0);
    Ok(Found { direct, option: direct, is_valid })
}

/// Returns true if single transfers differ, as Reno and CUBIC do under loss.
fn varies(drawn: &Drawn) -> bool {
    drawn.has_loss && drawn.congestion != Congestion::Bbr
}

const fn seconds(varies: bool, is_short: bool) -> u32 {
    match (varies, is_short) {
        (true, false) => MEASURED_UNDER_LOSS,
        (false, false) => MEASURED,
        (true, true) => MEASURED_UNDER_LOSS / 2,
        (false, true) => MEASURED / 2,
    }
}

/// The pair, a route's settings or more streams.
fn accelerated(drawn: &Drawn, option: &BoostOption, is_short: bool) -> Fallible<(f64, Validity)> {
    let settled = seconds(false, is_short);
    match drawn.kind {
        BoostKind::Pair => {
            let lanes = planned::lanes(option);
            let far = format!(
                "{LONGHAUL} boost far -l 0.0.0.0:7425 --insecure --allow server:5201{lanes}"
            );
            let near = format!(
                "{LONGHAUL} boost near --far far --insecure -L 0.0.0.0:5301:server:5201{lanes}"
            );
            let seconds = seconds(drawn.has_loss && lanes.contains("-C cubic"), is_short);
            let command = test("near -p 5301", seconds, "");
            tested(drawn, &command, "", Some((&lanes, vec![("far", far), ("near", near)])))
        }
        // Without a gain there is no command, and twice as many are tried.
        BoostKind::Streams => {
            let count = option.commands.iter().find_map(|command| {
                let (_, count) = command.split_once("--transfers ")?;
                count.split(' ').next()?.parse().ok()
            });
            let count: u32 = count.unwrap_or(2);
            let seconds = seconds(varies(drawn), is_short);
            tested(drawn, &test("server", seconds, &format!("-P {count}")), "", None)
        }
        BoostKind::Route => {
            let before = format!("ip route replace {ROUTE} congctl bbr; ");
            tested(drawn, &test("server", settled, ""), &before, None)
        }
        other => Err(format!("{} is not drawn", other.name()).into()),
    }
}

fn test(to: &str, seconds: u32, more: &str) -> String {
    let all = seconds + OMITTED;
    format!("{LONGHAUL} test {to} -t {all} --omit {OMITTED} --json {more}")
}

/// Settings of both hosts.
fn host(drawn: &Drawn) -> String {
    let scaling = if drawn.has_small_window { SMALL_WINDOW } else { "" };
    format!("congestion = \"{}\"\n{scaling}", drawn.congestion.name())
}

/// The goodput at the receiver of a test; `boxes` are the settings of lanes, and the boxes.
fn tested(
    drawn: &Drawn,
    command: &str,
    before: &str,
    boxes: Option<(&str, Vec<(&'static str, String)>)>,
) -> Fallible<(f64, Validity)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("result");
    let mut services = vec![("server", format!("{LONGHAUL} server"))];
    let (lanes, boxes) = boxes.unwrap_or_default();
    services.extend(boxes);
    let hosts = host(drawn);
    let validity = Hosts {
        path: &drawn.path,
        app: &hosts,
        server: &hosts,
        services,
        lanes: planned::congestion(lanes),
        command: &format!("sleep 1; {before}{command} > {}", file.display()),
    }
    .run(folder.path())?;
    let document: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let figure = |name: &str| document[name].as_f64().ok_or("no figure");
    Ok((figure("received_bytes")? * 8.0 / figure("seconds")?, validity))
}

/// The rate of a copy to the server, its start included.
fn copied(drawn: &Drawn, option: &BoostOption) -> Fallible<(f64, Validity)> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let rate = option.goodput_bps.ok_or("no prediction")?.expected.as_f64();
    std::fs::write(at("file"), host::random::incompressible((rate * COPY_S / 8.0) as usize))?;
    std::fs::create_dir(at("root"))?;
    std::fs::write(at("token"), "00112233445566778899aabbccddeeff\n")?;
    let server = format!(
        "chmod 600 {0}; {LONGHAUL} server --root {1} --tokens {0} --writable",
        at("token"),
        at("root")
    );
    let copy =
        format!("{LONGHAUL} copy -q --json --token-file {} {} server:", at("token"), at("file"));
    let hosts = host(drawn);
    let validity = Hosts {
        path: &drawn.path,
        app: &hosts,
        server: &hosts,
        services: vec![("server", server)],
        lanes: "bbr",
        command: &format!("sleep 1; {copy} > {}", at("result")),
    }
    .run(folder.path())?;
    let document: Value = serde_json::from_slice(&std::fs::read(at("result"))?)?;
    Ok((document["rate_bps"].as_f64().ok_or("no rate")?, validity))
}
