//! The same checks for macOS and Windows, as commands with the values that a
//! target needs. Nothing is run.

mod macos;
mod windows;

use crate::target::Target;
use record::{DOCTOR_COMMANDS_SCHEMA, DoctorCommands, Recipe};
use units::ByteCount;

/// A system that longhaul does not run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Apple's.
    MacOs,
    /// Microsoft's, 10 and later.
    Windows,
}

/// The commands to check and set each value.
#[must_use]
pub fn commands(system: System, target: &Target) -> DoctorCommands {
    let (name, recipes) = match system {
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

/// One check: the command and the value needed.
fn recipe(id: &str, area: record::Area, look: &str, needed: impl Into<String>) -> Recipe {
    Recipe {
        id: id.to_owned(),
        area,
        look: look.to_owned(),
        needed: needed.into(),
        why: String::new(),
        set: Vec::new(),
        remark: String::new(),
    }
}
