//! What is asked of the server.

use crate::peer::{Origin, Peer, Scheme, is_host};
use longhaul::http_host;
use longhaul::{Field, Problem};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use units::ByteCount;

/// Most characters of a token.
const MAX_TOKEN: usize = 256;
/// What a token is.
pub(crate) const TOKEN: &str = "1 to 256 letters, digits, '-', '_', '.' or '~'";
/// Most origins of other pages.
const MAX_ORIGINS: usize = 64;

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    /// Not at all.
    #[default]
    None,
    /// With a certificate that is made when the server starts: browsers warn.
    SelfSigned,
    /// With files in PEM form.
    Files {
        /// The certificate, and those between it and its root.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// With the systemd credentials `certificate` and `key` (systemd.exec(5), `LoadCredential=`).
    Credentials,
}

impl FromStr for Tls {
    type Err = String;

    /// `self-signed`, `credentials`, or `CERTIFICATE,KEY`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "self-signed" => Ok(Tls::SelfSigned),
            "credentials" => Ok(Tls::Credentials),
            files => match files.split_once(',') {
                Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
                    Ok(Tls::Files { certificate: certificate.into(), key: key.into() })
                }
                _ => Err("give self-signed, credentials, or CERTIFICATE,KEY".to_owned()),
            },
        }
    }
}

/// Limits of clients, in total and per address: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebLimits {
    /// Concurrent connections.
    pub connections: u32,
    /// Of one address.
    pub connections_per_address: u32,
    /// Concurrent runs of the speed test.
    pub runs: u32,
    /// Of one address.
    pub runs_per_address: u32,
    /// Concurrent transfers of other speed tests' clients: ndt7, LibreSpeed and so on.
    pub transfers: u32,
    /// Of one address.
    pub transfers_per_address: u32,
    /// Bytes that these take in an hour.
    pub bytes_per_hour: ByteCount,
    /// Of one address.
    pub bytes_per_hour_per_address: ByteCount,
    /// Results that are kept with [`WebRequest::history`]; the oldest give way.
    pub kept: u32,
    /// Their bytes in the file.
    pub kept_bytes: ByteCount,
    /// Results that an address keeps in a day.
    pub kept_per_day_per_address: u32,
    /// The longest time of one of these transfers; ndt7's is 13 s.
    #[serde(with = "units::seconds")]
    pub transfer: Duration,
    /// The time within which a request's header arrives, and between two requests.
    #[serde(with = "units::seconds")]
    pub header: Duration,
    /// The time after which a silent WebSocket is closed.
    #[serde(with = "units::seconds")]
    pub idle: Duration,
}

impl Default for WebLimits {
    fn default() -> Self {
        WebLimits {
            connections: 4096,
            connections_per_address: 64,
            runs: 256,
            runs_per_address: 4,
            transfers: 1024,
            transfers_per_address: 64,
            bytes_per_hour: ByteCount::from_bytes(20_000_000_000_000),
            bytes_per_hour_per_address: ByteCount::from_bytes(200_000_000_000),
            kept: 10_000,
            kept_bytes: ByteCount::from_bytes(2_000_000_000),
            kept_per_day_per_address: 20,
            transfer: Duration::from_secs(60),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
    }
}

/// A speed test for browsers, and for the clients that people have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebRequest {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The address to serve tests of responsiveness on, if any: with HTTP/2, in which probes share
    /// a loaded connection (draft-ietf-ippm-responsiveness).
    pub responsiveness: Option<SocketAddr>,
    /// Whether datagrams of WebTransport measure loss: on the UDP port of the main port's number,
    /// where browsers allow it, which is with TLS or at a loopback address.
    pub webtransport: bool,
    /// Encryption.
    pub tls: Tls,
    /// Names of this server, beside addresses and localhost: for other names requests are refused,
    /// as those of a page whose name was bound to this address (DNS rebinding).
    pub names: Vec<String>,
    /// A name of this server that has an A record and no AAAA record, or its IPv4 address: the page
    /// measures IPv4 there.
    pub ipv4_name: Option<String>,
    /// A name that has an AAAA record and no A record. No address: a Content-Security-Policy cannot
    /// name IPv6 addresses (CSP Level 3, section 2.3.1).
    pub ipv6_name: Option<String>,
    /// Reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: limits then
    /// count the clients that they name. Of others, limits count the proxy.
    pub trusted_proxies: Vec<IpAddr>,
    /// The address of the page of metrics.
    pub metrics: Option<SocketAddr>,
    /// Only clients with this token are served: `?token=` in the page's address.
    pub token: Option<String>,
    /// The server at the end of the far leg, beyond the line: the page asks whether the Wi-Fi, the
    /// line or the path beyond it limits. It must allow this server's origin.
    pub peer: Option<Peer>,
    /// The origins of other servers' pages that may have this server measure: it is their peer.
    pub allow_origins: Vec<Origin>,
    /// The file in which visitors may keep results and share them; none are kept without.
    pub history: Option<PathBuf>,
    /// Whether each transfer of Cloudflare's client is an event.
    pub log_transfers: bool,
    /// The limits of clients.
    pub limits: WebLimits,
    /// Bytes that a run may take, both directions together.
    pub max_bytes_per_run: ByteCount,
    /// Seconds of each download and upload.
    pub step_seconds: f64,
}

impl Default for WebRequest {
    /// For this host alone, without encryption.
    fn default() -> Self {
        WebRequest {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            responsiveness: None,
            webtransport: true,
            tls: Tls::None,
            names: Vec::new(),
            ipv4_name: None,
            ipv6_name: None,
            trusted_proxies: Vec::new(),
            metrics: None,
            token: None,
            peer: None,
            allow_origins: Vec::new(),
            history: None,
            log_transfers: false,
            limits: WebLimits::default(),
            max_bytes_per_run: ByteCount::from_bytes(4_000_000_000),
            step_seconds: 5.0,
        }
    }
}

impl WebRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if let Some(name) = self.names.iter().find(|name| !http_host::is_name(name)) {
            let accepted = "a host name without a port, such as speed.example";
            return Err(Problem::field(
                Field::HostNames,
                format!("'{}' is not a host name", name.escape_default()),
                accepted,
            ));
        }
        self.check_family_names()?;
        if !self.token.as_deref().is_none_or(is_token) {
            return Err(Problem::field(Field::Token, "the token is invalid", TOKEN));
        }
        self.check_origins()?;
        if !(0.2..=10.0).contains(&self.step_seconds) {
            let message = format!("{} seconds are out of range", self.step_seconds);
            return Err(Problem::field(Field::Seconds, message, "0.2 to 10"));
        }
        if self.max_bytes_per_run.bytes() < 1_000_000 {
            let message = format!("{} is too little for a run", self.max_bytes_per_run);
            return Err(Problem::field(Field::MaxBytesPerRun, message, "at least 1 MB"));
        }
        self.check_limits()
    }

    fn check_family_names(&self) -> Result<(), Problem> {
        let names = [
            (&self.ipv4_name, Field::Ipv4Name, "a host name or an IPv4 address, without a port"),
            (&self.ipv6_name, Field::Ipv6Name, "a host name that has an AAAA record alone"),
        ];
        for (name, field, accepted) in names {
            let Some(name) = name else { continue };
            let is_address = name.parse::<Ipv4Addr>().is_ok();
            if !is_host(name) || (field == Field::Ipv6Name && is_address) {
                let message = format!("'{}' is not a host name", name.escape_default());
                return Err(Problem::field(field, message, accepted));
            }
        }
        Ok(())
    }

    /// The names that this server answers for: those of each family among them.
    pub(crate) fn own_names(&self) -> Vec<String> {
        let of_families = [&self.ipv4_name, &self.ipv6_name].into_iter().flatten();
        self.names.iter().chain(of_families).cloned().collect()
    }

    fn check_origins(&self) -> Result<(), Problem> {
        if let Some(peer) = &self.peer {
            peer.check()?;
            if self.tls != Tls::None && peer.origin.scheme == Scheme::Http {
                let message = "browsers open no http:// from an encrypted page";
                return Err(Problem::field(Field::Peer, message, "https://"));
            }
        }
        if self.allow_origins.len() > MAX_ORIGINS {
            let message = format!("{} origins are too many", self.allow_origins.len());
            return Err(Problem::field(Field::AllowOrigins, message, "at most 64"));
        }
        self.allow_origins.iter().try_for_each(|origin| origin.check(Field::AllowOrigins))
    }

    /// The UDP address of WebTransport, given that of the main port.
    pub(crate) fn datagram_address(&self, main: SocketAddr) -> Option<SocketAddr> {
        let is_secure = self.tls != Tls::None || main.ip().is_loopback();
        (self.webtransport && is_secure).then_some(main)
    }

    fn check_limits(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        for (what, value, most) in [
            ("connections", u64::from(limits.connections), 65_536),
            ("connections of an address", limits.connections_per_address.into(), 65_536),
            ("runs", limits.runs.into(), 4096),
            ("runs of an address", limits.runs_per_address.into(), 4096),
            ("transfers", limits.transfers.into(), 65_536),
            ("transfers of an address", limits.transfers_per_address.into(), 65_536),
            ("bytes in an hour", limits.bytes_per_hour.bytes(), u64::MAX),
            ("bytes of an address in an hour", limits.bytes_per_hour_per_address.bytes(), u64::MAX),
            ("kept results", limits.kept.into(), 1_000_000),
            ("bytes of kept results", limits.kept_bytes.bytes(), 1 << 40),
            ("kept results of an address", limits.kept_per_day_per_address.into(), 1_000_000),
            ("seconds of a transfer", limits.transfer.as_secs(), 3600),
            ("seconds of a request's header", limits.header.as_secs(), 600),
            ("seconds without data", limits.idle.as_secs(), 3600),
        ] {
            if !(1..=most).contains(&value) {
                let message = format!("{what}: {value} is out of range");
                return Err(Problem::field(Field::Limits, message, format!("1 to {most}")));
            }
        }
        Ok(())
    }
}

/// Whether a text may be a token: what URLs have unescaped.
pub(crate) fn is_token(token: &str) -> bool {
    (1..=MAX_TOKEN).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_fields_are_named() {
        let good = WebRequest::default();
        assert_eq!(good.check(), Ok(()));
        let limits = |limits: WebLimits| WebRequest { limits, ..WebRequest::default() };
        let token = |token: &str| WebRequest { token: Some(token.to_owned()), ..good.clone() };
        let ipv6 = |name: &str| WebRequest { ipv6_name: Some(name.to_owned()), ..good.clone() };
        for (request, field) in [
            (WebRequest { names: vec!["a:80".to_owned()], ..good.clone() }, Field::HostNames),
            (ipv6("2001:db8::1"), Field::Ipv6Name),
            (ipv6("192.0.2.1"), Field::Ipv6Name),
            (ipv6("a; script-src *"), Field::Ipv6Name),
            (WebRequest { ipv4_name: Some("1.2.3".to_owned()), ..good.clone() }, Field::Ipv4Name),
            (token(""), Field::Token),
            (token("a b"), Field::Token),
            (token(&"a".repeat(257)), Field::Token),
            (WebRequest { step_seconds: f64::NAN, ..good.clone() }, Field::Seconds),
            (WebRequest { step_seconds: 11.0, ..good.clone() }, Field::Seconds),
            (
                WebRequest { max_bytes_per_run: ByteCount::from_bytes(1), ..good.clone() },
                Field::MaxBytesPerRun,
            ),
            (
                WebRequest {
                    tls: Tls::SelfSigned,
                    peer: "http://far.example".parse().ok(),
                    ..good.clone()
                },
                Field::Peer,
            ),
            (
                WebRequest { allow_origins: vec!["http://a".parse().unwrap(); 65], ..good.clone() },
                Field::AllowOrigins,
            ),
            (limits(WebLimits { runs: 0, ..WebLimits::default() }), Field::Limits),
            (limits(WebLimits { idle: Duration::ZERO, ..WebLimits::default() }), Field::Limits),
        ] {
            let problem = request.check().unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, field, "{request:?}");
        }
    }

    #[test]
    fn certificates_are_read() {
        assert_eq!("self-signed".parse(), Ok(Tls::SelfSigned));
        let files = Tls::Files { certificate: "a".into(), key: "b".into() };
        assert_eq!("a,b".parse(), Ok(files));
        assert!("a,".parse::<Tls>().is_err() && "none".parse::<Tls>().is_err());
    }

    #[test]
    fn webtransport_is_where_browsers_allow_it() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (local, open) = (address("127.0.0.1:80"), address("192.0.2.1:80"));
        let of = |webtransport, tls: Tls, main| {
            let request = WebRequest { webtransport, tls, ..WebRequest::default() };
            request.datagram_address(main)
        };
        assert_eq!(of(true, Tls::None, local), Some(local));
        assert_eq!(of(true, Tls::None, open), None);
        assert_eq!(of(true, Tls::SelfSigned, open), Some(open));
        assert_eq!(of(false, Tls::SelfSigned, open), None);
    }

    #[test]
    fn a_request_survives_json() {
        let tls = Tls::Files { certificate: "a".into(), key: "b".into() };
        let request = WebRequest {
            tls,
            token: Some("t".to_owned()),
            peer: "https://far.example:8443/?token=u".parse().ok(),
            allow_origins: vec!["http://near.example".parse().unwrap()],
            ..WebRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<WebRequest>(&text).unwrap(), request);
        assert!(serde_json::from_str::<WebRequest>(r#"{"listne": "[::1]:1"}"#).is_err());
    }
}
