//! `longhaul boost verify`: direct and boosted runs, compared.

use super::run::ProgramArgs;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::verbs::probe_args::seconds;
use crate::{host_port, stop};
use clap::{ArgGroup, Args, value_parser};
use longhaul::boost::verify::{
    self, BoostVerifyEvent, BoostVerifyRequest, VerifiedTest, VerifyLab, VerifyStage,
};
use longhaul::input;
use report::{terminal, untrusted};
use std::ffi::OsString;
use std::path::PathBuf;

/// Measure the gain of a pair of boxes with your own command, or with a test
///
/// CMD runs as it is and behind "boost run", in turn (A B B A), so that drift of the path affects
/// both. The gain is the mean ratio of neighbouring runs, with its 95 % interval, and its price in
/// CPU time. Without CMD, tests to HOST are compared by goodput. In a lab (--link, --lab) the result
/// also has the harm to a CUBIC flow that shares the bottleneck.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("boxes").required(true).args(["far", "solo", "link", "lab"])))]
pub(super) struct VerifyArgs {
    /// Host with longhaul server, for a test instead of CMD
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["command", "link", "lab"])]
    #[arg(conflicts_with = "command")]
    host: Option<String>,
    #[command(flatten)]
    boxes: ProgramArgs,
    /// Runs of each way, 1 to 100
    #[arg(long, value_name = "N", default_value_t = BoostVerifyRequest::default().repeat)]
    repeat: u32,
    /// Seconds after which a run has failed
    #[arg(long, value_name = "SECONDS", default_value_t = BoostVerifyRequest::default().timeout_s)]
    timeout: u64,
    /// Seconds of each test
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds, help_heading = "Test")]
    #[arg(default_value_t = VerifiedTest::default().seconds, conflicts_with = "command")]
    time: f64,
    /// Parallel connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, help_heading = "Test")]
    #[arg(value_parser = value_parser!(u32).range(1..=128), conflicts_with = "command")]
    streams: u32,
    /// The server sends
    #[arg(long, short = 'R', help_heading = "Test", conflicts_with = "command")]
    reverse: bool,
    /// Run in a lab of five hosts with this path between the boxes
    ///
    /// CMD runs on app; the boxes are on near and far, with keys of their own; the server is on
    /// server. RTTs beside the path are 0.2 ms.
    #[arg(long, value_name = "PATH", help_heading = "Lab")]
    #[arg(conflicts_with_all = ["far", "solo", "key_file", "insecure", "lab"])]
    link: Option<String>,
    /// Run in a lab of your own: app, near, far, server
    #[arg(long, value_name = "PLAN", help_heading = "Lab")]
    #[arg(conflicts_with_all = ["far", "solo", "key_file", "insecure"])]
    lab: Option<PathBuf>,
    /// Command on the lab's server [default: longhaul server]
    #[arg(long, value_name = "CMD", help_heading = "Lab", conflicts_with_all = ["far", "solo"])]
    server: Option<String>,
    /// Setting of app and server; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Lab")]
    #[arg(requires = "link")]
    sysctl: Vec<(String, String)>,
    /// Tests of a CUBIC flow alone and beside a transfer; 0: none
    #[arg(long, value_name = "N", help_heading = "Lab", conflicts_with_all = ["far", "solo"])]
    #[arg(default_value_t = BoostVerifyRequest::default().harm_rounds)]
    #[arg(value_parser = value_parser!(u32).range(0..=20))]
    cubic_rounds: u32,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Program to compare, with its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost verify --far HOST --key-file near.key -- rclone copy data remote:
  longhaul boost verify --far HOST --key-file near.key --repeat 8 -- curl -o x URL
  longhaul boost verify --far HOST --key-file near.key SERVER
  longhaul boost verify --link rate=100mbit,rtt=173ms \\
      --sysctl net.ipv4.tcp_window_scaling=0
  longhaul boost verify --link geo --server 'nginx -g \"daemon off;\"' -- curl -o x server/x

Output of CMD is discarded. Exit code: 0 if runs were compared, whatever the verdict; 1 if
none completed.";

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("use KEY=VALUE, such as net.ipv4.tcp_sack=0")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl VerifyArgs {
    fn request(&self) -> Result<BoostVerifyRequest, Failure> {
        let mut test = VerifiedTest {
            host: self.host.clone().unwrap_or_default(),
            seconds: self.time,
            streams: self.streams,
            reverse: self.reverse,
            ..VerifiedTest::default()
        };
        if self.host.is_some() {
            host_port::split(&mut test.host, &mut test.port)?;
        }
        Ok(BoostVerifyRequest {
            boost: self.boxes.request(&self.command),
            test,
            repeat: self.repeat,
            timeout_s: self.timeout,
            harm_rounds: self.cubic_rounds,
            lab: self.stage()?.map(|stage| VerifyLab {
                stage,
                server: self.server.clone(),
                sysctls: self.sysctl.clone(),
            }),
        })
    }

    fn stage(&self) -> Result<Option<VerifyStage>, Failure> {
        if let Some(link) = &self.link {
            return Ok(Some(VerifyStage::Link(link.clone())));
        }
        let Some(path) = &self.lab else { return Ok(None) };
        let file = path.display().to_string();
        let text = input::plan(path)
            .map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
        Ok(Some(VerifyStage::Plan { file, text }))
    }
}

pub(super) fn run(args: &VerifyArgs, console: &mut Console) -> Outcome {
    let request = args.request()?;
    request.check()?;
    let stop = stop::on_signals();
    let mut shown = console.clone();
    let mut on_event = |event: BoostVerifyEvent| {
        let line = match event {
            BoostVerifyEvent::StartingLab => "starting the lab".to_owned(),
            BoostVerifyEvent::Run { way, number, of } => {
                return shown.live(&format!("run {number} of {of}: {}", way.name()));
            }
            BoostVerifyEvent::Ended(run) => terminal::boost_run(&run),
            BoostVerifyEvent::Cubic { beside, seconds } => {
                let beside =
                    beside.map_or("alone".to_owned(), |way| format!("beside {}", way.name()));
                return shown.live(&format!("CUBIC flow {beside}: {seconds} s"));
            }
            BoostVerifyEvent::CubicEnded { goodput } => format!("CUBIC flow: {goodput}"),
        };
        shown.clear();
        shown.say(&untrusted::line(&line, false));
    };
    let document = verify::run(&request, &mut on_event, &stop);
    console.clear();
    let document = document?;
    let text = match args.json {
        true => console::json(&document)?,
        false => terminal::boost_verification(&document, &console.out),
    };
    console.print(&text);
    Ok(if document.gain.is_some() { DONE } else { FAILED })
}
