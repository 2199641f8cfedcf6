//! The document of a kept result. It is read field by field: what is missing, or of another type,
//! is not shown, whoever wrote the file.

use super::texts;
use serde_json::Value;
use units::{BitRate, percent};

/// The most steps and rows of a list that are shown, and the longest text.
const MAX_LIST: usize = 64;
const MAX_PROBES: usize = 10_000;
const MAX_TEXT: usize = 4000;
/// Above every figure that is measured.
const MAX_NUMBER: f64 = 1e18;

/// A kept result.
#[derive(Debug)]
pub(crate) struct RunFile {
    pub(super) id: String,
    value: Value,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    Rate,
    Milliseconds,
    Share,
    PerMinute,
}

/// A figure of a result.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// Its place in the document, and that of its interval; empty without one.
    place: &'static str,
    interval: &'static str,
    unit: Unit,
}

/// The place of the loss, which has its interval beside it.
const LOSS: &str = "/result/loss/ratio";

/// The figures that two results are compared by.
pub(super) const FIGURES: &[Figure] = &[
    figure(texts::DOWNLOAD_ONE, "/result/download/one_flow", "download_one", Unit::Rate),
    figure(texts::DOWNLOAD, "/result/download/several_flows", "download_several", Unit::Rate),
    figure(texts::UPLOAD_ONE, "/result/upload/one_flow", "upload_one", Unit::Rate),
    figure(texts::UPLOAD, "/result/upload/several_flows", "upload_several", Unit::Rate),
    figure(texts::RTT_IDLE, "/result/rtt_idle", "rtt_idle", Unit::Milliseconds),
    figure(texts::RTT_DOWNLOAD, "/result/rtt_download", "rtt_download", Unit::Milliseconds),
    figure(texts::RTT_UPLOAD, "/result/rtt_upload", "rtt_upload", Unit::Milliseconds),
    figure(texts::JITTER, "/result/jitter", "jitter", Unit::Milliseconds),
    figure(texts::LOSS, LOSS, "", Unit::Share),
    figure(texts::RPM, "/result/rpm", "", Unit::PerMinute),
];

const fn figure(
    name: &'static str,
    place: &'static str,
    interval: &'static str,
    unit: Unit,
) -> Figure {
    Figure { name, place, interval, unit }
}

/// A rate as text.
pub(super) fn rate(bps: f64) -> String {
    BitRate::from_bps_f64(bps.clamp(0.0, MAX_NUMBER)).to_string()
}

impl Figure {
    pub(super) fn text(&self, value: f64) -> String {
        match self.unit {
            Unit::Rate => rate(value),
            Unit::Milliseconds => format!("{} ms", units::significant(value, 3)),
            Unit::Share => percent(value),
            Unit::PerMinute => format!("{value:.0} RPM"),
        }
    }

    pub(super) fn range(&self, [low, high]: [f64; 2]) -> String {
        format!("{} – {}", self.text(low), self.text(high))
    }
}

impl RunFile {
    /// The document with an ID, which is one if there is a document.
    pub(crate) fn read(id: &str, text: &[u8]) -> Self {
        RunFile { id: id.to_owned(), value: serde_json::from_slice(text).unwrap_or_default() }
    }

    /// When it was measured, in seconds since 1970-01-01 UTC.
    pub(super) fn at(&self) -> u64 {
        self.value.get("at").and_then(Value::as_u64).unwrap_or(0)
    }

    pub(super) fn number(&self, place: &str) -> Option<f64> {
        number(self.value.pointer(place)?)
    }

    pub(super) fn text(&self, place: &str) -> Option<&str> {
        text(self.value.pointer(place)?)
    }

    pub(super) fn list(&self, place: &str) -> Vec<&Value> {
        let list = self.value.pointer(place).and_then(Value::as_array);
        list.into_iter().flatten().take(MAX_LIST).collect()
    }

    pub(super) fn texts(&self, place: &str) -> Vec<&str> {
        self.list(place).into_iter().filter_map(text).collect()
    }

    pub(super) fn figure(&self, figure: &Figure) -> Option<f64> {
        self.number(figure.place)
    }

    pub(super) fn interval(&self, figure: &Figure) -> Option<[f64; 2]> {
        let ends = if figure.place == LOSS {
            let loss = self.value.pointer("/result/loss")?;
            [number(loss.get("low")?)?, number(loss.get("high")?)?]
        } else {
            let value = self.value.pointer("/result/intervals")?.get(figure.interval)?;
            [number(value.get(0)?)?, number(value.get(1)?)?]
        };
        (ends[0] <= ends[1]).then_some(ends)
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.list("/steps").into_iter().map(|value| Step { value })
    }

    /// The transfer whose limit the result tells: the download with one flow, else another one.
    pub(super) fn explained(&self) -> Option<Step<'_>> {
        let of = |kind: &str, several: bool| {
            let fits = |step: &Step<'_>| {
                step.kind() == kind && (step.flows() > 1) == several && step.experiment().is_none()
            };
            self.steps().filter(fits).last()
        };
        of("download", false).or_else(|| of("download", true)).or_else(|| of("upload", false))
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| (0.0..MAX_NUMBER).contains(number))
}

pub(super) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| (1..=MAX_TEXT).contains(&text.len()))
}

/// A step of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) value: &'a Value,
}

impl<'a> Step<'a> {
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        text(self.value.get(name)?)
    }

    fn count(&self, name: &str) -> u32 {
        let count = self.value.get(name).and_then(Value::as_u64);
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
    }

    pub(super) fn number(&self) -> u32 {
        self.count("step")
    }

    pub(super) fn flows(&self) -> u32 {
        self.count("flows")
    }

    pub(super) fn is_measured(&self) -> bool {
        self.value.get("measured").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.text("kind") {
            Some("download") => "download",
            Some("upload") => "upload",
            Some("loss") => "loss",
            _ => "idle",
        }
    }

    /// The congestion control that an experiment tried.
    pub(super) fn experiment(&self) -> Option<&'a str> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        self.text("experiment")
            .filter(|name| name.starts_with(char::is_alphanumeric))
            .filter(|name| name.chars().all(is_name))
    }

    /// `download, 6 flows, bbr`
    pub(super) fn name(&self) -> String {
        let mut name = self.kind().to_owned();
        match self.flows() {
            0 => {}
            1 => name += ", 1 flow",
            flows => name += &format!(", {flows} flows"),
        }
        if let Some(congestion) = self.experiment() {
            name += ", ";
            name += congestion;
        }
        name
    }

    /// Rate and RTT.
    pub(super) fn cells(&self) -> [String; 2] {
        let of = |name: &str| self.value.get(name).and_then(number);
        let rtt = of("rtt_loaded").or(of("rtt_idle"));
        let none = || "–".to_owned();
        [
            of("rate").map_or_else(none, rate),
            rtt.map_or_else(none, |ms| format!("{} ms", units::significant(ms, 3))),
        ]
    }

    /// Times and RTTs of probes.
    pub(super) fn probes(&self, on: &str) -> impl Iterator<Item = (f64, f64)> {
        let list = self.value.get("probes").and_then(|probes| probes.get(on)?.as_array());
        let pair = |probe: &Value| Some((number(probe.get(0)?)?, number(probe.get(1)?)?));
        list.into_iter().flatten().take(MAX_PROBES).filter_map(pair)
    }
}
