//! UDP at an unlimited rate beside iperf3's versions, with the devices' segmentation offload and
//! without it; and paced.
//!
//! Without offload (`gso_max_segs 1`, as after `ethtool -K DEVICE gso off`) the kernel splits a train
//! before the device, and every datagram passes the receiving host alone.

use crate::{
    Fallible, OURS, REPEATS,
    bars::{self, Group},
    engine, median, note, number,
    pair::Pair,
    row, run, stamps,
};
use std::process::Command;

/// Datagrams that arrived, and those that were lost.
struct Arrived {
    per_second: f64,
    lost_percent: f64,
}

pub(crate) fn unlimited(pair: &Pair) -> Fallible<()> {
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
    bars::write(&programs, plain, "thousands of datagrams a second")
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
    let (mut ours, mut single, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let mut all = Vec::new();
        for peer in peers {
            all.push(arrived(pair, &[peer], length, &[])?);
        }
        theirs.push(all);
        ours.push(arrived(pair, &OURS, length, &[])?);
        single.push(arrived(pair, &OURS, length, &["--no-gsro"])?);
    }
    let of = |runs: &[Arrived]| median(&runs.iter().map(|run| run.per_second).collect::<Vec<_>>());
    let lost = median(&ours.iter().map(|run| run.lost_percent).collect::<Vec<_>>());
    let ratios = |runs: &[Arrived]| -> Vec<f64> {
        let best = |all: &Vec<Arrived>| all.iter().map(|run| run.per_second).fold(0.0, f64::max);
        runs.iter().zip(&theirs).map(|(our, all)| our.per_second / best(all)).collect()
    };
    let interval = |ratios: &[f64]| {
        let least = ratios.iter().copied().fold(f64::MAX, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        format!("{:.2} [{least:.2}, {most:.2}]", median(ratios))
    };
    let bits = length.parse::<f64>()? * 8.0;
    let device = if offload { "" } else { ", no offload" };
    let shape = format!("UDP, {length} bytes{device}");
    let what = format!("{shape}: {:.3} M/s, {:.1} Gbit/s", of(&ours) / 1e6, of(&ours) * bits / 1e9);
    let faster = ratios(&ours);
    row(&what, &promised.to_string(), &interval(&faster), median(&faster) >= promised);
    row("  lost", "2 %", &format!("{lost:.2} %"), lost <= 2.0);
    note(
        &format!("by sendmmsg (--no-gsro): {:.3} M/s", of(&single) / 1e6),
        &interval(&ratios(&single)),
    );
    let of_peer =
        |at: usize| median(&theirs.iter().map(|all| all[at].per_second / 1e3).collect::<Vec<_>>());
    let rates = [of(&ours) / 1e3]
        .into_iter()
        .chain((0..peers.len()).map(of_peer))
        .chain([of(&single) / 1e3])
        .map(Some)
        .collect();
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

pub(crate) fn paced(pair: &Pair) -> Fallible<()> {
    let options = ["-t5", "-u", "-b1G", "-l1448"];
    let (mut offs, mut losses, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let report = run(pair, &OURS, &options)?;
        offs.push((number(&report, "/end/sum/bits_per_second") / 1e9 - 1.0).abs() * 100.0);
        losses.push(number(&report, "/end/sum/lost_packets"));
        let arrivals = stamps::capture(pair, || run(pair, &OURS, &options))?;
        times.push(stamps::off_schedule(&arrivals, 1448.0 * 8.0 / 1e9, 0.99));
    }
    let (off, lost, time) = (median(&offs), median(&losses), median(&times) * 1e6);
    row("UDP paced at 1 Gbit/s, rate off by", "0.1 %", &format!("{off:.4} %"), off <= 0.1);
    row("UDP paced, datagrams lost", "0", &format!("{lost}"), lost == 0.0);
    row("UDP paced, 99 % are off their time by", "50 us", &format!("{time:.0} us"), time <= 50.0);
    Ok(())
}
