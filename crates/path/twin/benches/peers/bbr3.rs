//! BBR version 3 of this project and tquic's, driven by the same acknowledgements.
//!
//! `scripts/bbr3-peer` puts this beside tquic's files and builds it. A flow of the simulator is
//! controlled by the former; each of its acknowledgements is given to the latter as one packet
//! of as many bytes, with the delivery state (`P.delivered`, `P.tx_in_flight`, ...) that gives
//! the same rate sample. Printed, for each path: the shares of the time in which both are in the
//! same state, and in which the windows differ by at most 10 %; then, for each state of the former,
//! its share of the time, that of the latter's being in it too, and the median ratio of the windows.

mod congestion_control;
mod inputs;

/// What the files of tquic take from its connections.
mod connection {
    pub mod rtt;
    pub mod space;
}

use congestion_control::CongestionController;
use congestion_control::bbr3::{self, Bbr3Config};
use connection::rtt::RttEstimator;
use connection::space::{RateSamplePacketState, SentPacket};
use control::{Ack, Bbr3State, Congestion, CongestionControl, Reduction};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use topology::PathSpec;
use twin::{ConnectionConfig, HEADER_BYTES, Scenario};
use units::{BitRate, Nanos};

pub const DEFAULT_SEND_UDP_PAYLOAD_SIZE: usize = 1200;
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
pub const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

/// tquic's settings, as far as its BBR reads them.
pub struct RecoveryConfig {
    pub max_datagram_size: usize,
    pub min_congestion_window: u64,
    pub initial_congestion_window: u64,
    pub initial_rtt: Duration,
}

/// Windows that differ by less are taken as the same.
const WITHIN: f64 = 0.1;
/// In the order of their first time.
const STATES: [Bbr3State; 7] = [
    Bbr3State::Startup,
    Bbr3State::Drain,
    Bbr3State::ProbeBwDown,
    Bbr3State::ProbeBwCruise,
    Bbr3State::ProbeBwRefill,
    Bbr3State::ProbeBwUp,
    Bbr3State::ProbeRtt,
];
/// Seed of the times between two probes, the same for both.
const SEED: u64 = 1;

/// The simulator's controller, and the peer that hears what it hears.
struct Both {
    own: control::Bbr3,
    peer: bbr3::Bbr3,
    mss: u64,
    /// Virtual time 0, as the peer has it.
    epoch: Instant,
    lost: u64,
    last: Option<PairSample>,
    times: Arc<Mutex<StateTimes>>,
}

/// Both controllers after an acknowledgement.
#[derive(Clone, Copy)]
struct PairSample {
    now: Nanos,
    own: Bbr3State,
    is_same_state: bool,
    /// The peer's window by ours.
    ratio: f64,
}

/// Time, in ns, by the state of ours.
#[derive(Default)]
struct StateTimes {
    spans: Vec<(PairSample, u64)>,
}

impl Both {
    fn new(mss: u32, times: Arc<Mutex<StateTimes>>) -> Self {
        let config = RecoveryConfig {
            max_datagram_size: mss as usize,
            min_congestion_window: 4,
            initial_congestion_window: control::INITIAL_WINDOW,
            initial_rtt: INITIAL_RTT,
        };
        inputs::seed(SEED);
        // Before the peer's clock: it takes the time at which it is made for its first events.
        let epoch = Instant::now();
        let peer = bbr3::Bbr3::new(Bbr3Config::from(&config));
        Both {
            own: control::Bbr3::new(mss, SEED),
            peer,
            mss: u64::from(mss),
            epoch,
            lost: 0,
            last: None,
            times,
        }
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(now.nanos_since(Nanos(0)))
    }

    /// The packet that stands for what `ack` delivered.
    fn packet(&self, ack: &Ack) -> SentPacket {
        let now = self.instant(ack.now);
        let sent = ack.rtt.map_or(now, |rtt| now - Duration::from_nanos(rtt.nanos()));
        let rate = ack.rate.unwrap_or(control::RateSample {
            delivered: ack.newly_delivered,
            prior_delivered: ack.delivered.saturating_sub(ack.prior_in_flight),
            interval_ns: 0,
            app_limited: false,
            in_flight: ack.prior_in_flight,
            lost: 0,
        });
        SentPacket {
            pkt_num: rate.prior_delivered + rate.in_flight,
            time_sent: sent,
            time_acked: Some(now),
            sent_size: (ack.newly_delivered * self.mss) as usize,
            rate_sample_state: RateSamplePacketState {
                delivered: rate.prior_delivered * self.mss,
                delivered_time: Some(now - Duration::from_nanos(rate.interval_ns)),
                first_sent_time: Some(sent),
                is_app_limited: rate.app_limited,
                tx_in_flight: rate.in_flight.saturating_sub(1) * self.mss,
                lost: (self.lost + ack.newly_lost).saturating_sub(rate.lost) * self.mss,
            },
        }
    }

    fn tell_peer(&mut self, ack: &Ack) {
        let now = self.instant(ack.now);
        inputs::set_cwnd_limited(ack.cwnd_limited);
        // What was sent since the last acknowledgement.
        let in_flight = ack.prior_in_flight * self.mss;
        let sent = in_flight.saturating_sub(self.peer.stats().bytes_in_flight);
        if sent > 0 {
            let mut packet = SentPacket {
                pkt_num: ack.delivered + ack.in_flight,
                time_sent: now,
                time_acked: None,
                sent_size: sent as usize,
                rate_sample_state: RateSamplePacketState::default(),
            };
            self.peer.on_sent(now, &mut packet, in_flight);
        }
        let rtt = RttEstimator::new(INITIAL_RTT);
        let mut packet = self.packet(ack);
        let lost = packet.clone();
        self.peer.begin_ack(now, in_flight);
        if ack.newly_delivered > 0 {
            self.peer.on_ack(&mut packet, now, false, &rtt, in_flight);
        }
        if ack.newly_lost > 0 {
            self.lost += ack.newly_lost;
            let bytes = ack.newly_lost * self.mss;
            self.peer.on_congestion_event(now, &lost, false, bytes, ack.in_flight * self.mss);
        }
        self.peer.end_ack();
    }
}

impl CongestionControl for Both {
    fn name(&self) -> &str {
        "bbr3"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(last) = self.last {
            let span = ack.now.nanos_since(last.now);
            self.times.lock().expect("one thread").spans.push((last, span));
        }
        self.own.on_ack(ack);
        self.tell_peer(ack);
        self.last = Some(PairSample {
            now: ack.now,
            own: self.own.state(),
            is_same_state: self.peer.state_name()
                == format!("{:?}", self.own.state()).to_lowercase(),
            ratio: self.peer.congestion_window() as f64 / (self.own.cwnd() * self.mss) as f64,
        });
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.own.on_congestion(congestion);
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        self.own.on_recovery_end(now);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.own.on_retransmission_timeout(congestion);
    }

    fn undo(&mut self, now: Nanos) {
        self.own.undo(now);
    }

    fn on_idle_end(&mut self, now: Nanos, idle_ns: u64, timeouts: u32) {
        self.own.on_idle_end(now, idle_ns, timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.own.cwnd()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.own.ssthresh()
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.own.pacing_rate()
    }

    fn reduction(&self) -> Reduction {
        self.own.reduction()
    }

    fn min_burst(&self) -> u64 {
        self.own.min_burst()
    }

    fn send_buffer_windows(&self) -> u64 {
        self.own.send_buffer_windows()
    }
}

impl StateTimes {
    fn share(&self, of: impl Fn(&PairSample) -> bool, among: impl Fn(&PairSample) -> bool) -> f64 {
        let sum = |which: &dyn Fn(&PairSample) -> bool| -> u64 {
            self.spans.iter().filter(|(sample, _)| which(sample)).map(|(_, span)| span).sum()
        };
        sum(&|sample| among(sample) && of(sample)) as f64 / sum(&among).max(1) as f64
    }

    /// The ratio that half of the time is below.
    fn median(&self, among: impl Fn(&PairSample) -> bool) -> f64 {
        let mut found: Vec<(f64, u64)> = self
            .spans
            .iter()
            .filter(|(sample, _)| among(sample))
            .map(|(sample, span)| (sample.ratio, *span))
            .collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        let half = found.iter().map(|(_, span)| span).sum::<u64>() / 2;
        let mut passed = 0;
        for (ratio, span) in found {
            passed += span;
            if passed >= half {
                return ratio;
            }
        }
        f64::NAN
    }

    fn report(&self) -> String {
        let all = |_: &PairSample| true;
        let close = |sample: &PairSample| (sample.ratio - 1.0).abs() <= WITHIN;
        let mut text = format!(
            "{{\"same_state\": {:.4}, \"cwnd_within\": {:.4}, \"states\": {{",
            self.share(|sample| sample.is_same_state, all),
            self.share(close, all),
        );
        let mut is_first = true;
        for state in STATES {
            let among = |sample: &PairSample| sample.own == state;
            let time = self.share(among, all);
            if time > 0.0 {
                let comma = if is_first { "" } else { ", " };
                is_first = false;
                let _ = write!(
                    text,
                    "{comma}\"{state:?}\": [{time:.4}, {:.4}, {:.4}, {:.3}]",
                    self.share(|sample| sample.is_same_state, among),
                    self.share(close, among),
                    self.median(among),
                );
            }
        }
        text + "}}"
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, seconds] = arguments.as_slice() else {
        return Err("write PATH SECONDS".into());
    };
    let path: PathSpec = path.parse()?;
    let [up, down] = path.schedules(SEED);
    let mss = path.mtu() - HEADER_BYTES;
    let scenario = Scenario {
        connections: vec![ConnectionConfig { mss, ..ConnectionConfig::default() }],
        ..Scenario::new(up, down, Duration::from_secs(seconds.parse()?))
    };
    let times = Arc::new(Mutex::new(StateTimes::default()));
    let both = |_: usize| -> Option<Box<dyn CongestionControl + Send>> {
        Some(Box::new(Both::new(mss, times.clone())))
    };
    let outcome = twin::run_with(&scenario, both)?;
    if outcome.measurement.streams.is_empty() {
        return Err("no flow was measured".into());
    }
    println!("{}", times.lock().expect("one thread").report());
    Ok(())
}
