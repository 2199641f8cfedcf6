//! From where a transfer is seen: the less is known, the less can be told.

use crate::Fallible;
use crate::stored::Run;
use record::{Measurement, TestSpec};

/// A vantage point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Vantage {
    /// Sender and receiver of a test.
    #[default]
    Full,
    /// The client of a foreign server that sends: no samples of the sender.
    Receiver,
    /// The sender of a connection of another program.
    Watch,
    /// The same with samples every second.
    Slow,
    /// A capture at the sender.
    CaptureSender,
    /// A capture at the receiver.
    CaptureReceiver,
}

impl Vantage {
    pub(crate) const ALL: [Vantage; 6] = [
        Vantage::Full,
        Vantage::Receiver,
        Vantage::Watch,
        Vantage::Slow,
        Vantage::CaptureSender,
        Vantage::CaptureReceiver,
    ];

    /// Whether it is a capture, of which host: 0 is the sender.
    pub(crate) fn captured_host(self) -> Option<usize> {
        match self {
            Vantage::CaptureSender => Some(0),
            Vantage::CaptureReceiver => Some(1),
            Vantage::Full | Vantage::Receiver | Vantage::Watch | Vantage::Slow => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Vantage::Full => "full",
            Vantage::Receiver => "receiver",
            Vantage::Watch => "watch",
            Vantage::Slow => "slow",
            Vantage::CaptureSender => "capture-sender",
            Vantage::CaptureReceiver => "capture-receiver",
        }
    }

    /// A run as seen from there.
    ///
    /// # Errors
    /// The run has no captures.
    pub(crate) fn of(self, run: &Run) -> Fallible<Measurement> {
        if let Some(host) = self.captured_host() {
            let captured = run.captured.as_ref().ok_or("the run was stored without captures")?;
            return Ok(captured[host].clone());
        }
        let m = &run.measurement;
        Ok(match self {
            Vantage::Full | Vantage::CaptureSender | Vantage::CaptureReceiver => m.clone(),
            Vantage::Receiver => receiver_alone(m),
            Vantage::Watch => watched(m),
            Vantage::Slow => every_second(watched(m)),
        })
    }
}

fn receiver_alone(m: &Measurement) -> Measurement {
    let mut m = m.clone();
    for stream in &mut m.streams {
        stream.sender.clear();
        stream.retransmits = None;
    }
    m.sender_cpu = None;
    m
}

fn watched(m: &Measurement) -> Measurement {
    let mut m = m.clone();
    for stream in &mut m.streams {
        stream.receiver.clear();
        stream.watched = true;
    }
    m.spec = TestSpec { seconds: m.spec.seconds, streams: m.spec.streams, ..TestSpec::default() };
    (m.sender_cpu, m.receiver_cpu) = (None, None);
    m
}

fn every_second(mut m: Measurement) -> Measurement {
    for stream in &mut m.streams {
        let mut next = f64::NEG_INFINITY;
        stream.sender.retain(|sample| {
            let due = sample.t_s >= next;
            next = if due { sample.t_s + 0.99 } else { next };
            due
        });
    }
    m
}
