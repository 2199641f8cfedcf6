//! The event loop: links, timers, datagram sources and samples, in the order of time.

use crate::access_delay::AccessDelay;
use crate::backward::Backward;
use crate::connection::Connection;
use crate::measurement;
use crate::observer::{Host, NoObserver, Observer};
use crate::pauses::Pauses;
use crate::timer_queue::TimerQueue;
use crate::truth::{self, ReverseTruth, TruthInterval};
use crate::{
    ConnectionConfig, ControllerFailed, DatagramSource, Granularity, HEADER_BYTES, Outcome,
    Scenario,
};
use control::{CongestionControl, Controller, OwnController};
use link::{CongestionHeader, Counters, FateKind, Link, Train};
use tcp::{PacketRun, Segments};
use units::{Nanos, Rtt, nanos};

/// An interval of the ground truth, and of samples after the ramp-up.
const INTERVAL_NS: u64 = 100_000_000;
/// Samples are closer while the ramp-up lasts.
const RAMP_INTERVAL_NS: u64 = 10_000_000;
const RAMP_NS: u64 = 2_000_000_000;

/// What travels forward.
#[derive(Debug, Clone, Copy)]
enum Forward {
    Data { connection: u32, segments: Segments },
    Datagram,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    observer: &'a mut dyn Observer,
    now: Nanos,
    forward: Link<Forward>,
    reverse: Link<Backward>,
    access: AccessDelay,
    connections: Vec<Connection>,
    timers: TimerQueue,
    sending_host: Pauses,
    receiving_host: Pauses,
    /// When each datagram source sends next.
    datagrams: Vec<Nanos>,
    /// Connections whose data waited for a paused host.
    late: Vec<u32>,
    packets: u64,
    peak_queue_bytes: u64,
    before: [Counters; 2],
    truth: Vec<TruthInterval>,
}

/// Simulates a scenario.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome {
    run_observed(scenario, &mut NoObserver)
}

/// Simulates a scenario, with someone who watches the packets.
#[must_use]
pub fn run_observed(scenario: &Scenario, observer: &mut dyn Observer) -> Outcome {
    let mut simulation = Simulation::new(scenario, observer, &mut |_| None);
    let ending = simulation.run();
    simulation.finish(ending)
}

/// Simulates a scenario in which connections have congestion control of the caller's own:
/// `controllers` gives the controller of each connection by its index in the scenario, or
/// `None` for [`ConnectionConfig::algorithm`].
///
/// # Errors
/// A controller that cannot go on ([`CongestionControl::failure`]) ends the simulation at the
/// next sample, 10 to 100 ms of virtual time later.
pub fn run_with(
    scenario: &Scenario,
    controllers: impl FnMut(usize) -> Option<Box<dyn CongestionControl + Send>>,
) -> Result<Outcome, ControllerFailed> {
    run_observed_with(scenario, &mut NoObserver, controllers)
}

/// The same, with someone who watches the packets.
///
/// # Errors
/// As [`run_with`].
pub fn run_observed_with(
    scenario: &Scenario,
    observer: &mut dyn Observer,
    mut controllers: impl FnMut(usize) -> Option<Box<dyn CongestionControl + Send>>,
) -> Result<Outcome, ControllerFailed> {
    let mut simulation = Simulation::new(scenario, observer, &mut controllers);
    let ending = simulation.run();
    match simulation.failure() {
        Some(failure) => Err(failure),
        None => Ok(simulation.finish(ending)),
    }
}

/// What ended a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The time of the scenario has passed.
    Over,
    /// [`Scenario::max_packets`] were sent.
    Truncated,
    /// By the observer, or by a controller that cannot go on.
    Interrupted,
}

impl<'a> Simulation<'a> {
    fn new(
        scenario: &'a Scenario,
        observer: &'a mut dyn Observer,
        controllers: &mut dyn FnMut(usize) -> Option<Box<dyn CongestionControl + Send>>,
    ) -> Self {
        let count = scenario.connections.len();
        let mut timers = TimerQueue::new(2 * count);
        for (index, config) in scenario.connections.iter().enumerate() {
            timers.set(timer(index, false), Nanos(0).plus(config.start));
        }
        let mut forward = Link::new(scenario.forward.clone());
        forward.watch_drops(scenario.truth);
        forward.release_singly(scenario.granularity == Granularity::Exact);
        Simulation {
            scenario,
            observer,
            now: Nanos(0),
            forward,
            reverse: Link::new(scenario.reverse.clone()),
            access: AccessDelay::default(),
            connections: scenario
                .connections
                .iter()
                .zip(scenario.forward.start.seed..)
                .enumerate()
                .map(|(index, (config, seed))| {
                    let control = match controllers(index) {
                        Some(own) => Controller::Own(OwnController::new(own)),
                        None => config.algorithm.start_in(config.arithmetic, config.mss, seed),
                    };
                    Connection::new(*config, handshake_rtt(scenario, config), control)
                })
                .collect(),
            timers,
            sending_host: Pauses::new(scenario.sending_host.clone()),
            receiving_host: Pauses::new(scenario.receiving_host.clone()),
            datagrams: scenario.datagrams.iter().map(DatagramSource::first).collect(),
            late: Vec::new(),
            packets: 0,
            peak_queue_bytes: 0,
            before: <[Counters; 2]>::default(),
            truth: Vec::new(),
        }
    }

    /// Runs until something ends it.
    fn run(&mut self) -> Ending {
        let end = Nanos(0).plus(self.scenario.duration);
        let mut next_sample = Nanos(0);
        loop {
            let next = self.next_event().map_or(end, |at| at.min(end));
            // Samples first: what happens at the same moment is part of the next interval.
            while next_sample <= next {
                self.now = next_sample;
                self.sample();
                let passed = self.observer.passed(next_sample, self.packets);
                if passed.is_break() || self.failure().is_some() {
                    return Ending::Interrupted;
                }
                let step = if next_sample.0 < RAMP_NS { RAMP_INTERVAL_NS } else { INTERVAL_NS };
                next_sample = next_sample.plus_nanos(step);
            }
            if next >= end {
                return Ending::Over;
            }
            self.now = next;
            self.step();
            if self.packets >= self.scenario.max_packets {
                return Ending::Truncated;
            }
        }
    }

    /// The first controller that cannot go on.
    fn failure(&self) -> Option<ControllerFailed> {
        self.connections.iter().enumerate().find_map(|(connection, ends)| {
            let control = ends.sender.control();
            let reason = control.failure()?.to_owned();
            Some(ControllerFailed { connection, name: control.name().to_owned(), reason })
        })
    }

    fn next_event(&self) -> Option<Nanos> {
        let forward = self.forward.next_due().map(|at| self.receiving_host.handled(at));
        let reverse = self.reverse.next_due().map(|at| self.sending_host.handled(at));
        let access = self.access.next().map(|at| self.sending_host.handled(at));
        let datagram = self.datagrams.iter().copied().min();
        let next = [forward, reverse, access, self.timers.next(), datagram];
        let next = next.into_iter().flatten().min();
        // A link may name a moment that has passed: it is then due now.
        next.map(|at| at.max(self.now))
    }

    /// All that is due now.
    fn step(&mut self) {
        let now = self.now;
        self.sending_host.advance(now);
        self.receiving_host.advance(now);
        let is_due = |due: Option<Nanos>| due.is_some_and(|at| at <= now);
        if is_due(self.forward.next_due()) && self.receiving_host.handled(now) == now {
            self.receive_data(now);
        }
        let acknowledgement = is_due(self.reverse.next_due()) || is_due(self.access.next());
        if acknowledgement && self.sending_host.handled(now) == now {
            self.receive_acknowledgements(now);
        }
        while let Some(timer) = self.timers.pop(self.now) {
            self.expire(timer);
        }
        for index in 0..self.datagrams.len() {
            if self.datagrams[index] <= self.now {
                let source = &self.scenario.datagrams[index];
                self.datagrams[index] = source.after(self.now);
                let train = Train::single(source.size).of_flow(u32::MAX - index as u32);
                self.packets += 1;
                self.send(train, Forward::Datagram);
            }
        }
    }

    /// Data that has arrived.
    ///
    /// What arrived while the host was late waited for the socket, and is acknowledged as one:
    /// Linux merges it, and since 6.7 acknowledges it when all of it is processed
    /// (`tcp_backlog_ack_defer`).
    fn receive_data(&mut self, now: Nanos) {
        while let Some(delivery) = self.forward.release(now) {
            let Forward::Data { connection, segments } = delivery.payload else { continue };
            let current = &mut self.connections[connection as usize].current;
            current.arrived_bytes += delivery.bytes();
            if delivery.marked {
                current.marked += delivery.packets.len() as u64;
            }
            if delivery.flip.is_some() {
                // The checksum does not hold.
                continue;
            }
            let first = segments.run.start;
            let run = if segments.run.is_empty() {
                segments.run
            } else {
                let packets = &delivery.packets;
                PacketRun::new(first + u64::from(packets.start), first + u64::from(packets.end))
            };
            let part = segments.part(run);
            self.observer.data(self.now, Host::Receiving, connection, &part, delivery.marked);
            let receiver = &mut self.connections[connection as usize].receiver;
            let packets = delivery.packets.end - delivery.packets.start;
            receiver.on_router_feedback(delivery.feedback.of_all(packets));
            receiver.on_segments(self.now, &part, delivery.marked);
            let is_late = delivery.due < now;
            if !is_late {
                self.acknowledge(connection);
            } else if !self.late.contains(&connection) {
                self.late.push(connection);
            }
        }
        while let Some(connection) = self.late.pop() {
            self.acknowledge(connection);
        }
    }

    /// Acknowledgements that have arrived.
    fn receive_acknowledgements(&mut self, now: Nanos) {
        while let Some(delivery) = self.reverse.release(now) {
            if delivery.flip.is_some() {
                continue;
            }
            let connection = &self.connections[delivery.payload.connection as usize];
            let delay = connection.config.access_delay;
            if delay.is_zero() {
                self.receive_acknowledgement(&delivery.payload);
            } else {
                self.access.push(delivery.due.plus(delay), delivery.payload);
            }
        }
        while let Some(arrived) = self.access.pop(now) {
            self.receive_acknowledgement(&arrived);
        }
    }

    fn receive_acknowledgement(&mut self, arrived: &Backward) {
        let connection = arrived.connection;
        let acknowledgement = arrived.acknowledgement();
        self.observer.acknowledgement(self.now, Host::Sending, connection, &acknowledgement);
        let sender = &mut self.connections[connection as usize].sender;
        sender.on_acknowledgement(self.now, &acknowledgement);
        self.transmit(connection);
    }

    /// A timer's entry has come up; the timer may be set for later.
    fn expire(&mut self, timer: u32) {
        let index = timer / 2;
        let host = if timer % 2 == 1 { &self.receiving_host } else { &self.sending_host };
        let handled = host.handled(self.now);
        if handled > self.now {
            self.timers.set(timer, handled);
            return;
        }
        let connection = &mut self.connections[index as usize];
        if timer % 2 == 1 {
            match connection.receiver.next_timeout() {
                Some(at) if at <= self.now => {
                    connection.receiver.on_timeout(self.now);
                    self.acknowledge(index);
                }
                Some(at) => self.timers.set(timer, at),
                None => {}
            }
        } else if !connection.started {
            connection.started = true;
            self.transmit(index);
        } else {
            match connection.sender.next_timeout() {
                Some(at) if at <= self.now => {
                    connection.sender.on_timeout(self.now);
                    self.transmit(index);
                }
                Some(at) => self.timers.set(timer, at),
                None => {}
            }
        }
    }

    /// Sends all that a connection may send now.
    fn transmit(&mut self, index: u32) {
        while let Some(segments) = self.connections[index as usize].sender.transmit(self.now) {
            let ConnectionConfig { mss, ecn, .. } = self.connections[index as usize].config;
            let packets = segments.run.len();
            self.packets += packets;
            let payload = u32::try_from(packets).unwrap_or(u32::MAX) * mss;
            let train = if packets == 0 {
                Train::single(HEADER_BYTES)
            } else {
                let header = self.connections[index as usize].sender.router_header();
                let header =
                    header.map(|(window, rtt)| CongestionHeader::new(rtt.duration(), window));
                Train::segmented(HEADER_BYTES, payload, mss).with_congestion_header(header)
            };
            let train = train.of_flow(index).with_ecn(ecn.codepoint());
            self.observer.data(self.now, Host::Sending, index, &segments, false);
            self.send(train, Forward::Data { connection: index, segments });
        }
        if let Some(at) = self.connections[index as usize].sender.next_timeout() {
            self.timers.set(2 * index, at);
        }
    }

    fn send(&mut self, train: Train, what: Forward) {
        self.forward.arrive(self.now, train, what);
        self.peak_queue_bytes = self.peak_queue_bytes.max(self.forward.queued_bytes().bytes());
    }

    /// Sends a connection's acknowledgement, if one is due.
    fn acknowledge(&mut self, index: u32) {
        let receiver = &mut self.connections[index as usize].receiver;
        if let Some(acknowledgement) = receiver.acknowledge(self.now) {
            let blocks = acknowledgement.sacks.as_slice().len()
                + usize::from(!acknowledgement.duplicate.is_empty());
            // Two bytes of padding, two of kind and length, eight for each block.
            let option = if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 };
            let train = Train::single(HEADER_BYTES + option).of_flow(index);
            self.observer.acknowledgement(self.now, Host::Receiving, index, &acknowledgement);
            self.reverse.arrive(self.now, train, Backward::new(index, &acknowledgement));
        }
        if let Some(at) = self.connections[index as usize].receiver.next_timeout() {
            self.timers.set(2 * index + 1, at);
        }
    }

    /// Samples of every measured connection, and the ground truth.
    fn sample(&mut self) {
        let (now, t_s) = (self.now, self.now.secs_f64());
        for connection in &mut self.connections {
            let waits = now < Nanos(0).plus(connection.config.start);
            if !connection.config.measured || waits || connection.recording.is_complete {
                continue;
            }
            let ConnectionConfig { max_pacing_rate, mss, .. } = connection.config;
            let handshake = handshake_rtt(self.scenario, &connection.config);
            let info = connection.sender.info(now);
            let max_pacing = max_pacing_rate.map(units::BitRate::bps);
            connection.recording.sender.push(measurement::sample(t_s, &info, max_pacing));
            let sample = measurement::receiver_sample(t_s, &connection.receiver, mss, handshake);
            connection.recording.receiver.push(sample);
            connection.recording.is_complete =
                connection.started && connection.sender.is_finished();
        }
        if self.scenario.truth && now > Nanos(0) && now.0.is_multiple_of(INTERVAL_NS) {
            self.note_truth();
        }
    }

    fn note_truth(&mut self) {
        let now = self.now;
        // The links let time pass when they are asked.
        self.forward.idle_since(now);
        self.reverse.idle_since(now);
        for fate in self.forward.fates() {
            if let (Forward::Data { connection, .. }, FateKind::Dropped(cause)) =
                (fate.payload, fate.kind)
            {
                self.connections[connection as usize].current.count(cause);
            }
        }
        let counters = [self.forward.counters(), self.reverse.counters()];
        let [forward, reverse] = std::mem::replace(&mut self.before, counters);
        let connections = self.connections.iter_mut().map(|connection| connection.truth(now));
        let queue_bytes = self.forward.queued_bytes().bytes();
        self.truth.push(TruthInterval {
            to_s: now.secs_f64(),
            connections: connections.collect(),
            queue_bytes,
            peak_queue_bytes: std::mem::replace(&mut self.peak_queue_bytes, queue_bytes),
            utilization: truth::utilization(&forward, &counters[0], INTERVAL_NS),
            sent_bytes: counters[0].sent_bytes - forward.sent_bytes,
            drops: truth::drops(&forward, &counters[0]),
            lost: counters[0].lost - forward.lost,
            marked: counters[0].marked - forward.marked,
            reverse: ReverseTruth::between(&reverse, &counters[1], INTERVAL_NS),
        });
    }

    fn finish(self, ending: Ending) -> Outcome {
        let now = self.now;
        let senders = self.connections.iter().map(|c| c.sender.info(now)).collect();
        let read = self.connections.iter().map(|c| c.receiver.read()).collect();
        // Collected, they would keep the memory of the connections.
        let mut recordings = Vec::with_capacity(self.connections.len());
        recordings.extend(self.connections.into_iter().map(|c| c.recording));
        Outcome {
            measurement: measurement::measurement(self.scenario, now.secs_f64(), recordings),
            truth: self.truth,
            senders,
            read,
            forward: self.forward.counters(),
            reverse: self.reverse.counters(),
            packets: self.packets,
            truncated: ending == Ending::Truncated,
            interrupted: ending == Ending::Interrupted,
        }
    }
}

/// The RTT of a handshake: that of the path without queueing.
fn handshake_rtt(scenario: &Scenario, connection: &ConnectionConfig) -> Rtt {
    let path = scenario.forward.start.delay + scenario.reverse.start.delay;
    let delay = path + connection.access_delay;
    Rtt::from_nanos(nanos(delay).max(1_000))
}

/// The number of a connection's timer, at the sender or at the receiver.
fn timer(connection: usize, receiver: bool) -> u32 {
    u32::try_from(2 * connection).unwrap_or(u32::MAX - 1) + u32::from(receiver)
}
