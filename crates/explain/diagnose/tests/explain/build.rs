//! A synthetic measurement: rates and shares of time in, kernel counters out.

use record::{Direction, Measurement, PathReport, ReceiverSample, Sample, Stream, TestSpec};
use units::{BitRate, ByteCount, LossRatio, Rtt};

pub(crate) const MSS: u32 = 1448;

/// A counter's growth per second, by time.
type Rate = Box<dyn Fn(f64) -> f64>;

/// One test with identical streams, in payload bit/s and shares of time.
pub(crate) struct TestFlow {
    pub(crate) seconds: f64,
    pub(crate) streams: u32,
    /// Goodput of all streams.
    pub(crate) bps: Rate,
    /// Retransmitted segments per second, of all streams.
    pub(crate) lost: Rate,
    /// Start and end, in seconds, of a stall of acknowledgements and reads.
    pub(crate) hole: (f64, f64),
    pub(crate) busy: f64,
    pub(crate) rwnd: f64,
    pub(crate) sndbuf: f64,
    pub(crate) min_rtt_ms: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) window: u64,
    pub(crate) cwnd: Box<dyn Fn(f64) -> u64>,
    pub(crate) in_flight: u64,
    pub(crate) unsent: u64,
    pub(crate) held: u64,
    pub(crate) app_limited: bool,
    pub(crate) delivery_bps: f64,
    pub(crate) pacing_bps: Option<u64>,
    pub(crate) max_pacing_bps: Option<u64>,
    pub(crate) requested: Option<BitRate>,
    pub(crate) congestion: &'static str,
    pub(crate) cpu: (f64, f64),
    pub(crate) path: Option<PathReport>,
}

/// A flow of `mbit` of payload for 20 s without a particular limit.
pub(crate) fn flow(mbit: f64, rtt_ms: f64) -> TestFlow {
    TestFlow {
        seconds: 20.0,
        streams: 1,
        bps: Box::new(move |_| mbit * 1e6),
        lost: Box::new(|_| 0.0),
        hole: (0.0, 0.0),
        busy: 1.0,
        rwnd: 0.0,
        sndbuf: 0.0,
        min_rtt_ms: rtt_ms,
        rtt_ms,
        window: 64 << 20,
        cwnd: Box::new(|_| 2 << 20),
        in_flight: 2 << 20,
        unsent: 1 << 20,
        held: 4 << 20,
        app_limited: false,
        delivery_bps: mbit * 1e6,
        pacing_bps: None,
        max_pacing_bps: None,
        requested: None,
        congestion: "cubic",
        cpu: (0.2, 0.2),
        path: None,
    }
}

/// A known path of `mbit` with an MTU of 1500, counted in IP bytes.
pub(crate) fn path(mbit: u64, rtt_ms: u64, loss: &str) -> PathReport {
    PathReport {
        rate_bps: Some(BitRate::from_bps(mbit * 1_000_000)),
        rtt: Rtt::from_micros(rtt_ms * 1_000),
        loss: loss.parse().unwrap_or(LossRatio::NONE),
        queue: "1bdp".to_owned(),
        mtu_bytes: 1500,
        seed: 1,
        valid: true,
        ..PathReport::default()
    }
}

impl TestFlow {
    pub(crate) fn measurement(&self) -> Measurement {
        let streams: Vec<Stream> = (0..self.streams).map(|i| self.stream(2 * i + 1)).collect();
        Measurement {
            version: "0.1.0".to_owned(),
            spec: TestSpec {
                target: "192.0.2.1".to_owned(),
                port: 5201,
                protocol: record::Protocol::Tcp,
                direction: Direction::Forward,
                seconds: self.seconds,
                streams: self.streams,
                window_bytes: None::<ByteCount>,
                rate_bps: self.requested,
                congestion: None,
                ..TestSpec::default()
            },
            peer: "longhaul 0.1.0".to_owned(),
            path: self.path.clone(),
            streams,
            sender_cpu: Some(self.cpu.0),
            receiver_cpu: Some(self.cpu.1),
            notes: vec![],
            ..Measurement::default()
        }
    }

    fn stream(&self, id: u32) -> Stream {
        let steps = (self.seconds * 10.0) as u32;
        let share = 1.0 / f64::from(self.streams);
        let (mut arrived, mut lost, mut in_order) = (0.0, 0.0, 0.0);
        let mut stream =
            Stream { id, congestion: Some(self.congestion.to_owned()), ..Stream::default() };
        for step in 0..=steps {
            let t = f64::from(step) / 10.0;
            if !(self.hole.0..self.hole.1).contains(&t) {
                in_order = arrived;
            }
            stream.sender.push(self.sample(t, arrived as u64, in_order as u64, lost as u64));
            stream.receiver.push(ReceiverSample {
                t_s: t,
                received_bytes: in_order as u64,
                window_bytes: Some(self.window),
                buffer_bytes: Some(2 * self.window),
                min_rtt_us: Some((self.min_rtt_ms * 1e3) as u32),
                ..ReceiverSample::default()
            });
            arrived += (self.bps)(t) * share / 80.0;
            lost += (self.lost)(t) * share / 10.0;
        }
        let last = stream.sender.last().copied().unwrap_or_default();
        stream.received_bytes = last.acked_bytes;
        stream.sent_bytes = last.written_bytes;
        stream.received_seconds = self.seconds;
        stream.sent_seconds = self.seconds;
        stream.retransmits = Some(last.retransmits);
        stream
    }

    fn sample(&self, t: f64, arrived: u64, in_order: u64, lost: u64) -> Sample {
        let clock = |share: f64| (t * share * 1e6) as u64;
        Sample {
            t_s: t,
            written_bytes: in_order + self.held,
            acked_bytes: in_order,
            delivered_bytes: arrived,
            mss_bytes: MSS,
            cwnd_bytes: (self.cwnd)(t),
            ssthresh_bytes: None,
            in_flight_bytes: self.in_flight,
            unsent_bytes: self.unsent,
            peer_window_bytes: Some(self.window),
            rtt_us: (self.rtt_ms * 1e3) as u32,
            rttvar_us: 100,
            min_rtt_us: Some((self.min_rtt_ms * 1e3) as u32),
            delivery_rate_bps: (self.delivery_bps / f64::from(self.streams)) as u64,
            delivery_app_limited: self.app_limited,
            pacing_rate_bps: self.pacing_bps,
            max_pacing_rate_bps: self.max_pacing_bps,
            retransmits: lost,
            busy_us: clock(self.busy),
            rwnd_limited_us: clock(self.rwnd),
            sndbuf_limited_us: clock(self.sndbuf),
            ..Sample::default()
        }
    }
}
