//! The calculators: window, loss, transfer time, overhead and more, each with its equations.
//!
//! ```
//! use longhaul::calc::{self, BdpQuestion, CalcRequest, WindowQuestion};
//!
//! let (rate, rtt) = ("100mbit".parse()?, "173ms".parse()?);
//! let question = WindowQuestion { rate: Some(rate), rtt: Some(rtt), window: None, streams: 1 };
//! let result = calc::run(&CalcRequest::Window(question))?;
//! assert!(result.figure("window_bytes").is_some());
//!
//! let question = BdpQuestion { rate, rtt, window: None, streams: 1, mtu: 1500 };
//! println!("{:?}", calc::bdp(&question)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use model::calc::{
    CalcError, CalcResult, CdnQuestion, DistanceQuestion, Law, LineQuestion, LossQuestion,
    OverheadQuestion, ScaleQuestion, TransferQuestion, UdtQuestion, WanQuestion, WindowQuestion,
};
pub use model::{BdpError, BdpReport, Congestion, IpVersion, Question as BdpQuestion, Transfer};

pub use places::Location;

use crate::{Fault, Problem};
use model::calc;
use serde::{Deserialize, Serialize};

/// The calculation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalcRequest {
    /// Rate, RTT or window from the other two.
    Window(WindowQuestion),
    /// The window scale that a path needs.
    Scale(ScaleQuestion),
    /// The rate under a loss, and the maximum loss for a rate.
    Loss(LossQuestion),
    /// Throughput with and without a pair of WAN optimisers.
    Wan(WanQuestion),
    /// The payload rate of a line rate.
    Overhead(OverheadQuestion),
    /// The link that a goodput identifies.
    Line(LineQuestion),
    /// The least RTT between two places.
    Distance(DistanceQuestion),
    /// The duration of a transfer.
    Transfer(TransferQuestion),
    /// The times of an object from its origin and from an edge cache.
    Cdn(CdnQuestion),
    /// The rate increase of UDT.
    Udt(UdtQuestion),
}

impl CalcRequest {
    /// Checks the question.
    ///
    /// # Errors
    /// The error, with an example of an accepted value.
    pub fn check(&self) -> Result<(), Problem> {
        run(self).map(drop)
    }
}

/// Computes the answer.
///
/// # Errors
/// An error in the question, with an example of an accepted value.
pub fn run(request: &CalcRequest) -> Result<CalcResult, Problem> {
    compute(request).map_err(|error| Problem::new(Fault::Request, error))
}

/// As [`run`], with an error that names its field: [`CalcError::field`].
///
/// # Errors
/// An error in the question.
pub fn compute(request: &CalcRequest) -> Result<CalcResult, CalcError> {
    match request {
        CalcRequest::Window(question) => calc::window(question),
        CalcRequest::Scale(question) => calc::scale(question),
        CalcRequest::Loss(question) => calc::loss(question),
        CalcRequest::Wan(question) => calc::wan(question),
        CalcRequest::Overhead(question) => calc::overhead(question),
        CalcRequest::Line(question) => calc::line(question),
        CalcRequest::Distance(question) => calc::distance(question),
        CalcRequest::Transfer(question) => calc::transfer_time(question),
        CalcRequest::Cdn(question) => calc::cdn(question),
        CalcRequest::Udt(question) => calc::udt(question),
    }
}

/// Bandwidth-delay product, window and buffers of a path.
///
/// # Errors
/// An error in the question.
pub fn bdp(question: &BdpQuestion) -> Result<BdpReport, Problem> {
    compute_bdp(question).map_err(|error| Problem::new(Fault::Request, error))
}

/// As [`bdp`], with an error that names its field: [`BdpError::field`].
///
/// # Errors
/// An error in the question.
pub fn compute_bdp(question: &BdpQuestion) -> Result<BdpReport, BdpError> {
    model::bdp_report(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_checked_and_survive_json() {
        let question = WindowQuestion { rate: None, rtt: None, window: None, streams: 1 };
        let problem = CalcRequest::Window(question).check().unwrap_err();
        assert_eq!(problem.fault, Fault::Request);
        let line = |goodput: &str| {
            let goodput = goodput.parse().unwrap();
            CalcRequest::Line(LineQuestion { goodput, ip: Some(IpVersion::Ipv6), plan: None })
        };
        let text = serde_json::to_string(&line("941mbit")).unwrap();
        assert_eq!(serde_json::from_str::<CalcRequest>(&text).unwrap(), line("941mbit"));
        assert_eq!(line("941mbit").check(), Ok(()));
    }
}
