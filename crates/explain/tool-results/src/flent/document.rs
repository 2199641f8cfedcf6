//! A data file of flent, as JSON: of its series only those of flows and pings are kept.

use crate::{
    number,
    transfer::{MAX_NAME, MAX_STREAMS},
};
use iperf3_proto::lenient::{Scalar, short_text};
use record::Direction;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Times of a series: more than an hour of flent's default of 0.2 s.
const MAX_TIMES: usize = 20_000;

/// Series: of each flow a rate and an RTT, and those of pings.
const MAX_SERIES: usize = 2 * MAX_STREAMS + 32;

/// The series of a flow's RTTs, after its name.
pub(super) const RTT: &str = "::tcp_rtt";

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) metadata: Metadata,
    #[serde(deserialize_with = "number::list::<_, MAX_TIMES, _>")]
    pub(super) x_values: Vec<Scalar>,
    pub(super) results: ByName<Values>,
    #[serde(default)]
    pub(super) raw_values: ByName<Reports>,
}

/// What a runner reported of a series, each at its time.
#[derive(Debug, Deserialize)]
pub(super) struct Reports(
    #[serde(deserialize_with = "number::list::<_, MAX_TIMES, _>")] pub(super) Vec<RawValue>,
);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RawValue {
    Report(Report),
    Other(IgnoredAny),
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    /// Its end, seconds since 1970.
    #[serde(deserialize_with = "number::maybe")]
    pub(super) t: Option<f64>,
    /// Its length, in seconds.
    #[serde(deserialize_with = "number::maybe")]
    pub(super) dur: Option<f64>,
    /// Mbit/s, or ms.
    #[serde(deserialize_with = "number::maybe")]
    pub(super) val: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) tcp_rtt: Option<f64>,
}

/// A series; null where it has no value.
#[derive(Debug, Deserialize)]
pub(super) struct Values(
    #[serde(deserialize_with = "number::list::<_, MAX_TIMES, _>")] pub(super) Vec<Scalar>,
);

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "UPPERCASE")]
pub(super) struct Metadata {
    #[serde(deserialize_with = "short_text::<120, _>")]
    pub(super) host: Option<String>,
    #[serde(deserialize_with = "short_text::<60, _>")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "short_text::<40, _>")]
    pub(super) time: Option<String>,
    #[serde(deserialize_with = "short_text::<40, _>")]
    pub(super) flent_version: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) step_size: Option<f64>,
    pub(super) series_meta: ByName<SeriesMeta>,
}

/// What belongs to the names of flows and pings; other names are skipped. Of flows beyond
/// [`MAX_STREAMS`] only the number is kept.
#[derive(Debug)]
pub(super) struct ByName<T> {
    pub(super) all: BTreeMap<String, T>,
    pub(super) left_out: usize,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName { all: BTreeMap::new(), left_out: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByNameVisitor(PhantomData))
    }
}

struct ByNameVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ByNameVisitor<T> {
    type Value = ByName<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the names of series")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByName<T>, A::Error> {
        let (mut all, mut flows, mut left_out) = (BTreeMap::new(), 0, 0);
        while let Some(name) = map.next_key::<String>()? {
            let is_flow = direction(&name).is_some();
            let is_ours = is_flow || name.ends_with(RTT) || name.starts_with("Ping");
            let is_one_too_many = is_flow && flows == MAX_STREAMS;
            left_out += usize::from(is_one_too_many);
            let has_room = all.len() < MAX_SERIES && name.len() <= MAX_NAME;
            if is_ours && has_room && !is_one_too_many {
                flows += usize::from(is_flow);
                all.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(ByName { all, left_out })
    }
}

/// What a runner said of its series.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "UPPERCASE")]
pub(super) struct SeriesMeta {
    #[serde(deserialize_with = "short_text::<40, _>")]
    pub(super) cong_control: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) tcpi_total_retrans: Option<f64>,
}

/// The direction of a flow's series; `None` for sums, means, pings and socket statistics.
pub(super) fn direction(name: &str) -> Option<Direction> {
    let computed = [" sum", " avg", "totals", "::tcp_", " fairness"];
    if !name.starts_with("TCP") || computed.iter().any(|word| name.contains(word)) {
        return None;
    }
    if name.contains("upload") {
        Some(Direction::Forward)
    } else {
        name.contains("download").then_some(Direction::Reverse)
    }
}
