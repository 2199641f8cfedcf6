//! The accuracy with which this machine emulates a path.

use super::session::{failed, refused};
use super::{DriverChoice, parse_path};
use crate::{Fault, Field, Problem, StopFlag};
use lab::{Lab, Options};
use record::PathReport;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use topology::Plan;

/// Time for the idle RTT of a path whose delay varies: 200 echoes with jitter of 5 ms.
const IDLE_TIME: Duration = Duration::from_secs(6);

/// Minimum and maximum length of the load in each direction.
const MIN_LOAD: Duration = Duration::from_millis(100);
const MAX_LOAD: Duration = Duration::from_secs(3600);

/// A path to check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabCheckRequest {
    /// The path: a name, `KEY=VALUE,…` or both.
    pub link: String,
    /// True to busy-wait on one core, for lower timing error.
    pub accurate: bool,
    /// The packet driver.
    pub driver: Option<DriverChoice>,
    /// Load in each direction, 0.1 s to 1 h.
    #[serde(with = "units::seconds", rename = "seconds")]
    pub load: Duration,
}

/// Events of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabCheckEvent {
    /// The lab starts, and measures the idle RTT.
    Idle,
    /// UDP saturates the path, first up and then down.
    Load {
        /// Seconds in each direction.
        seconds: f64,
    },
}

impl Default for LabCheckRequest {
    /// Two seconds in each direction. The path is missing.
    fn default() -> Self {
        LabCheckRequest {
            link: String::new(),
            accurate: false,
            driver: None,
            load: Duration::from_secs(2),
        }
    }
}

impl LabCheckRequest {
    /// A path, with two seconds of load in each direction.
    #[must_use]
    pub fn new(link: &str) -> Self {
        LabCheckRequest { link: link.to_owned(), ..LabCheckRequest::default() }
    }

    /// Checks the fields, and reads the files that the path names.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        parse_path(&self.link)?;
        if !(MIN_LOAD..=MAX_LOAD).contains(&self.load) {
            let what = format!("a load of {} s", self.load.as_secs_f64());
            return Err(Problem::field(Field::Seconds, what, "0.1 to 3600"));
        }
        Ok(())
    }
}

/// Measures the idle RTT, and saturates the path in each direction.
///
/// To be called in a sandbox ([`host::sandbox::run`]) whose process has one thread;
/// [`crate::run`] does so.
///
/// # Errors
/// An invalid field, no privilege for a lab, an interruption.
pub fn run(
    request: &LabCheckRequest,
    on_event: &mut dyn FnMut(LabCheckEvent),
    stop: &StopFlag,
) -> Result<PathReport, Problem> {
    request.check()?;
    let plan = Plan::pair(parse_path(&request.link)?, "cubic", &[], false);
    on_event(LabCheckEvent::Idle);
    let LabCheckRequest { accurate, driver, load, .. } = *request;
    let options = Options { accurate, driver, idle_time: Some(IDLE_TIME), ..Options::default() };
    let lab = Lab::start(&plan, options).map_err(refused)?;
    on_event(LabCheckEvent::Load { seconds: load.as_secs_f64() });
    lab::check::fill(&lab, load, &|| stop.is_raised()).map_err(failed)?;
    let report = lab.finish().map_err(failed)?.into_path();
    if stop.is_raised() {
        return Err(Problem::new(Fault::Interrupted, "interrupted"));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let link = "rate=1gbit,rtt=50ms";
        assert_eq!(LabCheckRequest::new(link).check(), Ok(()));
        let field = |request: LabCheckRequest| request.check().unwrap_err().remedy.unwrap().field;
        assert_eq!(field(LabCheckRequest::new("rtt=long")), Field::Link);
        for load in [Duration::ZERO, Duration::from_secs(3601)] {
            assert_eq!(
                field(LabCheckRequest { load, ..LabCheckRequest::new(link) }),
                Field::Seconds
            );
        }
    }
}
