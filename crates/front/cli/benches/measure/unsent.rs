//! Limited unsent data beside the kernel's send buffer: alternating runs of `longhaul test`,
//! without and with `--autotuning`, over the veth pair and over the lab's paths.

use crate::{
    LONGHAUL, number,
    options::Options,
    pair::{self, Pair},
};
use bench_harness::{Fallible, Ratios, median, row};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const REPEATS: usize = 5;
/// RTT and bottleneck rate of the lab's paths: what two cores emulate.
const PATHS: [(&str, &str); 9] = [
    ("0.02ms", "2gbit"),
    ("0.1ms", "2gbit"),
    ("0.5ms", "2gbit"),
    ("1ms", "2gbit"),
    ("2ms", "1gbit"),
    ("5ms", "1gbit"),
    ("20ms", "1gbit"),
    ("100ms", "500mbit"),
    ("300ms", "100mbit"),
];

/// Over the veth pair, with default buffers and with those of hosts that were tuned for long paths.
pub(crate) fn veth(pair: &Pair, _: &Options) -> Fallible<()> {
    let sizes = [("default", 32u32 << 20, 4u32 << 20), ("64 MiB", 64 << 20, 64 << 20)];
    for (buffers, receive, send) in sizes {
        for host in [0, 1] {
            let mut sysctl = Command::new("sysctl");
            sysctl.arg("-qw").arg(format!("net.ipv4.tcp_rmem=4096 131072 {receive}"));
            sysctl.arg(format!("net.ipv4.tcp_wmem=4096 16384 {send}"));
            if !pair.spawn(host, &mut sysctl)?.wait()?.success() {
                return Err("sysctl".into());
            }
        }
        let mut server = Command::new(LONGHAUL);
        server.arg("server").stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = pair.spawn(1, &mut server)?;
        std::thread::sleep(Duration::from_millis(500));
        for congestion in ["cubic", "bbr"] {
            for shape in ["-P 1", "-P 4", "-P 4 -R", "-P 16"] {
                let run = |options: &[&str]| {
                    let mut client = Command::new(LONGHAUL);
                    client.args(["test", pair::SERVER, "--json", "-t2", "-C", congestion]);
                    client.args(shape.split(' ')).args(options);
                    received(pair.spawn(0, client.stdout(Stdio::piped()).stderr(Stdio::null()))?)
                };
                compare(&format!("veth, buffers {buffers}, {congestion}, {shape}"), run)?;
            }
        }
        let _ = server.kill();
        let _ = server.wait();
    }
    Ok(())
}

/// Over the lab's paths, with one stream.
pub(crate) fn paths(pair: &Pair, _: &Options) -> Fallible<()> {
    for (rtt, rate) in PATHS {
        // Several RTTs of ramp-up do not hide what a steady transfer loses.
        let seconds = if rtt.starts_with("300") || rtt.starts_with("100") { "-t10" } else { "-t4" };
        let run = |options: &[&str]| {
            let mut lab = Command::new(LONGHAUL);
            let link = format!("rtt={rtt},rate={rate},queue=1bdp");
            lab.args(["lab", "run", "--tuned", "--link", &link, "--server"]);
            lab.arg(format!("{LONGHAUL} server --one-off"));
            lab.args(["--", LONGHAUL, "test", "server", "--json", seconds]).args(options);
            received(pair.spawn(0, lab.stdout(Stdio::piped()).stderr(Stdio::null()))?)
        };
        compare(&format!("lab, {rate} x {rtt}"), run)?;
    }
    Ok(())
}

/// The goodput of a test, Gbit/s.
fn received(test: Child) -> Fallible<f64> {
    let output = test.wait_with_output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let rate = 8.0 * number(&report, "/received_bytes") / number(&report, "/seconds");
    Ok(rate / 1e9)
}

fn compare(what: &str, run: impl Fn(&[&str]) -> Fallible<f64>) -> Fallible<()> {
    let settings: [&[&str]; 2] = [&[], &["--autotuning"]];
    let rates = bench_harness::rounds(&settings, REPEATS, |options, _| run(options))?;
    let [limited, autotuned] = &rates[..] else { return Err("no runs".into()) };
    let ratios = Ratios::of(limited, autotuned);
    let what = format!("{what}: {:.3} Gbit/s, of {:.3}", median(limited), median(autotuned));
    row(&what, "0.99", &ratios.to_string(), ratios.median() >= 0.99);
    Ok(())
}
