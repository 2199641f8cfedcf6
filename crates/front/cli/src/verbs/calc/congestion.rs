//! Congestion controls with an equation.

use clap::ValueEnum;
use longhaul::calc::Congestion;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum CongestionName {
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
