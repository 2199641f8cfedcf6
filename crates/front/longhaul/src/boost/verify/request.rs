//! What is compared, how often, and where.

use crate::boost::program::ProgramRequest;
use crate::lab::{LabHosts, LabRequest};
use crate::{Field, Problem};
use serde::{Deserialize, Serialize};
use verify::boosted::MAX_REPEATS;

/// Longest time of a run, in seconds: a day.
const MAX_TIMEOUT_S: u64 = 86_400;

/// The host of a lab's server.
const LAB_SERVER: &str = "server";

/// A command to run directly and boosted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoostVerifyRequest {
    /// The boxes and the command. Without a command, `test` is run; in a lab, `far` is the lab's.
    pub boost: ProgramRequest,
    /// The test to run if there is no command.
    pub test: VerifiedTest,
    /// Runs of each way, 1 to 100.
    pub repeat: u32,
    /// Seconds after which a run has failed.
    pub timeout_s: u64,
    /// In a lab, tests of a CUBIC flow alone and beside a transfer of each way; 0 for none.
    pub harm_rounds: u32,
    /// The lab; `None`: from this host.
    pub lab: Option<VerifyLab>,
}

/// A test towards a server of Longhaul's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifiedTest {
    /// The server; empty in a lab, which has one.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Seconds of each test.
    pub seconds: f64,
    /// Parallel connections.
    pub streams: u32,
    /// True if the server sends.
    pub reverse: bool,
}

/// A lab with the hosts `app`, `near`, `far` and `server`, in which the boxes are on `near` and `far`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyLab {
    /// Its hosts and links.
    pub stage: VerifyStage,
    /// Command line of the shell on `server`; `None`: Longhaul's own server.
    #[serde(default)]
    pub server: Option<String>,
    /// Sysctls of `app` and `server` in a lab that has no plan of its own.
    #[serde(default)]
    pub sysctls: Vec<(String, String)>,
}

/// The hosts and links of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VerifyStage {
    /// Five hosts: `app`, `near`, `wan`, `far`, `server`, this path from `wan` to `far`, and 0.2 ms
    /// between the others.
    Link(String),
    /// A plan (TOML) with hosts of these names; `wan` is optional.
    Plan {
        /// The name of the plan in messages.
        file: String,
        /// The plan.
        text: String,
    },
}

impl Default for BoostVerifyRequest {
    fn default() -> Self {
        BoostVerifyRequest {
            boost: ProgramRequest::default(),
            test: VerifiedTest::default(),
            repeat: 4,
            timeout_s: 3600,
            harm_rounds: 2,
            lab: None,
        }
    }
}

impl Default for VerifiedTest {
    fn default() -> Self {
        VerifiedTest { host: String::new(), port: 5201, seconds: 10.0, streams: 1, reverse: false }
    }
}

impl VerifyLab {
    /// The path in words.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.stage {
            VerifyStage::Link(link) => link.clone(),
            VerifyStage::Plan { file, .. } => file.clone(),
        }
    }
}

impl BoostVerifyRequest {
    /// The test, if there is no command.
    pub(super) fn test(&self) -> Option<VerifiedTest> {
        let mut test = self.test.clone();
        if self.lab.is_some() && test.host.is_empty() {
            LAB_SERVER.clone_into(&mut test.host);
        }
        self.boost.command.is_empty().then_some(test)
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if let Some(test) = self.test() {
            if test.host.is_empty() {
                return Err(Problem::field(Field::Host, "no server", "one, or a command"));
            }
            if !(test.seconds.is_finite() && (1.0..=3600.0).contains(&test.seconds)) {
                let message = format!("a test of {} s", test.seconds);
                return Err(Problem::field(Field::Seconds, message, "1 to 3600 s"));
            }
            if !(1..=128).contains(&test.streams) {
                let message = format!("{} streams", test.streams);
                return Err(Problem::field(Field::Streams, message, "1 to 128"));
            }
            if test.port == 0 {
                return Err(Problem::field(Field::Port, "port 0", "1 to 65535"));
            }
        }
        if !(1..=MAX_REPEATS).contains(&self.repeat) {
            let message = format!("{} runs of each way", self.repeat);
            return Err(Problem::field(Field::Repeat, message, format!("1 to {MAX_REPEATS}")));
        }
        if !(1..=MAX_TIMEOUT_S).contains(&self.timeout_s) {
            let message = format!("a time limit of {} s", self.timeout_s);
            return Err(Problem::field(Field::Timeout, message, "1 s to a day"));
        }
        match &self.lab {
            None => self.checked_boxes(),
            Some(lab) => super::stage::Layout::of(&self.lab_request(lab, "")?).map(drop),
        }
    }

    /// Checks the boxes, whatever the command.
    fn checked_boxes(&self) -> Result<(), Problem> {
        let mut boost = self.boost.clone();
        if boost.command.is_empty() {
            boost.command.push("longhaul".into());
        }
        boost.check()
    }

    /// The lab, with `programs` added to its plan.
    pub(super) fn lab_request(
        &self,
        lab: &VerifyLab,
        programs: &str,
    ) -> Result<LabRequest, Problem> {
        let (file, text) = match &lab.stage {
            VerifyStage::Link(link) => {
                ("boost-verify.toml".to_owned(), super::stage::five_hosts(link, &lab.sysctls)?)
            }
            VerifyStage::Plan { file, text } => (file.clone(), text.clone()),
        };
        let hosts = LabHosts::Plan { file, text: format!("{text}\n{programs}") };
        Ok(LabRequest { hosts, ..LabRequest::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boost::BoxSettings;

    #[test]
    fn wrong_fields_are_named() {
        let settings = BoxSettings { insecure: true, ..BoxSettings::default() };
        let boost = ProgramRequest {
            far: Some("192.0.2.1".to_owned()),
            command: vec!["true".into()],
            settings,
            ..ProgramRequest::default()
        };
        let good = BoostVerifyRequest { boost, ..BoostVerifyRequest::default() };
        assert_eq!(good.check(), Ok(()));
        let field = |request: &BoostVerifyRequest| {
            request.check().unwrap_err().remedy.map(|remedy| remedy.field)
        };
        assert_eq!(field(&BoostVerifyRequest { repeat: 0, ..good.clone() }), Some(Field::Repeat));
        assert_eq!(
            field(&BoostVerifyRequest { timeout_s: 0, ..good.clone() }),
            Some(Field::Timeout)
        );
        let mut test = good.clone();
        test.boost.command.clear();
        assert_eq!(field(&test), Some(Field::Host));
        test.test = VerifiedTest { host: "a".to_owned(), ..VerifiedTest::default() };
        assert_eq!(test.check(), Ok(()));
        test.test.seconds = f64::NAN;
        assert_eq!(field(&test), Some(Field::Seconds));
        let mut without_keys = good;
        without_keys.boost.settings.insecure = false;
        assert_eq!(field(&without_keys), Some(Field::KeyFiles));
    }

    #[test]
    fn a_lab_has_the_hosts_of_the_boxes() {
        let lab = |stage| VerifyLab { stage, server: None, sysctls: Vec::new() };
        let request =
            |stage| BoostVerifyRequest { lab: Some(lab(stage)), ..BoostVerifyRequest::default() };
        let link = VerifyStage::Link("rate=100mbit,rtt=173ms".to_owned());
        assert_eq!(request(link).check(), Ok(()));
        let wrong = request(VerifyStage::Link("rate=fast".to_owned())).check().unwrap_err();
        assert_eq!(wrong.remedy.unwrap().field, Field::Link);
        let text = "[host.app]\n[host.near]\n[[link]]\nbetween=[\"app\",\"near\"]\n\
            path=\"rate=1gbit,rtt=1ms\"";
        let plan = VerifyStage::Plan { file: "p.toml".to_owned(), text: text.to_owned() };
        let wrong = request(plan).check().unwrap_err();
        assert!(wrong.message.contains("far"), "{wrong}");
    }
}
