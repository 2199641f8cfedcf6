//! What an edge is asked for.

use crate::{Fault, Field, Problem};
use ::edge::{Authorities, CacheDirectory, EdgeConfig, Origin, Pseudonym, Scheme};
use host::identity;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use units::ByteCount;

/// Accepted sizes of a slice.
const SLICES: RangeInclusive<u64> = 64 << 10..=1 << 30;
/// Accepted sizes of a cache.
const CACHES: RangeInclusive<u64> = 1_000_000..=1 << 50;
/// Longest time for which an object is fresh: a year (RFC 9111, section 1.2.2, has no bound).
const MAX_FRESH: u64 = 31_536_000;

/// An edge cache in front of one origin. [`EdgeRequest::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EdgeRequest {
    /// The origin's URL: `http://HOST[:PORT][/PREFIX]`, or with https.
    pub origin: String,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Size of the parts in which objects are fetched; `None`: as a whole.
    pub slice: Option<ByteCount>,
    /// Most bytes of the cache.
    pub max_size: ByteCount,
    /// Seconds for which objects are fresh of which the origin says nothing; `None`: they are not
    /// stored.
    pub fresh_s: Option<u64>,
    /// A directory for the cache, which stays; `None`: a private one, which does not.
    pub cache: Option<PathBuf>,
    /// Seconds between reports.
    pub interval_s: f64,
}

impl Default for EdgeRequest {
    fn default() -> Self {
        EdgeRequest::new("")
    }
}

impl EdgeRequest {
    /// On port 8080 of the loopback, with slices of 8 MiB and a cache of 10 GB.
    pub fn new(origin: impl Into<String>) -> Self {
        EdgeRequest {
            origin: origin.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            slice: Some(ByteCount::from_bytes(8 << 20)),
            max_size: ByteCount::from_bytes(10_000_000_000),
            fresh_s: None,
            cache: None,
            interval_s: 10.0,
        }
    }

    /// Checks the fields before anything is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.config().map(drop)
    }

    pub(super) fn config(&self) -> Result<EdgeConfig, Problem> {
        let origin: Origin = self.origin.parse().map_err(|error: ::edge::OriginError| {
            Problem::field(Field::Origin, error.to_string(), "a URL such as https://HOST/PREFIX")
        })?;
        self.check_listen(&origin)?;
        self.check_numbers()?;
        let cache = match &self.cache {
            None => CacheDirectory::Private,
            Some(path) => {
                let path = path.to_str().unwrap_or_default().parse();
                CacheDirectory::At(path.map_err(|accepted: &str| {
                    Problem::field(Field::Cache, "the directory of the cache is invalid", accepted)
                })?)
            }
        };
        Ok(EdgeConfig {
            authorities: authorities(&origin)?,
            origin,
            listen: self.listen,
            slice: self.slice,
            max_size: self.max_size,
            fresh: self.fresh_s.map(Duration::from_secs),
            cache,
            pseudonym: Pseudonym::of(host::random::seed()),
            keeps_user: identity::must_stay_root(),
        })
    }

    fn check_listen(&self, origin: &Origin) -> Result<(), Problem> {
        let SocketAddr::V6(listen) = self.listen else {
            return self.check_loop(origin);
        };
        if listen.scope_id() != 0 {
            let message = "nginx does not listen on an address with a zone";
            return Err(Problem::field(Field::Listen, message, "an address without '%'"));
        }
        self.check_loop(origin)
    }

    /// An edge in front of itself; one that a name leads to is found by Via.
    fn check_loop(&self, origin: &Origin) -> Result<(), Problem> {
        let listen = self.listen.ip().to_canonical();
        let is_here = origin
            .address()
            .map(|ip| ip.to_canonical())
            .is_some_and(|ip| ip == listen || (ip.is_loopback() && listen.is_unspecified()));
        if origin.port() == self.listen.port() && is_here {
            let message = "the origin is this edge itself";
            return Err(Problem::field(Field::Origin, message, "the server behind the edge"));
        }
        if self.listen.port() == 0 {
            return Err(Problem::field(Field::Listen, "port 0", "a port from 1 to 65535"));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Problem> {
        if self.slice.is_some_and(|slice| !SLICES.contains(&slice.bytes())) {
            let accepted = "64KiB to 1GiB, or 0 for whole objects";
            return Err(Problem::field(
                Field::Slice,
                "the size of slices is out of range",
                accepted,
            ));
        }
        if !CACHES.contains(&self.max_size.bytes()) {
            let message = "the size of the cache is out of range";
            return Err(Problem::field(Field::MaxSize, message, "1MB to 1PiB"));
        }
        if self.fresh_s.is_some_and(|fresh| !(1..=MAX_FRESH).contains(&fresh)) {
            let message = "the time for which objects are fresh is out of range";
            return Err(Problem::field(Field::Fresh, message, "1 to 31536000 s"));
        }
        if !(self.interval_s >= 0.1 && self.interval_s <= 86_400.0) {
            let message = "the interval of reports is out of range";
            return Err(Problem::field(Field::Interval, message, "0.1 to 86400 s"));
        }
        Ok(())
    }
}

/// The certificates that an origin with TLS is verified with.
fn authorities(origin: &Origin) -> Result<Authorities, Problem> {
    let found = Authorities::ALL.into_iter().find(|file| file.path().is_file());
    match (found, origin.scheme()) {
        (Some(found), _) => Ok(found),
        (None, Scheme::Http) => Ok(Authorities::ALL[0]),
        (None, Scheme::Https) => {
            let message = "this host has no certificates of authorities to verify the origin with: \
                install the package ca-certificates";
            Err(Problem::new(Fault::Host, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let good = EdgeRequest::new("http://192.0.2.1/a");
        assert_eq!(good.check(), Ok(()));
        let bytes = |bytes| ByteCount::from_bytes(bytes);
        for (request, field) in [
            (EdgeRequest { origin: "http://a;b".to_owned(), ..good.clone() }, Field::Origin),
            (EdgeRequest { origin: "http://127.0.0.1:8080".into(), ..good.clone() }, Field::Origin),
            (EdgeRequest { slice: Some(bytes(1000)), ..good.clone() }, Field::Slice),
            (EdgeRequest { slice: Some(bytes(1 << 40)), ..good.clone() }, Field::Slice),
            (EdgeRequest { max_size: bytes(1000), ..good.clone() }, Field::MaxSize),
            (EdgeRequest { fresh_s: Some(0), ..good.clone() }, Field::Fresh),
            (EdgeRequest { cache: Some("relative".into()), ..good.clone() }, Field::Cache),
            (EdgeRequest { cache: Some("/a;b".into()), ..good.clone() }, Field::Cache),
            (EdgeRequest { interval_s: f64::NAN, ..good.clone() }, Field::Interval),
            (EdgeRequest { listen: "127.0.0.1:0".parse().unwrap(), ..good.clone() }, Field::Listen),
            (EdgeRequest { listen: "[fe80::1%2]:80".parse().unwrap(), ..good }, Field::Listen),
        ] {
            let problem = request.check().unwrap_err();
            assert_eq!(problem.remedy.map(|remedy| remedy.field), Some(field), "{request:?}");
        }
    }
}
