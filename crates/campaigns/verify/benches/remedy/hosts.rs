//! A lab's pair of hosts: transfers between them, and commands on either.

use bench_harness::Fallible;
use lab::{Lab, LabHost, Options};
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{ServerEvent, StopFlag};
use record::{Measurement, Remedy, RemedyCommand, RemedyPlace};
use std::process::Command;
use std::time::Duration;
use topology::{PathSpec, Plan};
use units::{BitRate, ByteCount};

/// Number of retries of an invalid run.
const AGAIN: u32 = 3;

/// Configuration of two hosts and their transfers.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) link: PathSpec,
    /// Settings of the client, which sends unless the test is reversed, and of the server.
    pub(crate) commands: [Vec<String>; 2],
    pub(crate) config: ClientConfig,
}

impl Pair {
    pub(crate) fn new(link: &str, seconds: f64) -> Fallible<Self> {
        let config = ClientConfig {
            end: EndAfter::Seconds(seconds),
            sample_every: Duration::from_millis(50),
            watch_load: Duration::ZERO,
            ..ClientConfig::new("")
        };
        Ok(Pair { link: link.parse()?, commands: [Vec::new(), Vec::new()], config })
    }

    /// Measures one transfer with a valid emulation; if all runs are invalid, returns the
    /// last one.
    pub(crate) fn measure(&self) -> Fallible<Measurement> {
        let mut tried = 0;
        loop {
            let measurement = self.once()?;
            let path = measurement.path.as_ref().ok_or("a lab knows its path")?;
            tried += 1;
            if path.valid || tried > AGAIN {
                return Ok(measurement);
            }
            println!("  not valid, again: {}", path.reasons.join("; "));
        }
    }

    fn once(&self) -> Fallible<Measurement> {
        let plan = Plan::pair(self.link.clone(), "cubic", &[], false);
        let lab = Lab::start(&plan, Options::default())?;
        for (host, commands) in [lab.client(), lab.server()].into_iter().zip(&self.commands) {
            commands.iter().try_for_each(|command| shell(host, command))?;
        }
        lab.begin();
        let measurement = transfer(&lab, &self.config)?;
        let path = lab.finish()?.into_path();
        Ok(Measurement { path: Some(path), ..measurement })
    }

    /// The same with a remedy applied as printed.
    pub(crate) fn with(&self, remedy: &Remedy) -> Fallible<Self> {
        let mut pair = self.clone();
        let reverse = self.config.direction == record::Direction::Reverse;
        match remedy.place {
            RemedyPlace::Sender => {
                pair.commands[usize::from(reverse)].push(remedy.command.to_string());
            }
            RemedyPlace::Receiver => {
                pair.commands[usize::from(!reverse)].push(remedy.command.to_string());
            }
            RemedyPlace::Call => pair.call(&remedy.command)?,
            RemedyPlace::Boxes => return Err("boxes are verified by boost verify".into()),
        }
        Ok(pair)
    }

    fn call(&mut self, options: &RemedyCommand) -> Fallible<()> {
        let config = &mut self.config;
        match options {
            RemedyCommand::SocketBufferMib(mib) => {
                config.window = Some(ByteCount::from_bytes(mib << 20));
            }
            RemedyCommand::SocketBufferKib(kib) => {
                config.window = Some(ByteCount::from_bytes(kib << 10));
            }
            RemedyCommand::RateLimitKbit(kbit) => {
                config.rate = Some(BitRate::from_bps(kbit * 1_000));
            }
            RemedyCommand::Seconds(seconds) => config.end = EndAfter::Seconds(*seconds as f64),
            RemedyCommand::Streams(streams) => config.streams = *streams,
            RemedyCommand::CongestionControl(name) => config.congestion = Some(name.clone()),
            RemedyCommand::NoRateLimit => config.rate = None,
            RemedyCommand::NoPacingLimit => config.fq_rate = None,
            RemedyCommand::Sysctl { .. }
            | RemedyCommand::BoostPlan { .. }
            | RemedyCommand::Other(_) => {
                return Err(format!("'{options}' is not an option of a test").into());
            }
        }
        Ok(())
    }
}

fn shell(host: &LabHost, command: &str) -> Fallible<()> {
    let run = || Command::new("sh").args(["-c", command]).output();
    let output = host.namespace.run(run)??;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

fn transfer(lab: &Lab, config: &ClientConfig) -> Fallible<Measurement> {
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let config = ClientConfig { host: lab.server().ipv4.to_string(), ..config.clone() };
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = server.run(|| Server::bind(&settings))??;
    let served = StopFlag::new();
    let report = std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&served, &|_: ServerEvent| ())));
        let report = client.run(|| client::run(&config, &mut |_| (), &StopFlag::new()));
        served.raise();
        // The client's error is more specific than the server's.
        let _ = serving.join();
        report
    });
    Ok(report??.measurement)
}
