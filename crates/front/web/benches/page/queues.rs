//! What queues do to grade and responsiveness, and a slow uplink behind a large one.

use crate::hosts::Hosts;
use bench_harness::{Fallible, heading, row};
use serde_json::Value;

pub(crate) fn measure() -> Fallible<()> {
    heading();
    // 500 ms at 50 Mbit/s.
    let fifo = run("rate=50mbit,rtt=20ms,queue=3125kB")?;
    let fq = run("rate=50mbit,rtt=20ms,queue=fq_codel")?;
    let [slow, fast] = [&fifo, &fq].map(|result| result["rpm"].as_f64().unwrap_or(f64::NAN));
    let grade = |result: &Value| result["bufferbloat"]["grade"].as_str().unwrap_or("?").to_owned();
    let [bad, good] = [grade(&fifo), grade(&fq)];
    row("FIFO of 500 ms: grade", "D or F", &bad, bad == "D" || bad == "F");
    row("FIFO of 500 ms: RPM", "< 300", &format!("{slow:.0}"), slow < 300.0);
    row("FQ-CoDel: grade", "A", &good, good == "A" || good == "A+");
    row("FQ-CoDel: RPM", "3 x FIFO", &format!("{fast:.0}"), fast >= 3.0 * slow);
    let uplink = run("rate=20mbit,rtt=20ms,up.rate=1mbit,up.queue=1MB")?;
    for flows in ["one_flow", "several_flows"] {
        let rate = uplink["upload"][flows].as_f64().unwrap_or(f64::NAN) / 1e6;
        let kept = (0.9..=1.0).contains(&rate);
        row(&format!("1 Mbit/s behind 1 MB, {flows}"), "0.9 to 1.0", &format!("{rate:.3}"), kept);
    }
    Ok(())
}

fn run(path: &str) -> Fallible<Value> {
    let done = Hosts::of(path, "cubic", &[])?.over(|hosts| hosts.run(false))?;
    done.not_valid.iter().for_each(|why| println!("  not valid: {why}"));
    Ok(done.result)
}
