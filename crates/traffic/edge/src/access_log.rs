//! Lines of nginx's access log in the format of [`configuration`](crate::configuration()): one for
//! each request, and one for each further slice that it needed.
//!
//! ```text
//! status  cache-status  body-bytes  upstream-bytes  request-length
//! 206     MISS          1000100     8388900         111
//! ```
//!
//! Fields are separated by tabs. The length of a slice's request is 0: nobody sent one.

use units::ByteCount;

/// Longest line; a longer one is discarded.
pub const MAX_LINE: usize = 512;

/// The format in nginx's variables.
pub(crate) const FORMAT: &str = "$status\\t$upstream_cache_status\\t$body_bytes_sent\\t\
    $upstream_bytes_received\\t$request_length";

/// The cache's part in an answer, by nginx's `$upstream_cache_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheStatus {
    /// Fresh, from the cache.
    Hit,
    /// Expired, confirmed by the origin (304), from the cache.
    Revalidated,
    /// Expired, from the cache while another request renews it.
    Updating,
    /// Expired, from the cache because the origin failed, or while it is renewed.
    Stale,
    /// Not in the cache.
    Miss,
    /// Expired, and fetched again.
    Expired,
    /// The request has credentials or a cookie, so that the cache is not asked.
    Bypass,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A client's request, with its first slice.
    Request {
        /// The status of the answer.
        status: u16,
        /// Body bytes sent to the client, of all slices.
        sent: ByteCount,
    },
    /// A further slice of a request.
    Slice,
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its subject.
    pub subject: Subject,
    /// `None`: the cache was not asked, as for a request that was refused.
    pub cache: Option<CacheStatus>,
    /// Bytes received from the origin, with headers.
    pub fetched: ByteCount,
}

impl CacheStatus {
    /// All of them, those that are served from the cache first.
    pub const ALL: [CacheStatus; 7] = [
        CacheStatus::Hit,
        CacheStatus::Revalidated,
        CacheStatus::Updating,
        CacheStatus::Stale,
        CacheStatus::Miss,
        CacheStatus::Expired,
        CacheStatus::Bypass,
    ];

    /// nginx's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CacheStatus::Hit => "HIT",
            CacheStatus::Revalidated => "REVALIDATED",
            CacheStatus::Updating => "UPDATING",
            CacheStatus::Stale => "STALE",
            CacheStatus::Miss => "MISS",
            CacheStatus::Expired => "EXPIRED",
            CacheStatus::Bypass => "BYPASS",
        }
    }

    /// Returns true if the body is the cache's.
    #[must_use]
    pub const fn is_from_cache(self) -> bool {
        match self {
            CacheStatus::Hit
            | CacheStatus::Revalidated
            | CacheStatus::Updating
            | CacheStatus::Stale => true,
            CacheStatus::Miss | CacheStatus::Expired | CacheStatus::Bypass => false,
        }
    }

    /// The value of the header Cache-Status after the cache's name (RFC 9211, section 2).
    #[must_use]
    pub const fn parameters(self) -> &'static str {
        match self {
            CacheStatus::Hit => "hit",
            CacheStatus::Revalidated => "fwd=stale; fwd-status=304",
            CacheStatus::Updating => "hit; detail=updating",
            CacheStatus::Stale => "hit; detail=stale",
            CacheStatus::Miss => "fwd=uri-miss",
            CacheStatus::Expired => "fwd=stale",
            CacheStatus::Bypass => "fwd=bypass",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

impl Entry {
    /// Reads a line without its end. `None` if nginx does not write such a line.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_LINE {
            return None;
        }
        let mut fields = std::str::from_utf8(line).ok()?.split('\t');
        let mut next = || fields.next();
        let (status, cache, sent) = (next()?, next()?, next()?);
        let (fetched, length) = (next()?, next()?);
        if next().is_some() {
            return None;
        }
        let cache = match cache {
            "" | "-" => None,
            name => Some(CacheStatus::parse(name)?),
        };
        let subject = match number(length)? {
            0 => Subject::Slice,
            _ => Subject::Request {
                status: status.parse().ok().filter(|status| (100..=599).contains(status))?,
                sent: ByteCount::from_bytes(number(sent)?),
            },
        };
        Some(Entry { subject, cache, fetched: sum(fetched)? })
    }
}

/// Digits only: no sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Numbers of several upstream connections, as in `12, 0 : 34`; none is 0.
fn sum(text: &str) -> Option<ByteCount> {
    let mut all: u64 = 0;
    for part in text.split([',', ':']).map(str::trim) {
        match part {
            "" | "-" => {}
            digits => all = all.checked_add(number(digits)?)?,
        }
    }
    Some(ByteCount::from_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_requests_and_slices() {
        let entry = Entry::parse(b"206\tMISS\t1000100\t8388900\t111").unwrap();
        let sent = ByteCount::from_bytes(1_000_100);
        assert_eq!(entry.subject, Subject::Request { status: 206, sent });
        assert_eq!(entry.cache, Some(CacheStatus::Miss));
        assert_eq!(entry.fetched.bytes(), 8_388_900);
        let slice = Entry::parse(b"200\tHIT\t2097434\t\t0").unwrap();
        assert_eq!((slice.subject, slice.fetched), (Subject::Slice, ByteCount::ZERO));
        // A retried upstream, and a request that was refused.
        assert_eq!(Entry::parse(b"200\tMISS\t1\t0, 70 : 5\t9").unwrap().fetched.bytes(), 75);
        assert_eq!(Entry::parse(b"403\t\t0\t\t80").unwrap().cache, None);
        for status in CacheStatus::ALL {
            let line = format!("200\t{}\t1\t-\t9", status.name());
            assert_eq!(Entry::parse(line.as_bytes()).unwrap().cache, Some(status));
        }
    }

    #[test]
    fn hostile_lines_are_no_entries() {
        let long = format!("200\tHIT\t1\t1\t{}", "9".repeat(MAX_LINE));
        for line in [
            "",
            "200",
            "200\tHIT\t1\t1",
            "200\tHIT\t1\t1\t9\t9",
            "200\tSTOLEN\t1\t1\t9",
            "200\tHIT\t-1\t1\t9",
            "200\tHIT\t+1\t1\t9",
            "200\tHIT\t1\t1\t",
            "99\tHIT\t1\t1\t9",
            "20000\tHIT\t1\t1\t9",
            "200\tHIT\t99999999999999999999999\t1\t9",
            "200\tHIT\t1\t18446744073709551615,1\t9",
            "200\thit\t1\t1\t9",
            "\u{1b}[2J\tHIT\t1\t1\t9",
            &long,
        ] {
            assert_eq!(Entry::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(Entry::parse(b"200\tHIT\t\xff\t1\t9"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Entry::parse(&line);
        }

        #[test]
        fn any_fields_are_read(fields in proptest::collection::vec("[-0-9A-Z,: ]{0,22}", 5)) {
            let _ = Entry::parse(fields.join("\t").as_bytes());
        }
    }
}
