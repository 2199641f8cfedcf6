//! A server of throughput tests and one of the speed test in browsers, in one process.

use crate::counters::Counters;
use crate::{WebEvent, WebRequest, server};
use longhaul::server::{Front, MoreMetrics, ServerEvent, ServerRequest};
use longhaul::{Fault, Field, Problem, StopFlag};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Events that wait for the caller; with more, tests wait.
const MAX_WAITING: usize = 4096;

/// An event of either server.
#[derive(Debug, Clone)]
pub enum BothEvent {
    /// Of throughput tests.
    Server(Box<ServerEvent>),
    /// Of the speed test in browsers.
    Web(WebEvent),
}

/// Serves both until `stop` is raised; once `drain` is, until the last test and the last run have
/// ended. Neither goes on without the other: if one fails, the other is stopped, and when a server
/// of one test has served it, the other one drains. The metrics of both are on the page of
/// `server`'s.
///
/// # Errors
/// As [`server::serve`](longhaul::server::serve) and [`serve`](crate::serve).
pub fn serve_both(
    server: &ServerRequest,
    front: &Front<'_>,
    web: &WebRequest,
    on_event: &mut dyn FnMut(BothEvent),
    drain: &StopFlag,
    stop: &StopFlag,
) -> Result<(), Problem> {
    server.check()?;
    web.check()?;
    let counters = Counters::new();
    let counted = Arc::clone(&counters);
    let more: MoreMetrics = Arc::new(move |page| counted.add(page));
    let front = Front { drain: Some(drain), more_metrics: Some(&more), ..*front };
    let (sender, events) = sync_channel(MAX_WAITING);
    let web_sender = sender.clone();
    let (listens, listening) = sync_channel(1);
    let tests = || {
        let (sender, listens) = (sender, listens);
        let tell = &mut |event| {
            let is_listening = matches!(event, ServerEvent::Listening(_));
            let _ = sender.send(BothEvent::Server(Box::new(event)));
            if is_listening {
                let _ = listens.try_send(());
            }
        };
        let served = longhaul::server::serve(server, &front, tell, stop);
        drain.raise();
        stop_if_failed(served, stop)
    };
    let browsers = || {
        let (sender, listening) = (web_sender, listening);
        // Nor does one begin without the other.
        if listening.recv().is_err() {
            return Ok(());
        }
        let tell = &mut |event| drop(sender.send(BothEvent::Web(event)));
        let served = server::serve_counted(web, &counters, tell, drain, stop);
        stop_if_failed(served.map_err(of_both), stop)
    };
    thread::scope(|scope| {
        let (browsers, tests) = (scope.spawn(browsers), scope.spawn(tests));
        // Until both are gone.
        for event in events {
            on_event(event);
        }
        let failed = |_| Err(Problem::new(Fault::Internal, "a server's thread failed"));
        let (browsers, tests) = (browsers.join(), tests.join());
        browsers.unwrap_or_else(failed).and(tests.unwrap_or_else(failed))
    })
}

/// The address of this one is not `listen`, but `web`.
fn of_both(mut problem: Problem) -> Problem {
    if let Some(remedy) = problem.remedy.as_mut().filter(|remedy| remedy.field == Field::Listen) {
        remedy.field = Field::Web;
    }
    problem
}

fn stop_if_failed(served: Result<(), Problem>, stop: &StopFlag) -> Result<(), Problem> {
    if served.is_err() {
        stop.raise();
    }
    served
}
