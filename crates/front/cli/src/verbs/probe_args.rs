//! Options that several verbs share.

use clap::Args;
use host::address::{self, AddressError};
use probe::Family;
use std::net::IpAddr;
use std::time::Duration;

/// The destination and the source.
#[derive(Debug, Args)]
pub(super) struct Destination {
    /// Host name or address
    pub(super) host: String,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Source address
    #[arg(long, short = 'B', value_name = "ADDRESS", value_parser = local_address)]
    pub(super) bind: Option<IpAddr>,
}

impl Destination {
    pub(super) fn family(&self) -> Family {
        Family::from_flags(self.ipv4, self.ipv6)
    }
}

/// Parses an address of this host. The zone of a link-local one is that of the other end.
pub(super) fn local_address(text: &str) -> Result<IpAddr, AddressError> {
    address::parse(text).map(|address| address.ip())
}

/// Maximum time, seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Parses seconds, as ping(8), or a time with a unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => text.parse::<units::Rtt>().map_err(|error| error.to_string())?.secs_f64(),
    };
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("give a time above 0 and up to a day, such as 1s, 200ms or 0.2".to_owned())
    }
}

/// A number of seconds as in iperf3, or a time with its unit.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(plain) = text.parse::<f64>() {
        return if plain.is_finite() && plain > 0.0 {
            Ok(plain)
        } else {
            Err("give a number of seconds above 0, such as 10".to_owned())
        };
    }
    let seconds = text.parse::<units::Rtt>().map_err(|error| error.to_string())?.secs_f64();
    if seconds > 0.0 {
        return Ok(seconds);
    }
    Err("give a time above 0, such as 10s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        assert_eq!(time("0.2"), Ok(Duration::from_millis(200)));
        assert_eq!(time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(time("86400"), Ok(Duration::from_secs(86_400)));
        for wrong in ["0", "-1", "nan", "inf", "1e99", "86401", "1 fortnight", ""] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
