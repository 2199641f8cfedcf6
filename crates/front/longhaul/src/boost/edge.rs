//! An edge cache near the clients: nginx in front of one origin.
//!
//! ```no_run
//! use longhaul::{StopFlag, boost::edge::{self, EdgeRequest}};
//!
//! let request = EdgeRequest::new("https://origin.example/pub");
//! println!("{}", edge::configuration(&request)?);
//! let document = edge::run(&request, &mut |event| eprintln!("{event:?}"), &StopFlag::new())?;
//! println!("{} of {} requests from the cache", document.figures.from_cache, document.figures.requests);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod report;
mod request;

pub use report::{
    EDGE_EVENT_SCHEMA, EDGE_SCHEMA, EdgeDocument, EdgeEvent, EdgeFigures, EdgeLine, EdgeStatuses,
};
pub use request::EdgeRequest;

use crate::{Fault, Problem, StopFlag};
use ::edge::{EdgeError, Nginx, Output};
use host::clock;
use host::log_limit::LogLimit;
use std::time::Duration;

/// Interval at which the end and messages are noticed.
const POLL: Duration = Duration::from_millis(100);
/// Messages of nginx that are reported in a second; further ones are only counted.
const MAX_REPORTED: u32 = 10;

/// The configuration, for an nginx that somebody else runs.
///
/// # Errors
/// An invalid field.
pub fn configuration(request: &EdgeRequest) -> Result<String, Problem> {
    Ok(::edge::configuration(&request.config()?, Output::Files))
}

/// Runs nginx until `stop` is raised.
///
/// # Errors
/// An invalid field; nginx is missing, refuses its configuration, or ends by itself.
pub fn run(
    request: &EdgeRequest,
    on_event: &mut dyn FnMut(EdgeEvent),
    stop: &StopFlag,
) -> Result<EdgeDocument, Problem> {
    let config = request.config()?;
    let mut nginx = Nginx::start(&config).map_err(problem)?;
    let began = clock::now();
    let interval = Duration::try_from_secs_f64(request.interval_s).unwrap_or(Duration::MAX);
    on_event(EdgeEvent::Listening {
        address: config.listen.to_string(),
        origin: config.origin.to_string(),
    });
    if !config.listen.ip().to_canonical().is_loopback() {
        let text = "other hosts can read every object of the origin through this edge, without TLS";
        on_event(EdgeEvent::Warning { text: text.to_owned() });
    }
    let mut limit = LogLimit::new(MAX_REPORTED, began);
    let (mut reported, mut last) = (began, EdgeFigures::default());
    while !stop.is_raised() {
        std::thread::sleep(POLL);
        let now = clock::now();
        pass_on(&nginx, &mut limit, on_event);
        if nginx.has_ended() {
            return Err(problem(EdgeError::Ended("has ended by itself".to_owned())));
        }
        if now.saturating_duration_since(reported) >= interval {
            reported = now;
            let seconds = now.saturating_duration_since(began).as_secs_f64();
            let figures = EdgeFigures::of(&nginx.totals(), nginx.connections().ok());
            // An idle edge has nothing to report.
            if figures.requests != last.requests || figures.origin_bytes != last.origin_bytes {
                last = figures.clone();
                on_event(EdgeEvent::Report { seconds, figures });
            }
        }
    }
    let seconds = clock::now().saturating_duration_since(began).as_secs_f64();
    let connections = nginx.connections().ok();
    let totals = nginx.stop().map_err(|error| Problem::new(Fault::Host, error))?;
    let figures = EdgeFigures::of(&totals, connections);
    Ok(EdgeDocument { schema: EDGE_SCHEMA, seconds, figures })
}

/// nginx's messages, as many as are bearable.
fn pass_on(nginx: &Nginx, limit: &mut LogLimit, on_event: &mut dyn FnMut(EdgeEvent)) {
    let now = clock::now();
    for text in nginx.messages() {
        if limit.admits(now, 1) {
            on_event(EdgeEvent::Message { text });
        }
    }
    let count = limit.suppressed(now, false);
    if count > 0 {
        on_event(EdgeEvent::HeldBack { count });
    }
}

fn problem(error: EdgeError) -> Problem {
    let fault = match &error {
        EdgeError::Configuration(_) | EdgeError::Ended(_) => Fault::Request,
        EdgeError::Missing | EdgeError::Directory(_) => Fault::Host,
    };
    Problem::new(fault, error)
}
