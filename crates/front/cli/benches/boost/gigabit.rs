//! Pairs over 1 Gbit/s: without and with loss beside two haproxies with the same congestion control,
//! and TLS beside plaintext. The boxes are on the hosts of their applications, so the LAN is loopback.

use crate::lab::Security;
use crate::relay::{Chain, roomy};
use crate::sites::{FORWARDED, Sites, TARGET};
use bench_harness::{Fallible, Ratios, median, note, rounds, row};
use std::path::Path;

/// Paths, and the goodput that is promised, Mbit/s.
const PATHS: [(&str, &str, f64); 3] = [
    ("without loss", "rate=1gbit,rtt=100ms", 900.0),
    ("loss of 0.1 %", "rate=1gbit,rtt=100ms,loss=0.1%", 850.0),
    ("loss of 1 %", "rate=1gbit,rtt=100ms,loss=1%", 750.0),
];
const CONGESTION: &str = "bbr";

/// What relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relay {
    Plaintext,
    Tls,
    /// A session over TCP.
    Mux,
    /// A session over UDT, whose BBR is the boxes' own; encrypted by keys of the connection.
    Udt,
    Haproxy,
}

impl Relay {
    fn start(self, sites: &Sites, folder: &Path) -> Fallible<Chain> {
        let security = match self {
            Relay::Haproxy => return sites.haproxies(folder),
            Relay::Plaintext | Relay::Mux | Relay::Udt => Security::plaintext(),
            Relay::Tls => Security::keys(folder)?,
        };
        let mut flags = [&security.near, &security.far].map(|words| {
            let words = words.split_whitespace().chain(["-C", CONGESTION]);
            words.collect::<Vec<_>>()
        });
        match self {
            Relay::Mux => flags[0].push("--mux"),
            Relay::Udt => flags[0].extend(["--mux", "--udt"]),
            Relay::Plaintext | Relay::Tls | Relay::Haproxy => {}
        }
        sites.boxes([&flags[0], &flags[1]])
    }
}

/// Goodput of one flow through a relay, Mbit/s.
fn carry(path: &str, relay: Relay, seconds: u32, omit: u32) -> Fallible<f64> {
    let folder = tempfile::tempdir()?;
    let (rate, not_valid) = Sites::over(path, CONGESTION, |sites| {
        let mut server = roomy();
        server.args(["server", "-p", &TARGET.to_string()]);
        let mut chain = Chain { port: FORWARDED, programs: Vec::new() };
        chain.programs.push(Sites::start(sites.far(), &mut server, TARGET)?);
        let relay = relay.start(sites, folder.path())?;
        let rate = sites.forwarded(seconds, omit)?;
        drop((relay, chain));
        Ok(rate)
    })?;
    if let Some(reason) = not_valid {
        println!("  {relay:?} over {path}, {rate:.0} Mbit/s, is not valid: {reason}");
    }
    Ok(rate)
}

/// A pair beside two haproxies, over the paths whose names contain `only`.
pub(crate) fn measure(count: usize, is_short: bool, only: &str) -> Fallible<()> {
    let (seconds, omit) = if is_short { (5, 5) } else { (20, 8) };
    for (name, path, promised) in PATHS.into_iter().filter(|(name, ..)| name.contains(only)) {
        let relays = [Relay::Plaintext, Relay::Haproxy];
        let figures = rounds(&relays, count, |relay, _| carry(path, *relay, seconds, omit))?;
        let [ours, theirs] = figures.as_slice() else { continue };
        let what = format!("boost: 1 Gbit/s x 100 ms, {name}");
        let rate = median(ours);
        let promise = format!("{promised:.0} Mbit/s");
        row(&what, &promise, &format!("{rate:.0} Mbit/s"), rate >= promised);
        note("boost: the same with two haproxies", &format!("{:.0} Mbit/s", median(theirs)));
        let ratio = Ratios::of(ours, theirs);
        row("boost: the same, pair to haproxy", "1", &ratio.to_string(), ratio.median() >= 1.0);
    }
    Ok(())
}

/// Sessions over UDT beside sessions over TCP, with BBR and 1 % of loss.
pub(crate) fn udt(count: usize, is_short: bool) -> Fallible<()> {
    let (seconds, omit) = if is_short { (5, 5) } else { (15, 8) };
    let [.., (name, path, promised)] = PATHS;
    let relays = [Relay::Udt, Relay::Mux];
    let figures = rounds(&relays, count, |relay, _| carry(path, *relay, seconds, omit))?;
    if let [udt, tcp] = figures.as_slice() {
        let (rate, promise) = (median(udt), format!("{promised:.0} Mbit/s"));
        let what = format!("boost --mux --udt: 1 Gbit/s x 100 ms, {name}");
        row(&what, &promise, &format!("{rate:.0} Mbit/s"), rate >= promised);
        note("boost --mux: the same over TCP", &format!("{:.0} Mbit/s", median(tcp)));
    }
    Ok(())
}

/// TLS beside plaintext.
pub(crate) fn tls(count: usize, is_short: bool) -> Fallible<()> {
    let (seconds, omit) = (if is_short { 5 } else { 15 }, 2);
    let relays = [Relay::Plaintext, Relay::Tls];
    let run = |relay: &Relay, _| carry("rate=1gbit,rtt=20ms", *relay, seconds, omit);
    let figures = rounds(&relays, count, run)?;
    if let [plain, tls] = figures.as_slice() {
        note("boost: plaintext, 1 Gbit/s", &format!("{:.0} Mbit/s", median(plain)));
        let ratio = Ratios::of(tls, plain);
        row("boost: TLS to plaintext, 1 Gbit/s", "0.90", &ratio.to_string(), ratio.median() >= 0.9);
    }
    Ok(())
}
