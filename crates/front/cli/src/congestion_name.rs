//! Congestion control as a flag's value.

use clap::ValueEnum;
use longhaul::calc::Congestion;

/// A congestion control with an equation.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CongestionName {
    Reno,
    Cubic,
    Bbr,
}

impl From<CongestionName> for Congestion {
    fn from(name: CongestionName) -> Self {
        match name {
            CongestionName::Reno => Congestion::Reno,
            CongestionName::Cubic => Congestion::Cubic,
            CongestionName::Bbr => Congestion::Bbr,
        }
    }
}
