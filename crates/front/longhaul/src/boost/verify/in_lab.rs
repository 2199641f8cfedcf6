//! Runs in a lab: the command on `app`, and boosted with a gateway on `near`.

use super::carried::Carried;
use super::here::{Tested, measured};
use super::private_directory::PrivateDirectory;
use super::request::{BoostVerifyRequest, VerifiedTest, VerifyLab};
use super::service::{Lines, Service};
use super::stage::{Layout, quoted};
use super::transfer::Transfer;
use super::{BoostVerifyEvent, words};
use crate::{Fault, Problem, StopFlag};
use host::clock;
use record::{BoostRun, BoostWay, command_line};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount};
use verify::boosted::{BoostProgress, BoostRunner};

/// Time for the lab with its servers, and for a box to connect.
const LAB_START: Duration = Duration::from_secs(30);
const BOX_START: Duration = Duration::from_secs(30);
/// The port of the CUBIC flow's server.
const CUBIC_PORT: u16 = 5299;
/// Time that its test may take beside its length.
const CUBIC_GRACE: Duration = Duration::from_secs(60);
/// What `app` says once the servers listen.
const READY: &str = "boost-verify-ready";

pub(super) struct InLab<'a> {
    request: &'a BoostVerifyRequest,
    command: Vec<OsString>,
    name: String,
    layout: Layout,
    near_key: PathBuf,
    /// Boosted runs received more than they sent.
    is_download: bool,
    lab: Service<LabLines>,
    _directory: PrivateDirectory,
    on_event: &'a mut dyn FnMut(BoostVerifyEvent),
    stop: &'a StopFlag,
}

impl<'a> InLab<'a> {
    /// Starts the lab with the server and the far box.
    pub(super) fn start(
        request: &'a BoostVerifyRequest,
        lab: &VerifyLab,
        command: Vec<OsString>,
        on_event: &'a mut dyn FnMut(BoostVerifyEvent),
        stop: &'a StopFlag,
    ) -> Result<Self, Problem> {
        let directory = PrivateDirectory::new()?;
        let [near_key, far_key] = crate::boost::pair()?;
        let near_key = directory.write("near.key", &near_key)?;
        let far_key = directory.write("far.key", &far_key)?;
        let server = match &lab.server {
            Some(command) => command.clone(),
            None => shell(&words::server(request.test.port)?),
        };
        let programs = [
            program("server", &server, ""),
            program("far", &shell(&words::far(request, &far_key)?), ""),
            program("far", &shell(&words::server(CUBIC_PORT)?), ""),
            program("app", &format!("echo {READY}"), "start = \"1ms\"\n"),
        ];
        let lab_request = request.lab_request(lab, &programs.concat())?;
        let layout = Layout::of(&lab_request)?;
        let crate::lab::LabHosts::Plan { text, .. } = &lab_request.hosts else {
            return Err(Problem::new(Fault::Internal, "the lab has no plan"));
        };
        let plan = directory.write("plan.toml", text)?;
        let name = format!("boost-verify-{}", std::process::id());
        let up: Vec<OsString> = [words::own()?, "lab".into(), "up".into(), plan.into()]
            .into_iter()
            .chain(["--name".into(), name.clone().into()])
            .collect();
        let lab = Service::start("the lab", &up, LabLines)?.until_ready(LAB_START, stop)?;
        let is_download = request.test().is_some_and(|test| test.reverse);
        Ok(InLab {
            request,
            command,
            name,
            layout,
            near_key,
            is_download,
            lab,
            _directory: directory,
            on_event,
            stop,
        })
    }

    /// Ends the lab; what it says of the validity of its links.
    pub(super) fn end(self) -> Vec<String> {
        let mut notes = vec![
            "CPU time does not include the far box and the server, which run all the time"
                .to_owned(),
        ];
        match self.lab.end() {
            Ok((_, _, messages)) => {
                let invalid = messages.lines().filter(|line| line.contains("not valid:"));
                notes.extend(invalid.map(str::to_owned));
            }
            Err(problem) => notes.push(problem.message),
        }
        notes
    }

    fn on_app(&self) -> Result<Vec<OsString>, Problem> {
        words::on_host(&self.name, "app", &self.command)
    }

    /// Starts the gateway, and waits until it is connected.
    fn near(&self) -> Result<Service<NearLines>, Problem> {
        let ports = match self.request.test() {
            // Routing alone: no nf_tables.
            Some(test) => test.port.to_string(),
            None => "all".to_owned(),
        };
        let near = words::near(self.request, &self.layout.near_device, &ports, &self.near_key)?;
        let near = words::on_host(&self.name, "near", &near)?;
        Service::start("the near box", &near, NearLines::default())?
            .until_ready(BOX_START, self.stop)
    }

    fn boosted(&mut self) -> Result<BoostRun, Problem> {
        let setup = clock::now();
        let near = self.near()?;
        let setup_s = clock::now().saturating_duration_since(setup).as_secs_f64();
        let began = clock::unix_time().as_secs_f64();
        let mut run = self.once(BoostWay::Boosted)?;
        let (end, lines, _) = near.end()?;
        run.setup_s = Some(setup_s);
        run.cpu_s += end.cpu.total().as_secs_f64();
        // The command may end before near has delivered what it sent.
        run.seconds = run.seconds.max(lines.last_flow_unix_s - began);
        let carried = lines.carried.unwrap_or_default();
        if run.failed.is_none() && carried.bytes() == 0 {
            run.failed = Some("no connection of the command went through the boxes".to_owned());
        }
        self.is_download = carried.is_download();
        run.bytes = Some(ByteCount::from_bytes(carried.bytes()));
        Ok(run)
    }

    fn once(&self, way: BoostWay) -> Result<BoostRun, Problem> {
        let limit = Duration::from_secs(self.request.timeout_s);
        let ended = Transfer::start(&self.on_app()?)?.wait(limit, self.stop)?;
        Ok(measured(way, &ended, self.request.test().is_some()))
    }
}

fn shell(words: &[OsString]) -> String {
    command_line(words.iter().map(|word| word.to_string_lossy()))
}

/// A background program of a plan.
fn program(host: &str, command: &str, more: &str) -> String {
    let command = quoted(command);
    format!("[[run]]\non = \"{host}\"\ncommand = {command}\nbackground = true\n{more}")
}

impl BoostRunner for InLab<'_> {
    fn run(&mut self, way: BoostWay) -> Result<BoostRun, Problem> {
        match way {
            BoostWay::Direct => self.once(way),
            BoostWay::Boosted => self.boosted(),
        }
    }

    fn cubic(&mut self, beside: Option<BoostWay>, seconds: f64) -> Result<BitRate, Problem> {
        let near = match beside {
            Some(BoostWay::Boosted) => Some(self.near()?),
            Some(BoostWay::Direct) | None => None,
        };
        let mut transfer = match beside {
            Some(_) => Some(Transfer::start(&self.on_app()?)?),
            None => None,
        };
        let test = VerifiedTest {
            host: "far".to_owned(),
            port: CUBIC_PORT,
            seconds,
            streams: 1,
            reverse: self.is_download,
        };
        let words = words::on_host(&self.name, self.layout.before, &words::cubic(&test)?)?;
        let limit = Duration::from_secs_f64(seconds) + CUBIC_GRACE;
        let ended = Transfer::start(&words)?.wait(limit, self.stop)?;
        let was_beside = transfer.as_mut().is_none_or(Transfer::is_running);
        transfer.into_iter().for_each(Transfer::end);
        near.map(Service::end).transpose()?;
        let failed = |why: String| Problem::new(Fault::Internal, why);
        if let Some(why) = ended.failed {
            return Err(failed(why));
        }
        if !was_beside && !self.stop.is_raised() {
            return Err(failed("the transfer beside it ended first".to_owned()));
        }
        let tested = Tested::parse(&ended.output).map_err(failed)?;
        tested.goodput().ok_or_else(|| failed("nothing arrived".to_owned()))
    }

    fn report(&mut self, progress: BoostProgress<'_>) {
        (self.on_event)(progress.into());
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }
}

/// Lines of `lab up`.
struct LabLines;

impl Lines for LabLines {
    fn take(&mut self, line: &str) -> bool {
        line.ends_with(READY)
    }
}

/// Lines of `boost near --json`.
#[derive(Debug, Default)]
struct NearLines {
    /// When the last flow ended.
    last_flow_unix_s: f64,
    carried: Option<Carried>,
}

/// The members of an event that count here.
#[derive(Debug, Deserialize)]
struct NearEvent {
    time: f64,
    event: String,
}

impl Lines for NearLines {
    fn take(&mut self, line: &str) -> bool {
        let Ok(NearEvent { time, event }) = serde_json::from_str(line) else {
            // The last document is no event.
            self.carried = serde_json::from_str(line).ok().or(self.carried);
            return false;
        };
        if event == "flow" {
            self.last_flow_unix_s = self.last_flow_unix_s.max(time);
        }
        event == "far_reached"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_says_when_it_is_connected_and_what_it_carried() {
        let mut lines = NearLines::default();
        assert!(!lines.take(r#"{"schema":"s","time":1.0,"event":"listening"}"#));
        assert!(lines.take(r#"{"schema":"s","time":2.0,"event":"far_reached"}"#));
        assert!(!lines.take(r#"{"schema":"s","time":9.5,"event":"flow","end":"fin"}"#));
        assert!(!lines.take("not JSON"));
        assert!(!lines.take(r#"{"schema":"longhaul.boost/1","in_bytes":5,"out_bytes":7}"#));
        let carried = lines.carried.unwrap();
        assert_eq!((lines.last_flow_unix_s, carried.bytes()), (9.5, 12));
        assert!(carried.is_download());
    }
}
