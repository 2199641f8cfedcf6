//! The request of a test.

use super::{Earlier, udp_impact};
use crate::rtt_under_load::PORT;
use crate::{Field, Problem};
use perf::client::{ClientConfig, EndAfter, Transport};
use record::Direction;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// A test that bytes end is given up when nothing has arrived for so long.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of repeated tests.
const MAX_TESTS: u32 = 1000;

/// Maximum duration of a try of a rate search: as of a test, a day.
const MAX_TRY_SECONDS: f64 = 86_400.0;

/// The measurement of [`run`](super::run). [`TestRequest::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TestRequest {
    /// The transfer. Of a rate search, its rate is the highest that is tried, and its duration
    /// counts for nothing.
    pub transfer: ClientConfig,
    /// One test, several, or a rate search.
    pub mode: TestMode,
    /// RTT probes before, during and after each test; `None` for none.
    pub latency: Option<LatencyProbes>,
    /// True if datagrams are the largest that the path carries unfragmented, found by probes.
    pub fits_path: bool,
    /// True if TCP's buffers are the kernel's on short paths too; otherwise an end that sends
    /// limits its unsent data there. With `compare`, as they were in the earlier result.
    pub autotuning: bool,
    /// An earlier result to compare with.
    pub compare: Option<Earlier>,
}

/// One test, or more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TestMode {
    /// One test.
    Once {
        /// True if a second test follows where it would decide between two causes.
        #[serde(default)]
        decide: bool,
        /// A file for the headers of the test's packets: pcap if it ends in `.pcap`, otherwise
        /// pcapng. Needs CAP_NET_RAW.
        #[serde(default)]
        capture: Option<PathBuf>,
    },
    /// Several tests, one after the other.
    Repeat {
        /// Their number, 1 to 1000.
        count: u32,
    },
    /// A search for the highest UDP rate whose loss is acceptable.
    FindRate {
        /// The maximum loss, as a ratio from 0 to 1.
        loss_target: f64,
        /// The duration of a try, s.
        try_seconds: f64,
    },
}

impl Default for TestMode {
    fn default() -> Self {
        TestMode::Once { decide: false, capture: None }
    }
}

/// Probes of the RTT under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatencyProbes {
    /// The port of TCP probes, which nothing needs to listen on: a reset is a reply as well.
    pub port: u16,
}

impl Default for LatencyProbes {
    /// Port 443: most firewalls let it pass.
    fn default() -> Self {
        LatencyProbes { port: PORT }
    }
}

impl Default for TestRequest {
    /// Without the host.
    fn default() -> Self {
        TestRequest::new("")
    }
}

impl TestRequest {
    /// Ten seconds of TCP over one stream to `host`.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        TestRequest {
            transfer: ClientConfig::new(host),
            mode: TestMode::default(),
            latency: None,
            fits_path: false,
            autotuning: false,
            compare: None,
        }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The field that is invalid or contradicts another, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let (transfer, is_udp) = (&self.transfer, self.transfer.transport.udp().is_some());
        transfer.check()?;
        match self.latency {
            Some(LatencyProbes { port: 0 }) => {
                return Err(Problem::field(Field::Latency, "probes of port 0", "1 to 65535"));
            }
            Some(LatencyProbes { port }) if transfer.ports.contains(&port) => {
                let what = format!(
                    "cannot probe port {port}: the test's server listens there and would take \
                     each probe for a client"
                );
                return Err(Problem::field(
                    Field::Latency,
                    what,
                    "another port (a closed one works)",
                ));
            }
            _ => {}
        }
        if self.fits_path && !is_udp {
            let what = "the largest unfragmented length is for UDP datagrams only";
            return Err(Problem::field(Field::Transport, what, ""));
        }
        if self.fits_path && transfer.block.is_some() {
            let what = "the datagram length is either given or found by probes";
            return Err(Problem::field(Field::Block, what, "only one of them"));
        }
        // Whoever may ask for a test may not read, nor write, every file of this host.
        if transfer.file.is_some() {
            let what = "a test sends generated data";
            return Err(Problem::field(Field::File, what, "no file"));
        }
        if let Some(earlier) = &self.compare {
            earlier.check()?;
        }
        self.check_mode(is_udp)
    }

    fn check_mode(&self, is_udp: bool) -> Result<(), Problem> {
        let transfer = &self.transfer;
        let wrong = |field, what: &str, accepted: &str| Err(Problem::field(field, what, accepted));
        match self.mode {
            TestMode::Once { decide: true, .. }
                if is_udp || transfer.direction == Direction::Both =>
            {
                let what =
                    "no second test can decide the limit of UDP or of two directions at once";
                wrong(Field::Decide, what, "only with TCP or UDT in one direction")
            }
            TestMode::Repeat { count } if !(1..=MAX_TESTS).contains(&count) => {
                wrong(Field::Repeat, &format!("{count} tests"), "1 to 1000")
            }
            TestMode::FindRate { loss_target, try_seconds } => {
                if !is_udp {
                    return wrong(Field::Transport, "a rate search sends UDP", "");
                }
                if !(0.0..=1.0).contains(&loss_target) {
                    let what = format!("a loss target of {loss_target}");
                    return wrong(Field::LossTarget, &what, "0 to 1");
                }
                if !(try_seconds > 0.0 && try_seconds <= MAX_TRY_SECONDS) {
                    let what = format!("tries of {try_seconds} s");
                    return wrong(Field::TrySeconds, &what, "above 0 and at most 86400 seconds");
                }
                self.check_search()
            }
            TestMode::Once { .. } | TestMode::Repeat { .. } => Ok(()),
        }
    }

    /// Refuses fields that a rate search has no use for.
    fn check_search(&self) -> Result<(), Problem> {
        let transfer = &self.transfer;
        let unused = [
            (Field::Latency, self.latency.is_some()),
            (Field::Compare, self.compare.is_some()),
            (Field::Bytes, matches!(transfer.end, EndAfter::Bytes(_))),
            (Field::Blocks, matches!(transfer.end, EndAfter::Blocks(_))),
            (Field::OmitSeconds, transfer.omit_seconds > 0),
            (Field::Window, transfer.window.is_some()),
            (Field::Congestion, transfer.congestion.is_some()),
        ];
        match unused.into_iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) => {
                let what = format!("a rate search has no use for '{}'", field.name());
                Err(Problem::field(field, what, "only with a test"))
            }
            None => Ok(()),
        }
    }

    /// The test's effect on other users of the path, if they should be asked first: UDP has no
    /// congestion control. `None` where the rate is low, or no packet leaves this machine.
    ///
    /// Resolves the name of the host.
    #[must_use]
    pub fn udp_impact(&self) -> Option<String> {
        udp_impact::of(&self.transfer)
    }

    /// The transfer as it is run.
    pub(super) fn settled_transfer(&self) -> ClientConfig {
        let mut transfer = self.transfer.clone();
        transfer.keeps_incomplete = true;
        if let Some(tcp) = transfer.transport.any_tcp() {
            // The difference from an earlier result must be the path, not the windows.
            let as_earlier = self.compare.as_ref().is_none_or(|earlier| earlier.limits_unsent);
            tcp.limits_unsent = !self.autotuning && as_earlier;
        }
        if let Transport::Udp(udp) = &mut transfer.transport {
            // A 32-bit packet counter wraps within minutes at 100 Gbit/s.
            udp.wide_counters = true;
        }
        if transfer.end.seconds().is_none() {
            // A stall that time does not end.
            transfer.receive_timeout = transfer.receive_timeout.min(STALL_TIMEOUT);
        }
        transfer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf::client::UdtOptions;
    use record::Protocol;
    use units::{BitRate, ByteCount};

    fn refused(change: impl FnOnce(&mut TestRequest)) -> Option<Field> {
        let mut request = TestRequest::new("192.0.2.1");
        change(&mut request);
        let problem = request.check().err()?;
        Some(problem.remedy.expect("a field").field)
    }

    fn search(request: &mut TestRequest) {
        request.mode = TestMode::FindRate { loss_target: 0.001, try_seconds: 2.0 };
        request.transfer.transport = Protocol::Udp.into();
    }

    #[test]
    fn contradictions_name_a_field() {
        assert_eq!(refused(|_| ()), None);
        assert_eq!(refused(|r| r.transfer.host.clear()), Some(Field::Host));
        assert_eq!(refused(|r| r.transfer.streams = 129), Some(Field::Streams));
        let probes = |port| move |r: &mut TestRequest| r.latency = Some(LatencyProbes { port });
        assert_eq!(refused(probes(5201)), Some(Field::Latency));
        assert_eq!(refused(probes(0)), Some(Field::Latency));
        assert_eq!(refused(probes(443)), None);
        assert_eq!(refused(|r| r.fits_path = true), Some(Field::Transport));
        assert_eq!(refused(|r| r.transfer.file = Some("/etc/passwd".into())), Some(Field::File));
        let both = |r: &mut TestRequest| {
            (r.fits_path, r.transfer.transport) = (true, Protocol::Udp.into());
            r.transfer.block = Some(ByteCount::from_bytes(1_000));
        };
        assert_eq!(refused(both), Some(Field::Block));
        for count in [0, 1001] {
            assert_eq!(refused(|r| r.mode = TestMode::Repeat { count }), Some(Field::Repeat));
        }
        let decide = |direction, protocol| {
            move |r: &mut TestRequest| {
                r.mode = TestMode::Once { decide: true, capture: None };
                (r.transfer.direction, r.transfer.transport) =
                    (direction, Transport::from(protocol));
            }
        };
        assert_eq!(refused(decide(Direction::Both, Protocol::Tcp)), Some(Field::Decide));
        assert_eq!(refused(decide(Direction::Forward, Protocol::Udp)), Some(Field::Decide));
        assert_eq!(refused(decide(Direction::Reverse, Protocol::Tcp)), None);
        let empty = Earlier { runs: Vec::new(), limits_unsent: true };
        assert_eq!(refused(|r| r.compare = Some(empty)), Some(Field::Compare));
    }

    #[test]
    fn a_rate_search_takes_no_options_of_a_test() {
        assert_eq!(refused(search), None);
        let with = |change: &dyn Fn(&mut TestRequest)| {
            refused(|request| {
                search(request);
                change(request);
            })
        };
        assert_eq!(with(&|r| r.transfer.transport = Protocol::Tcp.into()), Some(Field::Transport));
        assert_eq!(with(&|r| r.latency = Some(LatencyProbes::default())), Some(Field::Latency));
        let bytes = EndAfter::Bytes(ByteCount::from_bytes(1024));
        assert_eq!(with(&|r| r.transfer.end = bytes), Some(Field::Bytes));
        assert_eq!(with(&|r| r.transfer.end = EndAfter::Blocks(1)), Some(Field::Blocks));
        assert_eq!(with(&|r| r.transfer.omit_seconds = 1), Some(Field::OmitSeconds));
        assert_eq!(with(&|r| r.transfer.rate = Some(BitRate::from_bps(9))), None);
        for (loss_target, try_seconds, field) in [
            (1.1, 2.0, Field::LossTarget),
            (f64::NAN, 2.0, Field::LossTarget),
            (0.1, 0.0, Field::TrySeconds),
            (0.1, f64::INFINITY, Field::TrySeconds),
        ] {
            let mode = TestMode::FindRate { loss_target, try_seconds };
            let found = refused(|request| {
                search(request);
                request.mode = mode;
            });
            assert_eq!(found, Some(field), "{loss_target} {try_seconds}");
        }
    }

    #[test]
    fn the_transfer_of_a_test_keeps_what_it_measured() {
        let mut request = TestRequest::new("host");
        let transfer = request.settled_transfer();
        let limits_unsent = |request: &TestRequest| {
            let mut transport = request.settled_transfer().transport;
            transport.any_tcp().is_some_and(|tcp| tcp.limits_unsent)
        };
        assert!(transfer.keeps_incomplete && limits_unsent(&request));
        assert_eq!(transfer.receive_timeout, request.transfer.receive_timeout);
        request.transfer.end = EndAfter::Bytes(ByteCount::from_bytes(1024));
        assert_eq!(request.settled_transfer().receive_timeout, STALL_TIMEOUT);
        request.compare = Some(Earlier { runs: Vec::new(), limits_unsent: false });
        assert!(!limits_unsent(&request));
        request.compare = None;
        request.transfer.transport = Protocol::Udp.into();
        assert!(request.settled_transfer().transport.udp().unwrap().wide_counters);
        request.transfer.transport = Protocol::Udt.into();
        assert!(limits_unsent(&request), "of the fallback");
    }

    #[test]
    fn a_request_can_be_written_and_read() {
        let mut request = TestRequest::new("192.0.2.1");
        search(&mut request);
        request.latency = Some(LatencyProbes { port: 80 });
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<TestRequest>(&text).unwrap(), request);
        let short = r#"{"transfer": {"host": "192.0.2.1"}, "mode": {"once": {"decide": true}}}"#;
        let read: TestRequest = serde_json::from_str(short).unwrap();
        let mode = TestMode::Once { decide: true, capture: None };
        assert_eq!(read, TestRequest { mode, ..TestRequest::new("192.0.2.1") });
        let udt =
            r#"{"transfer": {"transport": {"udt": {"fallback": null}}, "end": {"blocks": 3}}}"#;
        let read: TestRequest = serde_json::from_str(udt).unwrap();
        let udt = UdtOptions { fallback: None, ..UdtOptions::default() };
        assert_eq!(read.transfer.transport, Transport::Udt(udt));
        assert_eq!(read.transfer.end, EndAfter::Blocks(3));
        for wrong in [
            r#"{"transfr": {}}"#,
            r#"{"transfer": {"end": {"bytes": 1, "blocks": 1}}}"#,
            r#"{"transfer": {"transport": {"tcp": {"train": null}}}}"#,
        ] {
            assert!(serde_json::from_str::<TestRequest>(wrong).is_err(), "{wrong}");
        }
    }
}
