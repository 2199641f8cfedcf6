//! The lab's promised figures, measured: `make bench`.
//!
//! Wall-clock figures of the machine it runs on, medians of three, each beside
//! what was promised. The 10 Gbit/s run stands beside a pair of TUN devices
//! with nothing between them but a copy, measured in turn with it: what that
//! pair carries is what this machine could at most.

use host::netlink::{Netlink, Route};
use host::netns::NetNs;
use host::sysctl;
use host::tun::{self, Tun};
use host::wait::{self, Bell};
use host::world::{self, Ended};
use lab::{Lab, LabPlan};
use probe::StopFlag;
use probe::client::{self, ClientConfig};
use probe::server::{Server, ServerConfig};
use record::Measurement;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const REPEATS: usize = 3;

fn main() {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    match world::run(|| i32::from(measure().inspect_err(|error| eprintln!("{error}")).is_err())) {
        Ok(Ended::Code(code)) => std::process::exit(code),
        other => {
            eprintln!("{other:?}");
            std::process::exit(1);
        }
    }
}

fn measure() -> Fallible<()> {
    println!("{:<44} {:>16} {:>16}", "", "promised", "measured");
    idle()?;
    rate_error()?;
    carried()
}

fn row(what: &str, promised: &str, measured: &str, kept: bool) {
    let verdict = if kept { "kept" } else { "NOT KEPT" };
    println!("{what:<44} {promised:>16} {measured:>16}  {verdict}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn plan(path: &str) -> Fallible<LabPlan> {
    Ok(LabPlan { tuned: true, ..LabPlan::new(path.parse()?) })
}

fn idle() -> Fallible<()> {
    for rtt in ["1ms", "20ms", "100ms", "173ms"] {
        let mut off = Vec::new();
        for _ in 0..REPEATS {
            let lab = Lab::start(&plan(&format!("rate=100mbit,rtt={rtt}"))?)?;
            let asked = lab.path().rtt.millis_f64();
            let idle = lab.finish()?.achieved.idle_rtt_ms.ok_or("no echo came back")?;
            off.push((idle - asked).abs());
        }
        let off = median(off);
        row(&format!("idle RTT of {rtt}, off by"), "0.3 ms", &format!("{off:.2} ms"), off <= 0.3);
    }
    Ok(())
}

fn rate_error() -> Fallible<()> {
    for rate in ["100mbit", "1gbit"] {
        let mut errors = Vec::new();
        for _ in 0..REPEATS {
            let lab = Lab::start(&plan(&format!("rate={rate},rtt=20ms"))?)?;
            transfer(&lab.client().namespace, &lab.server().namespace, lab.server().ipv4, 5.0)?;
            let report = lab.finish()?;
            let did = report.achieved.rate_bps.ok_or("never busy")?;
            errors.push((did.as_f64() / report.rate_bps.as_f64() - 1.0).abs() * 100.0);
        }
        let error = median(errors);
        row(&format!("rate of {rate}, off by"), "0.5 %", &format!("{error:.3} %"), error <= 0.5);
    }
    Ok(())
}

/// One flow of CUBIC over 10 Gbit/s x 100 ms, in turn with the bare pair.
fn carried() -> Fallible<()> {
    let (mut lab_rates, mut bare_rates, mut valid) = (Vec::new(), Vec::new(), 0);
    for _ in 0..REPEATS {
        let pair = Pair::start()?;
        let [client, server] = &pair.hosts;
        let measured = transfer(client, server, ADDRESSES[1], 5.0)?;
        bare_rates.push(diagnose::explain(&measured).throughput_bps.as_f64() / 1e9);
        pair.finish()?;

        let lab = Lab::start(&plan("rate=10gbit,rtt=100ms")?)?;
        let (client, server) = (&lab.client().namespace, &lab.server().namespace);
        let measured = transfer(client, server, lab.server().ipv4, 12.0)?;
        let path = lab.finish()?;
        valid += usize::from(path.valid);
        if !path.valid {
            println!("  one run is not valid: {}", path.reasons.join("; "));
        }
        let measured = Measurement { path: Some(path), ..measured };
        lab_rates.push(diagnose::explain(&measured).throughput_bps.as_f64() / 1e9);
    }
    let (carried, bare) = (median(lab_rates), median(bare_rates));
    let what = "10 Gbit/s x 100 ms, one flow, steady part";
    row(what, "9 Gbit/s", &format!("{carried:.2} Gbit/s"), carried >= 9.0);
    println!("{:<44} {:>16} {:>16}", "  runs certified valid", "", format!("{valid} of {REPEATS}"));
    println!("{:<44} {:>16} {:>16}", "  a pass-through TUN pair", "", format!("{bare:.2} Gbit/s"));
    println!("{:<44} {:>16} {:>16.2}", "  ratio", "", carried / bare);
    Ok(())
}

fn transfer(client: &NetNs, server: &NetNs, to: Ipv4Addr, seconds: f64) -> Fallible<Measurement> {
    let config =
        ClientConfig { seconds, watch_load: Duration::ZERO, ..ClientConfig::new(to.to_string()) };
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = server.run(|| Server::bind(&settings))??;
    let done = StopFlag::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&done, &|_| ())));
        let measured = client.run(|| client::run(&config, &mut |_| (), &StopFlag::new()));
        done.raise();
        let _ = serving.join();
        Ok(measured??)
    })
}

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];

/// Two hosts and a copy between their devices.
struct Pair {
    hosts: [NetNs; 2],
    stop: Arc<Bell>,
    copying: Vec<std::thread::JoinHandle<io::Result<()>>>,
}

impl Pair {
    fn start() -> Fallible<Self> {
        let (mut hosts, mut devices) = (Vec::new(), Vec::new());
        for address in ADDRESSES {
            let namespace = NetNs::create()?;
            devices.push(Arc::new(namespace.run(|| connect(address))??));
            hosts.push(namespace);
        }
        let stop = Arc::new(Bell::new()?);
        let copying = [(0, 1), (1, 0)]
            .map(|(from, to)| {
                let (from, to) = (Arc::clone(&devices[from]), Arc::clone(&devices[to]));
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || copy(&from, &to, &stop))
            })
            .into();
        let hosts = hosts.try_into().map_err(|_| "two hosts")?;
        Ok(Pair { hosts, stop, copying })
    }

    fn finish(self) -> Fallible<()> {
        self.stop.ring();
        for thread in self.copying {
            thread.join().map_err(|_| "a copying thread died")??;
        }
        Ok(())
    }
}

fn connect(address: Ipv4Addr) -> Fallible<Tun> {
    let tun = Tun::create("bare0")?;
    let netlink = Netlink::open()?;
    let device = netlink.index("bare0")?;
    netlink.bring_up(device, Some(1500), Some(1000))?;
    netlink.add_address(device, IpAddr::V4(address))?;
    netlink.add_routes([Route {
        device,
        prefix: IpAddr::V4(Ipv4Addr::new(10, 1, 0, 0)),
        length: 24,
        source: Some(IpAddr::V4(address)),
        congestion: Some("cubic"),
    }])?;
    for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        sysctl::write(key, "4096 131072 67108864")?;
    }
    Ok(tun)
}

fn copy(from: &Tun, to: &Tun, stop: &Bell) -> io::Result<()> {
    wait::precise_timers();
    let mut buffer = vec![0; tun::MAX_READ];
    while !stop.has_rung() {
        match from.receive(&mut buffer) {
            // A full receiver drops, as a wire would.
            Ok(length) => drop(to.send(&[IoSlice::new(&buffer[..length])])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait::readable([stop.as_fd(), from.as_fd()], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
