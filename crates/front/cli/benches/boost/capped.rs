//! `--mux` where the kernel caps socket buffers: one connection beside as many as near opens by itself.

use crate::LONGHAUL;
use crate::lab::{Security, goodput, test};
use crate::relay::Chain;
use crate::sites::{FORWARDED, Sites, TARGET};
use bench_harness::{Fallible, Ratios, median, note, rounds, row};
use std::process::{Command, Stdio};

/// 10 MB of BDP: above `net.core.rmem_max`, 208 KiB to 4 MiB by default, which no namespace changes.
/// Autotuning stops at 4 MiB here.
const PATH: &str = "rate=200mbit,rtt=400ms";
const BUFFER: &str = "20000000";
const CAPPED: &str = "4096 131072 4194304";
const CONGESTION: &str = "bbr";

/// Goodput of one flow in Mbit/s.
fn carry(connections: &str, seconds: u32, omit: u32) -> Fallible<f64> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("result");
    let command = test(&format!("127.0.0.1 -p {FORWARDED}"), seconds, omit, &file);
    let (rate, not_valid) = Sites::with_buffers(PATH, CONGESTION, CAPPED, |sites| {
        let mut server = Command::new(LONGHAUL);
        server.args(["server", "-p", &TARGET.to_string()]);
        let mut chain = Chain { port: FORWARDED, programs: Vec::new() };
        chain.programs.push(Sites::start(sites.far(), &mut server, TARGET)?);
        let Security { near, far } = Security::plaintext();
        let shared = ["-C", CONGESTION, "--buffer", BUFFER];
        let near = [&[near.as_str(), "--mux", "--connections", connections][..], &shared].concat();
        let far = [&[far.as_str()][..], &shared].concat();
        let boxes = sites.boxes([&near, &far])?;
        let mut client = Command::new("sh");
        client.args(["-c", &command]).stdin(Stdio::null());
        let output = sites.near().namespace.run(|| client.output())??;
        drop((boxes, chain));
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{LONGHAUL} test failed: {text}").into());
        }
        Ok(goodput(&file)? / 1e6)
    })?;
    if let Some(reason) = not_valid {
        println!("  {connections} connections, {rate:.0} Mbit/s: not valid: {reason}");
    }
    Ok(rate)
}

pub(crate) fn measure(count: usize, is_short: bool) -> Fallible<()> {
    let (seconds, omit) = if is_short { (6, 10) } else { (15, 15) };
    let numbers = ["1", "auto"];
    let figures = rounds(&numbers, count, |number, _| carry(number, seconds, omit))?;
    let [one, automatic] = figures.as_slice() else { return Ok(()) };
    note(
        "boost --mux: 200 Mbit/s x 400 ms, capped buffers, 1 connection",
        &format!("{:.0} Mbit/s", median(one)),
    );
    let rate = median(automatic);
    row("boost: the same, auto", "170 Mbit/s", &format!("{rate:.0} Mbit/s"), rate >= 170.0);
    let ratio = Ratios::of(automatic, one);
    row("boost: the same, auto to 1", "1.3", &ratio.to_string(), ratio.median() >= 1.3);
    Ok(())
}
