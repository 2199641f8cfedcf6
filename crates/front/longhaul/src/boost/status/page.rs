//! The page of metrics of a box, written and read by one table.

use crate::metrics::Page;
use ::boost::NotBoosted;
use record::{BoxRole, BoxStatus, NotBoostedCount};
use units::BitRate;

/// A family of metrics: its name, kind and help, and its samples.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: &'static [Sample],
}

/// A sample: the value of its label, and its place in a status.
struct Sample {
    label: Option<(&'static str, &'static str)>,
    get: fn(&BoxStatus) -> u64,
    place: fn(&mut BoxStatus) -> &mut u64,
}

macro_rules! sample {
    ($field:ident) => {
        Sample { label: None, get: |of| of.$field, place: |of| &mut of.$field }
    };
    ($field:ident, $label:literal, $value:literal) => {
        Sample { label: Some(($label, $value)), ..sample!($field) }
    };
}

/// Those with a fixed number of samples.
static FAMILIES: [Family; 8] = [
    Family {
        name: "longhaul_boost_flows_total",
        kind: "counter",
        help: "Flows that began.",
        samples: &[sample!(flows)],
    },
    Family {
        name: "longhaul_boost_flows",
        kind: "gauge",
        help: "Flows that have not ended.",
        samples: &[sample!(active_flows)],
    },
    Family {
        name: "longhaul_boost_reused_total",
        kind: "counter",
        help: "Flows on a lane that had carried another one.",
        samples: &[sample!(reused)],
    },
    Family {
        name: "longhaul_boost_reset_total",
        kind: "counter",
        help: "Flows that ended with an RST.",
        samples: &[sample!(reset)],
    },
    Family {
        name: "longhaul_boost_lanes",
        kind: "gauge",
        help: "Open connections between the boxes.",
        samples: &[sample!(active_lanes)],
    },
    Family {
        name: "longhaul_boost_bytes_total",
        kind: "counter",
        help: "Payload from (in) and to (out) applications, or targets at far.",
        samples: &[sample!(in_bytes, "direction", "in"), sample!(out_bytes, "direction", "out")],
    },
    Family {
        name: "longhaul_boost_wan_bytes_total",
        kind: "counter",
        help: "Bytes between the boxes, with headers and encryption of lanes.",
        samples: &[
            sample!(wan_sent_bytes, "direction", "send"),
            sample!(wan_received_bytes, "direction", "receive"),
        ],
    },
    Family {
        name: "longhaul_boost_udp_refused_total",
        kind: "counter",
        help: "UDP datagrams that the network of a program has refused.",
        samples: &[sample!(udp_refused)],
    },
];

/// The family whose label is the role.
const INFO: &str = "longhaul_boost_info";
/// The family whose label is the reason.
const NOT_BOOSTED: &str = "longhaul_boost_not_boosted_total";
/// Those of a box at the applications.
const SAVED: &str = "longhaul_boost_saved_seconds_total";
const DIRECT_RATE: &str = "longhaul_boost_direct_rate_bits_per_second";
const CPU: &str = "process_cpu_seconds_total";
const START: &str = "process_start_time_seconds";

/// The page of a box.
pub(super) fn write(of: &BoxStatus) -> String {
    let mut page = Page::default();
    page.family(INFO, "gauge", "Always 1, labelled with the role of the box.");
    page.sample(INFO, &[("role", of.role.name())], 1.0);
    for family in &FAMILIES {
        page.family(family.name, family.kind, family.help);
        for sample in family.samples {
            page.sample(family.name, sample.label.as_slice(), (sample.get)(of) as f64);
        }
    }
    page.family(NOT_BOOSTED, "counter", "Connections that were not boosted, by reason.");
    for NotBoostedCount { reason, count } in &of.not_boosted {
        page.sample(NOT_BOOSTED, &[("reason", reason)], *count as f64);
    }
    if let Some(saved) = of.saved_s {
        page.family(SAVED, "counter", "Time that flows were spared, at least, in seconds.");
        page.sample(SAVED, &[], saved);
    }
    if let Some(rate) = of.direct_rate_bps {
        page.family(DIRECT_RATE, "gauge", "Goodput of a direct transfer, as it was given.");
        page.sample(DIRECT_RATE, &[], rate.as_f64());
    }
    page.family(CPU, "counter", "CPU time of the process, in seconds.");
    page.sample(CPU, &[], of.cpu_s);
    page.process(of.started_unix_s);
    page.into_text()
}

/// Reads the page of a box, whoever wrote it: only known names count, each once.
///
/// # Errors
/// It is not the page of a box.
pub(super) fn read(name: String, page: &str) -> Result<BoxStatus, &'static str> {
    let samples = || page.lines().filter_map(sample);
    let role = samples().find_map(|(name, label, _)| {
        let role = label.filter(|_| name == INFO)?;
        BoxRole::ALL.into_iter().find(|one| role == ("role", one.name()))
    });
    let role = role.ok_or("this is not the page of metrics of a box of boost")?;
    let mut status = BoxStatus::new(name, role);
    for (name, label, value) in samples() {
        match (name, label) {
            (CPU, None) => status.cpu_s = value,
            (SAVED, None) => status.saved_s = Some(value),
            (DIRECT_RATE, None) => status.direct_rate_bps = Some(BitRate::from_bps_f64(value)),
            (START, None) => status.started_unix_s = value,
            (NOT_BOOSTED, Some(("reason", text))) => {
                let known = NotBoosted::ALL.iter().find(|one| one.name() == text);
                let is_new = status.not_boosted.iter().all(|one| one.reason != text);
                if let Some(reason) = known.filter(|_| is_new) {
                    let reason = reason.name().to_owned();
                    status.not_boosted.push(NotBoostedCount { reason, count: value as u64 });
                }
            }
            _ => {
                let samples = FAMILIES.iter().filter(|family| family.name == name);
                let found =
                    samples.flat_map(|family| family.samples).find(|one| one.label == label);
                if let Some(sample) = found {
                    *(sample.place)(&mut status) = value as u64;
                }
            }
        }
    }
    Ok(status)
}

/// The name and the text of a label.
type Label<'a> = (&'a str, &'a str);

/// The name, the label if there is one, and the value of a line, if it is a finite number of 0 or
/// more.
fn sample(line: &str) -> Option<(&str, Option<Label<'_>>, f64)> {
    let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let value = value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    let Some((name, label)) = series.split_once('{') else { return Some((series, None, value)) };
    let (label, text) = label.strip_suffix("\"}")?.split_once("=\"")?;
    Some((name, Some((label, text)), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::boost::Totals;
    use std::time::Duration;

    fn status() -> BoxStatus {
        let mut totals = Totals {
            flows: 7,
            active_flows: 2,
            reused: 3,
            reset: 1,
            active_lanes: 4,
            bytes_in: 1_000_000_007,
            bytes_out: 5,
            wan_sent: 1_000_100_000,
            wan_received: 99,
            udp_refused: 12,
            saved: Duration::from_millis(12_400),
            ..Totals::default()
        };
        totals.not_boosted[4] = 6;
        let status = super::super::figures::of("n".into(), BoxRole::Far, &totals);
        BoxStatus { cpu_s: 1.5, started_unix_s: 1.8e9, ..status }
    }

    #[test]
    fn what_is_written_is_read() {
        let near = BoxStatus {
            role: BoxRole::Near,
            saved_s: Some(12.4),
            direct_rate_bps: Some("3.03mbit".parse().unwrap()),
            ..status()
        };
        assert_eq!(read("n".to_owned(), &write(&near)).unwrap(), near);
        let page = write(&status());
        assert_eq!(read("n".to_owned(), &page).unwrap(), status());
        assert!(!page.contains("saved"), "far does not know it");
        let page = write(&near);
        assert!(
            page.contains("longhaul_boost_not_boosted_total{reason=\"not_allowed\"} 6\n"),
            "{page}"
        );
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(page.contains(&format!("# HELP {name} ")), "{name}");
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        }
    }

    #[test]
    fn a_hostile_page_adds_nothing() {
        for page in [
            "",
            "longhaul_boost_info{role=\"\u{1b}[2J\"} 1\n",
            "longhaul_tests_total 3\n",
            "{",
            "\" } 1",
        ] {
            assert!(read(String::new(), page).is_err(), "{page}");
        }
        let evil = "longhaul_boost_info{role=\"near\"} 1\n\
            longhaul_boost_flows_total NaN\nlonghaul_boost_flows_total -1\nlonghaul_boost_flows inf\n\
            longhaul_boost_not_boosted_total{reason=\"\u{1b}[31m\"} 5\n\
            longhaul_boost_not_boosted_total{reason=\"slow\"} 1e300\n\
            longhaul_boost_not_boosted_total{reason=\"slow\"} 2\n\
            longhaul_boost_bytes_total{direction=\"in\",x=\"y\"} 9\nprocess_cpu_seconds_total x\n";
        let found = read("n".to_owned(), evil).unwrap();
        let slow = NotBoostedCount { reason: "slow".to_owned(), count: u64::MAX };
        let expected =
            BoxStatus { not_boosted: vec![slow], ..BoxStatus::new("n".to_owned(), BoxRole::Near) };
        assert_eq!(found, expected);
    }
}
