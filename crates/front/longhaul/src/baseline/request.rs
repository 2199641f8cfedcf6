//! The request of a baseline.

use super::{architecture, servers};
use crate::{Field, Problem};
use host::resolve::Family;
use record::{ArchitectureNote, BaselineReport};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;
use units::BitRate;

/// Maximum duration of a test, and of everything: a day.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// The measurement of [`run`](super::run). [`BaselineRequest::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BaselineRequest {
    /// The server, or where to look for one.
    pub server: ServerSource,
    /// The IP versions; [`Family::Any`] for both.
    pub family: Family,
    /// The duration of each test, s; `None` for what fits, down to 1 s.
    pub duration: Option<f64>,
    /// The time for everything. Three tests of each condition are made in any case.
    #[serde(with = "units::seconds")]
    pub within: Duration,
    /// Streams in multi-stream tests, 2 to 128.
    pub streams: u32,
    /// The seed of the order of the tests; `None` for a random one.
    pub seed: Option<u64>,
    /// Parts of the path, for the record and for comparisons: router, provider, cable.
    pub architecture: Vec<ArchitectureNote>,
    /// An earlier baseline to compare with.
    pub compare: Option<Box<BaselineReport>>,
}

/// The server to measure to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServerSource {
    /// This one.
    Host {
        /// Its name or address.
        host: String,
        /// Its ports: each test uses the first whose server is not busy.
        ports: RangeInclusive<u16>,
        /// The token of a longhaul server that requires one.
        token: Option<String>,
    },
    /// The nearest one of a list that is fast enough.
    List {
        /// The name of the list in the document.
        name: String,
        /// Lines `HOST PORTS RATE LOCATION`, or the JSON of public lists.
        text: String,
        /// The rate that the server must have; `None` for that of this host's link.
        rate: Option<BitRate>,
    },
}

impl Default for BaselineRequest {
    /// Without the host.
    fn default() -> Self {
        BaselineRequest::new("")
    }
}

impl BaselineRequest {
    /// Five minutes of tests to `host`.
    #[must_use]
    pub fn new(host: &str) -> Self {
        let port = iperf3_proto::DEFAULT_PORT;
        BaselineRequest {
            server: ServerSource::Host { host: host.to_owned(), ports: port..=port, token: None },
            family: Family::Any,
            duration: None,
            within: Duration::from_secs(300),
            streams: 4,
            seed: None,
            architecture: Vec::new(),
            compare: None,
        }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let wrong = |field, what: &str, accepted: &str| Err(Problem::field(field, what, accepted));
        match &self.server {
            ServerSource::Host { host, .. } if host.is_empty() => {
                return wrong(Field::Host, "no host", "a name or an address");
            }
            ServerSource::Host { ports, .. } if *ports.start() == 0 || ports.is_empty() => {
                return wrong(Field::Ports, "no ports", "1 to 65535, the lower one first");
            }
            ServerSource::Host { .. } => {}
            ServerSource::List { name, text, .. } => {
                servers::parse(name, text)?;
            }
        }
        architecture::check(&self.architecture)?;
        if self.duration.is_some_and(|s| !(s > 0.0 && s <= MAX_TIME.as_secs_f64())) {
            return wrong(Field::Duration, "invalid duration of a test", "above 0 and up to a day");
        }
        if self.within.is_zero() || self.within > MAX_TIME {
            return wrong(Field::Within, "no time for the tests", "above 0 and up to a day");
        }
        if !(2..=128).contains(&self.streams) {
            let what = format!("{} streams for multi-stream tests", self.streams);
            return wrong(Field::Streams, &what, "2 to 128");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut BaselineRequest)) -> Option<Field> {
        let mut request = BaselineRequest::new("192.0.2.1");
        change(&mut request);
        let problem = request.check().err()?;
        Some(problem.remedy.expect("a field").field)
    }

    #[test]
    fn contradictions_name_a_field() {
        assert_eq!(refused(|_| ()), None);
        let host = |host: &str, ports| {
            let (host, token) = (host.to_owned(), None);
            move |r: &mut BaselineRequest| r.server = ServerSource::Host { host, ports, token }
        };
        assert_eq!(refused(host("", 1..=1)), Some(Field::Host));
        assert_eq!(refused(host("a", 0..=1)), Some(Field::Ports));
        assert_eq!(refused(host("a", RangeInclusive::new(2, 1))), Some(Field::Ports));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            assert_eq!(refused(|r| r.duration = Some(seconds)), Some(Field::Duration), "{seconds}");
        }
        assert_eq!(refused(|r| r.duration = Some(0.1)), None);
        assert_eq!(refused(|r| r.within = Duration::ZERO), Some(Field::Within));
        assert_eq!(refused(|r| r.within = Duration::MAX), Some(Field::Within));
        assert_eq!(
            (refused(|r| r.streams = 1), refused(|r| r.streams = 2)),
            (Some(Field::Streams), None)
        );
        let list = |text: &str| {
            let (name, text, rate) = ("list".to_owned(), text.to_owned(), None);
            move |r: &mut BaselineRequest| r.server = ServerSource::List { name, text, rate }
        };
        assert_eq!(refused(list("these are words")), Some(Field::Servers));
        assert_eq!(refused(list("a.example 5201 1gbit Here")), None);
    }

    #[test]
    fn a_request_can_be_written_and_read() {
        let request = BaselineRequest { duration: Some(0.5), ..BaselineRequest::new("a") };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<BaselineRequest>(&text).unwrap(), request);
        assert!(serde_json::from_str::<BaselineRequest>(r#"{"stream": 3}"#).is_err());
    }
}
