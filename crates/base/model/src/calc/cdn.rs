//! An object from its origin, and from an edge cache near the client.

use super::result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
    by_decades,
};
use super::{CalcError, check_mss, check_rtt, check_window};
use crate::edge::{EdgeFetch, EdgeLeg, LOCK_POLL_S, MAX_SLICES};
use crate::{Congestion, figures};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Sizes of the table.
const SIZES: [u64; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
/// Most clients at once, as nginx has connections.
const MAX_CLIENTS: u32 = 4096;
/// The smallest slice.
const MIN_SLICE: u64 = 16 << 10;

/// An object, the path to its origin, and an edge on the way.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CdnQuestion {
    /// Size of the object.
    pub size: ByteCount,
    /// First and last byte that are asked for; all if `None`.
    #[serde(default)]
    pub range: Option<(u64, u64)>,
    /// The rate of the path to the origin.
    pub rate: BitRate,
    /// The RTT between client and origin.
    pub rtt: Rtt,
    /// Random loss between edge and origin.
    pub loss: LossRatio,
    /// The RTT between client and edge.
    pub edge_rtt: Rtt,
    /// The rate between client and edge; the same as to the origin if `None`.
    pub edge_rate: Option<BitRate>,
    /// Size of the edge's slices; it fetches whole objects if `None`.
    pub slice: Option<ByteCount>,
    /// Clients that ask for the object at once.
    pub clients: u32,
    /// The client's receive window, if it is a limit.
    pub window: Option<ByteCount>,
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// Congestion control of edge and origin.
    pub congestion: Congestion,
}

impl CdnQuestion {
    /// The fetch that is asked about.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn fetch(&self) -> Result<EdgeFetch, CalcError> {
        check_rtt(self.rtt)?;
        check_rtt(self.edge_rtt)?;
        check_mss(self.mss)?;
        self.window.map(check_window).transpose()?;
        let far = self.rtt.nanos().checked_sub(self.edge_rtt.nanos()).filter(|rtt| *rtt > 0);
        let far = far.ok_or(CalcError::EdgeRtt)?;
        if self.size == ByteCount::ZERO {
            return Err(CalcError::ZeroSize);
        }
        if [Some(self.rate), self.edge_rate].contains(&Some(BitRate::ZERO)) {
            return Err(CalcError::ZeroRate);
        }
        if self.range.is_some_and(|(first, last)| first > last || first >= self.size.bytes()) {
            return Err(CalcError::Range);
        }
        if !(1..=MAX_CLIENTS).contains(&self.clients) {
            return Err(CalcError::Clients(self.clients));
        }
        let too_many = |slice: u64| self.size.bytes() / slice >= MAX_SLICES;
        let slice = self.slice.map(ByteCount::bytes);
        if slice.is_some_and(|slice| slice < MIN_SLICE || too_many(slice)) {
            return Err(CalcError::Slice);
        }
        Ok(EdgeFetch {
            near: EdgeLeg {
                rate: self.edge_rate.unwrap_or(self.rate),
                rtt: self.edge_rtt,
                loss: LossRatio::NONE,
            },
            far: EdgeLeg { rate: self.rate, rtt: Rtt::from_nanos(far), loss: self.loss },
            size: self.size,
            range: self.range,
            slice: self.slice,
            buffered: ByteCount::ZERO,
            window: self.window,
            mss: self.mss,
            initial: crate::INITIAL_WINDOW_SEGMENTS as u32,
            congestion: self.congestion,
        })
    }
}

/// Computes the times of an object from the origin and from an edge that has it, does not have it,
/// or has it expired.
///
/// # Errors
/// If a value is out of range, or no model covers it.
pub fn cdn(question: &CdnQuestion) -> Result<CalcResult, CalcError> {
    let fetch = question.fetch()?;
    let times = Times::of(&fetch).ok_or(CalcError::BbrLoss)?;
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "cdn",
        asked: asked(question),
        answers: answers(question, &fetch, &times),
        holds: holds(question),
        tables: vec![table(question, &fetch)],
        curve: Some(curve(&fetch)),
    })
}

/// Seconds from the SYN to the last byte.
struct Times {
    direct: f64,
    warm: f64,
    expired: f64,
    cold: f64,
}

impl Times {
    fn of(fetch: &EdgeFetch) -> Option<Self> {
        Some(Times {
            direct: fetch.direct()?,
            warm: fetch.warm()?,
            expired: fetch.expired()?,
            cold: fetch.cold()?,
        })
    }
}

fn asked(question: &CdnQuestion) -> Entries {
    let range = question.range.map(|(first, last)| Value::Text(format!("{first}-{last}")));
    Entries(vec![
        ("size_bytes", Some(Value::Size(question.size))),
        ("range", range),
        ("rate_bps", Some(Value::Rate(question.rate))),
        ("rtt_ms", Some(Value::Rtt(question.rtt))),
        ("loss", Some(Value::Loss(question.loss))),
        ("edge_rtt_ms", Some(Value::Rtt(question.edge_rtt))),
        ("edge_rate_bps", question.edge_rate.map(Value::Rate)),
        ("slice_bytes", question.slice.map(Value::Size)),
        ("clients", Some(Value::Count(u64::from(question.clients)))),
        ("window_bytes", question.window.map(Value::Size)),
        ("mss_bytes", Some(Value::Size(question.mss))),
        ("congestion", Some(Value::Text(question.congestion.name().to_owned()))),
    ])
}

fn answers(question: &CdnQuestion, fetch: &EdgeFetch, times: &Times) -> Vec<Answer> {
    let (rtt, near, far) =
        (figures::rtt(question.rtt), figures::rtt(fetch.near.rtt), figures::rtt(fetch.far.rtt));
    let (length, slices) = (figures::bytes(fetch.length()), fetch.slice_count());
    let answer = |key, label: &str, value, equation, source| Answer {
        key,
        label: label.to_owned(),
        value,
        equation,
        source,
    };
    let time = |seconds| Some(Value::Seconds(seconds));
    let expired = match fetch.slice {
        Some(_) => format!("warm + {slices} x {far}, one request for each slice"),
        None => "warm: the edge sends its copy, and confirms it in the background".to_owned(),
    };
    let mut answers = vec![
        answer(
            "direct_s",
            "from the origin",
            time(times.direct),
            format!("handshake {rtt} + request {rtt} + slow start and {length} at the link's rate"),
            "RFC 9293, section 3.5; RFC 5681, section 3.1; RFC 6928",
        ),
        answer(
            "warm_s",
            "edge, warm",
            time(times.warm),
            format!("the same over {near}"),
            "RFC 9111, section 4.2",
        ),
        answer("expired_s", "edge, expired", time(times.expired), expired, "RFC 9111, section 4.3"),
        answer(
            "cold_s",
            "edge, cold",
            time(times.cold),
            format!(
                "2 x {near} + handshake and request {far} each + slow start + {} x {far} between \
                 slices",
                slices - 1
            ),
            "as above; nginx, ngx_http_slice_module",
        ),
        answer(
            "gain",
            "gain, warm",
            Some(Value::Number(times.direct / times.warm)),
            "from the origin / edge, warm".to_owned(),
            "",
        ),
        answer(
            "origin_bytes",
            "fetched once",
            Some(Value::Size(fetch.fetched())),
            "the slices that have a byte of it".to_owned(),
            "nginx, proxy_cache_lock",
        ),
    ];
    if question.clients > 1 {
        let waiting = fetch.waiting(question.clients).map(Value::Seconds);
        answers.push(answer(
            "waiting_s",
            "last of the clients",
            waiting,
            format!(
                "one fetches, {} look for each slice every {} s, then share the edge's link",
                question.clients - 1,
                figures::digits(LOCK_POLL_S)
            ),
            "nginx, ngx_http_file_cache_lock",
        ));
    }
    answers
}

fn holds(question: &CdnQuestion) -> Vec<String> {
    let mut holds = vec![
        "Time from the client's SYN to its last byte, over new connections; cold includes the edge's \
         own connection to the origin, expired uses one that is open. The edge passes on what it \
         receives, and takes no time itself."
            .to_owned(),
        "The bottleneck's queue holds a slice, which an origin with an open window sends in a burst \
         unless it is paced. Of an expired object with several slices, the time is an upper bound: the client gets what the \
         edge's socket buffer holds while the edge waits."
            .to_owned(),
        "Not included: TLS (one more RTT of each handshake, RFC 8446), name resolution, HyStart, a \
         queue that overflows in slow start."
            .to_owned(),
    ];
    if question.clients > 1 {
        holds.push(
            "Clients are taken to ask at the same moment for the whole object. The link to the edge \
             is the only thing that they share."
                .to_owned(),
        );
    }
    holds
}

fn table(question: &CdnQuestion, fetch: &EdgeFetch) -> Table {
    let mut sizes: Vec<u64> = SIZES.to_vec();
    sizes.push(question.size.bytes());
    sizes.sort_unstable();
    sizes.dedup();
    let rows = sizes.into_iter().map(|size| {
        let one = EdgeFetch { size: ByteCount::from_bytes(size), range: None, ..*fetch };
        let seconds = |time: Option<f64>| time.map(Value::Seconds);
        Row {
            cells: vec![
                Some(Value::Size(one.size)),
                seconds(one.direct()),
                seconds(one.cold()),
                seconds(one.expired()),
                seconds(one.warm()),
                one.direct().zip(one.warm()).map(|(direct, warm)| Value::Number(direct / warm)),
            ],
            marked: size == question.size.bytes() && question.range.is_none(),
        }
    });
    let column = |key, title| Column { key, title };
    Table {
        title: "whole objects".to_owned(),
        columns: vec![
            column("size_bytes", "object"),
            column("direct_s", "origin"),
            column("cold_s", "cold"),
            column("expired_s", "expired"),
            column("warm_s", "warm"),
            column("gain", "gain, warm"),
        ],
        rows: rows.collect(),
    }
}

/// The times of objects from 10 kB to 1 GB.
fn curve(fetch: &EdgeFetch) -> Curve {
    let points = |time: fn(&EdgeFetch) -> Option<f64>| {
        let one = |size: f64| {
            let one = EdgeFetch { size: ByteCount::from_f64(size), range: None, ..*fetch };
            Some((size, time(&one)?))
        };
        by_decades(1e4, 1e9, 41).filter_map(one).collect()
    };
    Curve {
        title: "time over the size of the object".to_owned(),
        x: Scale::LogBytes,
        y: Scale::LogSeconds,
        series: vec![
            Series { name: "origin", points: points(EdgeFetch::direct) },
            Series { name: "cold", points: points(EdgeFetch::cold) },
            Series { name: "warm", points: points(EdgeFetch::warm) },
        ],
        rule: None,
        asked: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> CdnQuestion {
        CdnQuestion {
            size: ByteCount::from_bytes(1_000_000),
            range: None,
            rate: "100mbit".parse().unwrap(),
            rtt: "170ms".parse().unwrap(),
            loss: LossRatio::NONE,
            edge_rtt: "4ms".parse().unwrap(),
            edge_rate: None,
            slice: Some(ByteCount::from_bytes(8 << 20)),
            clients: 1,
            window: None,
            mss: ByteCount::from_bytes(1448),
            congestion: Congestion::Cubic,
        }
    }

    fn seconds(result: &CalcResult, key: &str) -> f64 {
        match result.figure(key) {
            Some(Value::Seconds(seconds) | Value::Number(seconds)) => *seconds,
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn a_megabyte_from_170_ms_and_from_4() {
        let result = cdn(&CdnQuestion { clients: 100, ..question() }).unwrap();
        // Handshake, request and seven windows of slow start; at 4 ms two.
        assert!((1.2..1.6).contains(&seconds(&result, "direct_s")), "{result:?}");
        assert!((0.08..0.11).contains(&seconds(&result, "warm_s")), "{result:?}");
        // The same path in two parts, of which the longer one has a shorter control loop.
        let cold = seconds(&result, "cold_s") / seconds(&result, "direct_s");
        assert!((0.97..1.0).contains(&cold), "{result:?}");
        assert!((12.0..18.0).contains(&seconds(&result, "gain")), "{result:?}");
        assert!((8.5..10.5).contains(&seconds(&result, "waiting_s")), "{result:?}");
        assert_eq!(result.tables[0].rows.iter().filter(|row| row.marked).count(), 1);
        assert_eq!(cdn(&question()).unwrap().figure("waiting_s"), None);
    }

    #[test]
    fn errors_name_the_value() {
        let good = question();
        let zero = ByteCount::ZERO;
        for (question, says) in [
            (CdnQuestion { size: zero, ..good }, "zero bytes"),
            (CdnQuestion { rtt: Rtt::ZERO, ..good }, "round trip"),
            (CdnQuestion { edge_rtt: good.rtt, ..good }, "below the origin's"),
            (CdnQuestion { rate: BitRate::ZERO, ..good }, "above zero"),
            (CdnQuestion { range: Some((5, 4)), ..good }, "FIRST-LAST"),
            (CdnQuestion { range: Some((1_000_000, 1_000_001)), ..good }, "FIRST-LAST"),
            (CdnQuestion { clients: 0, ..good }, "0 clients"),
            (CdnQuestion { clients: 5_000, ..good }, "5000 clients"),
            (CdnQuestion { slice: Some(zero), ..good }, "a slice"),
            (CdnQuestion { size: ByteCount::from_bytes(u64::MAX), ..good }, "a slice"),
            (CdnQuestion { window: Some(zero), ..good }, "window of zero"),
        ] {
            let error = cdn(&question).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
        let lossy =
            CdnQuestion { loss: "30%".parse().unwrap(), congestion: Congestion::Bbr, ..good };
        assert_eq!(cdn(&lossy), Err(CalcError::BbrLoss));
    }
}
