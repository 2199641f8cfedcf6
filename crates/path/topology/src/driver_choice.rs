//! Which driver is to carry the packets of a lab.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The driver that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverChoice {
    /// NFQUEUE where it is available and can carry out every effect, otherwise TUN.
    #[default]
    Auto,
    /// Copy packets through TUN devices.
    Tun,
    /// Hold packets in the kernel, or fail.
    Nfqueue,
}

impl FromStr for DriverChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(DriverChoice::Auto),
            "tun" => Ok(DriverChoice::Tun),
            "nfqueue" => Ok(DriverChoice::Nfqueue),
            _ => Err("the drivers are auto, tun and nfqueue"),
        }
    }
}
