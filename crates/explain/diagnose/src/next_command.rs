//! The command to run next: what changes the limit, shows it better, or decides which it is.
//!
//! Each is possible where the finding is read: the host is the one of the test, `HOST` stands
//! only for one that nothing names, and a test in a lab starts the lab of that path.

use crate::{Goal, facts::Facts};
use record::{
    Action, AlsoShows, CapturePoint, CommandHost, Direction, EndCondition, Finding, Limit,
    Measurement, NextCommand, Protocol, RemedyPlace, TestSpec,
};
use units::{BitRate, Rtt};

/// Seconds of a test that shows what a shorter one did not.
const LONG_S: f64 = 60.0;

/// A longer test: times the seconds of the first one.
const LONGER: f64 = 4.0;

/// The command for a finding on this measurement; `goal` is the path's rate and RTT, if known.
#[must_use]
pub fn next_command(finding: &Finding, m: &Measurement, goal: Option<&Goal>) -> NextCommand {
    of(finding, Facts::of(m), goal)
}

pub(crate) fn of(finding: &Finding, facts: Facts<'_>, goal: Option<&Goal>) -> NextCommand {
    let m = facts.m;
    let explained = Explained { finding, facts, m, goal };
    let (action, on, why) = match finding.limit {
        None | Some(Limit::Unknown) => explained.deciding(),
        Some(limit) => explained.remedied().unwrap_or_else(|| explained.of_limit(limit)),
    };
    let link = m.path.as_ref().map_or("", |path| &path.asked.link);
    let command = if link.is_empty() { action.command() } else { action.command_in_lab(link) };
    NextCommand { command, on, why: why.to_owned() }
}

type Chosen = (Action, CommandHost, &'static str);

struct Explained<'a> {
    finding: &'a Finding,
    facts: Facts<'a>,
    m: &'a Measurement,
    goal: Option<&'a Goal>,
}

impl Explained<'_> {
    /// The first remedy: the test with it, or the plan of the settings.
    fn remedied(&self) -> Option<Chosen> {
        let remedy = self.finding.remedies.first()?;
        match remedy.place {
            RemedyPlace::Call => {
                let spec = self.spec().with(&remedy.command)?;
                Some(self.test(spec, AlsoShows::Nothing, "measures again with the remedy"))
            }
            RemedyPlace::Sender => self.plan(CommandHost::Sender),
            RemedyPlace::Receiver => self.plan(CommandHost::Receiver),
            RemedyPlace::Boxes => Some((
                Action::Remedy(remedy.command.clone()),
                CommandHost::Here,
                "predicts what boxes on the path would gain",
            )),
        }
    }

    /// Where the remedies, for want of a known path or at all, are none.
    fn of_limit(&self, limit: Limit) -> Chosen {
        let spec = self.spec();
        if self.m.spec.protocol == Protocol::Udp {
            return (
                Action::FindRate(Box::new(spec)),
                self.client(),
                "finds the highest UDP rate without such loss",
            );
        }
        match limit {
            Limit::ReceiveWindow | Limit::FixedWindow => self.buffers(CommandHost::Receiver),
            Limit::SendBuffer => self.buffers(CommandHost::Sender),
            Limit::SlowReceiver => self.watch(CommandHost::Receiver),
            Limit::Application if spec.file.is_none() => self.watch(CommandHost::Sender),
            Limit::Cpu => self.host(),
            Limit::Ramp | Limit::CongestionAvoidance => self.longer(AlsoShows::Nothing),
            Limit::PathRate | Limit::Aqm | Limit::SharedBottleneck => self.saturated(),
            Limit::Policer | Limit::ShallowQueue => (
                Action::FindRate(Box::new(spec)),
                self.client(),
                "finds the rate up to which nothing is dropped",
            ),
            Limit::AckPath => self.test(
                TestSpec { direction: reversed(spec.direction), ..spec },
                AlsoShows::Nothing,
                "measures the ACK direction",
            ),
            Limit::WindowScaling
            | Limit::EcnMarks
            | Limit::Loss
            | Limit::ClusteredLoss
            | Limit::Reordering
            | Limit::PathChange => {
                let trace = Action::Trace { host: spec.target, family: None };
                (trace, self.client(), "shows loss and RTT of each hop")
            }
            Limit::Outage => (
                Action::Ping(spec.target),
                self.client(),
                "shows whether the path is up, and its RTT",
            ),
            Limit::PmtuBlackHole => self.check_path(),
            Limit::Application | Limit::Pacing | Limit::Memory | Limit::PacingTimers => self.test(
                unlimited(spec),
                AlsoShows::Nothing,
                "measures again without limits of the test's own",
            ),
            Limit::Unknown => self.deciding(),
        }
    }

    /// The test that decides what an unknown limit is.
    fn deciding(&self) -> Chosen {
        if let Some(stream) = self.m.streams.iter().find(|stream| stream.captured.is_some()) {
            let at_sender = stream.captured == Some(CapturePoint::Sender);
            if !at_sender || self.facts.has_one_direction {
                return self.capture();
            }
        }
        if self.facts.is_watched && self.m.spec.direction == Direction::Reverse {
            return (Action::Watch, CommandHost::Sender, "the sender's timers show its limit");
        }
        let spec = self.spec();
        let tried = self.m.decided.is_some() && self.m.tool.is_none();
        match tried {
            false => {
                self.test(spec, AlsoShows::Cause, "a second test decides between likely causes")
            }
            true if spec.seconds < LONG_S => self.longer(AlsoShows::Cause),
            true => self.test(
                spec,
                AlsoShows::Packets,
                "the sender's packets show what the counters do not",
            ),
        }
    }

    /// The buffers, or the test without the window that was requested.
    fn buffers(&self, on: CommandHost) -> Chosen {
        let spec = self.spec();
        if spec.window_bytes.is_some() {
            let spec = TestSpec { window_bytes: None, ..spec };
            return self.test(
                spec,
                AlsoShows::Nothing,
                "measures with the kernel's default buffers",
            );
        }
        self.plan(on).unwrap_or_else(|| self.check_path())
    }

    /// The plan for the path's rate and RTT, or for those measured.
    fn plan(&self, on: CommandHost) -> Option<Chosen> {
        let (rate, rtt, known) = self.target()?;
        let streams = self.m.spec.streams.max(1);
        let why = if known {
            "prints the settings for this path, and changes nothing"
        } else {
            "prints the settings for the measured rate; if you know the path's rate, give that"
        };
        Some((Action::TunePlan { rate, rtt, streams }, self.place(on), why))
    }

    /// Rate and RTT: the known path's, or as measured; and whether it is known.
    fn target(&self) -> Option<(BitRate, Rtt, bool)> {
        if let Some(goal) = self.goal {
            return Some((goal.rate, goal.rtt, true));
        }
        let measured = self.finding.throughput_bps;
        let estimate = self.finding.bottleneck.map_or(measured, |estimate| estimate.rate_bps);
        let rtt = self.finding.min_rtt.or(self.finding.loaded_rtt)?;
        let rate = measured.max(estimate);
        (rate > BitRate::ZERO && rtt > Rtt::ZERO).then_some((rate, rtt, false))
    }

    /// Checks the limits of a host: its settings, its CPUs and its device.
    fn host(&self) -> Chosen {
        let core = |share: Option<f64>| share.unwrap_or(0.0);
        let by_receiver = core(self.m.receiver_core()) > core(self.m.sender_core());
        let on = if by_receiver { CommandHost::Receiver } else { CommandHost::Sender };
        match self.target() {
            Some((rate, rtt, _)) => (
                Action::CheckHost { rate, rtt },
                self.place(on),
                "checks CPUs, offloads and buffers, with each fix",
            ),
            None => self.check_path(),
        }
    }

    fn check_path(&self) -> Chosen {
        let TestSpec { target: host, port, .. } = self.spec();
        (
            Action::CheckPath { host, port },
            self.client(),
            "measures RTT, path MTU and TCP options, and checks this host",
        )
    }

    /// The bottleneck is saturated: its queue, then a result to compare with.
    fn saturated(&self) -> Chosen {
        let spec = self.spec();
        if self.m.latency.is_none() {
            return self.test(
                spec,
                AlsoShows::Latency,
                "shows the queueing delay of the saturated path",
            );
        }
        let TestSpec { target: host, port, .. } = spec;
        (
            Action::Baseline { host, port },
            self.client(),
            "measures the path thoroughly, for later comparison",
        )
    }

    fn longer(&self, also: AlsoShows) -> Chosen {
        let spec = self.spec();
        let seconds = (LONGER * spec.seconds).max(LONG_S);
        let spec = TestSpec { seconds, end: EndCondition::Time, ..spec };
        self.test(spec, also, "a longer test shows the rate after its beginning")
    }

    fn watch(&self, on: CommandHost) -> Chosen {
        (Action::Watch, self.place(on), "shows the program and what it waits for")
    }

    fn capture(&self) -> Chosen {
        let host = self.m.spec.target.clone();
        let action = Action::Capture { host, port: self.m.spec.port };
        (
            action,
            CommandHost::Sender,
            "a capture at the sender, with both directions, shows its limit",
        )
    }

    fn test(&self, spec: TestSpec, also: AlsoShows, why: &'static str) -> Chosen {
        (Action::Test(Box::new(spec), also), self.client(), why)
    }

    /// The test as it was requested; of a watched or captured connection, one to its receiver
    /// or, where that is here, from its sender.
    fn spec(&self) -> TestSpec {
        let spec = &self.m.spec;
        if !self.facts.is_watched && !self.is_captured() {
            let mut spec = spec.clone();
            // Another tool names the sender's, which this host may lack.
            if self.m.tool.is_some() && spec.direction == Direction::Reverse {
                spec.congestion = None;
            }
            return spec;
        }
        TestSpec {
            target: spec.target.clone(),
            direction: spec.direction,
            streams: 1,
            ..TestSpec::default()
        }
    }

    fn is_captured(&self) -> bool {
        self.m.streams.iter().any(|stream| stream.captured.is_some())
    }

    /// Where a test starts: here, but for a capture, whose hosts may both be elsewhere.
    fn client(&self) -> CommandHost {
        if self.is_captured() { CommandHost::Sender } else { CommandHost::Here }
    }

    /// The place, as seen from here: in a test, one of both ends is here.
    fn place(&self, on: CommandHost) -> CommandHost {
        let here = match self.m.spec.direction {
            Direction::Forward => CommandHost::Sender,
            Direction::Reverse => CommandHost::Receiver,
            Direction::Both => return on,
        };
        let is_elsewhere = self.is_captured() || self.m.tool.is_some();
        if on == here && !is_elsewhere { CommandHost::Here } else { on }
    }
}

fn reversed(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Reverse,
        Direction::Reverse | Direction::Both => Direction::Forward,
    }
}

/// Without what the request itself limits.
fn unlimited(spec: TestSpec) -> TestSpec {
    TestSpec { rate_bps: None, fq_rate_bps: None, window_bytes: None, file: None, ..spec }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use record::{Decided, PathReport, RemedyCommand, RequestedPath, Stream};
    use units::ByteCount;

    fn next(m: &Measurement, limit: Limit) -> NextCommand {
        let finding = Finding { limit: Some(limit), ..crate::explain(m) };
        next_command(&Finding { remedies: Vec::new(), ..finding }, m, None)
    }

    fn measured() -> Measurement {
        let mut m = Example::new(20.0, 100.0).m;
        (m.spec.target, m.spec.streams) = ("a.example".to_owned(), 1);
        m
    }

    #[test]
    fn every_limit_has_a_command_for_its_host() {
        for limit in Limit::ALL {
            let found = next(&measured(), limit);
            assert!(found.command.starts_with("longhaul "), "{limit:?}: {found}");
            assert!(!found.command.contains("HOST") && !found.why.is_empty(), "{limit:?}: {found}");
        }
    }

    #[test]
    fn an_unknown_limit_names_the_test_that_decides() {
        let mut m = measured();
        let command = |m: &Measurement| next(m, Limit::Unknown).command;
        assert_eq!(command(&m), "longhaul test a.example --decide");
        m.decided = Some(Decided {
            between: vec![Limit::Loss, Limit::Aqm],
            options: None,
            throughput_bps: None,
            limit: None,
            sentence: String::new(),
        });
        assert_eq!(command(&m), "longhaul test a.example -t 60 --decide");
        m.spec.seconds = 60.0;
        assert_eq!(command(&m), "sudo longhaul test a.example -t 60 --pcap sender.pcapng");
        m.streams = vec![Stream { captured: Some(CapturePoint::Receiver), ..Stream::default() }];
        m.spec.port = 443;
        let capture = next(&m, Limit::Unknown);
        assert_eq!(capture.on, CommandHost::Sender);
        assert!(capture.command.ends_with("-t 60 host a.example and tcp port 443"), "{capture}");
    }

    #[test]
    fn the_measured_rate_stands_in_for_an_unknown_one() {
        let mut m = measured();
        let mut finding = Finding { limit: Some(Limit::ReceiveWindow), ..crate::explain(&m) };
        finding.throughput_bps = BitRate::from_bps(3_030_566);
        finding.min_rtt = Some(Rtt::from_micros(173_000));
        let found = next_command(&finding, &m, None);
        assert_eq!(
            found.to_string(),
            "longhaul tune plan --rate 3.03mbit --rtt 173ms   # on the receiver"
        );
        m.spec.direction = Direction::Reverse;
        assert_eq!(next_command(&finding, &m, None).on, CommandHost::Here);
        let goal = Goal {
            rate: BitRate::from_bps(1_000_000_000),
            rtt: Rtt::from_micros(173_000),
            queue: ByteCount::ZERO,
        };
        let found = next_command(&finding, &m, Some(&goal));
        assert_eq!(found.command, "longhaul tune plan --rate 1gbit --rtt 173ms");
        m.spec.window_bytes = Some(ByteCount::from_bytes(1 << 16));
        assert_eq!(next_command(&finding, &m, Some(&goal)).command, "longhaul test a.example -R");
    }

    #[test]
    fn a_remedy_is_the_test_with_it_in_the_same_lab() {
        let mut m = measured();
        let mut finding = Finding { limit: Some(Limit::Loss), ..crate::explain(&m) };
        finding.remedies = vec![record::Remedy {
            place: RemedyPlace::Call,
            command: RemedyCommand::CongestionControl("bbr".to_owned()),
            setting: None,
            expects_bps: None,
            why: String::new(),
        }];
        assert_eq!(next_command(&finding, &m, None).command, "longhaul test a.example -C bbr");
        m.spec.direction = Direction::Reverse;
        assert_eq!(next_command(&finding, &m, None).command, "longhaul test a.example -R -C bbr");
        m.spec.direction = Direction::Forward;
        m.path = Some(PathReport {
            asked: RequestedPath { link: "rate=1gbit,loss=1%".to_owned(), ..Default::default() },
            ..PathReport::default()
        });
        assert_eq!(
            next_command(&finding, &m, None).command,
            "longhaul lab run --link rate=1gbit,loss=1% --server 'longhaul server' -- \
             longhaul test a.example -C bbr"
        );
    }
}
