//! What the equations predict for a test.

mod object;

use crate::setting::Side;
use crate::test::Test;
use crate::traffic::Traffic;
use control::{Algorithm, NamedControl};
use model::Payload;
use record::{Direction, Protocol};
use std::time::Duration;
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// A predicted goodput, with its equation.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The goodput over all streams.
    pub rate: BitRate,
    /// The equation and its numbers.
    pub equation: String,
}

/// The limits of TCP's socket buffers.
const TCP_RMEM: &str = "net.ipv4.tcp_rmem";
const TCP_WMEM: &str = "net.ipv4.tcp_wmem";

/// The MTU for which the advertised part of a receive buffer is known.
const ETHERNET_MTU: u32 = 1_500;

/// Headers of IPv4, UDP and UDT, in bytes.
const UDT_HEADERS: u32 = 44;
/// IP and UDP headers of a datagram over IPv4, in bytes.
const UDP_HEADERS: u64 = 28;

/// The least RTT that Prague's growth counts with.
const PRAGUE_RTT: Rtt = Rtt::from_micros(25_000);

impl Test {
    /// The goodput of a test of one flow: the least of what the link carries, what is offered,
    /// what the windows, or the buffers' limits, allow per round trip (RFC 7323, section 1.1), and,
    /// under random loss, what the congestion control reaches. Of a program that fetches an object, its
    /// bytes over its time, of the slowest client if there are several. `None` for several flows, or without
    /// an equation.
    #[must_use]
    pub fn predict(&self) -> Option<Prediction> {
        let [flow] = self.flows.as_slice() else { return None };
        if flow.object.is_some() {
            return self.object(flow);
        }
        match flow.protocol {
            Protocol::Udp => self.datagrams(flow),
            Protocol::Tcp => self.tcp(flow),
            Protocol::Udt => self.udt(flow),
        }
    }

    /// Of all clients.
    fn streams_in_all(&self, flow: &Traffic) -> u32 {
        flow.streams * u32::from(self.hosts.clients)
    }

    fn datagrams(&self, flow: &Traffic) -> Option<Prediction> {
        let payload = flow.block?.bytes();
        let offered = flow.bitrate?.scaled(f64::from(self.streams_in_all(flow)));
        let share =
            payload as f64 / (payload + UDP_HEADERS + u64::from(self.spec.overhead())) as f64;
        let carried = self.spec.rate().map(|rate| rate.scaled(share));
        match carried {
            Some(carried) if carried < offered => Some(Prediction {
                rate: carried,
                equation: format!(
                    "link rate {} x payload share {payload}/{} = {carried}",
                    self.spec.rate()?,
                    payload + UDP_HEADERS + u64::from(self.spec.overhead())
                ),
            }),
            _ => Some(Prediction { rate: offered, equation: format!("offered load {offered}") }),
        }
    }

    /// The link, the offered load, the buffer per round trip and SYN, and UDT's own control
    /// under random loss (Gu, Grossman 2007).
    fn udt(&self, flow: &Traffic) -> Option<Prediction> {
        let path = &self.spec;
        let streams = f64::from(self.streams_in_all(flow));
        let packet = path.mtu();
        let share = f64::from(packet.checked_sub(UDT_HEADERS)?)
            / (u64::from(packet) + u64::from(path.overhead())) as f64;
        let link = path.rate();
        let carried = link.map(|rate| {
            let goodput = rate.scaled(share);
            (goodput, format!("link rate {rate} x payload share = {goodput}"))
        });
        let offered = flow.bitrate.map(|rate| rate.scaled(streams));
        let offered = offered.map(|rate| (rate, format!("offered load {rate}")));
        let read = flow.disk_limit().map(|rate| (rate, format!("disk {rate}")));
        let buffered = self.window.filter(|_| self.rtt_known).map(|window| {
            let time = path.rtt().duration() + Duration::from_secs_f64(model::UDT_SYN_S);
            let rate = BitRate::of(window, time).scaled(streams);
            (rate, format!("{streams} x {window} / ({} + 10 ms) = {rate}", path.rtt()))
        });
        let lossy = (flow.congestion() == "udt").then_some(()).and_then(|()| {
            let (loss, link) = (self.loss?, link?);
            let rate = model::udt_under_loss(link, packet, loss)?.scaled(share * streams);
            Some((rate, format!("{streams} x udt at a loss of {loss} = {rate}")))
        });
        let all = [carried, offered, read, buffered, lossy].into_iter().flatten();
        let least = all.min_by_key(|(rate, _)| *rate);
        least.map(|(rate, equation)| Prediction { rate, equation })
    }

    fn tcp(&self, flow: &Traffic) -> Option<Prediction> {
        let path = &self.spec;
        let payload = Payload {
            mtu: path.mtu(),
            ip: flow.ip,
            timestamps: true,
            sack_blocks: 0,
            framing: path.overhead(),
        };
        let mut least: Option<Prediction> = None;
        let mut add = |rate: BitRate, equation: String| {
            if least.as_ref().is_none_or(|known| rate < known.rate) {
                least = Some(Prediction { rate, equation });
            }
        };
        if let Some(rate) = path.rate() {
            let goodput = payload.goodput(rate)?;
            add(goodput, format!("link rate {rate} x payload share = {goodput}"));
        }
        if let Some(bitrate) = flow.bitrate {
            let offered = bitrate.scaled(f64::from(self.streams_in_all(flow)));
            add(offered, format!("offered load {offered}"));
        }
        if let Some(disk) = flow.disk_limit() {
            add(disk, format!("disk {disk}"));
        }
        if let Some(pacing) = flow.pacing {
            let paced = pacing.scaled(f64::from(self.streams_in_all(flow)));
            add(paced, format!("pacing rate {paced}"));
        }
        if let Some((window, rate)) = self
            .window
            .filter(|_| self.rtt_known)
            .and_then(|window| Some((window, model::window_rate(window, path.rtt())?)))
        {
            let streams = self.streams_in_all(flow);
            let all = rate.scaled(f64::from(streams));
            let equation = format!("{streams} x {window} / {} = {all}", path.rtt());
            add(all, equation);
        }
        for (rate, equation) in self.buffered(flow) {
            add(rate, equation);
        }
        if let Some(loss) = self.loss.filter(|loss| self.rtt_known && loss.fraction() > 0.0) {
            // Without the control's equation nothing is known of it: the link's rate is no prediction.
            let rate = under_loss(flow, loss, path, &payload)?;
            let streams = self.streams_in_all(flow);
            let all = rate.scaled(f64::from(streams));
            add(all, format!("{streams} x {} at a loss of {loss} = {all}", flow.congestion()));
        }
        least
    }

    /// What the limits of the socket buffers, set as sysctls, allow per round trip: of the
    /// receiver's, the part that it advertises; of the sender's, all of it, as it holds what is
    /// not acknowledged.
    fn buffered(&self, flow: &Traffic) -> Vec<(BitRate, String)> {
        // A window is set by means of the same sysctl.
        if self.window.is_some() || !self.rtt_known || flow.direction == Direction::Both {
            return Vec::new();
        }
        let server_sends = flow.program.as_ref().is_some_and(|program| program.server_sends);
        let (sender, receiver) = match server_sends || flow.direction == Direction::Reverse {
            false => (Side::Clients, Side::Servers),
            true => (Side::Servers, Side::Clients),
        };
        let (path, streams) = (&self.spec, self.streams_in_all(flow));
        let allowed = |side, name, share: f64| {
            let limit = self.buffer_limit(side, name)?;
            let window = ByteCount::from_f64(limit as f64 * share);
            let rate = model::window_rate(window, path.rtt())?.scaled(f64::from(streams));
            let part = if share < 1.0 { format!("{share:.3} x ") } else { String::new() };
            let bytes = ByteCount::from_bytes(limit).decimal();
            Some((rate, format!("{streams} x {part}{bytes} of {name} / {} = {rate}", path.rtt())))
        };
        let received = (path.mtu() == ETHERNET_MTU)
            .then(|| allowed(receiver, TCP_RMEM, model::STEADY_WINDOW_SHARE));
        received.flatten().into_iter().chain(allowed(sender, TCP_WMEM, 1.0)).collect()
    }

    /// The third number of `tcp_rmem` or `tcp_wmem` on that side, if it is set.
    fn buffer_limit(&self, side: Side, name: &str) -> Option<u64> {
        let is_of_side = |one: Side| one == Side::Both || one == side;
        let mut set = self.sysctls.iter();
        let last = set.rfind(|one| one.name == name && is_of_side(one.side))?;
        crate::value::buffer_limit(&last.value)
    }
}

/// The goodput of one stream under random loss; `None` without an equation of its congestion control.
fn under_loss(
    flow: &Traffic,
    loss: LossRatio,
    path: &PathSpec,
    payload: &Payload,
) -> Option<BitRate> {
    let mss = ByteCount::from_bytes(u64::from(payload.mss()?));
    let rtt = path.rtt();
    let control = NamedControl::by_name(flow.congestion())?;
    match control.algorithm() {
        Algorithm::Cubic => model::cubic(mss, rtt, loss),
        // Prague halves its window at a loss and grows as Reno does (draft-briscoe-iccrg-prague-
        // congestion-control-04, sections 2.4.2 and 2.4.4), with an RTT of 25 ms at least.
        Algorithm::Prague if rtt >= PRAGUE_RTT => model::mathis(mss, rtt, loss),
        Algorithm::NewReno => {
            model::mathis(mss, rtt, loss).map(|rate| rate.scaled(f64::from(control.connections())))
        }
        Algorithm::Bbr => path.rate().and_then(|rate| model::bbr(payload.goodput(rate)?, loss)),
        _ => None,
    }
}
