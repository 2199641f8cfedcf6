//! What a box is asked for.

use super::ingress::{GatewaySettings, ProxySettings};
use super::{MAX_CONNECTIONS, MAX_LANE_BUFFER, PORT};
use crate::{Field, Problem};
use ::boost::{AllowRule, Target, TargetHost, Timeouts};
use control::Algorithm;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use units::{BitRate, ByteCount};

/// One of the boxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostRequest {
    /// The box at the applications.
    Near(NearRequest),
    /// The box at the targets.
    Far(FarRequest),
}

/// A port of this host whose connections go to one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Forward {
    /// Where applications connect.
    pub listen: SocketAddr,
    /// Where far connects for them.
    pub target: Target,
}

/// Settings of both boxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoxSettings {
    /// The files with this box's keys, of `boost pair`: one at near, one for each near box at far.
    pub key_files: Vec<PathBuf>,
    /// Plaintext between the boxes, for whoever is on the path to read and to change.
    pub insecure: bool,
    /// Congestion control between the boxes; `None` for the system's.
    pub congestion: Option<String>,
    /// Send and receive buffer of each connection between the boxes; `None` for autotuning.
    pub buffer: Option<ByteCount>,
    /// Compress with zstd what gains by it, if the other box does as well.
    pub compress: bool,
    /// Seconds after which a flow in which nothing moves is reset.
    pub idle_timeout_s: u64,
    /// Seconds that flows have to end once the box drains.
    pub drain_s: u64,
    /// The maximum number of flows at a time.
    pub max_flows: u64,
    /// Report every flow that ends, not only those that failed.
    pub reports_flows: bool,
    /// The address of the page of metrics; `None` for none.
    pub metrics: Option<SocketAddr>,
}

impl Default for BoxSettings {
    /// Keys are missing: give them, or consent to plaintext.
    fn default() -> Self {
        let timeouts = Timeouts::default();
        BoxSettings {
            key_files: Vec::new(),
            insecure: false,
            congestion: None,
            buffer: None,
            compress: false,
            idle_timeout_s: timeouts.idle.as_secs(),
            drain_s: timeouts.drain.as_secs(),
            max_flows: 20_000,
            reports_flows: false,
            metrics: None,
        }
    }
}

/// The near box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NearRequest {
    /// The far box: `HOST` or `HOST:PORT`.
    pub far: String,
    /// Ports that are forwarded.
    pub forwards: Vec<Forward>,
    /// Proxies.
    pub proxy: ProxySettings,
    /// A device whose hosts are boosted without their knowledge; needs root.
    pub gateway: Option<GatewaySettings>,
    /// Connections to far that are kept ready.
    pub lanes: u32,
    /// Carry all flows over one session with far, which is resumed when its connections break.
    pub mux: bool,
    /// Carry that over UDT where UDP reaches far, or else over TCP.
    pub udt: bool,
    /// Goodput of a direct transfer, as a plan or a verification has it: what the saved time of the
    /// status compares with.
    pub direct_rate: Option<BitRate>,
    /// Connections that carry the session, 1 to [`MAX_CONNECTIONS`]; `None`: several where the kernel
    /// caps buffers.
    pub connections: Option<usize>,
    /// Settings of both boxes.
    pub settings: BoxSettings,
}

impl Default for NearRequest {
    fn default() -> Self {
        let settings = BoxSettings::default();
        NearRequest {
            far: String::new(),
            forwards: Vec::new(),
            proxy: ProxySettings::default(),
            gateway: None,
            lanes: 4,
            mux: false,
            udt: false,
            direct_rate: None,
            connections: None,
            settings,
        }
    }
}

/// The far box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FarRequest {
    /// Where near boxes connect.
    pub listen: SocketAddr,
    /// Targets: `HOST:PORT` or `NETWORK/LENGTH:PORT`. Without any, a box that only this host
    /// reaches connects to public addresses.
    pub allow: Vec<String>,
    /// UDP ports for near boxes that ask for UDT; `None`: any that is free.
    pub udt_ports: Option<RangeInclusive<u16>>,
    /// Settings of both boxes.
    pub settings: BoxSettings,
}

impl Default for FarRequest {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], PORT));
        FarRequest { listen, allow: Vec::new(), udt_ports: None, settings: BoxSettings::default() }
    }
}

impl FromStr for Forward {
    type Err = String;

    /// `[ADDRESS:]PORT:HOST:PORT`; IPv6 addresses in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "'{text}' is not a forwarded port; give [ADDRESS:]PORT:HOST:PORT, such as 8080:origin.example:80"
            )
        };
        let (rest, _) = text.rsplit_once(':').ok_or_else(invalid)?;
        let end = match rest.strip_suffix(']') {
            Some(inner) => inner.rfind('[').and_then(|start| start.checked_sub(1)),
            None => rest.rfind(':'),
        };
        let end = end.ok_or_else(invalid)?;
        let (listen, target) = (text.get(..end), text.get(end + 1..));
        let listen = host::address::parse_listen(listen.ok_or_else(invalid)?);
        Ok(Forward {
            listen: listen.map_err(|_| invalid())?,
            target: target.and_then(|target| target.parse().ok()).ok_or_else(invalid)?,
        })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.listen, self.target)
    }
}

impl TryFrom<String> for Forward {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Forward> for String {
    fn from(forward: Forward) -> String {
        forward.to_string()
    }
}

const KEYS: &str = "a file that longhaul boost pair describes";

impl BoxSettings {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.key_files.is_empty() && !self.insecure {
            let message = "the boxes need keys (longhaul boost pair makes them), or consent to \
                plaintext";
            return Err(Problem::field(Field::KeyFiles, message, KEYS));
        }
        if !self.key_files.is_empty() && self.insecure {
            let message = "keys and plaintext exclude each other";
            return Err(Problem::field(Field::Insecure, message, ""));
        }
        let in_range = |field: Field, what: &str, value: u64, range: RangeInclusive<u64>| {
            if range.contains(&value) {
                return Ok(());
            }
            let accepted = format!("{} to {}", range.start(), range.end());
            Err(Problem::field(field, format!("{what}: {value} is out of range"), accepted))
        };
        let buffer = self.buffer.map_or(64 << 10, ByteCount::bytes);
        in_range(Field::Buffer, "bytes of a buffer", buffer, 16 << 10..=MAX_LANE_BUFFER.bytes())?;
        in_range(Field::IdleTimeout, "seconds without data", self.idle_timeout_s, 1..=604_800)?;
        in_range(Field::Drain, "seconds of draining", self.drain_s, 0..=86_400)?;
        in_range(Field::MaxFlows, "flows", self.max_flows, 1..=1_000_000)
    }
}

impl BoostRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            BoostRequest::Near(request) => request.check(),
            BoostRequest::Far(request) => request.check(),
        }
    }
}

impl NearRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.settings.check()?;
        far_address(&self.far)?;
        self.proxy.check()?;
        self.gateway.as_ref().map_or(Ok(()), GatewaySettings::check)?;
        let has_proxy = !self.proxy.listen.is_empty();
        if self.forwards.is_empty() && !has_proxy && self.gateway.is_none() {
            let accepted = "[ADDRESS:]PORT:HOST:PORT, such as 8080:origin.example:80";
            return Err(Problem::field(Field::Forward, "nothing to boost", accepted));
        }
        if self.settings.key_files.len() > 1 {
            return Err(Problem::field(Field::KeyFiles, "a near box has one key", "one file"));
        }
        check_udt(self.udt, self.mux, &self.settings)?;
        check_direct_rate(self.direct_rate)?;
        check_connections(self.mux, self.connections)?;
        if self.lanes > 1024 {
            let message = format!("lanes: {} is out of range", self.lanes);
            return Err(Problem::field(Field::Lanes, message, "0 to 1024"));
        }
        Ok(())
    }
}

/// Below this, seconds saved are not plausible.
const MIN_DIRECT_RATE: BitRate = BitRate::from_bps(1000);

pub(super) fn check_direct_rate(rate: Option<BitRate>) -> Result<(), Problem> {
    let is_valid = |rate: BitRate| (MIN_DIRECT_RATE..=BitRate::MAX).contains(&rate);
    if rate.is_none_or(is_valid) {
        return Ok(());
    }
    let message = "the goodput of a direct transfer is out of range";
    let accepted = format!("{MIN_DIRECT_RATE} to {}", BitRate::MAX);
    Err(Problem::field(Field::DirectRate, message, accepted))
}

/// UDT carries sessions only, with a congestion control that it has.
pub(super) fn check_udt(udt: bool, mux: bool, settings: &BoxSettings) -> Result<(), Problem> {
    if udt && !mux {
        return Err(Problem::field(Field::Udt, "UDT carries the flows of mux", "mux, too"));
    }
    match settings.congestion.as_deref() {
        Some(name) if udt && Algorithm::for_native(name).is_none() => {
            let message = format!("'{name}' is not a congestion control of UDT");
            Err(Problem::field(Field::Congestion, message, "bbr, cubic or reno"))
        }
        _ => Ok(()),
    }
}

/// Only sessions have a number of connections.
pub(super) fn check_connections(mux: bool, connections: Option<usize>) -> Result<(), Problem> {
    let Some(count) = connections else { return Ok(()) };
    let accepted = format!("1 to {MAX_CONNECTIONS}, with mux");
    if !mux {
        let message = "without mux, each flow has a connection of its own";
        return Err(Problem::field(Field::Connections, message, accepted));
    }
    if !(1..=MAX_CONNECTIONS).contains(&count) {
        let message = format!("connections: {count} is out of range");
        return Err(Problem::field(Field::Connections, message, accepted));
    }
    Ok(())
}

/// The host and port of a far box.
pub(super) fn far_address(text: &str) -> Result<Target, Problem> {
    let with_default = || Target::new(text.parse::<TargetHost>().ok()?, PORT).ok();
    let parsed = text.parse::<Target>().ok().or_else(with_default);
    parsed.ok_or_else(|| {
        let message = format!("'{text}' is not a host");
        Problem::field(Field::Far, message, "HOST or HOST:PORT")
    })
}

impl FarRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.settings.check()?;
        self.rules()?;
        if self.allow.is_empty() && !self.listen.ip().is_loopback() {
            let message = "a far box that other hosts reach needs a list of targets";
            let accepted = "HOST:PORT or NETWORK/LENGTH:PORT, such as origin.example:80";
            return Err(Problem::field(Field::Allow, message, accepted));
        }
        if self.udt_ports.as_ref().is_some_and(|ports| ports.is_empty() || *ports.start() == 0) {
            let message = "no range of UDP ports";
            return Err(Problem::field(Field::UdtPorts, message, "such as 40000-40015"));
        }
        Ok(())
    }

    pub(super) fn rules(&self) -> Result<Vec<AllowRule>, Problem> {
        let rule = |text: &String| {
            let accepted = "HOST:PORT or NETWORK/LENGTH:PORT";
            text.parse().map_err(|error| Problem::field(Field::Allow, error, accepted))
        };
        self.allow.iter().map(rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_from_the_right() {
        for (text, listen, target) in [
            ("8080:origin.example:80", "127.0.0.1:8080", "origin.example:80"),
            ("0.0.0.0:8080:192.0.2.1:80", "0.0.0.0:8080", "192.0.2.1:80"),
            ("[::1]:8080:[2001:db8::1]:80", "[::1]:8080", "[2001:db8::1]:80"),
            ("8080:[2001:db8::1]:80", "127.0.0.1:8080", "[2001:db8::1]:80"),
            ("[::]:8080:a:80", "[::]:8080", "a:80"),
        ] {
            let forward: Forward = text.parse().unwrap();
            assert_eq!(
                (forward.listen.to_string(), forward.target.to_string()),
                (listen.to_owned(), target.to_owned())
            );
            assert_eq!(forward.to_string().parse(), Ok(forward));
        }
        for wrong in
            ["", "80", "a:80", "8080:80", "x:a:80", "8080:a:0", "]:80", "[:80", "8080:a b:80"]
        {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_fields_are_named() {
        let insecure = BoxSettings { insecure: true, ..BoxSettings::default() };
        let near = NearRequest {
            far: "far.example".to_owned(),
            forwards: vec!["1:a:2".parse().unwrap()],
            settings: insecure.clone(),
            ..NearRequest::default()
        };
        assert_eq!(near.check(), Ok(()));
        let with = |settings| NearRequest { settings, ..near.clone() };
        let keys = vec![PathBuf::from("a"), PathBuf::from("b")];
        let of_near = [
            (with(BoxSettings::default()), Field::KeyFiles),
            (with(BoxSettings { key_files: keys.clone(), ..insecure.clone() }), Field::Insecure),
            (with(BoxSettings { key_files: keys, ..BoxSettings::default() }), Field::KeyFiles),
            (with(BoxSettings { max_flows: 0, ..insecure.clone() }), Field::MaxFlows),
            (with(BoxSettings { idle_timeout_s: 0, ..insecure.clone() }), Field::IdleTimeout),
            (NearRequest { far: "a b".to_owned(), ..near.clone() }, Field::Far),
            (NearRequest { far: "a:0".to_owned(), ..near.clone() }, Field::Far),
            (NearRequest { forwards: Vec::new(), ..near.clone() }, Field::Forward),
            (NearRequest { lanes: 1025, ..near.clone() }, Field::Lanes),
            (NearRequest { direct_rate: Some(BitRate::ZERO), ..near.clone() }, Field::DirectRate),
            (NearRequest { connections: Some(1), ..near.clone() }, Field::Connections),
            (NearRequest { mux: true, connections: Some(0), ..near.clone() }, Field::Connections),
            (NearRequest { mux: true, connections: Some(17), ..near.clone() }, Field::Connections),
        ];
        for (request, field) in of_near {
            assert_eq!(request.check().unwrap_err().remedy.unwrap().field, field, "{request:?}");
        }
        let several = NearRequest { mux: true, connections: Some(MAX_CONNECTIONS), ..near };
        assert_eq!(several.check(), Ok(()));
        let far = FarRequest { settings: insecure, ..FarRequest::default() };
        assert_eq!(far.check(), Ok(()));
        let listen = SocketAddr::from(([0, 0, 0, 0], 1));
        for request in [
            FarRequest { listen, ..far.clone() },
            FarRequest { allow: vec!["a".to_owned()], ..far.clone() },
        ] {
            assert_eq!(request.check().unwrap_err().remedy.unwrap().field, Field::Allow);
        }
        let allow = vec!["a.example:80".to_owned(), "10.0.0.0/8:443".to_owned()];
        assert_eq!(FarRequest { listen, allow, ..far }.check(), Ok(()));
    }

    #[test]
    fn requests_survive_json() {
        let near =
            NearRequest { forwards: vec!["1:a:2".parse().unwrap()], ..NearRequest::default() };
        let request = BoostRequest::Near(near);
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<BoostRequest>(&text).unwrap(), request);
        assert!(serde_json::from_str::<FarRequest>(r#"{"alow": []}"#).is_err());
    }
}
