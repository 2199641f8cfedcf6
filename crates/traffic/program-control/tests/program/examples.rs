//! The examples of `examples/control`, beside the same algorithm in Rust.

use crate::arrange::{built, root, run, scenario};
use control::{Ack, Congestion, CongestionControl, INITIAL_WINDOW, Phase};
use program_control::{ControlProgram, records};
use std::path::Path;
use std::process::Command;
use twin::Outcome;
use units::Nanos;

/// What the examples do.
struct Aimd {
    cwnd: f64,
    ssthresh: Option<u64>,
}

impl CongestionControl for Aimd {
    fn name(&self) -> &str {
        "aimd"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.phase == Phase::Recovery || !ack.cwnd_limited {
            return;
        }
        let slow_start = self.ssthresh.is_none_or(|threshold| self.cwnd < threshold as f64);
        let acked = ack.newly_acked as f64;
        self.cwnd += if slow_start { acked } else { acked / self.cwnd };
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.is_new {
            self.ssthresh = Some(((self.cwnd / 2.0) as u64).max(2));
        }
    }

    fn on_recovery_end(&mut self, _now: Nanos) {
        self.cwnd = self.ssthresh.map_or(self.cwnd, |threshold| threshold as f64);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.cwnd = 1.0;
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }
}

fn example(name: &str) -> ControlProgram {
    ControlProgram::new(root().join("examples/control").join(name))
}

fn example_in_c() -> ControlProgram {
    ControlProgram::new(built(&example("aimd.c").path))
}

/// The same run, but for the name of the controller.
fn assert_same(one: &Outcome, other: &Outcome) {
    assert_eq!(one.truth, other.truth);
    assert_eq!(one.senders, other.senders);
    let samples = |outcome: &Outcome| outcome.measurement.streams[0].sender.clone();
    assert_eq!(samples(one), samples(other));
}

pub(crate) fn c() {
    let in_rust = twin::run_with(&scenario(1), |_| {
        Some(Box::new(Aimd { cwnd: INITIAL_WINDOW as f64, ssthresh: None }))
    })
    .unwrap();
    let in_c = run(&[example_in_c()]).unwrap();
    assert_eq!(in_c.measurement.streams[0].congestion.as_deref(), Some("aimd"));
    assert!(in_c.senders[0].reductions.begun > 0, "the queue overflowed");
    assert!(in_c.read[0] > 600, "{} of 833 packets", in_c.read[0]);
    assert_same(&in_c, &in_rust);
}

pub(crate) fn python() {
    assert_same(&run(&[example("aimd.py")]).unwrap(), &run(&[example_in_c()]).unwrap());
}

/// What the compiler makes of the header is where the records are.
pub(crate) fn layout() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/layout.c");
    let output = Command::new(built(&source)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let places = [
        records::PROGRAM_VERSION,
        records::EVENT_BELL,
        records::EVENT,
        records::REPLY_BELL,
        records::REPLY,
        records::EVENT_WORDS,
        records::REPLY_WORDS,
        host::shared_page::WORDS,
    ];
    let constants = [records::MAGIC, records::VERSION];
    let expected = constants.into_iter().chain(places.map(|place| place as u64));
    assert_eq!(words, expected.collect::<Vec<_>>());
}
