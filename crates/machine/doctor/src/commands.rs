//! The same checks for another host, as commands with the values that a target needs:
//! macOS, Windows and Linux. Nothing is run.
//!
//! A recipe either only inspects, or has five parts: inspect, back up, apply now, apply
//! at every boot, undo.

mod linux;
mod macos;
mod windows;

use crate::document::{DOCTOR_COMMANDS_SCHEMA, DoctorCommands, Recipe};
use crate::target::Target;
use model::WifiStandard;
use record::Area;
use serde::{Deserialize, Serialize};
use units::ByteCount;

/// The system of another host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Linux.
    Linux,
    /// Apple's.
    MacOs,
    /// Microsoft's, 10 and later.
    Windows,
}

/// The commands to check and set each value.
#[must_use]
pub fn commands(system: System, target: &Target) -> DoctorCommands {
    let (name, recipes) = match system {
        System::Linux => ("Linux", linux::recipes(target)),
        System::MacOs => ("macOS", macos::recipes(target)),
        System::Windows => ("Windows", windows::recipes(target)),
    };
    DoctorCommands {
        schema: DOCTOR_COMMANDS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        system: name.to_owned(),
        target: target.record(),
        recipes,
    }
}

/// The window of a stream.
fn window(target: &Target) -> ByteCount {
    target.window().unwrap_or(ByteCount::ZERO)
}

/// How the window is computed, as text.
fn in_flight(target: &Target) -> String {
    let mut text = match target.rtt {
        Some(rtt) => {
            format!("{} x {rtt} = {} in flight", target.rate, model::bdp(target.rate, rtt))
        }
        None => target.rate.to_string(),
    };
    if target.streams() > 1 {
        text += &format!(", {} for each of {} streams", window(target), target.streams());
    }
    text
}

/// What the link rate means: the rate needed, and Wi-Fi's share of its own.
fn link_rate() -> String {
    format!(
        "the link rate is the upper bound; over Wi-Fi TCP gets at most about {} of it",
        units::percent(model::WIFI_TCP_SHARE)
    )
}

/// What determines a Wi-Fi link's rate.
fn wifi_rate() -> String {
    // Channels of 40 MHz are the widest of 802.11n.
    let rates = [(WifiStandard::N, 40), (WifiStandard::Ac, 80), (WifiStandard::Ax, 80)];
    let rates: Vec<String> = rates
        .iter()
        .filter_map(|(standard, width)| {
            let most = standard.rate(*width, 2)?;
            Some(format!("{} at {width} MHz {most}", standard.name()))
        })
        .collect();
    format!(
        "standard, channel width and spatial streams determine the rate, at most with 2 streams: \
         {}; TCP gets about {} of it",
        rates.join(", "),
        units::percent(model::WIFI_TCP_SHARE)
    )
}

/// A recipe under construction; it begins as one that only inspects.
struct Draft(Recipe);

fn recipe(id: &str, area: Area, inspect: &[&str], needed: impl Into<String>) -> Draft {
    Draft(Recipe {
        id: id.to_owned(),
        area,
        needed: needed.into(),
        why: String::new(),
        inspect: owned(inspect),
        back_up: Vec::new(),
        apply: Vec::new(),
        persist: Vec::new(),
        is_persistent: false,
        undo: Vec::new(),
        remark: String::new(),
        source: String::new(),
    })
}

fn owned(commands: &[&str]) -> Vec<String> {
    commands.iter().map(|command| (*command).to_owned()).collect()
}

impl Draft {
    fn why(mut self, text: impl Into<String>) -> Self {
        self.0.why = text.into();
        self
    }

    fn remark(mut self, text: impl Into<String>) -> Self {
        self.0.remark = text.into();
        self
    }

    /// The commands that save the present value, set the new one and restore the old one.
    fn change(mut self, back_up: &[&str], apply: &[&str], undo: &[&str]) -> Self {
        (self.0.back_up, self.0.apply, self.0.undo) = (owned(back_up), owned(apply), owned(undo));
        self
    }

    /// The commands that set it at every boot.
    fn at_boot(mut self, commands: &[&str]) -> Self {
        self.0.persist = owned(commands);
        self
    }

    /// The system keeps the setting across restarts by itself.
    fn kept(mut self) -> Self {
        self.0.is_persistent = true;
        self
    }

    fn source(mut self, text: &str) -> Recipe {
        self.0.source = text.to_owned();
        self.0
    }
}
