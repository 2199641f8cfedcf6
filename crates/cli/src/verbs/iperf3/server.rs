//! `iperf3 -s`.

use super::args::Iperf3Args;
use super::output::Output;
use super::setting;
use super::show::{self, Manner, Show};
use crate::failure::{Code, DONE, Failure};
use crate::stop;
use probe::server::{Limits, Server, ServerConfig};
use probe::{Observer, ProbeError, ServerEvent, ServerOutput};
use report::iperf3::text;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::BitRate;

/// Longest test with its warm-up: what a client may ask for.
const LONGEST: Duration = Duration::from_secs(86_400 + 600);

pub(crate) fn run(args: &Iperf3Args, output: Output) -> Result<Code, Failure> {
    let mut config = config(args)?;
    let span = args.server_flags.server_bitrate_limit.and_then(|cap| cap.seconds);
    let fixed = Limits::RATE_SPAN.as_secs_f64();
    if span.is_some_and(|span| (span - fixed).abs() > 1e-9) {
        output
            .warn(&format!("the rate of a test is judged over {fixed} seconds, whatever is asked"));
    }
    let stop = stop::on_signals();
    let server = bind(args, &mut config)?;
    let told = Told {
        args,
        manner: Manner::of(args),
        port: server.local_addr().port(),
        state: Mutex::new(State { output, shows: HashMap::new(), tests: 0 }),
    };
    told.listening(&mut told.state());
    server.serve(&stop, &told).map_err(Failure::work)?;
    if stop.is_raised() {
        told.state().output.complain("interrupt - the server has terminated");
    }
    Ok(DONE)
}

/// The first port of the range that is free.
fn bind(args: &Iperf3Args, config: &mut ServerConfig) -> Result<Server, Failure> {
    let mut ports = args.common.port.clone();
    loop {
        config.port = ports.next().unwrap_or(*args.common.port.start());
        match Server::bind(config) {
            Ok(server) => return Ok(server),
            Err(ProbeError::Listen { .. }) if !ports.is_empty() => {}
            Err(error) => return Err(Failure::work(error)),
        }
    }
}

fn config(args: &Iperf3Args) -> Result<ServerConfig, Failure> {
    let (common, flags) = (&args.common, &args.server_flags);
    let near = setting::near(args)?;
    let seconds = |value: u32| Duration::from_secs(u64::from(value));
    let defaults = Limits::default();
    let limits = Limits {
        // One test at a time: scripts wait for the answer that it is busy.
        sessions: 1,
        sessions_per_address: 1,
        rate: flags
            .server_bitrate_limit
            .filter(|cap| cap.rate > 0)
            .map(|cap| BitRate::from_bps(cap.rate)),
        duration: flags.server_max_duration.filter(|limit| *limit > 0).map_or(LONGEST, seconds),
        receive: common
            .rcv_timeout
            .map_or(defaults.receive, |ms| Duration::from_millis(u64::from(ms))),
        ..defaults
    };
    Ok(ServerConfig {
        bind: near.address,
        device: near.device,
        family: setting::family(args),
        one_off: flags.one_off,
        idle_timeout: flags.idle_timeout.map(seconds),
        limits,
        report_every: setting::report_every(args),
        users: setting::users(args)?,
        file: common.file.clone(),
        core: common.affinity.map(|affinity| affinity.here),
        ..ServerConfig::default()
    })
}

/// Shows what the server tells.
struct Told<'a> {
    args: &'a Iperf3Args,
    manner: Manner,
    port: u16,
    state: Mutex<State>,
}

struct State {
    output: Output,
    shows: HashMap<u64, Show>,
    tests: u64,
}

impl Told<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listening(&self, state: &mut State) {
        state.tests += 1;
        if self.manner.is_verbose() {
            state.output.lines(&text::program(&show::system()));
        }
        if self.manner.is_text() {
            let lines = text::listening(self.port, state.tests);
            state.output.lines(&lines);
        }
    }

    /// The last of a test, and the wait for the next.
    fn close(&self, state: &mut State, show: &mut Show) {
        show.close(&mut state.output);
        if !self.args.server_flags.one_off {
            self.listening(state);
        }
    }
}

impl Observer for Told<'_> {
    fn event(&self, event: ServerEvent) {
        let state = &mut *self.state();
        match event {
            ServerEvent::Started { session, started } => {
                let mut show = Show::new(self.manner, None, None);
                show.begin(show::head(&started, None, self.args), &started, &mut state.output);
                state.shows.insert(session, show);
            }
            ServerEvent::Interval { session, interval } => {
                if let Some(show) = state.shows.get_mut(&session) {
                    show.row(&interval, &mut state.output);
                }
            }
            ServerEvent::Finished { session, summary, .. } => {
                if let Some(mut show) = state.shows.remove(&session) {
                    show.end(Some(&summary.ours), None, &mut state.output);
                    self.close(state, &mut show);
                }
            }
            ServerEvent::Failed { session, why, .. } => {
                let show = session.and_then(|session| state.shows.remove(&session));
                let mut show = show.unwrap_or_else(|| Show::new(self.manner, None, None));
                show.fail(&why, &mut state.output);
                self.close(state, &mut show);
            }
            ServerEvent::Refused { peer, why, .. } => {
                state.output.complain(&format!("{peer} was turned away: {why}"));
            }
            // Its lines have no word for it.
            ServerEvent::Draining { .. } => {}
        }
    }

    fn output(&self, session: u64) -> Option<ServerOutput> {
        let state = &mut *self.state();
        state.shows.get_mut(&session)?.for_the_client(&mut state.output)
    }
}
