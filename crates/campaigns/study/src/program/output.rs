//! The figures in a program's output.

use crate::value::ValueError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use units::{BitRate, ByteCount};

/// How the output of a program's client is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// curl's `--write-out '%{json}'`: the last line that is one.
    Curl,
    /// iperf 2's `-y C`: the sum of its streams' last lines.
    Iperf2,
    /// iperf3's `--json`: what the receiver counted.
    Iperf3,
    /// The last word that is a number, in a unit.
    Number(Unit),
    /// A number of a JSON document, by its pointer (RFC 6901).
    Json {
        /// Such as `/end/sum_received/bits_per_second`.
        pointer: String,
        /// Its unit.
        unit: Unit,
    },
}

/// An output that does not have what would be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its output has no goodput in the form '{output}'")]
pub struct NoGoodput {
    output: Output,
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    name: &'static str,
    /// Bit/s.
    bps: u32,
}

/// A program's report of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// Goodput in bit/s.
    pub rate: BitRate,
    /// Over that time, in seconds, if the output says so.
    pub seconds: Option<f64>,
    /// Bytes that the origin behind the server sent meanwhile, if there is one.
    pub origin: Option<ByteCount>,
}

const UNITS: [Unit; 9] = [
    Unit { name: "bit/s", bps: 1 },
    Unit { name: "kbit/s", bps: 1_000 },
    Unit { name: "Mbit/s", bps: 1_000_000 },
    Unit { name: "Gbit/s", bps: 1_000_000_000 },
    Unit { name: "B/s", bps: 8 },
    Unit { name: "kB/s", bps: 8_000 },
    Unit { name: "MB/s", bps: 8_000_000 },
    Unit { name: "KiB/s", bps: 8 << 10 },
    Unit { name: "MiB/s", bps: 8 << 20 },
];

/// Column of iperf 2's CSV with the bit/s of a stream, and with its interval.
const IPERF2_RATE: usize = 8;
const IPERF2_INTERVAL: usize = 6;
/// And with the number of the stream.
const IPERF2_STREAM: usize = 5;

impl Output {
    /// By its description in a plan: `curl`, `iperf2`, `iperf3`, `number UNIT` or
    /// `json POINTER UNIT`.
    pub(super) fn parse(text: &str) -> Result<Self, ValueError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["curl"] => Ok(Output::Curl),
            ["iperf2"] => Ok(Output::Iperf2),
            ["iperf3"] => Ok(Output::Iperf3),
            ["number", unit] => Ok(Output::Number(Unit::parse(unit)?)),
            ["json", pointer, unit] if pointer.starts_with('/') => {
                Ok(Output::Json { pointer: (*pointer).to_owned(), unit: Unit::parse(unit)? })
            }
            _ => Err(ValueError::unknown("output", text, format!("it is one of {FORMATS}"))),
        }
    }

    /// Reads the output of a client.
    ///
    /// # Errors
    /// [`NoGoodput`].
    pub fn read(&self, text: &str) -> Result<Reported, NoGoodput> {
        let reported = match self {
            Output::Curl => curl(text),
            Output::Iperf2 => iperf2(text),
            Output::Iperf3 => number_at(text, "/end/sum_received/bits_per_second")
                .map(|rate| (rate, number_at(text, "/end/sum_received/seconds"))),
            Output::Number(unit) => last_number(text).map(|rate| (rate * unit.factor(), None)),
            Output::Json { pointer, unit } => {
                number_at(text, pointer).map(|rate| (rate * unit.factor(), None))
            }
        };
        // A rate above what any network has is no measurement.
        let plausible = |rate: f64| (0.0..=BitRate::MAX.as_f64()).contains(&rate);
        let reported = reported.filter(|(rate, _)| plausible(*rate));
        let (rate, seconds) = reported.ok_or_else(|| NoGoodput { output: self.clone() })?;
        let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        Ok(Reported { rate: BitRate::from_bps_f64(rate), seconds, origin: None })
    }
}

/// The descriptions that a plan can have.
pub(super) const FORMATS: &str =
    "curl, iperf2, iperf3, number UNIT (the last number) and json POINTER UNIT";

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Curl => f.write_str("curl"),
            Output::Iperf2 => f.write_str("iperf2"),
            Output::Iperf3 => f.write_str("iperf3"),
            Output::Number(unit) => write!(f, "number {}", unit.name),
            Output::Json { pointer, unit } => write!(f, "json {pointer} {}", unit.name),
        }
    }
}

impl Unit {
    fn parse(text: &str) -> Result<Self, ValueError> {
        UNITS.into_iter().find(|unit| unit.name == text).ok_or_else(|| {
            let known: Vec<&str> = UNITS.iter().map(|unit| unit.name).collect();
            ValueError::unknown("unit", text, format!("units are {}", known.join(", ")))
        })
    }

    fn factor(self) -> f64 {
        f64::from(self.bps)
    }
}

/// Bit/s, and seconds.
type Rate = (f64, Option<f64>);

fn curl(text: &str) -> Option<Rate> {
    let line = text.lines().rev().find(|line| line.starts_with('{'))?;
    let document: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| document.get(name).and_then(Value::as_f64);
    let (bytes, seconds) =
        (number("size_download")? + number("size_upload")?, number("time_total")?);
    (seconds > 0.0).then(|| (bytes * 8.0 / seconds, Some(seconds)))
}

fn iperf2(text: &str) -> Option<Rate> {
    // The last line of each stream; -1 is the sum that some versions print.
    let mut streams: BTreeMap<&str, Rate> = BTreeMap::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.split(',').collect();
        let (Some(stream), Some(rate), Some((_, end))) = (
            columns.get(IPERF2_STREAM),
            columns.get(IPERF2_RATE).and_then(|text| text.parse::<f64>().ok()),
            columns.get(IPERF2_INTERVAL).and_then(|text| text.split_once('-')),
        ) else {
            continue;
        };
        streams.insert(stream, (rate, end.parse().ok()));
    }
    streams.remove("-1");
    let seconds = streams.values().filter_map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    let rate = streams.values().map(|(rate, _)| rate).sum();
    (!streams.is_empty()).then_some((rate, Some(seconds)))
}

fn number_at(text: &str, pointer: &str) -> Option<f64> {
    serde_json::from_str::<Value>(text).ok()?.pointer(pointer)?.as_f64()
}

fn last_number(text: &str) -> Option<f64> {
    text.split_whitespace()
        .rev()
        .find_map(|word| word.parse::<f64>().ok().filter(|n| n.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(format: &str, text: &str) -> Option<f64> {
        Some(Output::parse(format).unwrap().read(text).ok()?.rate.as_f64())
    }

    #[test]
    fn the_output_of_known_programs_is_read() {
        let curl = "noise\n{\"size_download\":1000000,\"size_upload\":0,\"time_total\":2.0}\n";
        assert_eq!(read("curl", curl), Some(4e6));
        let iperf2 = "20260101000000,10.0.0.1,58174,10.0.0.2,5001,2,0.0-1.0,12,96\n\
                      20260101000000,10.0.0.1,58160,10.0.0.2,5001,1,0.0-1.0,13,104\n\
                      20260101000000,10.0.0.1,0,10.0.0.2,5001,-1,0.0-1.0,25,200\n";
        assert_eq!(read("iperf2", iperf2), Some(200.0));
        let iperf3 = "{\"end\":{\"sum_received\":{\"bits_per_second\":5e6,\"seconds\":1.0}}}";
        assert_eq!(read("iperf3", iperf3), Some(5e6));
        assert_eq!(read("number MB/s", "about 2.5 MB/s"), Some(20e6));
        assert_eq!(read("json /rates/0 kbit/s", "{\"rates\":[7]}"), Some(7e3));
    }

    #[test]
    fn what_is_no_goodput_is_refused() {
        for (format, text) in [
            ("curl", "{}"),
            ("curl", "{\"size_download\":1,\"size_upload\":0,\"time_total\":0}"),
            ("iperf2", "iperf: connect failed"),
            ("iperf3", "{\"error\":\"the server is busy\"}"),
            ("number bit/s", "nan inf"),
            ("number bit/s", "-5"),
            ("number Gbit/s", "1e300"),
            ("json /a bit/s", "{\"a\":\"1\"}"),
        ] {
            assert_eq!(read(format, text), None, "{format}: {text}");
        }
        for wrong in ["", "wget", "number", "number m/s", "json a bit/s", "json /a"] {
            assert!(Output::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_output_is_answered(text in ".*", format in 0usize..5) {
            let formats = ["curl", "iperf2", "iperf3", "number MB/s", "json /a bit/s"];
            let _ = Output::parse(formats[format]).unwrap().read(&text);
        }
    }
}
