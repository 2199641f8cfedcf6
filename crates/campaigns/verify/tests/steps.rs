//! Steps on a host made of a map, over a path made of a formula: kept if they help,
//! reverted otherwise and after any interruption.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../../../machine/tune/tests/tuner/defaults.rs"]
mod defaults;

use defaults::DEFAULTS;
use host::directory::Trust;
use perf::PerfError;
use perf::client::ClientConfig;
use record::{
    Direction, Measurement, ReceiverSample, Sample, StepVerdict, Stream, TestSpec, VerifyReport,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tune::{HostDisk, Identity, Lock, PERSISTED, Settings, ThisHost, Tuner};
use units::{BitRate, Rtt};
use verify::VerifyError;
use verify::steps::{Environment, Job, Prepared, StepEvent};

/// Settings of which only buffers and two switches need a change.
struct Host(RefCell<BTreeMap<String, String>>);

const WMEM: &str = "net.ipv4.tcp_wmem";

impl Host {
    fn new() -> Self {
        Host(RefCell::new(DEFAULTS.map(|(key, value)| (key.to_owned(), value.to_owned())).into()))
    }

    fn all(&self) -> BTreeMap<String, String> {
        self.0.borrow().clone()
    }

    fn most(&self, key: &str) -> u64 {
        self.read(key).unwrap().split(' ').next_back().unwrap().parse().unwrap()
    }
}

impl Settings for Host {
    fn read(&self, key: &str) -> io::Result<String> {
        self.0.borrow().get(key).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, key: &str, value: &str) -> io::Result<()> {
        self.0.borrow_mut().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn may_write(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Throughput of a test in Mbit/s, by host, direction and test number.
type Rate<'a> = &'a dyn Fn(&Host, Direction, u32) -> Result<f64, ()>;

struct Paths<'a> {
    host: &'a Host,
    path: Rate<'a>,
    tests: u32,
    /// The test during which the user presses Ctrl-C.
    stop_at: u32,
    with: Vec<bool>,
}

impl Environment for Paths<'_> {
    fn measure(&mut self, config: &ClientConfig) -> Result<Measurement, PerfError> {
        self.tests += 1;
        let mbit = (self.path)(self.host, config.direction, self.tests)
            .map_err(|()| PerfError::Login("the server is gone".into()))?;
        Ok(measurement(mbit * 1e6, config))
    }

    fn report(&mut self, event: &StepEvent<'_>) {
        if let StepEvent::Test { with, .. } = event {
            self.with.push(*with);
        }
    }

    fn is_stopped(&self) -> bool {
        self.tests >= self.stop_at
    }
}

/// A transfer that is sndbuf-limited all the time, at 100 ms.
fn measurement(bps: f64, config: &ClientConfig) -> Measurement {
    let mut stream = Stream { id: 1, congestion: Some("cubic".into()), ..Stream::default() };
    for step in 0..=100u32 {
        let t_s = f64::from(step) / 10.0;
        let bytes = (t_s * bps / 8.0) as u64;
        stream.receiver.push(ReceiverSample {
            t_s,
            received_bytes: bytes,
            window_bytes: Some(64 << 20),
            ..ReceiverSample::default()
        });
        stream.sender.push(Sample {
            t_s,
            acked_bytes: bytes,
            delivered_bytes: bytes,
            written_bytes: bytes + 1_000_000,
            mss_bytes: 1448,
            cwnd_bytes: 4 << 20,
            in_flight_bytes: 1 << 20,
            peer_window_bytes: Some(64 << 20),
            rtt_us: 100_000,
            min_rtt_us: Some(100_000),
            busy_us: (t_s * 1e6) as u64,
            sndbuf_limited_us: (t_s * 1e6) as u64,
            ..Sample::default()
        });
    }
    stream.received_bytes = (bps * 10.0 / 8.0) as u64;
    (stream.received_seconds, stream.sent_seconds) = (10.0, 10.0);
    Measurement {
        version: "0".to_owned(),
        spec: TestSpec {
            target: config.host.clone(),
            port: 5201,
            protocol: record::Protocol::Tcp,
            direction: config.direction,
            seconds: 10.0,
            streams: 1,
            window_bytes: None,
            rate_bps: None,
            congestion: None,
            ..TestSpec::default()
        },
        peer: "longhaul".to_owned(),
        streams: vec![stream],
        notes: vec![],
        ..Measurement::default()
    }
}

fn job(directions: &[Direction]) -> Job {
    Job {
        client: ClientConfig::new("server"),
        directions: directions.to_vec(),
        repeats: 3,
        seconds: None,
        rate: (BitRate::from_bps(1_000_000_000), "asked".to_owned()),
        rtt: None,
        congestion: None,
        memory: None,
    }
}

struct Ended {
    result: Result<VerifyReport, VerifyError>,
    journals: usize,
    with: Vec<bool>,
}

fn run(host: &Host, job: Job, stop_at: u32, path: Rate<'_>) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let journals = folder.path().canonicalize().unwrap();
    let disk = HostDisk { journals: journals.clone(), trust: Trust::Owner };
    let tuner = Tuner {
        settings: host,
        routes: &ThisHost,
        disk: &disk,
        folder: &journals,
        persisted: Path::new(PERSISTED),
        here: Identity::here(),
        now_s: 0,
    };
    let lock = Lock::take(&journals, Trust::Owner).unwrap();
    let mut environment = Paths { host, path, tests: 0, stop_at, with: Vec::new() };
    let result = Prepared::new(job, &tuner, &mut environment)
        .and_then(|prepared| prepared.run(&tuner, &lock, &mut environment));
    let names = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name());
    let journals = names.filter(|name| name.to_string_lossy().ends_with(".journal")).count();
    Ended { result, journals, with: environment.with }
}

/// 30 Mbit/s, ten times as much with the larger send buffer, and a little noise per test.
fn buffers_matter(host: &Host, direction: Direction, test: u32) -> Result<f64, ()> {
    let noise = f64::from(test * 7 % 5) * 0.1;
    let large = host.most(WMEM) > 4 << 20 && direction == Direction::Forward;
    Ok(if large { 300.0 } else { 30.0 } + noise)
}

const NEVER: u32 = u32::MAX;

#[test]
fn helpful_steps_are_kept_and_others_reverted() {
    let host = Host::new();
    host.write("net.ipv4.tcp_congestion_control", "bbr").unwrap();
    let before = host.all();
    let ended = run(&host, job(&[Direction::Forward]), NEVER, &buffers_matter);
    let report = ended.result.unwrap();
    let verdicts: Vec<_> = report.steps.iter().map(|s| (s.name.as_str(), s.verdict)).collect();
    assert_eq!(
        verdicts,
        [("buffers", StepVerdict::Kept), ("connection start", StepVerdict::RolledBack)],
        "{report:?}"
    );
    assert_eq!(ended.journals, 1);
    let changed: Vec<String> = host
        .all()
        .into_iter()
        .filter(|(key, value)| before[key] != *value)
        .map(|(key, _)| key)
        .collect();
    // Tests in which this host sends do not depend on its receive buffer.
    assert_eq!(changed, ["net.core.wmem_max", WMEM]);
    assert!(
        report.notes.iter().any(|note| note.contains("tcp_rmem") && note.contains("a download or"))
    );
    assert!(report.notes.iter().any(|note| note.contains("default_qdisc")));
    let way = &report.steps[0].directions[0];
    assert_eq!((way.before.len(), way.after.len(), way.comparison.real), (3, 3, Some(true)));
    // 1 Gbit/s in segments of 1448 of 1500 bytes.
    assert_eq!(way.predicted_bps.unwrap().bps() / 1_000_000, 965);
    assert!((way.of_predicted_gain.unwrap() - 270.0 / 935.0).abs() < 0.01, "{way:?}");
    assert_eq!(report.goal.rtt, Rtt::from_micros(100_000));
    assert_eq!(ended.with, [false, true, true, false, false, true].repeat(2));
    assert!(report.last[0].throughput_bps.as_f64() > 9.0 * report.first[0].throughput_bps.as_f64());
}

#[test]
fn harmful_and_drifting_steps_are_reverted() {
    let slower = |host: &Host, _, test: u32| {
        let large = host.most(WMEM) > 4 << 20;
        Ok(if large { 20.0 } else { 30.0 } + f64::from(test % 3) * 0.1)
    };
    let drifts = |_: &Host, _, test: u32| Ok(30.0 + f64::from(test) * 3.0);
    let same = |_: &Host, _, _| Ok(30.0);
    let slightly = |host: &Host, _, _| Ok(if host.most(WMEM) > 4 << 20 { 30.3 } else { 30.0 });
    let paths: [(Rate<'_>, &str); 4] = [
        (&slower, "Significantly slower"),
        (&drifts, "No significant difference"),
        (&same, "No significant difference"),
        (&slightly, "below 2 %"),
    ];
    for (path, says) in paths {
        let host = Host::new();
        let before = host.all();
        let ended = run(&host, job(&[Direction::Forward]), NEVER, path);
        let report = ended.result.unwrap();
        assert!(report.steps.iter().all(|s| s.verdict == StepVerdict::RolledBack), "{report:?}");
        assert!(report.steps[0].because.contains(says), "{}", report.steps[0].because);
        assert_eq!((host.all(), ended.journals), (before, 0));
    }
}

#[test]
fn both_directions_decide() {
    let both = [Direction::Forward, Direction::Reverse];
    let host = Host::new();
    let report = run(&host, job(&both), NEVER, &buffers_matter).result.unwrap();
    assert_eq!(report.steps[0].verdict, StepVerdict::Kept);
    assert!(host.most("net.ipv4.tcp_rmem") > 6_291_456, "with both, both are tried");
    // Data from the server is limited by its own send buffer: a change for that host.
    assert!(report.far_end[0].command.starts_with("sysctl -w net.ipv4.tcp_wmem="));
    let worse_back = |host: &Host, direction, _| {
        let large = host.most(WMEM) > 4 << 20;
        Ok(match (large, direction) {
            (true, Direction::Forward) => 300.0,
            (true, _) => 10.0,
            _ => 30.0,
        })
    };
    let host = Host::new();
    let report = run(&host, job(&both), NEVER, &worse_back).result.unwrap();
    assert_eq!(report.steps[0].verdict, StepVerdict::RolledBack);
}

#[test]
fn an_interruption_reverts_the_current_step() {
    // The first test measures the RTT; 2 to 7 test the buffers.
    for stop_at in 1..14 {
        let host = Host::new();
        let before = host.all();
        let ended = run(&host, job(&[Direction::Forward]), stop_at, &buffers_matter);
        if stop_at == 1 {
            assert!(matches!(ended.result, Err(VerifyError::InterruptedBefore)));
        } else {
            let report = ended.result.unwrap();
            assert!(report.interrupted || stop_at > 13, "{stop_at}");
            let kept = report.steps.iter().any(|step| step.verdict == StepVerdict::Kept);
            assert_eq!(kept, stop_at > 7, "{stop_at}: {report:?}");
            if kept {
                assert_eq!(ended.journals, 1, "{stop_at}");
                continue;
            }
        }
        assert_eq!((host.all(), ended.journals), (before, 0), "{stop_at}");
    }
}

#[test]
fn a_failed_server_reverts_the_host() {
    for gone in 2..14 {
        let path = move |host: &Host, direction, test| {
            if test >= gone { Err(()) } else { buffers_matter(host, direction, test) }
        };
        let host = Host::new();
        let before = host.all();
        let ended = run(&host, job(&[Direction::Forward]), NEVER, &path);
        let error = ended.result.unwrap_err();
        let kept = gone > 7;
        assert!(matches!(error, VerifyError::Test { kept: n, .. } if n == usize::from(kept)));
        assert_eq!(ended.journals, usize::from(kept), "{gone}");
        assert_eq!(host.all() == before, !kept, "{gone}");
    }
    // One failure is tolerated: a server may be busy for a moment.
    let once = |host: &Host, direction, test| {
        if test == 4 { Err(()) } else { buffers_matter(host, direction, test) }
    };
    let report = run(&Host::new(), job(&[Direction::Forward]), NEVER, &once).result.unwrap();
    assert_eq!(report.steps[0].verdict, StepVerdict::Kept);
}

#[test]
fn values_set_by_others_are_kept() {
    let meddled = |host: &Host, direction, test| {
        if test == 4 {
            host.write(WMEM, "4096 16384 5000000").unwrap();
        }
        buffers_matter(host, direction, test)
    };
    let host = Host::new();
    let ended = run(&host, job(&[Direction::Forward]), NEVER, &meddled);
    let said = ended.result.unwrap_err().to_string();
    assert!(said.contains(WMEM) && said.contains("someone else"), "{said}");
    assert_eq!(host.read(WMEM).unwrap(), "4096 16384 5000000");
    assert_eq!(ended.journals, 1, "what was before is not forgotten");
}

#[test]
fn a_tuned_host_is_only_measured() {
    let host = Host::new();
    for (key, value) in [
        (WMEM, "4096 16384 2000000000"),
        ("net.core.wmem_max", "2000000000"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_mtu_probing", "1"),
        ("net.ipv4.tcp_ecn", "1"),
    ] {
        host.write(key, value).unwrap();
    }
    let before = host.all();
    let ended = run(&host, job(&[Direction::Forward]), NEVER, &buffers_matter);
    let report = ended.result.unwrap();
    assert!(report.steps.is_empty() && report.last.len() == 1, "{report:?}");
    assert_eq!((host.all(), ended.journals, ended.with), (before, 0, vec![false]));
}
