//! The two boxes that split TCP connections, near the applications and near their targets.
//!
//! ```no_run
//! use longhaul::{StopFlag, boost::{self, NearRequest}};
//!
//! let request = NearRequest {
//!     far: "192.0.2.1".to_owned(),
//!     forwards: vec!["8080:origin.example:80".parse()?],
//!     settings: boost::BoxSettings { key_files: vec!["near.key".into()], ..Default::default() },
//!     ..NearRequest::default()
//! };
//! let (stop, drain) = (StopFlag::new(), StopFlag::new());
//! let document = boost::near(&request, &mut |event| eprintln!("{event:?}"), &stop, &drain)?;
//! println!("{} flows", document.flows);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connections;
pub mod edge;
mod event;
mod ingress;
pub mod plan;
pub mod program;
mod reduction;
mod request;
mod running;
mod settings;
pub mod status;
pub mod verify;

pub use connections::ConnectionCount;
pub use event::{BOOST_EVENT_SCHEMA, BoostEvent, BoostLine, FlowFinished, LaneBuffer};
pub use ingress::{GatewayPorts, GatewaySettings, ProxySettings};
pub use reduction::Reduction;
pub use request::{BoostRequest, BoxSettings, FarRequest, Forward, NearRequest};
pub use running::{BOOST_SCHEMA, BoostDocument, BoostedProgram, far, near};

pub use ::boost::{MAX_CONNECTIONS, PORT};

/// The largest send and receive buffer of a connection between boxes: TCP announces no larger window
/// (RFC 7323, section 2.3).
pub(crate) const MAX_LANE_BUFFER: units::ByteCount = units::ByteCount::from_bytes(1 << 30);

use crate::{Fault, Problem, StopFlag};
use ::boost::BoostError;
use ::boost::gateway::CleanedUp;

/// Makes the keys of a pair: the text of near's file, and of far's.
///
/// # Errors
/// The system gives no random numbers.
pub fn pair() -> Result<[String; 2], Problem> {
    ::boost::keys::generate().map_err(|error| Problem::new(Fault::Host, error))
}

/// Removes the rules of a gateway whose box has ended without doing so.
///
/// # Errors
/// The system error, or another gateway runs: its rules stay.
pub fn end_gateway() -> Result<(), Problem> {
    match ::boost::gateway::clean_up() {
        Ok(CleanedUp::Whole) => Ok(()),
        Ok(CleanedUp::Running) => {
            let text = "another gateway of longhaul boost runs in this network namespace";
            Err(Problem::new(Fault::Host, text))
        }
        Err(error) => Err(Problem::new(Fault::Host, error)),
    }
}

/// Runs a box until `stop` is raised, which resets its flows.
///
/// # Errors
/// An invalid field, a key file that cannot be read, an address that is in use.
pub fn run(
    request: &BoostRequest,
    on_event: &mut dyn FnMut(BoostEvent),
    stop: &StopFlag,
) -> Result<BoostDocument, Problem> {
    let drain = StopFlag::new();
    match request {
        BoostRequest::Near(request) => near(request, on_event, stop, &drain),
        BoostRequest::Far(request) => far(request, on_event, stop, &drain),
    }
}

fn problem(error: BoostError) -> Problem {
    let fault = match &error {
        BoostError::Listen { .. } | BoostError::Congestion(_) | BoostError::Key(_) => {
            Fault::Request
        }
        BoostError::Socket(_) => Fault::Host,
    };
    Problem::new(fault, error)
}
