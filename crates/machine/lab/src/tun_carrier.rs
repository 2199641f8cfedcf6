//! Packets copied from one TUN device to another.

use crate::at_once;
use crate::buffers::Pool;
use crate::carried::{Arrived, Body, Packet};
use crate::hosts::LabHost;
use crate::packet::{Layout, change};
use crate::watch::LinkDirection;
use host::transmit_times::TransmitTimes;
use host::tun::{Tun, VNET_HEADER};
use link::{Delivery, WindowScale};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

/// Trains up to this size (bytes) are copied out of their slot: a slot holds
/// 64 KiB, and a path full of small packets would waste most of its memory.
const COPY_LIMIT: usize = 16 * 1024;

/// The devices of a direction.
#[derive(Debug)]
pub(crate) struct TunCarrier {
    pub(crate) from: Arc<Tun>,
    /// When packets were put into `from`, where the system permits to know.
    pub(crate) times: Option<TransmitTimes>,
    pub(crate) to: Arc<Tun>,
}

/// The carriers of both directions of each link between `hosts`. `links` are the numbers of the
/// hosts at the ends.
///
/// # Errors
/// If a thread cannot be started, or a host has no device for its end of a link.
pub(crate) fn of_links(
    hosts: &[LabHost],
    links: &[[usize; 2]],
) -> io::Result<Vec<[TunCarrier; 2]>> {
    let both =
        |link: usize| [LinkDirection::Up, LinkDirection::Down].map(|direction| (link, direction));
    let all: Vec<_> = (0..links.len()).flat_map(both).collect();
    let carriers =
        at_once::each(all, |(link, direction)| carrier(hosts, link, links[link], direction));
    let missing = || io::Error::other("a thread could not be started, or a device is missing");
    let mut carriers = carriers.into_iter().map(|carrier| carrier.flatten().ok_or_else(missing));
    let mut next = || carriers.next().unwrap_or_else(|| Err(missing()));
    links.iter().map(|_| Ok([next()?, next()?])).collect()
}

fn carrier(
    hosts: &[LabHost],
    link: usize,
    between: [usize; 2],
    direction: LinkDirection,
) -> Option<TunCarrier> {
    let [from, to] = match direction {
        LinkDirection::Up => between,
        LinkDirection::Down => [between[1], between[0]],
    };
    let times = hosts[from].transmit_times(link);
    Some(TunCarrier { from: hosts[from].tun(link)?, times, to: hosts[to].tun(link)? })
}

impl TunCarrier {
    pub(crate) fn next(
        &mut self,
        pool: &mut Pool,
        window_scale: Option<WindowScale>,
    ) -> io::Result<Option<Arrived>> {
        let mut slot = pool.take()?;
        let length = match self.from.receive(pool.bytes_mut(&mut slot)) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(wish) = window_scale {
            change::window_scale(&mut pool.bytes_mut(&mut slot)[..length], wish);
        }
        let bytes = &pool.bytes(&slot)[..length];
        let layout = Layout::of(bytes);
        let train = layout.map(|layout| layout.train_of(bytes));
        let copy = length <= COPY_LIMIT;
        let body = if copy { Body::Copied(bytes.into()) } else { Body::Pooled(slot, length) };
        Ok(Some(Arrived {
            length: length - VNET_HEADER.min(length),
            time: None,
            is_counted: true,
            train: layout.zip(train).map(|(layout, train)| (body, layout, train)),
        }))
    }

    pub(crate) fn deliver(
        &self,
        pool: &Pool,
        deliveries: &[Delivery<Rc<Packet>>],
        scratch: &mut Vec<u8>,
    ) -> u64 {
        let refused = deliveries
            .iter()
            .filter(|delivery| self.send(pool, delivery, scratch).is_err())
            .map(|delivery| u64::from(delivery.packets.end - delivery.packets.start));
        refused.sum()
    }

    fn send(
        &self,
        pool: &Pool,
        delivery: &Delivery<Rc<Packet>>,
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let packet = &delivery.payload;
        let buffer = packet.buffer(pool);
        let range = delivery.packets.clone();
        let piece = packet.layout.cut(buffer, range, delivery.marked, scratch);
        let Some(draw) = delivery.flip else {
            return self.to.send(&[IoSlice::new(piece.headers), IoSlice::new(piece.payload)]);
        };
        let mut changed = [piece.headers, piece.payload].concat();
        change::flip(&mut changed, draw);
        self.to.send(&[IoSlice::new(&changed)])
    }
}
