//! UDP at an unlimited rate beside iperf3's versions, with the devices' segmentation offload and
//! without it; and paced.
//!
//! Without offload (`gso_max_segs 1`, as after `ethtool -K DEVICE gso off`) the kernel splits a train
//! before the device, and every datagram passes the receiving host alone.

use crate::{
    OURS, REPEATS,
    bars::{self, Group},
    engine, number,
    options::Options,
    pair::Pair,
    run, stamps,
};
use bench_harness::{Fallible, Ratios, best, median, note, row};
use std::process::Command;

/// Datagrams that arrived, and those that were lost.
struct Arrived {
    per_second: f64,
    lost_percent: f64,
}

pub(crate) fn unlimited(pair: &Pair, options: &Options) -> Fallible<()> {
    let peers = engine::peers();
    let mut groups = Vec::new();
    for (offload, promised) in [(true, 8.0), (false, 1.5)] {
        set_offload(pair, offload)?;
        for length in ["1448", "64"] {
            groups.push(beside(pair, &peers, length, offload, promised)?);
        }
    }
    set_offload(pair, true)?;
    // With offload the bars of all others would have no length.
    let plain = &groups[2..];
    let names = peers.iter().map(|peer| engine::file_name(peer));
    let programs: Vec<_> = ["longhaul".to_owned()]
        .into_iter()
        .chain(names)
        .chain(["longhaul --no-gsro".to_owned()])
        .collect();
    bars::write(options, &programs, plain, "thousands of datagrams a second")
}

/// Whether the devices take segments that are longer than a packet.
fn set_offload(pair: &Pair, offload: bool) -> Fallible<()> {
    let segments = if offload { "65535" } else { "1" };
    for (host, device) in [(0, "near"), (1, "far")] {
        let mut ip = Command::new("ip");
        ip.args(["link", "set", device, "gso_max_segs", segments]);
        if !pair.spawn(host, &mut ip)?.wait()?.success() {
            return Err(format!("{device} does not take gso_max_segs").into());
        }
    }
    Ok(())
}

/// Datagrams of one length: ours, each of the others, and ours by sendmmsg(2).
fn beside(
    pair: &Pair,
    peers: &[String],
    length: &str,
    offload: bool,
    promised: f64,
) -> Fallible<Group> {
    let single = ["--no-gsro"];
    let mut programs = vec![(&OURS[..], &[][..]), (&OURS[..], &single[..])];
    let names: Vec<[&str; 1]> = peers.iter().map(|peer| [&**peer]).collect();
    programs.extend(names.iter().map(|name| (&name[..], &[][..])));
    let runs = bench_harness::rounds(&programs, REPEATS, |(program, extra), _| {
        arrived(pair, program, length, extra)
    })?;
    let per_second =
        |runs: &Vec<Arrived>| runs.iter().map(|run| run.per_second).collect::<Vec<f64>>();
    let rates: Vec<_> = runs.iter().map(per_second).collect();
    let [ours, single, theirs @ ..] = &rates[..] else { return Err("no runs".into()) };
    let lost = median(&runs[0].iter().map(|run| run.lost_percent).collect::<Vec<_>>());
    let fastest = best(theirs, f64::max);
    let (faster, by_calls) = (Ratios::of(ours, &fastest), Ratios::of(single, &fastest));
    let bits = length.parse::<f64>()? * 8.0;
    let device = if offload { "" } else { ", no offload" };
    let shape = format!("UDP, {length} bytes{device}");
    let million = median(ours) / 1e6;
    let what = format!("{shape}: {million:.3} M/s, {:.1} Gbit/s", million * bits / 1e3);
    row(&what, &promised.to_string(), &faster.to_string(), faster.median() >= promised);
    row("  lost", "2 %", &format!("{lost:.2} %"), lost <= 2.0);
    note(
        &format!("by sendmmsg (--no-gsro): {:.3} M/s", median(single) / 1e6),
        &by_calls.to_string(),
    );
    let in_order = [ours].into_iter().chain(theirs).chain([single]);
    let rates = in_order.map(|rates| Some(median(rates) / 1e3)).collect();
    Ok(Group { shape: format!("{length} bytes"), rates })
}

fn arrived(pair: &Pair, program: &[&str], length: &str, extra: &[&str]) -> Fallible<Arrived> {
    let options = [&["-t2", "-u", "-b0", "-l", length], extra].concat();
    let report = run(pair, program, &options)?;
    let of = |name: &str| number(&report, &format!("/end/sum/{name}"));
    let lost_percent = of("lost_percent");
    let per_second = of("packets") * (1.0 - lost_percent / 100.0) / of("seconds");
    Ok(Arrived { per_second, lost_percent })
}

pub(crate) fn paced(pair: &Pair, _: &Options) -> Fallible<()> {
    let options = ["-t5", "-u", "-b1G", "-l1448"];
    let (mut offs, mut losses, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let report = run(pair, &OURS, &options)?;
        offs.push((number(&report, "/end/sum/bits_per_second") / 1e9 - 1.0).abs() * 100.0);
        losses.push(number(&report, "/end/sum/lost_packets"));
        let arrivals = stamps::capture(pair, || run(pair, &OURS, &options))?;
        times.push(stamps::off_schedule(&arrivals, 1448.0 * 8.0 / 1e9, 0.99));
    }
    let (off, time) = (median(&offs), median(&times) * 1e6);
    let lost: f64 = losses.iter().sum();
    row("UDP paced at 1 Gbit/s, rate off by", "0.1 %", &format!("{off:.4} %"), off <= 0.1);
    row("UDP paced, datagrams lost", "0", &format!("{lost}"), lost == 0.0);
    row("UDP paced, 99 % are off their time by", "50 us", &format!("{time:.0} us"), time <= 50.0);
    Ok(())
}
