//! The figures in the clients' output.

use bench_harness::Fallible;
use serde_json::Value;

/// What a client shows, and what the server counted: bit/s, or round trips per minute.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) down: f64,
    pub(crate) up: f64,
    counted_down: Option<f64>,
    counted_up: Option<f64>,
}

impl Figures {
    /// How far what is shown is from what was counted, as shares.
    pub(crate) fn deviations(&self) -> Vec<f64> {
        let pairs = [(self.down, self.counted_down), (self.up, self.counted_up)];
        let of = |(shown, counted): (f64, Option<f64>)| Some((shown / counted? - 1.0).abs());
        pairs.into_iter().filter_map(of).collect()
    }

    /// The largest of the deviations.
    pub(crate) fn worst(&self) -> f64 {
        self.deviations().into_iter().fold(0.0, f64::max)
    }
}

fn number(value: &Value, path: &str) -> Fallible<f64> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.ok_or_else(|| format!("no {path} in {value}").into())
}

/// The rate of a server's `TCPInfo`.
fn counted(tcp: &Value, bytes: &str) -> Fallible<f64> {
    Ok(number(tcp, &format!("/{bytes}"))? * 8e6 / number(tcp, "/ElapsedTime")?)
}

fn lines(text: &str) -> impl DoubleEndedIterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn last(text: &str) -> Fallible<Value> {
    lines(text).next_back().ok_or_else(|| "no result".into())
}

pub(crate) fn ndt7_client(text: &str) -> Fallible<Figures> {
    let count = |test: &str, bytes: &str| {
        let of = |line: &Value| line["Test"] == test && line["Measurement"]["TCPInfo"].is_object();
        let line = lines(text).rfind(of).ok_or_else(|| format!("no message in the {test}"))?;
        counted(&line["Measurement"]["TCPInfo"], bytes)
    };
    let summary = lines(text).rfind(|line| line["Type"] == "Summary").ok_or("no summary")?;
    Ok(Figures {
        down: number(&summary, "/Summary/Download/ThroughputMbps")? * 1e6,
        up: number(&summary, "/Summary/Upload/ThroughputMbps")? * 1e6,
        counted_down: Some(count("download", "BytesAcked")?),
        counted_up: Some(count("upload", "BytesReceived")?),
    })
}

pub(crate) fn ndt7_js(text: &str) -> Fallible<Figures> {
    let result = last(text)?;
    if result["errors"].as_array().is_none_or(|errors| !errors.is_empty()) {
        return Err(format!("{}", result["errors"]).into());
    }
    Ok(Figures {
        down: number(&result, "/down/client/MeanClientMbps")? * 1e6,
        // Its example page shows the server's count.
        up: counted(&result["up"]["tcp"], "BytesReceived")?,
        counted_down: Some(counted(&result["down"]["tcp"], "BytesAcked")?),
        counted_up: None,
    })
}

/// Its figures, and those that its rule gives for the server's times.
pub(crate) fn cloudflare(text: &str, (down, up): (f64, f64)) -> Fallible<Figures> {
    let result = last(text)?;
    if result["errors"].as_array().is_none_or(|errors| !errors.is_empty()) {
        return Err(format!("{}", result["errors"]).into());
    }
    Ok(Figures {
        down: number(&result, "/summary/download")?,
        up: number(&result, "/summary/upload")?,
        counted_down: Some(down),
        counted_up: Some(up),
    })
}

/// `mach rpm` prints one document.
pub(crate) fn mach(text: &str) -> Fallible<Figures> {
    let start = text.find('{').ok_or("no result")?;
    let result: Value = serde_json::from_str(text.get(start..).unwrap_or_default())?;
    Ok(Figures {
        down: number(&result, "/download/rpm")?,
        up: number(&result, "/upload/rpm")?,
        ..Figures::default()
    })
}

/// The document of `longhaul test --rpm`.
pub(crate) fn own_rpm(text: &str) -> Fallible<Figures> {
    let result: Value = serde_json::from_str(text)?;
    Ok(Figures {
        down: number(&result, "/directions/0/rpm")?,
        up: number(&result, "/directions/1/rpm")?,
        ..Figures::default()
    })
}
