//! Settings of either end from the flags, and checks that clap does not make.

use super::args::Iperf3Args;
use crate::failure::Failure;
use crate::input;
use iperf3_proto::values::KeepAlive;
use perf::client::{Credentials, Family, Keepalive, Padding};
use perf::server::Users;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// `HOST%DEVICE`: a name or address, and an interface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HostAndDevice<'a> {
    pub(crate) host: &'a str,
    pub(crate) device: Option<&'a str>,
}

impl<'a> HostAndDevice<'a> {
    /// The device of a link-local address is part of the address (RFC 4007).
    pub(crate) fn of(text: &'a str) -> Self {
        let whole = HostAndDevice { host: text, device: None };
        let Some((host, device)) = text.split_once('%') else { return whole };
        let link_local = host.parse().is_ok_and(|ip: Ipv6Addr| ip.is_unicast_link_local());
        if link_local || host.is_empty() || device.is_empty() {
            return whole;
        }
        HostAndDevice { host, device: Some(device) }
    }
}

/// Local address and interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct Near {
    pub(crate) address: Option<IpAddr>,
    pub(crate) device: Option<String>,
}

pub(crate) fn near(args: &Iperf3Args) -> Result<Near, Failure> {
    let device = args.common.bind_dev.clone();
    let Some(text) = &args.common.bind else { return Ok(Near { address: None, device }) };
    let place = HostAndDevice::of(text);
    // The device of a link-local address.
    let (host, scope) = place.host.split_once('%').unwrap_or((place.host, ""));
    let address = host.parse().map_err(|_| {
        Failure::usage(format!(
            "--bind {text} is not an address; 'ip address' lists those of this host"
        ))
    })?;
    let named = place.device.or((!scope.is_empty()).then_some(scope)).map(str::to_owned);
    Ok(Near { address: Some(address), device: device.or(named) })
}

pub(crate) fn family(args: &Iperf3Args) -> Family {
    Family::from_flags(args.common.version4, args.common.version6)
}

/// 0 disables interval reports: one interval of a day, the maximum.
pub(crate) fn report_every(args: &Iperf3Args) -> Duration {
    match args.common.interval {
        0.0 => Duration::from_secs(86_400),
        seconds => Duration::from_secs_f64(seconds),
    }
}

/// Values that are not given are the endpoints' defaults.
pub(crate) fn keepalive(given: KeepAlive) -> Keepalive {
    let defaults = Keepalive::default();
    let seconds = |value: Option<u32>| value.map(|value| Duration::from_secs(u64::from(value)));
    Keepalive {
        idle: seconds(given.idle_s).unwrap_or(defaults.idle),
        interval: seconds(given.interval_s).unwrap_or(defaults.interval),
        count: given.count.unwrap_or(defaults.count),
    }
}

/// Checks flags that depend on each other.
pub(crate) fn of_client(args: &Iperf3Args) -> Result<(), Failure> {
    let (common, flags) = (&args.common, &args.client_flags);
    let wrong = |what: &str| Err(Failure::usage(what));
    if common.file.is_some() && flags.udp {
        return wrong("--file cannot be used with --udp: datagrams may be lost");
    }
    if common.rcv_timeout.is_some() && !flags.reverse && !flags.bidir {
        return wrong("--rcv-timeout needs a receiving client; add --reverse or --bidir");
    }
    if flags.sctp || flags.nstreams.is_some() || flags.xbind.is_some() {
        return wrong(
            "--sctp, --nstreams and --xbind need SCTP, which is not supported; use TCP or --udp",
        );
    }
    match (flags.length, flags.udp) {
        (Some(1..=1_048_576), false) | (Some(16..=65_507), true) | (None, _) => Ok(()),
        (Some(_), false) => wrong("--length is out of bounds; give 1 to 1M bytes"),
        (Some(_), true) => wrong("--length is out of bounds; give 16 to 65507 bytes with --udp"),
    }
}

fn padding(args: &Iperf3Args) -> Padding {
    if args.common.use_pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep }
}

fn read(path: &Path, what: &str, limit: ByteCount) -> Result<String, Failure> {
    input::text(path, limit)
        .map_err(|error| Failure::usage(format!("cannot read {what} {}: {error}", path.display())))
}

/// The login of a client.
pub(crate) fn credentials(args: &Iperf3Args) -> Result<Option<Credentials>, Failure> {
    let flags = &args.client_flags;
    let (Some(user), Some(key)) = (&flags.username, &flags.rsa_public_key_path) else {
        return Ok(None);
    };
    let public_key_pem = read(key, "the public key", input::KEY)?;
    let password = match std::env::var("IPERF3_PASSWORD") {
        Ok(password) => password,
        Err(_) => rpassword::prompt_password("Password: ").map_err(|error| {
            Failure::usage(format!("cannot prompt for the password: {error}; set IPERF3_PASSWORD"))
        })?,
    };
    Ok(Some(Credentials { user: user.clone(), password, public_key_pem, padding: padding(args) }))
}

/// The users of a server.
pub(crate) fn users(args: &Iperf3Args) -> Result<Option<Arc<Users>>, Failure> {
    let flags = &args.server_flags;
    let (Some(key), Some(list)) = (&flags.rsa_private_key_path, &flags.authorized_users_path)
    else {
        return Ok(None);
    };
    let skew = Duration::from_secs(u64::from(flags.time_skew_threshold.unwrap_or(10)));
    let key = read(key, "the private key", input::KEY)?;
    let list = read(list, "the list of users", input::LIST)?;
    Users::new(&key, &list, padding(args), skew)
        .map(|users| Some(Arc::new(users)))
        .map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_follows_the_name() {
        for (text, host, device) in [
            ("server", "server", None),
            ("server%eth0", "server", Some("eth0")),
            ("10.0.0.1%eth0", "10.0.0.1", Some("eth0")),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("2001:db8::1%eth0", "2001:db8::1", Some("eth0")),
            ("server%", "server%", None),
        ] {
            assert_eq!(HostAndDevice::of(text), HostAndDevice { host, device }, "{text}");
        }
    }
}
