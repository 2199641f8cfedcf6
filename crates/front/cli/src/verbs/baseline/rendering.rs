//! A baseline's events on the terminal.

use crate::console::Console;
use crate::failure::Failure;
use longhaul::baseline::{BaselineEvent, BaselineRequest};
use record::ServerCandidate;
use report::terminal;
use std::time::Duration;

/// Shows an event.
pub(super) fn event(event: BaselineEvent, request: &BaselineRequest, console: &mut Console) {
    match event {
        BaselineEvent::Pinging { servers, done } => {
            console.live(&format!("Pinging {servers} servers: {done} done"));
        }
        BaselineEvent::Unreachable { host, reason } => console.say(&format!("{host}: {reason}")),
        BaselineEvent::Chosen(server) => console.say(&chosen(&server)),
        BaselineEvent::Rejected { host, problem } => {
            console.say(&format!("{host}: {}", Failure::from(problem)));
        }
        BaselineEvent::Resolving { host } => console.live(&format!("Resolving {host}")),
        BaselineEvent::Probing { host, family, step } => {
            console.live(&format!("Probing {host} over {}: {step}", family.name()));
        }
        BaselineEvent::ObservingTraffic => console.live("Observing other traffic"),
        BaselineEvent::Begun { tests, expected_s, seed, exceeds } => {
            let expected = Duration::try_from_secs_f64(expected_s).unwrap_or(Duration::MAX);
            console.say(&terminal::baseline_start(tests, expected, seed));
            if exceeds {
                console.say(&longer(request.within));
            }
        }
        BaselineEvent::Testing(test) => {
            console.live(&terminal::baseline_progress(&test, &console.err));
        }
        BaselineEvent::Tested { progress: test, figures } => {
            console.say(&terminal::baseline_test(&test, &figures, &console.err));
        }
        BaselineEvent::Failed { condition, reason } => {
            console.say(&format!("{condition}: {reason}"));
        }
    }
}

/// The server that is used, in one line.
fn chosen(server: &ServerCandidate) -> String {
    let rtt = server.rtt_ms.map_or(String::new(), |rtt| format!("{rtt:.1} ms away"));
    let rate = server.rate_bps.map_or("rate unknown".to_owned(), |rate| rate.to_string());
    let location =
        if server.location.is_empty() { String::new() } else { format!(" ({})", server.location) };
    format!("Using {}{location}, {rtt}, {rate}", server.host)
}

/// The reason the requested time is exceeded.
fn longer(within: Duration) -> String {
    format!(
        "Three tests of each condition take longer than --within {}; reduce the conditions (-4 or \
         -6) or --duration",
        within.as_secs_f64()
    )
}
