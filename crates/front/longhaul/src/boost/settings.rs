//! From the settings of a request to those of a box, and what of them costs speed or safety.

use super::event::BoostEvent;
use super::problem;
use super::request::BoxSettings;
use crate::secrets::{self, MAX_LIST, SecretText, tokens};
use crate::{Fault, Problem};
use ::boost::{LaneOptions, PairKey, Timeouts, keys::KeyError, sockets};
use control::Algorithm;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

impl BoxSettings {
    pub(super) fn timeouts(&self) -> Timeouts {
        Timeouts {
            idle: Duration::from_secs(self.idle_timeout_s),
            drain: Duration::from_secs(self.drain_s),
        }
    }

    /// The options of lanes, which are tried on a socket.
    pub(super) fn lane_options(
        &self,
        on_event: &mut dyn FnMut(BoostEvent),
    ) -> Result<LaneOptions, Problem> {
        let options = LaneOptions { congestion: self.congestion.clone(), buffer: self.buffer };
        let granted = sockets::check_lane_options(&options).map_err(problem)?;
        if let (Some(granted), Some(asked)) = (granted, self.buffer) {
            warn(
                on_event,
                format!(
                    "the kernel grants buffers of {granted}, not {asked}: raise \
                     net.core.rmem_max and net.core.wmem_max, or use mux at near, which then \
                     opens several connections"
                ),
            );
        }
        if !self.paces() && is_on("net.ipv4.tcp_slow_start_after_idle") {
            let text = "idle lanes lose their congestion window: sysctl -w \
                net.ipv4.tcp_slow_start_after_idle=0, or use bbr";
            warn(on_event, text.to_owned());
        }
        Ok(options)
    }

    /// The congestion control of lanes.
    pub(super) fn congestion_name(&self) -> String {
        let read = || host::sysctl::read("net.ipv4.tcp_congestion_control").ok();
        self.congestion.clone().or_else(read).unwrap_or_else(|| "unknown".to_owned())
    }

    /// The congestion control of UDT: that of lanes where it has it, or else BBR version 3, which keeps
    /// its rate at losses.
    pub(super) fn udt_congestion(&self) -> Algorithm {
        let named = self.congestion.as_deref().and_then(Algorithm::for_native);
        named.unwrap_or(Algorithm::Bbr3)
    }

    /// BBR keeps its model of the path while a connection is idle.
    fn paces(&self) -> bool {
        self.congestion_name().starts_with("bbr")
    }

    /// Reads the key files with `parse`.
    pub(super) fn keys(
        &self,
        parse: impl Fn(&str) -> Result<PairKey, KeyError>,
        on_event: &mut dyn FnMut(BoostEvent),
    ) -> Result<Vec<PairKey>, Problem> {
        self.key_files.iter().map(|file| read_key(file, &parse, on_event)).collect()
    }
}

fn read_key(
    file: &Path,
    parse: impl Fn(&str) -> Result<PairKey, KeyError>,
    on_event: &mut dyn FnMut(BoostEvent),
) -> Result<PairKey, Problem> {
    let read = secrets::read(file, "key", MAX_LIST)?;
    warn_if_shared(&read, file, on_event);
    let file = file.display();
    let text = tokens(&read.text).next().unwrap_or_default();
    parse(text).map_err(|error| Problem::new(Fault::Request, format!("{file}: {error}")))
}

/// Warns of a secret that others can read.
pub(super) fn warn_if_shared(read: &SecretText, file: &Path, on_event: &mut dyn FnMut(BoostEvent)) {
    if read.is_shared {
        let file = file.display();
        warn(on_event, format!("other users can read {file}: chmod 600 {file}"));
    }
}

pub(super) fn warn(on_event: &mut dyn FnMut(BoostEvent), text: String) {
    on_event(BoostEvent::Warning { text });
}

/// What a listener that other hosts reach without keys means.
pub(super) fn warn_plaintext(
    listen: SocketAddr,
    insecure: bool,
    on_event: &mut dyn FnMut(BoostEvent),
) {
    if insecure && !is_loopback(listen.ip()) {
        let text = format!(
            "INSECURE: whoever reaches {listen} can connect to every allowed target, and whoever \
             is on the path reads and changes the data; use it in a lab only"
        );
        warn(on_event, text);
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn is_on(key: &str) -> bool {
    host::sysctl::read(key).is_ok_and(|value| value.trim() == "1")
}
