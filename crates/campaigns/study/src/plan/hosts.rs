//! `[hosts]`: a plan that runs between real hosts, and what needs a lab and cannot be in it.

use super::PlanError;
use super::reader::Reader;
use crate::level::Level;
use crate::real_hosts::{RealHosts, RemoteHost, Servers};
use crate::setting::{Setting, Side};
use crate::value::Value;
use crate::written::WrittenPlan;
use std::ops::Range;
use topology::toml_text::{Entry, Written};

/// The most hosts of one side.
const MAX: usize = 16;

/// Keys of a path that say what a real one is believed to be.
const BELIEVED: [&str; 4] = ["rate", "rtt", "loss", "mtu"];

impl Reader<'_> {
    /// `[hosts]`; `None`: it runs in labs.
    pub(super) fn real_hosts(&self, written: &WrittenPlan) -> Result<Option<RealHosts>, PlanError> {
        let Some(table) = &written.hosts else {
            if written.path.is_none() {
                let problem = "no [path]; write its rate and rtt, or [hosts] for real hosts";
                return Err(self.error(&(0..0), problem));
            }
            return Ok(None);
        };
        if let Some((name, _)) = written.programs_in_order().first() {
            let problem = "programs run in labs only; remove [hosts], or the program";
            return Err(self.error(&name.span(), problem));
        }
        let (mut clients, mut servers) = (Vec::new(), None);
        for entry in &table.get_ref().0 {
            match (entry.key.as_str(), &entry.value) {
                ("clients", _) => clients = self.remote_hosts(entry)?,
                ("server" | "servers", _) if servers.is_some() => {
                    let problem = "server names a running server, servers are started by longhaul; \
                                   give only one of them";
                    return Err(self.error(&entry.key_span, problem));
                }
                ("server", Written::One(text)) => {
                    let running = Servers::running(text);
                    servers = Some(running.map_err(|wrong| self.error(&entry.value_span, wrong))?);
                }
                ("server", Written::List(_)) => {
                    let problem = "server names one running server; servers is a list of hosts";
                    return Err(self.error(&entry.value_span, problem));
                }
                ("servers", _) => servers = Some(Servers::Started(self.remote_hosts(entry)?)),
                (other, _) => {
                    let problem = format!(
                        "no key '{other}'; [hosts] has server = \"HOST:PORT\", or servers and \
                         clients, each a list of hosts"
                    );
                    return Err(self.error(&entry.key_span, problem));
                }
            }
        }
        let Some(servers) = servers else {
            let problem = "no server; write server = \"HOST:PORT\", or servers = [\"HOST\"]";
            return Err(self.error(&table.span(), problem));
        };
        let hosts = RealHosts { clients, servers };
        let counts = hosts.counts();
        if counts.servers > counts.clients {
            let problem = format!(
                "{} servers for {} clients: each client sends to one server, so there cannot be \
                 more servers than clients",
                counts.servers, counts.clients
            );
            return Err(self.error(&table.span(), problem));
        }
        Ok(Some(hosts))
    }

    fn remote_hosts(&self, entry: &Entry) -> Result<Vec<RemoteHost>, PlanError> {
        let items: Vec<(&str, &Range<usize>)> = match &entry.value {
            Written::One(text) => vec![(text, &entry.value_span)],
            Written::List(items) => {
                items.iter().map(|(text, span)| (text.as_str(), span)).collect()
            }
        };
        let mut hosts: Vec<RemoteHost> = Vec::new();
        for (text, span) in items {
            let host = RemoteHost::parse(text).map_err(|wrong| self.error(span, wrong))?;
            if hosts.contains(&host) {
                return Err(self.error(span, format!("{host} is listed twice")));
            }
            hosts.push(host);
        }
        if hosts.is_empty() || hosts.len() > MAX {
            let problem = format!("{} hosts; 1 to {MAX}", hosts.len());
            return Err(self.error(&entry.value_span, problem));
        }
        Ok(hosts)
    }

    /// Refuses what only a lab can give.
    pub(super) fn check_for_hosts(
        &self,
        entry: &Entry,
        setting: &Setting,
        levels: &[Level],
        varies: bool,
    ) -> Result<(), PlanError> {
        if !self.on_hosts {
            return Ok(());
        }
        let is_any = |of: fn(&Value) -> bool| levels.iter().any(|level| of(&level.value));
        let problem = match setting {
            Setting::Path(key) if varies => format!(
                "{key} cannot vary with [hosts]: real paths cannot be changed; remove [hosts] to \
                 run in labs"
            ),
            Setting::Path(key) if !BELIEVED.contains(&key.as_str()) => format!(
                "{key} needs a lab; with [hosts], [path] describes the path as assumed for \
                 predictions: {}",
                BELIEVED.join(", ")
            ),
            Setting::Hosts => {
                "hosts needs a lab; with [hosts], the hosts are those of its lists".to_owned()
            }
            Setting::Buffers => "buffers needs a lab; with [hosts], set net.ipv4.tcp_rmem and \
                                 net.ipv4.tcp_wmem, or leave them unchanged"
                .to_owned(),
            _ if is_any(|value| matches!(value, Value::Program(Some(_)))) => {
                "programs run in labs only; remove [hosts], or the program".to_owned()
            }
            _ if is_any(|value| matches!(value, Value::Source(_))) => {
                "source needs a lab, whose disks have a rate; remove [hosts], or the source"
                    .to_owned()
            }
            Setting::Sysctl(_, name) if !record::is_tuned_sysctl(name) => {
                let known: Vec<&str> = record::tuned_sysctls().collect();
                format!("longhaul does not set {name} on real hosts; it sets {}", known.join(", "))
            }
            Setting::Sysctl(side, name) if self.server_runs && *side != Side::Clients => format!(
                "the server is already running, so {name} cannot be set there; write \
                 client.{name}, or servers = [\"HOST\"]"
            ),
            Setting::Sysctl(_, name) => {
                let wrong = |level: &&Level| !record::is_tuned_value(name, &level.text);
                let Some(level) = levels.iter().find(wrong) else { return Ok(()) };
                let problem = format!("'{}' is not a value of {name}", level.text);
                let span = match &entry.value {
                    Written::List(items) => {
                        items.iter().find(|(text, _)| *text == level.text).map(|(_, span)| span)
                    }
                    Written::One(_) => None,
                };
                return Err(self.error(span.unwrap_or(&entry.value_span), problem));
            }
            _ => return Ok(()),
        };
        Err(self.error(&entry.key_span, problem))
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::real_hosts::Servers;
    use crate::{Hosts, Study};

    const PLAN: &str = r#"question = "?"
[hosts]
clients = ["me@a", "b"]
servers = ["c=192.0.2.3"]
[path]
rate = "1gbit"
rtt = "50ms"
[factors]
window = ["64KiB", "0.5 bdp"]
"server.net.ipv4.tcp_rmem" = ["4096 131072 6291456"]
[traffic]
duration = "2s"
"#;

    fn refused(from: &str, to: &str) -> (Option<(usize, usize)>, String) {
        let text = PLAN.replace(from, to);
        assert_ne!(text, PLAN, "{from}");
        let error = Plan::parse(&text).expect_err(&text);
        (error.at, error.problem)
    }

    #[test]
    fn a_plan_names_its_hosts() {
        let study = Study::of_plan("s", PLAN, false).unwrap();
        let hosts = study.real_hosts().unwrap();
        assert_eq!(hosts.client_names(), ["me@a", "b"]);
        assert_eq!(hosts.server_names(), ["c=192.0.2.3"]);
        let plan = &study.parts[0].plan;
        let test = plan.test(&plan.cell(0)).unwrap();
        assert_eq!(test.hosts, Hosts { clients: 2, servers: 1 });
        assert_eq!(plan.flows_of_tests(), ["traffic-1", "traffic-2"]);
        // The assumed path predicts two windows over 50 ms.
        let predicted = test.predict().unwrap().rate.as_f64();
        assert!((predicted / (2.0 * 65_536.0 * 8.0 / 0.05) - 1.0).abs() < 1e-6, "{predicted}");
        let sysctls = plan.sysctls();
        assert_eq!(sysctls[0].0, "server.net.ipv4.tcp_rmem");
        let server = PLAN.replace("servers = [\"c=192.0.2.3\"]", "server = \"far:5300\"");
        let server = server.replace("server.net", "client.net");
        let study = Study::of_plan("s", &server, false).unwrap();
        let running = Servers::Running { address: "far".to_owned(), port: 5300 };
        assert_eq!(study.real_hosts().unwrap().servers, running);
    }

    #[test]
    fn a_path_of_which_nothing_is_known_predicts_nothing() {
        let text = PLAN.replace("[path]\nrate = \"1gbit\"\nrtt = \"50ms\"\n", "");
        let text = text.replace(", \"0.5 bdp\"", "");
        let plan = Plan::parse(&text).unwrap();
        assert_eq!(plan.test(&plan.cell(0)).unwrap().predict(), None);
    }

    #[test]
    fn what_needs_a_lab_is_refused_where_it_is_written() {
        for (from, to, at, word) in [
            ("rtt = ", "queue = \"1 bdp\"\nrtt = ", (7, 1), "queue needs a lab"),
            ("window = ", "rate = [\"1gbit\"]\nwindow = ", (9, 1), "cannot vary"),
            ("window = ", "hosts = [\"2x1\"]\nwindow = ", (9, 1), "hosts needs a lab"),
            ("duration = ", "buffers = \"tuned\"\nduration = ", (12, 1), "buffers needs a lab"),
            ("duration = ", "program = \"http\"\nduration = ", (12, 1), "programs run in labs"),
            ("duration = ", "source = \"file\"\nduration = ", (12, 1), "source needs a lab"),
            ("tcp_rmem", "tcp_fack", (10, 1), "does not set net.ipv4.tcp_fack"),
            ("\"4096 131072 6291456\"", "\"1 2 3\", \"4096 x\"", (10, 40), "is not a value"),
            ("\"me@a\"", "\"-oX\"", (3, 12), "is not a host"),
            ("\"b\"", "\"me@a\"", (3, 20), "twice"),
            ("clients", "client", (3, 1), "no key 'client'"),
            ("servers = ", "server = \"x\"\nservers = ", (5, 1), "one of them"),
            ("servers = [\"c=192.0.2.3\"]\n", "", (2, 1), "no server"),
            ("\"c=192.0.2.3\"", "\"c\", \"d\", \"e\"", (2, 1), "3 servers for 2 clients"),
            (
                "servers = [\"c=192.0.2.3\"]",
                "server = \"c\"",
                (10, 1),
                "the server is already running",
            ),
            (
                "[traffic]",
                "[optional]\n\"net.core.busy_read\" = 1\n[traffic]",
                (12, 1),
                "does not set",
            ),
        ] {
            let (found, problem) = refused(from, to);
            assert_eq!(found, Some(at), "{to}: {problem}");
            assert!(problem.contains(word), "{to}: {problem}");
        }
        let (_, problem) = refused(
            "[hosts]\nclients = [\"me@a\", \"b\"]\nservers = [\"c=192.0.2.3\"]\n[path]\nrate = \"1gbit\"\nrtt = \"50ms\"\n",
            "",
        );
        assert!(problem.contains("no [path]"), "{problem}");
    }
}
