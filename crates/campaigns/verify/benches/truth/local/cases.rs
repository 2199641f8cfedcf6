//! The cases: buffers and streams around the sizes from which data no longer stays in a cache.

use super::hosts::Device::{self, Loopback, Veth};
use std::fmt;
use units::BitRate;

/// Whether the rules of `diagnose` were adjusted on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Development,
    HeldOut,
}

/// A transfer inside this host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalCase {
    pub(crate) set: Set,
    pub(crate) device: Device,
    pub(crate) streams: u32,
    pub(crate) congestion: &'static str,
    /// The third value of `tcp_rmem` and `tcp_wmem` of both hosts, bytes.
    pub(crate) largest_buffer: u64,
    /// `-w`, bytes.
    pub(crate) window: Option<u64>,
    /// `-b` of each stream.
    pub(crate) rate: Option<BitRate>,
    /// `-R`.
    pub(crate) reverse: bool,
}

impl LocalCase {
    const fn new(
        set: Set,
        device: Device,
        streams: u32,
        congestion: &'static str,
        mib: u64,
    ) -> Self {
        let largest_buffer = mib << 20;
        LocalCase {
            set,
            device,
            streams,
            congestion,
            largest_buffer,
            window: None,
            rate: None,
            reverse: false,
        }
    }

    const fn window_kib(self, kib: u64) -> Self {
        LocalCase { window: Some(kib << 10), ..self }
    }

    const fn mbit(self, mbit: u64) -> Self {
        LocalCase { rate: Some(BitRate::from_bps(mbit * 1_000_000)), ..self }
    }

    const fn reverse(self) -> Self {
        LocalCase { reverse: true, ..self }
    }
}

impl fmt::Display for LocalCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.device == Veth { "veth" } else { "loopback" };
        let (cc, mib) = (self.congestion, self.largest_buffer >> 20);
        write!(f, "{device} P{} {cc} {mib}M", self.streams)?;
        if let Some(window) = self.window {
            write!(f, " w{}K", window >> 10)?;
        }
        if let Some(rate) = self.rate {
            write!(f, " b{}M", rate.bps() / 1_000_000)?;
        }
        if self.reverse { f.write_str(" R") } else { Ok(()) }
    }
}

const fn develop(device: Device, streams: u32, congestion: &'static str, mib: u64) -> LocalCase {
    LocalCase::new(Set::Development, device, streams, congestion, mib)
}

const fn hold_out(device: Device, streams: u32, congestion: &'static str, mib: u64) -> LocalCase {
    LocalCase::new(Set::HeldOut, device, streams, congestion, mib)
}

/// All of them.
pub(crate) const CASES: &[LocalCase] = &[
    develop(Veth, 4, "cubic", 64),
    develop(Veth, 4, "cubic", 4),
    develop(Veth, 1, "cubic", 64),
    develop(Veth, 8, "cubic", 64),
    develop(Veth, 16, "cubic", 64),
    develop(Veth, 4, "cubic", 64).mbit(2_000),
    develop(Veth, 4, "cubic", 64).window_kib(512),
    develop(Loopback, 4, "cubic", 64),
    develop(Loopback, 1, "cubic", 64),
    develop(Loopback, 8, "cubic", 4),
    develop(Veth, 4, "bbr", 64),
    develop(Veth, 4, "bbr", 4),
    develop(Veth, 1, "bbr", 64),
    develop(Veth, 4, "bbr", 64).mbit(1_000),
    develop(Loopback, 8, "bbr", 64),
    develop(Loopback, 4, "bbr", 64).window_kib(256),
    develop(Veth, 4, "cubic", 128),
    develop(Veth, 4, "cubic", 64).reverse(),
    develop(Veth, 5, "cubic", 48),
    develop(Veth, 6, "cubic", 96),
    develop(Veth, 8, "cubic", 128).reverse(),
    develop(Veth, 16, "cubic", 32),
    develop(Veth, 4, "reno", 64),
    develop(Veth, 1, "cubic", 128).reverse(),
    develop(Veth, 2, "cubic", 4),
    develop(Veth, 3, "cubic", 2),
    develop(Veth, 4, "cubic", 64).window_kib(384),
    develop(Veth, 8, "cubic", 64).window_kib(256),
    develop(Veth, 8, "cubic", 64).mbit(1_000),
    develop(Veth, 1, "cubic", 64).mbit(4_000),
    develop(Veth, 2, "bbr", 64),
    develop(Veth, 4, "bbr", 32).reverse(),
    develop(Veth, 8, "bbr", 128).reverse(),
    develop(Veth, 16, "bbr", 8),
    develop(Veth, 1, "bbr", 4).reverse(),
    develop(Veth, 2, "bbr", 64).mbit(1_500),
    develop(Loopback, 4, "cubic", 128),
    develop(Loopback, 8, "cubic", 64),
    develop(Loopback, 16, "cubic", 64),
    develop(Loopback, 1, "cubic", 32),
    develop(Loopback, 4, "cubic", 6),
    develop(Loopback, 4, "reno", 64).mbit(1_000),
    develop(Loopback, 1, "bbr", 32),
    develop(Loopback, 4, "bbr", 16),
    develop(Loopback, 16, "bbr", 64).reverse(),
    develop(Loopback, 8, "bbr", 64).mbit(500),
    develop(Veth, 3, "cubic", 96),
    develop(Veth, 6, "cubic", 80).reverse(),
    develop(Veth, 10, "cubic", 40),
    develop(Veth, 12, "cubic", 64).reverse(),
    develop(Veth, 5, "reno", 128),
    develop(Veth, 2, "cubic", 3),
    develop(Veth, 6, "cubic", 2),
    develop(Veth, 3, "cubic", 64).window_kib(512),
    develop(Veth, 6, "cubic", 64).window_kib(320).reverse(),
    develop(Veth, 3, "cubic", 64).mbit(1_500),
    develop(Veth, 12, "cubic", 64).mbit(500).reverse(),
    develop(Veth, 1, "bbr", 16),
    develop(Veth, 2, "bbr", 6),
    develop(Veth, 3, "bbr", 4).reverse(),
    develop(Veth, 6, "bbr", 24),
    develop(Veth, 12, "bbr", 8).reverse(),
    develop(Veth, 3, "bbr", 64).mbit(2_000),
    develop(Loopback, 3, "cubic", 96),
    develop(Loopback, 6, "cubic", 128),
    develop(Loopback, 12, "cubic", 48),
    develop(Loopback, 2, "cubic", 4),
    develop(Loopback, 6, "reno", 2),
    develop(Loopback, 3, "cubic", 64).window_kib(512),
    develop(Loopback, 6, "cubic", 64).mbit(700),
    develop(Loopback, 2, "bbr", 6),
    develop(Loopback, 6, "bbr", 32),
    develop(Loopback, 12, "bbr", 16).reverse(),
    develop(Loopback, 3, "bbr", 64).mbit(900),
    // Chosen before any of them was run.
    hold_out(Veth, 3, "cubic", 80).reverse(),
    hold_out(Veth, 5, "cubic", 72),
    hold_out(Veth, 7, "cubic", 48).reverse(),
    hold_out(Veth, 14, "cubic", 32),
    hold_out(Veth, 4, "reno", 96).reverse(),
    hold_out(Veth, 3, "cubic", 3).reverse(),
    hold_out(Veth, 5, "cubic", 2),
    hold_out(Veth, 5, "cubic", 64).window_kib(384).reverse(),
    hold_out(Veth, 2, "cubic", 64).window_kib(768),
    hold_out(Veth, 5, "cubic", 64).mbit(1_200).reverse(),
    hold_out(Veth, 2, "bbr", 12).reverse(),
    hold_out(Veth, 5, "bbr", 6),
    hold_out(Veth, 7, "bbr", 4).reverse(),
    hold_out(Veth, 10, "bbr", 12),
    hold_out(Veth, 5, "bbr", 64).mbit(1_000).reverse(),
    hold_out(Loopback, 5, "cubic", 80).reverse(),
    hold_out(Loopback, 7, "cubic", 96),
    hold_out(Loopback, 3, "cubic", 3),
    hold_out(Loopback, 5, "cubic", 64).window_kib(384),
    hold_out(Loopback, 7, "cubic", 64).mbit(600).reverse(),
    hold_out(Loopback, 3, "bbr", 12),
    hold_out(Loopback, 5, "bbr", 6).reverse(),
    hold_out(Loopback, 7, "bbr", 24),
    hold_out(Loopback, 5, "bbr", 64).mbit(700),
];
