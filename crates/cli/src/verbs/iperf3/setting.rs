//! From flags to settings of either end, and what clap does not judge.

use super::args::Iperf3Args;
use super::values::KeepAlive;
use crate::failure::Failure;
use probe::client::{Credentials, Family, Keepalive, Padding};
use probe::server::Users;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// `HOST%DEVICE`: a name or address, and the interface to go over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place<'a> {
    pub(crate) host: &'a str,
    pub(crate) device: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// A link-local address keeps its device: it is a part of the address
    /// (RFC 4007).
    pub(crate) fn of(text: &'a str) -> Self {
        let whole = Place { host: text, device: None };
        let Some((host, device)) = text.split_once('%') else { return whole };
        let link_local = host.parse().is_ok_and(|ip: Ipv6Addr| ip.is_unicast_link_local());
        if link_local || host.is_empty() || device.is_empty() {
            return whole;
        }
        Place { host, device: Some(device) }
    }
}

/// Where this end is bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Near {
    pub(crate) address: Option<IpAddr>,
    pub(crate) device: Option<String>,
}

pub(crate) fn near(args: &Iperf3Args) -> Result<Near, Failure> {
    let device = args.common.bind_dev.clone();
    let Some(text) = &args.common.bind else { return Ok(Near { address: None, device }) };
    let place = Place::of(text);
    // The device of a link-local address.
    let (host, scope) = place.host.split_once('%').unwrap_or((place.host, ""));
    let address = host.parse().map_err(|_| {
        Failure::usage(format!("--bind {text} is no address; 'ip address' lists this host's"))
    })?;
    let named = place.device.or((!scope.is_empty()).then_some(scope)).map(str::to_owned);
    Ok(Near { address: Some(address), device: device.or(named) })
}

pub(crate) fn family(args: &Iperf3Args) -> Family {
    match (args.common.version4, args.common.version6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    }
}

/// No rows in between is one row over a day at most.
pub(crate) fn report_every(args: &Iperf3Args) -> Duration {
    match args.common.interval {
        0.0 => Duration::from_secs(86_400),
        seconds => Duration::from_secs_f64(seconds),
    }
}

/// What is not given is as the endpoints have it.
pub(crate) fn keepalive(asked: KeepAlive) -> Keepalive {
    let defaults = Keepalive::default();
    let seconds = |value: Option<u32>| value.map(|value| Duration::from_secs(u64::from(value)));
    Keepalive {
        idle: seconds(asked.idle_s).unwrap_or(defaults.idle),
        interval: seconds(asked.interval_s).unwrap_or(defaults.interval),
        count: asked.count.unwrap_or(defaults.count),
    }
}

/// What one flag means for another.
pub(crate) fn of_client(args: &Iperf3Args) -> Result<(), Failure> {
    let (common, flags) = (&args.common, &args.client_flags);
    let wrong = |what: &str| Err(Failure::usage(what));
    if common.file.is_some() && flags.udp {
        return wrong("--file cannot be sent over --udp: datagrams get lost; leave one out");
    }
    if common.rcv_timeout.is_some() && !flags.reverse && !flags.bidir {
        return wrong("--rcv-timeout is for an end that receives; add --reverse or --bidir");
    }
    if flags.sctp || flags.nstreams.is_some() || flags.xbind.is_some() {
        return wrong(
            "--sctp, --nstreams and --xbind are for SCTP, which is not spoken here; test over TCP, or add --udp",
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

fn read(path: &Path, what: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {what} {}: {error}", path.display())))
}

/// The login of a client.
pub(crate) fn credentials(args: &Iperf3Args) -> Result<Option<Credentials>, Failure> {
    let flags = &args.client_flags;
    let (Some(user), Some(key)) = (&flags.username, &flags.rsa_public_key_path) else {
        return Ok(None);
    };
    let public_key_pem = read(key, "the public key")?;
    let password = match std::env::var("IPERF3_PASSWORD") {
        Ok(password) => password,
        Err(_) => rpassword::prompt_password("Password: ").map_err(|error| {
            Failure::usage(format!(
                "cannot ask for the password: {error}; give it in IPERF3_PASSWORD"
            ))
        })?,
    };
    Ok(Some(Credentials { user: user.clone(), password, public_key_pem, padding: padding(args) }))
}

/// Who may use a server.
pub(crate) fn users(args: &Iperf3Args) -> Result<Option<Arc<Users>>, Failure> {
    let flags = &args.server_flags;
    let (Some(key), Some(list)) = (&flags.rsa_private_key_path, &flags.authorized_users_path)
    else {
        return Ok(None);
    };
    let skew = Duration::from_secs(u64::from(flags.time_skew_threshold.unwrap_or(10)));
    let key = read(key, "the private key")?;
    let list = read(list, "the list of users")?;
    Users::new(&key, &list, padding(args), skew)
        .map(|users| Some(Arc::new(users)))
        .map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_stands_behind_the_name() {
        for (text, host, device) in [
            ("server", "server", None),
            ("server%eth0", "server", Some("eth0")),
            ("10.0.0.1%eth0", "10.0.0.1", Some("eth0")),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("2001:db8::1%eth0", "2001:db8::1", Some("eth0")),
            ("server%", "server%", None),
        ] {
            assert_eq!(Place::of(text), Place { host, device }, "{text}");
        }
    }
}
