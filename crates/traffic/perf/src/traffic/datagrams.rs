//! UDP: sends trains of numbered datagrams, and counts those that arrive.

use super::{
    Traffic, TrainLog, bytes::Load, datagram_pacer::DatagramPacer, receive_polling::ReceivePolling,
    train::TrainPacer,
};
use crate::{plan::Plan, stream::Stream};
use host::{clock, udp, wait};
use iperf3_proto::datagram::{self, Header};
use socket2::Socket;
use std::{
    io, thread,
    time::{Duration, Instant},
};

/// Maximum bytes of a train: one UDP payload before segmentation offload.
pub(super) const MAX_TRAIN_BYTES: usize = 65_507;
/// Maximum messages per receive call: datagrams, or trains of them.
const SLOTS: usize = 32;
/// Bytes of a message that may be a train. Not a power of two: single datagrams in slots of one
/// would share a few sets of the CPU's caches.
const SLOT: usize = 65_536 + 1_600;
/// Pause of a sender while the device's queue is full.
const FULL_PAUSE: Duration = Duration::from_micros(50);
/// A peer that refuses datagrams (ICMP port unreachable) this long has ended.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum gap between refusals of one series: hosts rate-limit ICMP errors, Linux
/// to one per second.
const REFUSED_GAP: Duration = Duration::from_secs(5);
/// Maximum replies to repeated connect datagrams, whose reply was lost.
const MAX_REPLIES: u32 = 10;

/// Bytes of one datagram or train in the inbox.
fn slot(plan: &Plan, trains: bool) -> usize {
    if trains { SLOT } else { plan.block.clamp(64, SLOT) }
}

/// Memory of a receiving stream's inbox.
pub(super) fn inbox_memory(plan: &Plan) -> usize {
    let log = if plan.train.is_some() { TrainLog::MEMORY } else { 0 };
    log + SLOTS * slot(plan, plan.coalesce)
}

impl Traffic {
    pub(super) fn send_datagrams(
        &self,
        stream: &Stream,
        plan: &Plan,
        load: &Load,
        began: Instant,
        precise: bool,
    ) -> io::Result<()> {
        let length = plan.block.max(plan.counter.header_len());
        if let Some(pacer) = TrainPacer::of(plan, length, precise) {
            return self.send_train(stream, plan, load, began, pacer);
        }
        let most = (MAX_TRAIN_BYTES / length).clamp(1, udp::MAX_SEGMENTS);
        let paced = |spacing| DatagramPacer::new(plan, spacing, began, precise, most);
        let mut pacer = plan.spacing().map(paced);
        let train = pacer.as_ref().map_or(most, |pacer| pacer.burst().min(most));
        let mut trains = Trains::new(stream, plan, load, length, train);
        if precise || train == 1 {
            wait::precise_timers();
        }
        while !self.has_sent() {
            let due = match &mut pacer {
                Some(pacer) => pacer.wait(stream.sent(), || self.has_sent()),
                None => Some(train),
            };
            let Some(due) = due else { return Ok(()) };
            let Some(sent) = self.send_some(stream, &mut trains, due.min(train), began)? else {
                return Ok(());
            };
            if let Some(pacer) = &mut pacer {
                pacer.sent(sent);
            }
        }
        Ok(())
    }

    /// Sends one datagram after the other, at a rate that rises, until the receiver has seen enough
    /// losses.
    fn send_train(
        &self,
        stream: &Stream,
        plan: &Plan,
        load: &Load,
        began: Instant,
        mut pacer: TrainPacer,
    ) -> io::Result<()> {
        wait::precise_timers();
        let mut single = Trains::new(stream, plan, load, pacer.length(), 1);
        while pacer.wait(|| self.has_sent()) && !self.was_stopped(stream) {
            match self.send_some(stream, &mut single, 1, began)? {
                Some(sent) => pacer.sent(sent as u64, clock::now()),
                None => break,
            }
        }
        Ok(())
    }

    /// Sends up to `due` datagrams as far as the test and its quota allow; how many, or `None` if
    /// that ends sending.
    fn send_some(
        &self,
        stream: &Stream,
        trains: &mut Trains,
        due: usize,
        began: Instant,
    ) -> io::Result<Option<usize>> {
        let length = trains.length;
        let drawn = self.draw(due * length) / length;
        let granted = self.wait_for_quota(drawn * length, length) / length;
        self.give_back((drawn - granted) * length);
        if granted == 0 {
            return Ok(None);
        }
        let sent_us = micros(clock::now() - began);
        let sent = match trains.send(&stream.socket, granted, stream.sent(), sent_us) {
            Ok(sent) => sent,
            Err(error) if udp::is_full(&error) || super::is_pause(&error) => {
                thread::sleep(FULL_PAUSE);
                0
            }
            // An ICMP error for an earlier datagram: the other end may not listen yet, or no longer.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                if trains.refusals.last_too_long(clock::now()) {
                    return Err(error);
                }
                0
            }
            Err(error) => return Err(error),
        };
        stream.count(sent * length);
        stream.count_sent(sent as u64);
        self.was_not_sent((granted - sent) * length);
        Ok(Some(sent))
    }

    /// Receives datagrams until the end of the test.
    pub(super) fn receive_datagrams(
        &self,
        stream: &Stream,
        plan: &Plan,
        began: Instant,
    ) -> io::Result<()> {
        let trains = plan.coalesce && udp::coalesce(&stream.socket).is_ok();
        let mut inbox = udp::Inbox::new(SLOTS, slot(plan, trains));
        // A paced stream is waited for: its jitter is measured, and its datagrams are few.
        let mut polling = plan
            .rate
            .is_none()
            .then(|| ReceivePolling::new(&stream.socket, plan.block, clock::now()));
        if polling.is_some() {
            wait::precise_timers();
        }
        let mut replies = 0;
        while !self.has_ended() {
            let received = match &polling {
                Some(polling) => polling.receive(&mut inbox, &stream.socket),
                None => inbox.receive(&stream.socket),
            };
            let came = match received {
                Ok(came) => came,
                Err(error)
                    if super::is_pause(&error)
                        || error.kind() == io::ErrorKind::ConnectionRefused =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            if self.has_ended() {
                return Ok(());
            }
            let now = clock::now();
            let now_us = micros(now - began);
            let Some(mut arrivals) = stream.arrivals() else { return Ok(()) };
            let mut train = stream.train();
            let (mut bytes, mut all, mut datagrams) = (0, 0, 0);
            for index in 0..came {
                let arrived_us =
                    micros((now - inbox.waited(index)).saturating_duration_since(began));
                for received in inbox.message(index) {
                    datagrams += 1;
                    all += received.len();
                    if let Some(header) = Header::read(plan.counter, received) {
                        arrivals.take(header, now_us);
                        if let Some(train) = &mut train {
                            train.record(header, arrived_us);
                        }
                        bytes += received.len();
                    } else if datagram::is_connect(received) && replies < MAX_REPLIES {
                        replies += 1;
                        let _ = stream.socket.send(&datagram::CONNECT_REPLY);
                    }
                }
            }
            let lost = arrivals.counts().lost();
            drop(arrivals);
            if train.is_some_and(|mut train| train.stops(lost)) {
                self.stop_train(stream);
            }
            if let Some(polling) = &mut polling {
                polling.received(came, datagrams, now);
            }
            stream.count(bytes);
            // Invalid datagrams count against the quota as well.
            if !self.charge(all) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A series of refusals. Each is reported once, by the next call; later calls
/// succeed, so a successful send does not end the series.
#[derive(Default)]
struct Refusals {
    /// The first and the latest.
    series: Option<(Instant, Instant)>,
}

impl Refusals {
    /// Records a refusal; whether the series has lasted too long.
    fn last_too_long(&mut self, now: Instant) -> bool {
        let first = match self.series {
            Some((first, latest)) if now - latest <= REFUSED_GAP => first,
            _ => now,
        };
        self.series = Some((first, now));
        now - first > REFUSED_TIMEOUT
    }
}

/// Buffer for one train, and how it is sent.
struct Trains {
    room: Vec<u8>,
    length: usize,
    counter: datagram::Counter,
    /// Whether segmentation offload is used.
    offload: bool,
    refusals: Refusals,
}

impl Trains {
    fn new(stream: &Stream, plan: &Plan, load: &Load, length: usize, train: usize) -> Self {
        let block = load.block.iter().copied().cycle();
        let room: Vec<u8> = block.take(train * length).collect();
        let offload = plan.segment
            && train > 1
            && u16::try_from(length)
                .is_ok_and(|length| udp::segment(&stream.socket, length).is_ok());
        Trains { room, length, counter: plan.counter, offload, refusals: Refusals::default() }
    }

    /// Sends `count` datagrams with the numbers after `number`; returns how many were sent.
    fn send(
        &mut self,
        socket: &Socket,
        count: usize,
        number: u64,
        sent_us: u64,
    ) -> io::Result<usize> {
        let train = &mut self.room[..count * self.length];
        for (datagram, number) in train.chunks_mut(self.length).zip(number + 1..) {
            Header { sent_us, number }.write(self.counter, datagram);
        }
        if count == 1 {
            return socket.send(train).map(|_| 1);
        }
        if self.offload {
            match socket.send(train) {
                Ok(sent) => return Ok(sent / self.length),
                Err(error) if is_too_long(&error) => {
                    // Datagrams that must be fragmented, or a device that cannot.
                    self.offload = false;
                    udp::segment(socket, 0)?;
                }
                Err(error) => return Err(error),
            }
        }
        udp::send_each(socket, train, self.length).map(|sent| sent / self.length)
    }
}

/// Whether segmentation offload failed: datagrams over the MTU, or no checksum
/// offload.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(22 | 90 | 5))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
