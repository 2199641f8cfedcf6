//! Requests to run a study.

use crate::{Fault, Field, Problem};
use campaign::{CaptureOptions, HostAccess, Options};
use record::{PlannedRun, StudyTestbed};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::thread;
use study::{BuiltIn, Shard, Study};
use units::ByteCount;

/// A study to run, or to resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyRequest {
    /// The factors and the measurement.
    pub plan: StudyPlan,
    /// Directory of the results. Those that are there are not measured again.
    pub folder: PathBuf,
    /// True to run the short form.
    #[serde(default)]
    pub quick: bool,
    /// Maximum attempts to get a valid run, 1 to 100.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// True to run one cell at a time, even where the machine can run more.
    #[serde(default)]
    pub serial: bool,
    /// Where it runs; `None`: where a built-in study or the plan's hosts say, or else in labs.
    #[serde(default)]
    pub testbed: Option<StudyTestbed>,
    /// The cells to run, every N-th one; `None`: all of them.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// True to leave out the cells that the simulator cannot run.
    #[serde(default)]
    pub skip_unsupported: bool,
    /// True if the programs that the plan brings may run: in the lab's hosts, as nobody if root
    /// runs the study, otherwise as its user.
    #[serde(default)]
    pub allow_commands: bool,
    /// True if the plan's sysctls may be set on real hosts. They are reverted after each run.
    #[serde(default)]
    pub allow_sysctls: bool,
    /// Maximum size of the capture of each cell; `None`: no captures.
    #[serde(default)]
    pub capture: Option<ByteCount>,
    /// Access to real hosts, for plans with `[hosts]`.
    #[serde(default)]
    pub access: StudyHostAccess,
}

/// The plan of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StudyPlan {
    /// A study that comes with longhaul.
    BuiltIn {
        /// Its name: see [`super::list`].
        name: String,
        /// The only trend to run.
        #[serde(default)]
        only: Option<String>,
    },
    /// A plan (TOML).
    Text {
        /// The name of the study.
        name: String,
        /// The plan's name in messages.
        file: String,
        /// The plan.
        text: String,
    },
}

/// Access to real hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StudyHostAccess {
    /// The ssh command, with its options.
    pub ssh: Vec<String>,
    /// The program longhaul at the other hosts.
    pub far_program: String,
    /// The program longhaul at this host.
    pub own_program: PathBuf,
    /// For a server that runs already and requires one.
    pub token: Option<String>,
}

impl Default for StudyHostAccess {
    /// `ssh`, and `longhaul` in the search path of each host.
    fn default() -> Self {
        StudyHostAccess {
            ssh: vec!["ssh".to_owned()],
            far_program: "longhaul".to_owned(),
            own_program: "longhaul".into(),
            token: None,
        }
    }
}

const fn attempts() -> u32 {
    3
}

impl StudyPlan {
    /// The study, checked.
    ///
    /// # Errors
    /// An error in the plan, or the names that exist.
    pub fn study(&self, quick: bool) -> Result<Study, Problem> {
        let wrong = |error: String| Problem::new(Fault::Request, error);
        match self {
            StudyPlan::BuiltIn { name, only } => {
                let Some(built_in) = BuiltIn::named(name) else {
                    let known: Vec<&str> = study::BUILT_IN.iter().map(|one| one.name).collect();
                    return Err(wrong(format!("built-in studies are {}", known.join(", "))));
                };
                let study = built_in.study(quick, only.as_deref());
                study.map_err(|error| wrong(error.to_string()))
            }
            StudyPlan::Text { name, file, text } => {
                Study::of_plan(name, text, quick).map_err(|error| wrong(format!("{file}, {error}")))
            }
        }
    }
}

impl StudyRequest {
    /// A study with its defaults; programs of the plan and sysctls of real hosts are not allowed.
    #[must_use]
    pub fn new(plan: StudyPlan, folder: impl Into<PathBuf>) -> Self {
        StudyRequest {
            plan,
            folder: folder.into(),
            quick: false,
            attempts: attempts(),
            serial: false,
            testbed: None,
            shard: None,
            skip_unsupported: false,
            allow_commands: false,
            allow_sysctls: false,
            capture: None,
            access: StudyHostAccess::default(),
        }
    }

    /// Checks the plan and the permissions that it needs.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let study = self.plan.study(self.quick)?;
        if !(1..=100).contains(&self.attempts) {
            let what = format!("{} attempts", self.attempts);
            return Err(Problem::field(Field::Attempts, what, "1 to 100"));
        }
        self.check_testbed(&study)?;
        self.check_shard(&study)?;
        self.check_folder(&study)?;
        if self.runs_in(&study) == StudyTestbed::Simulator {
            return Ok(());
        }
        if !self.allow_commands && study.programs().iter().any(|program| !program.built_in) {
            let accepted = "consent, after reading them";
            return Err(Problem::field(Field::AllowCommands, "the plan runs programs", accepted));
        }
        let Some(_) = study.real_hosts() else { return Ok(()) };
        if self.capture.is_some() {
            let problem = "captures work in labs only, and this study runs between real hosts";
            return Err(Problem::field(Field::Capture, problem, "nothing"));
        }
        let sets = study.parts.iter().any(|part| !part.plan.sysctls().is_empty());
        if sets && !self.allow_sysctls {
            let accepted = "consent, after reading them";
            let problem = "the plan sets sysctls on real hosts";
            return Err(Problem::field(Field::AllowSysctls, problem, accepted));
        }
        Ok(())
    }

    /// Returns true if it runs in labs, so that it needs a sandbox.
    #[must_use]
    pub fn needs_sandbox(&self) -> bool {
        self.plan.study(self.quick).is_ok_and(|study| self.runs_in(&study) == StudyTestbed::Lab)
    }

    /// Where the study of its plan runs.
    #[must_use]
    pub fn runs_in(&self, study: &Study) -> StudyTestbed {
        let own = match &self.plan {
            StudyPlan::BuiltIn { name, .. } => BuiltIn::named(name).map(|known| known.testbed),
            StudyPlan::Text { .. } => None,
        };
        self.testbed.or(own).unwrap_or(study.testbed())
    }

    /// Checks that the study can run where it is to.
    ///
    /// # Errors
    /// Hosts without a plan of hosts and the reverse, and cells that the simulator cannot run.
    pub fn check_testbed(&self, study: &Study) -> Result<(), Problem> {
        let testbed = self.runs_in(study);
        if testbed != StudyTestbed::Simulator {
            if testbed != study.testbed() {
                let problem = "only a plan with [hosts] runs between real hosts, and only there";
                let own = study.testbed().name();
                return Err(Problem::field(Field::Testbed, problem, format!("{own} or simulator")));
            }
            if self.skip_unsupported {
                let problem = "only the simulator leaves cells out";
                return Err(Problem::field(Field::SkipUnsupported, problem, "nothing"));
            }
            return Ok(());
        }
        if self.capture.is_some() {
            let problem = "captures work in labs only, and this study runs in the simulator";
            return Err(Problem::field(Field::Capture, problem, "nothing"));
        }
        match campaign::unsupported(study) {
            Some(found) if !self.skip_unsupported || found.cells == found.all => {
                Err(Problem::new(Fault::Request, found).with(Field::Testbed, "lab"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that every shard has a cell.
    ///
    /// # Errors
    /// More shards than cells, and shards between real hosts.
    pub fn check_shard(&self, study: &Study) -> Result<(), Problem> {
        let Some(shard) = self.shard else { return Ok(()) };
        let (shards, cells) = (shard.count(), study.cells());
        if study.real_hosts().is_some() {
            let problem = "a study between real hosts runs as a whole";
            return Err(Problem::field(Field::Shard, problem, "nothing"));
        }
        if shards > cells {
            let problem = format!("{shards} shards of a study that has {cells} cells");
            return Err(Problem::field(Field::Shard, problem, format!("at most {cells} shards")));
        }
        Ok(())
    }

    /// How each part of the study would run.
    ///
    /// # Errors
    /// A shard that the study cannot have.
    pub fn planned(&self, study: &Study) -> Result<Vec<PlannedRun>, Problem> {
        self.check_shard(study)?;
        Ok(study.planned(self.runs_in(study) == StudyTestbed::Simulator, self.shard))
    }

    /// Checks the directory: the files of programs, and disks, cover /dev/shm while a study runs.
    ///
    /// # Errors
    /// A directory that would be covered.
    pub fn check_folder(&self, study: &Study) -> Result<(), Problem> {
        const COVERED: &str = "/dev/shm";
        let wrong = |problem: String| Problem::new(Fault::Request, problem);
        let folder = std::path::absolute(&self.folder).map_err(|error| wrong(error.to_string()))?;
        // Of a directory that is yet to be made, the ones above it.
        let real = folder.ancestors().find_map(|above| above.canonicalize().ok());
        let in_lab = self.runs_in(study) == StudyTestbed::Lab;
        let covers = in_lab && (!study.programs().is_empty() || study.sends_files());
        if covers && real.is_some_and(|real| real.starts_with(COVERED)) {
            let problem = format!("a study with programs or files cannot write below {COVERED}");
            return Err(wrong(problem).with(Field::Folder, ""));
        }
        Ok(())
    }

    pub(super) fn options(&self, study: &Study) -> Options {
        let parallel = match self.runs_in(study) {
            _ if self.serial => 1,
            StudyTestbed::Simulator => cores(),
            StudyTestbed::Lab | StudyTestbed::Hosts => 2,
        };
        let capture = |max_size| CaptureOptions { folder: self.folder.clone(), max_size };
        Options {
            attempts: self.attempts,
            parallel,
            shard: self.shard,
            skip_unsupported: self.skip_unsupported,
            captures: self.capture.map(capture),
        }
    }

    /// Where the captures of its cells are, if it has any.
    #[must_use]
    pub fn captures_folder(&self) -> Option<PathBuf> {
        self.capture.map(|_| campaign::captures_folder(&self.folder))
    }

    /// The report's page, which [`super::run()`] writes.
    #[must_use]
    pub fn page(&self) -> PathBuf {
        page(&self.folder)
    }
}

/// Cores that this process may use.
fn cores() -> u32 {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}

pub(super) fn page(folder: &Path) -> PathBuf {
    folder.join("index.html")
}

impl StudyHostAccess {
    pub(super) fn access(&self) -> HostAccess {
        let StudyHostAccess { ssh, far_program, own_program, token } = self.clone();
        HostAccess { ssh, far_program, own_program, token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(request: &StudyRequest) -> Option<Field> {
        request.check().unwrap_err().remedy.map(|remedy| remedy.field)
    }

    fn text(plan: &str) -> StudyPlan {
        let (name, file) = ("plan".to_owned(), "plan.toml".to_owned());
        StudyPlan::Text { name, file, text: plan.to_owned() }
    }

    const PLAN: &str = "question = \"Does it?\"\n[path]\nrate = \"10mbit\"\nrtt = \"20ms\"\n\
        [factors]\nstreams = [1, 2]\n[traffic]\nduration = \"1s\"\n[repeats]\ncount = 1\n";

    #[test]
    fn a_wrong_field_is_named() {
        let request = StudyRequest::new(text(PLAN), "results");
        assert_eq!(request.check(), Ok(()));
        assert!(request.needs_sandbox());
        assert_eq!(field(&StudyRequest { attempts: 0, ..request.clone() }), Some(Field::Attempts));
        let wrong = StudyRequest { plan: text("question = 1"), ..request };
        assert!(wrong.check().unwrap_err().message.starts_with("plan.toml, "));
    }

    #[test]
    fn the_simulator_refuses_what_it_cannot_run() {
        let simulated = |plan: &str| StudyRequest {
            testbed: Some(StudyTestbed::Simulator),
            ..StudyRequest::new(text(plan), "results")
        };
        let request = simulated(PLAN);
        assert_eq!(request.check(), Ok(()));
        assert!(!request.needs_sandbox());
        let controls = PLAN.replace("streams = [1, 2]", "congestion = [\"cubic\", \"none\"]");
        let mixed = simulated(&controls);
        assert_eq!(field(&mixed), Some(Field::Testbed));
        let message = mixed.check().unwrap_err().to_string();
        assert!(message.contains("1 of 2 cells (the first, congestion=none"), "{message}");
        let skipping = StudyRequest { skip_unsupported: true, ..mixed };
        assert_eq!(skipping.check(), Ok(()));
        let none = simulated(&PLAN.replace("[traffic]", "[traffic]\nprotocol = \"udt\""));
        assert_eq!(field(&StudyRequest { skip_unsupported: true, ..none }), Some(Field::Testbed));
        let capture = Some(ByteCount::from_bytes(1000));
        assert_eq!(field(&StudyRequest { capture, ..request.clone() }), Some(Field::Capture));
        let in_lab = StudyRequest { testbed: None, skip_unsupported: true, ..request.clone() };
        assert_eq!(field(&in_lab), Some(Field::SkipUnsupported));
        let hosts = StudyRequest { testbed: Some(StudyTestbed::Hosts), ..request };
        assert_eq!(field(&hosts), Some(Field::Testbed));
    }

    #[test]
    fn every_shard_has_a_cell() {
        let sharded = |shard: &str| StudyRequest {
            shard: Some(shard.parse().unwrap()),
            ..StudyRequest::new(text(PLAN), "results")
        };
        assert_eq!(sharded("2/2").check(), Ok(()));
        assert_eq!(field(&sharded("1/3")), Some(Field::Shard));
    }

    #[test]
    fn names_that_do_not_exist_are_answered_with_those_that_do() {
        for (name, only, known) in
            [("edge", None, "edge-cloud"), ("edge-cloud", Some("none".to_owned()), "none")]
        {
            let plan = StudyPlan::BuiltIn { name: name.to_owned(), only };
            let problem = StudyRequest::new(plan, "results").check().unwrap_err();
            assert!(problem.message.contains(known), "{problem}");
        }
    }

    #[test]
    fn sysctls_of_real_hosts_need_consent() {
        let hosts = "[hosts]\nclients = [\"127.0.0.1\"]\nservers = [\"far=127.0.0.1\"]\n[path]";
        let sysctl = PLAN.replace("streams = [1, 2]", "\"net.ipv4.tcp_sack\" = [0, 1]");
        let real = StudyRequest::new(text(&sysctl.replace("[path]", hosts)), "results");
        assert_eq!(field(&real), Some(Field::AllowSysctls));
        let allowed = StudyRequest { allow_sysctls: true, ..real.clone() };
        assert_eq!(allowed.check(), Ok(()));
        assert!(!allowed.needs_sandbox());
        let capture = Some(ByteCount::from_bytes(1000));
        assert_eq!(field(&StudyRequest { capture, ..real }), Some(Field::Capture));
    }

    #[test]
    fn programs_of_a_plan_need_consent() {
        let program = "[programs.fetch]\nclient = [\"true\"]\noutput = \"curl\"\n[repeats]";
        let plan = PLAN.replace("streams = [1, 2]", "congestion = [\"cubic\", \"reno\"]");
        let plan = plan.replace("[traffic]", "[traffic]\nprogram = \"fetch\"");
        let plan = text(&plan.replace("[repeats]", program));
        let request = StudyRequest::new(plan, "results");
        assert_eq!(field(&request), Some(Field::AllowCommands));
        let allowed = StudyRequest { allow_commands: true, ..request.clone() };
        assert_eq!(allowed.check(), Ok(()));
        let covered = StudyRequest { folder: "/dev/shm/results".into(), ..allowed };
        assert_eq!(field(&covered), Some(Field::Folder));
    }
}
