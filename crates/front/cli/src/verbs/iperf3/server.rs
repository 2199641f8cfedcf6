//! `iperf3 -s`.

use super::args::Iperf3Args;
use super::observer::{self, OutputOptions, Show};
use super::output::Output;
use super::setting;
use crate::failure::{Code, DONE, Failure};
use crate::stop;
use host::lock::lock;
use host::log_limit::LogLimit;
use host::{address, background, clock};
use perf::server::{Limits, Server, ServerConfig};
use perf::{Observer, PerfError, ServerEvent, ServerOutput};
use report::iperf3::text;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use units::BitRate;

/// Maximum lines per second about tests; the tests of a flood that exceed it are
/// only counted.
const MAX_LINES: u32 = 40;

/// Minimum lines of a test, without its streams and for each stream: connection,
/// two interval reports and two totals.
const LINES_OF_TEST: u32 = 12;
const LINES_OF_STREAM: u32 = 5;

/// Lines of a failed connection: the error, and the four lines of "Server
/// listening".
const LINES_OF_FAILURE: u32 = 5;

/// Longest test that a client can request, including its warm-up.
const LONGEST: Duration = Duration::from_secs(86_400 + 600);

pub(crate) fn run(args: &Iperf3Args, output: Output) -> Result<Code, Failure> {
    let mut config = config(args)?;
    let span = args.server_flags.server_bitrate_limit.and_then(|cap| cap.seconds);
    if span.is_some() {
        output.warn(
            "--server-bitrate-limit: the averaging interval is ignored; \
             the limit applies from the first byte on",
        );
    }
    let stop = stop::on_signals();
    let server = bind(args, &mut config)?;
    if args.server_flags.in_background {
        background::ready().map_err(|error| Failure::work(format!("/dev/null: {error}")))?;
    }
    let observer = TestObserver {
        args,
        options: OutputOptions::of(args),
        port: server.local_addr().port(),
        state: Mutex::new(State {
            output,
            nowhere: Output::nowhere(),
            shows: HashMap::new(),
            tests: 0,
            test_limit: LogLimit::new(MAX_LINES, clock::now()),
            connection_limit: LogLimit::new(MAX_LINES, clock::now()),
        }),
    };
    observer.listening(&mut observer.state());
    server.serve(&stop, &observer).map_err(Failure::work)?;
    observer.state().report_suppressed(true);
    if stop.is_raised() {
        observer.state().output.complain("interrupt - the server has terminated");
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
            Err(PerfError::Listen { .. }) if !ports.is_empty() => {}
            Err(error) => return Err(Failure::work(error)),
        }
    }
}

fn config(args: &Iperf3Args) -> Result<ServerConfig, Failure> {
    let (common, flags) = (&args.common, &args.server_flags);
    let near = setting::near(args)?;
    if let (Some(ip), None) = (near.address, &near.device)
        && address::lacks_zone(&(ip, 0).into())
    {
        return Err(Failure::usage(address::zone_advice(ip)));
    }
    let seconds = |value: u32| Duration::from_secs(u64::from(value));
    let defaults = Limits::default();
    let limits = Limits {
        // One test at a time, as in iperf3: scripts rely on "server busy".
        sessions: 1,
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
        file: common.file.as_deref().map(std::path::Path::to_owned),
        core: common.affinity.map(|affinity| affinity.here),
        ..ServerConfig::default()
    })
}

/// Prints the server's events.
struct TestObserver<'a> {
    args: &'a Iperf3Args,
    options: OutputOptions,
    port: u16,
    state: Mutex<State>,
}

struct State {
    output: Output,
    nowhere: Output,
    /// Each running test, and whether it is printed: its client may request output
    /// that is not printed here.
    shows: HashMap<u64, (Show, bool)>,
    tests: u64,
    test_limit: LogLimit,
    connection_limit: LogLimit,
}

impl State {
    /// Reports the suppressed lines once a second.
    fn report_suppressed(&mut self, at_end: bool) {
        let now = clock::now();
        let tests = self.test_limit.suppressed(now, at_end);
        let connections = self.connection_limit.suppressed(now, at_end);
        if tests > 0 || connections > 0 {
            self.output.complain(&format!(
                "log rate limit: suppressed {tests} tests, and {connections} connections that failed or were refused"
            ));
        }
    }

    /// A running test, and the output that it is printed to.
    fn show(&mut self, session: u64) -> Option<(&mut Show, &mut Output)> {
        let (show, shown) = self.shows.get_mut(&session)?;
        Some((show, if *shown { &mut self.output } else { &mut self.nowhere }))
    }
}

impl TestObserver<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn listening(&self, state: &mut State) {
        state.tests += 1;
        if self.options.is_verbose() {
            state.output.lines(&text::program(&observer::system()));
        }
        if self.options.is_text() {
            let lines = text::listening(self.port, state.tests);
            state.output.lines(&lines);
        }
    }

    /// Prints "Server listening" if the last test was printed.
    fn listen_again(&self, state: &mut State, shown: bool) {
        match (self.args.server_flags.one_off, shown) {
            (true, _) => {}
            (false, true) => self.listening(state),
            (false, false) => state.tests += 1,
        }
    }
}

impl Observer for TestObserver<'_> {
    fn event(&self, event: ServerEvent) {
        let state = &mut *self.state();
        state.report_suppressed(false);
        match event {
            ServerEvent::Started { session, started } => {
                let streams = u32::try_from(started.streams.len()).unwrap_or(u32::MAX);
                let lines = LINES_OF_STREAM.saturating_mul(streams).saturating_add(LINES_OF_TEST);
                let shown = state.test_limit.admits(clock::now(), lines);
                state.shows.insert(session, (Show::new(self.options, None, None), shown));
                if let Some((show, output)) = state.show(session) {
                    show.begin(observer::head(&started, None, self.args), &started, output);
                }
            }
            // One test runs at a time, and the report interval is this end's: interval
            // reports need no limit.
            ServerEvent::Interval { session, interval } => {
                if let Some((show, output)) = state.show(session) {
                    show.row(&interval, output);
                }
            }
            ServerEvent::Finished { session, summary, .. } => {
                if let Some((show, output)) = state.show(session) {
                    show.end(Some(&summary.ours), None, output);
                    show.close(output);
                }
                if let Some((_, shown)) = state.shows.remove(&session) {
                    self.listen_again(state, shown);
                }
            }
            ServerEvent::Failed { session, why, .. } => {
                let show = session.and_then(|session| state.shows.remove(&session));
                let (mut show, shown) = show.unwrap_or_else(|| {
                    let shown = state.connection_limit.admits(clock::now(), LINES_OF_FAILURE);
                    (Show::new(self.options, None, None), shown)
                });
                let output = if shown { &mut state.output } else { &mut state.nowhere };
                show.fail(&why, output);
                show.close(output);
                self.listen_again(state, shown);
            }
            ServerEvent::Refused { peer, why, .. } if !self.options.is_text() => {
                if state.connection_limit.admits(clock::now(), LINES_OF_FAILURE) {
                    let mut show = Show::new(self.options, None, None);
                    show.fail(&format!("{peer} was refused: {why}"), &mut state.output);
                    show.close(&mut state.output);
                }
            }
            ServerEvent::Refused { peer, why, .. } => {
                if state.connection_limit.admits(clock::now(), 1) {
                    state.output.complain(&format!("{peer} was refused: {why}"));
                }
            }
            // iperf3 has no message for it.
            ServerEvent::Draining { .. } => {}
        }
    }

    fn output(&self, session: u64) -> Option<ServerOutput> {
        let state = &mut *self.state();
        let (show, output) = state.show(session)?;
        show.for_the_client(output)
    }
}
