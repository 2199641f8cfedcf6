//! What is kept of a run, if its visitor asks for it: the result, its steps, and the measurement of
//! each. Nothing in it says who the visitor was.

use super::step::Outcome;
use crate::history::{Kept, SCHEMA};
use record::{LatencyProbe, Measurement};
use serde_json::{Value, json};

/// A run as it is kept. The document has everything but the samples.
pub(super) fn of(mut result: Value, outcomes: Vec<Outcome>) -> Kept {
    // Whoever has the link does not learn the run's ID, with which the visitor kept it.
    result["run"] = Value::Null;
    let mut measurements = Vec::new();
    let mut steps = Vec::new();
    for outcome in outcomes {
        let mut step = json!(outcome.result);
        if let Some(finding) = step["finding"].as_object_mut() {
            // A command with the visitor's address.
            finding.remove("next");
        }
        let paced = outcome.plan.pacing.map(|_| "pacing".to_owned());
        step["experiment"] = json!(outcome.plan.congestion.clone().or(paced));
        step["probes"] = json!({"own": times(&outcome.own), "loaded": times(&outcome.loaded)});
        step["measured"] = json!(outcome.measurement.is_some());
        steps.push(step);
        if let Some(measurement) = outcome.measurement.map(without_address) {
            let text = serde_json::to_vec(&measurement).unwrap_or_default();
            measurements.push((outcome.result.step, text));
        }
    }
    let document = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "at": host::clock::unix_seconds(),
        "result": result,
        "steps": steps,
    });
    Kept::pack(&document, measurements)
}

/// When each probe was sent, in seconds of its step, and its RTT in ms.
fn times(probes: &[LatencyProbe]) -> Vec<(f64, Option<f64>)> {
    probes.iter().map(|probe| (probe.at_s, probe.rtt_ms)).collect()
}

fn without_address(mut measurement: Measurement) -> Measurement {
    measurement.spec.target = "visitor".to_owned();
    measurement.spec.port = 0;
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::advice::outcome_of;
    use crate::run::message::Platform;
    use crate::run::{queue_place, result};
    use flate2::read::GzDecoder;
    use probe::ProbeError;
    use std::io::{Error, Read};
    use std::net::IpAddr;

    fn unpacked(packed: &[u8]) -> String {
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn an_error_of_probes_leaves_no_address_in_it() {
        let address: IpAddr = "203.0.113.77".parse().unwrap();
        let source = || Error::from_raw_os_error(101);
        let operation = "probe the route of a connection";
        for error in [
            ProbeError::SilentConnection { address },
            ProbeError::System { operation, address, source: source() },
            ProbeError::NoRoute { address, source: source() },
        ] {
            assert!(error.to_string().contains("203.0.113.77"), "{error}");
            let measurement = Measurement {
                spec: record::TestSpec {
                    target: address.to_string(),
                    ..record::TestSpec::default()
                },
                ..Measurement::default()
            };
            let outcomes =
                vec![Outcome { measurement: Some(measurement), ..outcome_of(1, None, 10e6) }];
            let mut run = result::of(&outcomes, &[], Platform::Linux, "0");
            run.queue = queue_place::of(&outcomes, &Err(error.into()));
            let kept = of(json!(run), outcomes);
            let document = unpacked(kept.document_bytes());
            assert!(document.contains("\"not_probed\":\""), "{document}");
            let all = kept.measurement_bytes().map(unpacked).chain([document]);
            for text in all {
                assert!(!text.contains("203.0.113"), "{text}");
            }
        }
    }
}
