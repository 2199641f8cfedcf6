//! UDP: datagrams in trains, each with its number and time, and the books of
//! those that arrive.

use super::{Traffic, bytes::Load, cadence::Cadence};
use crate::{flow::Flow, plan::Plan};
use host::{clock, udp, wait};
use iperf3::datagram::{self, Header};
use socket2::Socket;
use std::{
    io, thread,
    time::{Duration, Instant},
};

/// Most bytes of a train: what one packet can hold before the kernel cuts it.
const MOST_TRAIN: usize = 65_507;
/// Most messages that arrive in one call: datagrams, or trains of them.
const SLOTS: usize = 32;
const SLOT: usize = 65_536;
/// How long a sender rests where the device takes no more.
const FULL: Duration = Duration::from_micros(50);
/// A peer that refuses datagrams for so long is gone.
const REFUSED: Duration = Duration::from_secs(1);
/// Refusals so far apart belong together: hosts limit how many of them they
/// tell, Linux to one a second.
const REFUSED_AGAIN: Duration = Duration::from_secs(5);
/// Answers to a greeting that comes again, because the first answer was lost.
const MOST_ANSWERS: u32 = 10;

impl Traffic {
    pub(super) fn send_datagrams(
        &self,
        flow: &Flow,
        plan: &Plan,
        load: &Load,
        began: Instant,
        precise: bool,
    ) -> io::Result<()> {
        let length = plan.block.max(plan.counter.header_len());
        let most = (MOST_TRAIN / length).clamp(1, udp::MOST_SEGMENTS);
        let mut cadence = plan.spacing().map(|spacing| Cadence::new(plan, spacing, began, precise));
        let train = cadence.as_ref().map_or(most, |cadence| cadence.train().min(most));
        let mut trains = Trains::new(flow, plan, load, length, train);
        if precise || train == 1 {
            wait::precise_timers();
        }
        let mut number = 0u64;
        let mut refusals = Refusals::default();
        while !self.has_sent() {
            if let Some(cadence) = &mut cadence
                && !cadence.wait(number, || self.has_sent())
            {
                return Ok(());
            }
            let granted = self.draw(train * length) / length;
            if granted == 0 {
                return Ok(());
            }
            let sent_us = micros(clock::now() - began);
            let sent = match trains.send(&flow.socket, granted, number, sent_us) {
                Ok(sent) => sent,
                Err(error) if udp::is_full(&error) || super::is_pause(&error) => {
                    thread::sleep(FULL);
                    0
                }
                // Told of a datagram sent before: the other end may not listen yet, or no more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if refusals.last_too_long(clock::now()) {
                        return Err(error);
                    }
                    0
                }
                Err(error) => return Err(error),
            };
            number += sent as u64;
            flow.count(sent * length);
            flow.count_sent(sent as u64);
            self.give_back((granted - sent) * length);
        }
        Ok(())
    }

    /// Takes datagrams until the test is over.
    pub(super) fn receive_datagrams(
        &self,
        flow: &Flow,
        plan: &Plan,
        began: Instant,
    ) -> io::Result<()> {
        let trains = plan.coalesce && udp::coalesce(&flow.socket).is_ok();
        let each = if trains { SLOT } else { plan.block.clamp(64, SLOT) };
        let mut inbox = udp::Inbox::new(SLOTS, each);
        let mut answers = 0;
        while !self.has_ended() {
            let came = match inbox.receive(&flow.socket) {
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
            let now_us = micros(clock::now() - began);
            let Some(mut arrivals) = flow.arrivals() else { return Ok(()) };
            let mut bytes = 0;
            for index in 0..came {
                for received in inbox.message(index) {
                    if let Some(header) = Header::read(plan.counter, received) {
                        arrivals.take(header, now_us);
                        bytes += received.len();
                    } else if datagram::is_greeting(received) && answers < MOST_ANSWERS {
                        answers += 1;
                        let _ = flow.socket.send(&datagram::ANSWER);
                    }
                }
            }
            drop(arrivals);
            flow.count(bytes);
        }
        Ok(())
    }
}

/// Refusals in a row. Every one is told once, by the next call, and the call
/// after that succeeds again: what goes out says nothing of who listens.
#[derive(Default)]
struct Refusals {
    /// The first and the latest.
    spell: Option<(Instant, Instant)>,
}

impl Refusals {
    /// Another one came; whether they have come for too long.
    fn last_too_long(&mut self, now: Instant) -> bool {
        let first = match self.spell {
            Some((first, latest)) if now - latest <= REFUSED_AGAIN => first,
            _ => now,
        };
        self.spell = Some((first, now));
        now - first > REFUSED
    }
}

/// Room for one train, and the way to hand it over.
struct Trains {
    room: Vec<u8>,
    length: usize,
    counter: datagram::Counter,
    /// Whether the kernel cuts trains.
    cuts: bool,
}

impl Trains {
    fn new(flow: &Flow, plan: &Plan, load: &Load, length: usize, train: usize) -> Self {
        let block = load.block.iter().copied().cycle();
        let room: Vec<u8> = block.take(train * length).collect();
        let cuts = plan.segment
            && train > 1
            && u16::try_from(length).is_ok_and(|length| udp::segment(&flow.socket, length).is_ok());
        Trains { room, length, counter: plan.counter, cuts }
    }

    /// Sends `count` datagrams with the numbers after `number`; tells how many went.
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
        if self.cuts {
            match socket.send(train) {
                Ok(sent) => return Ok(sent / self.length),
                Err(error) if is_too_long(&error) => {
                    // Datagrams that must be fragmented, or a device that cannot.
                    self.cuts = false;
                    udp::segment(socket, 0)?;
                }
                Err(error) => return Err(error),
            }
        }
        udp::send_each(socket, train, self.length).map(|sent| sent / self.length)
    }
}

/// The kernel does not cut this train: datagrams over the MTU, or no checksums
/// from the device.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(22 | 90 | 5))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
