//! The connections of a test's programs, sampled at both ends, as measurements.

use crate::programs::Transferred;
use host::clock;
use host::netns::NetNs;
use model::IpVersion;
use perf::StopFlag;
use record::{
    ConnectionSample, Direction, HostFacts, MEASUREMENT_SCHEMA, Measurement, Protocol, Stream,
    TestSpec,
};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};
use study::{Program, Traffic};
use watch::{ConnectionLog, LoggedConnection};

/// Between samples.
const INTERVAL: Duration = Duration::from_millis(100);
/// In the first seconds, which have slow start.
const START_INTERVAL: Duration = Duration::from_millis(10);
const START: Duration = Duration::from_secs(2);

/// Connections with less than this share of the payload of the busiest one only control.
const CONTROL: f64 = 0.01;

/// A flow between two hosts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) client: &'a [LoggedConnection],
    pub(crate) server: &'a [LoggedConnection],
    pub(crate) server_address: IpAddr,
    pub(crate) port: u16,
}

/// Samples the connections of a host until `done`, at times since `origin`.
pub(crate) fn log(
    host: &NetNs,
    origin: Instant,
    done: &StopFlag,
) -> io::Result<Vec<LoggedConnection>> {
    host.run(|| {
        let mut log = ConnectionLog::open(origin)?;
        while !done.is_raised() {
            log.poll()?;
            let starting = clock::now().saturating_duration_since(origin) < START;
            thread::sleep(if starting { START_INTERVAL } else { INTERVAL });
        }
        Ok(log.into_connections())
    })?
}

/// The measurement of a flow of a program, after its warm-up; without streams if it had no
/// TCP connections with payload.
pub(crate) fn measurement(
    traffic: &Traffic,
    done: &Transferred<'_>,
    ends: &Ends<'_>,
    origin: Instant,
    host: HostFacts,
) -> Measurement {
    let program = done.program;
    let from_s = (done.began + traffic.omit).saturating_duration_since(origin).as_secs_f64();
    let mut streams: Vec<Stream> = ends.streams(program, from_s).collect();
    let most = streams.iter().map(|stream| stream.received_bytes).max().unwrap_or(0);
    streams.retain(|stream| stream.received_bytes as f64 >= CONTROL * most as f64);
    for (id, stream) in (1..).zip(&mut streams) {
        stream.id = id;
    }
    let ip = if traffic.ip == IpVersion::Ipv4 { "IPv4" } else { "IPv6" };
    let rate = done.reported.rate;
    let over = done.reported.seconds.map_or(String::new(), |s| format!(" over {s:.1} s"));
    Measurement {
        schema: MEASUREMENT_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: clock::unix_seconds().saturating_sub(done.began.elapsed().as_secs()),
        spec: TestSpec {
            target: ends.server_address.to_string(),
            port: ends.port,
            protocol: Protocol::Tcp,
            direction: if program.server_sends { Direction::Reverse } else { Direction::Forward },
            seconds: traffic.duration.as_secs_f64(),
            omit_s: u32::try_from(traffic.omit.as_secs()).unwrap_or(u32::MAX),
            streams: traffic.streams,
            congestion: Some(traffic.congestion().to_owned()),
            ..TestSpec::default()
        },
        host,
        peer: program.name.clone(),
        path: None,
        streams,
        sender_cpu: None,
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: vec![format!("the program {} over {ip} reported {rate}{over}", program.name)],
        latency: None,
        decided: None,
        tool: None,
    }
}

impl Ends<'_> {
    fn streams(&self, program: &Program, from_s: f64) -> impl Iterator<Item = Stream> {
        let ours = move |one: &&LoggedConnection| {
            one.remote.ip() == self.server_address
                && (!program.has_port() || one.remote.port() == self.port)
        };
        self.client.iter().filter(ours).filter_map(move |near| {
            let far = self.server.iter().find(|far| {
                // A port that was used again is another connection.
                (far.local, far.remote) == (near.remote, near.local) && overlap(near, far)
            });
            let far = far.map_or(&[][..], |far| after(&far.samples, from_s));
            let near_samples = after(&near.samples, from_s);
            let reverse = program.server_sends;
            let (sender, receiver) =
                if reverse { (far, near_samples) } else { (near_samples, far) };
            let stream = watch::stream_of_both_ends(sender, receiver)?;
            Some(Stream { reverse, congestion: near.congestion.clone(), ..stream })
        })
    }
}

/// Whether the samples of both ends are of the same time.
fn overlap(near: &LoggedConnection, far: &LoggedConnection) -> bool {
    let first = |one: &LoggedConnection| one.samples.first().map_or(0.0, |first| first.sent.t_s);
    let last = |one: &LoggedConnection| one.samples.last().map_or(0.0, |last| last.sent.t_s);
    first(near) <= last(far) && first(far) <= last(near)
}

/// The samples from a time until the last one that saw progress.
fn after(samples: &[ConnectionSample], from_s: f64) -> &[ConnectionSample] {
    let first = samples.partition_point(|sample| sample.sent.t_s < from_s);
    let samples = &samples[first..];
    let counts = |one: &ConnectionSample| (one.sent.acked_bytes, one.received.received_bytes);
    let progress = samples.windows(2).rposition(|pair| counts(&pair[0]) != counts(&pair[1]));
    &samples[..progress.map_or(0, |at| at + 2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(local: &str, remote: &str, acked: &[u64], received: &[u64]) -> LoggedConnection {
        let samples = (0u32..).zip(acked.iter().zip(received)).map(|(at, (acked, received))| {
            let mut sample = ConnectionSample { has_timers: true, ..ConnectionSample::default() };
            (sample.sent.t_s, sample.received.t_s) = (f64::from(at), f64::from(at));
            (sample.sent.acked_bytes, sample.received.received_bytes) = (*acked, *received);
            sample
        });
        LoggedConnection {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            congestion: Some("bbr".to_owned()),
            samples: samples.collect(),
        }
    }

    #[test]
    fn a_download_is_what_the_server_s_connection_sent_after_the_warm_up() {
        let text = "question = \"?\"\n[path]\nrate = \"10mbit\"\nrtt = \"10ms\"\n[factors]\n\
                    program = [\"http\"]\n[traffic]\nduration = \"4s\"\nomit = \"1s\"";
        let plan = study::Plan::parse(text).unwrap();
        let traffic = plan.test(&plan.cell(0)).unwrap().flows.remove(0);
        let program = traffic.program.clone().unwrap();
        let zero = [0; 6];
        let client = [
            // Another port, and a connection that only controls.
            connection("10.0.0.1:9", "10.0.0.2:99", &zero, &[0, 900, 1800, 2700, 3600, 4500]),
            connection("10.0.0.1:8", "10.0.0.2:80", &zero, &[0, 1, 2, 3, 4, 5]),
            connection("10.0.0.1:7", "10.0.0.2:80", &zero, &[0, 1000, 3000, 5000, 7000, 7000]),
        ];
        let server = [
            connection("10.0.0.2:80", "10.0.0.1:8", &[0, 1, 2, 3, 4, 5], &zero),
            connection("10.0.0.2:80", "10.0.0.1:7", &[0, 900, 2900, 4900, 6900, 6900], &zero),
        ];
        let ends = Ends {
            client: &client,
            server: &server,
            server_address: "10.0.0.2".parse().unwrap(),
            port: 80,
        };
        let origin = clock::now();
        let rate = units::BitRate::from_bps(12_000);
        let reported = study::program::Reported { rate, seconds: Some(4.0), origin: None };
        let done = Transferred { program: &program, reported, began: origin };
        let measured = measurement(&traffic, &done, &ends, origin, HostFacts::default());
        let [stream] = measured.streams.as_slice() else { panic!("{:?}", measured.streams) };
        assert_eq!((stream.id, stream.reverse), (1, true));
        // From 1 s to 4 s; nothing came after.
        assert_eq!((stream.received_bytes, stream.received_seconds), (6_000, 3.0));
        assert_eq!((stream.sent_bytes, stream.sender.len()), (6_000, 4));
        assert_eq!(measured.spec.direction, Direction::Reverse);
        assert!(
            measured.notes[0].contains("reported 12 kbit/s over 4.0 s"),
            "{:?}",
            measured.notes
        );
    }
}
