//! From where a transfer is seen: the less is known, the less can be told.

use record::{Measurement, TestSpec};

/// A vantage point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vantage {
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
    /// All vantage points.
    pub const ALL: [Vantage; 6] = [
        Vantage::Full,
        Vantage::Receiver,
        Vantage::Watch,
        Vantage::Slow,
        Vantage::CaptureSender,
        Vantage::CaptureReceiver,
    ];

    /// The host of a capture: 0 is the sender; `None`: it is no capture.
    #[must_use]
    pub const fn captured_host(self) -> Option<usize> {
        match self {
            Vantage::CaptureSender => Some(0),
            Vantage::CaptureReceiver => Some(1),
            Vantage::Full | Vantage::Receiver | Vantage::Watch | Vantage::Slow => None,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vantage::Full => "full",
            Vantage::Receiver => "receiver",
            Vantage::Watch => "watch",
            Vantage::Slow => "slow",
            Vantage::CaptureSender => "capture-sender",
            Vantage::CaptureReceiver => "capture-receiver",
        }
    }

    /// A test as seen from there; `None` for a capture, if the test was not captured.
    /// `captured`: what captures at the sender and at the receiver show.
    #[must_use]
    pub fn view(
        self,
        measurement: &Measurement,
        captured: Option<&[Measurement; 2]>,
    ) -> Option<Measurement> {
        match self {
            Vantage::Full => Some(measurement.clone()),
            Vantage::Receiver => Some(receiver_alone(measurement)),
            Vantage::Watch => Some(watched(measurement)),
            Vantage::Slow => Some(every_second(watched(measurement))),
            Vantage::CaptureSender => captured.map(|[sender, _]| sender.clone()),
            Vantage::CaptureReceiver => captured.map(|[_, receiver]| receiver.clone()),
        }
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
