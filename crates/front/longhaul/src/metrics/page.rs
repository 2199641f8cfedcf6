//! Prometheus' text format, version 0.0.4. Names and units follow its conventions: base units,
//! `_total` for counters.

use host::memory;
use std::fmt::Write;

/// A page of metrics.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins the samples of a name.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a sample. Label values are constants that need no escaping.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Adds a gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// Adds what is the same of every server: version, start (seconds since 1970-01-01 UTC), memory.
    pub fn process(&mut self, began_unix_s: f64) {
        let name = "longhaul_build_info";
        self.family(name, "gauge", "Always 1, labelled with the version.");
        self.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let help = "Start of the server, in seconds since 1970-01-01 UTC.";
        self.gauge("process_start_time_seconds", help, began_unix_s);
        if let Some(resident) = memory::resident() {
            let help = "Resident memory of the process, in bytes.";
            self.gauge("process_resident_memory_bytes", help, resident.bytes() as f64);
        }
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}
