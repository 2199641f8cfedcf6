//! The lab of a test: its hosts, with their settings, and the path between them.

use std::collections::BTreeSet;
use study::{Buffers, Hosts, Side, Sysctl, Test};
use topology::plan::Role;
use topology::{PathSpec, Plan};

/// The link whose path is the test's, in every lab.
pub(crate) const PATH: &str = "path";

/// The host behind the server, where the program has one.
pub(crate) const ORIGIN: &str = "origin";

/// Sysctls that a plan leaves to the lab, and that it does not have.
pub(crate) type Missing = BTreeSet<String>;

/// The lab of a test; `path` is that of its link. Those of its optional sysctls that are
/// missing are left out.
pub(crate) fn of(test: &Test, path: PathSpec, missing: &Missing) -> Plan {
    // Longhaul sets the congestion control of each connection; programs have their host's.
    let programs = test.flows.iter().find(|flow| flow.program.is_some());
    let congestion = programs.map_or("cubic", |flow| flow.congestion());
    let mut plan = if test.hosts == Hosts::PAIR {
        Plan::pair(path, congestion, &[], test.buffers == Buffers::Tuned)
    } else {
        Plan::dumbbell(path, test.hosts.clients, test.hosts.servers)
    };
    let wanted = |sysctl: &&Sysctl| !sysctl.optional || !missing.contains(&sysctl.name);
    for (index, host) in plan.hosts.iter_mut().enumerate() {
        let Some(side) = side(test.hosts, index) else { continue };
        congestion.clone_into(&mut host.congestion);
        host.tuned = test.buffers == Buffers::Tuned;
        let own = test.sysctls.iter().filter(wanted);
        let own = own.filter(|sysctl| sysctl.side == Side::Both || sysctl.side == side);
        host.sysctls = own.map(|sysctl| (sysctl.name.clone(), sysctl.value.clone())).collect();
    }
    let origin = programs.and_then(|flow| flow.program.as_ref()?.origin.as_ref());
    if let Some(origin) = origin {
        let (_, server) = pair(test.hosts, 0);
        plan.add_behind(server, ORIGIN, origin.path.clone());
        let sysctls = plan.hosts.get_mut(server).map(|server| {
            // A lab's hosts all reach each other, whether or not they are asked to.
            server.role = Role::Router;
            server.sysctls.clone()
        });
        if let (Some(added), Some(sysctls)) = (plan.hosts.last_mut(), sysctls) {
            added.sysctls = sysctls;
        }
    }
    plan
}

/// The side of the host at an index of the lab's; `None` for a router.
fn side(hosts: Hosts, index: usize) -> Option<Side> {
    let clients = usize::from(hosts.clients);
    if index < clients {
        Some(Side::Clients)
    } else {
        (index < clients + usize::from(hosts.servers)).then_some(Side::Servers)
    }
}

/// The indices of a client and of its server among the lab's hosts.
pub(crate) fn pair(hosts: Hosts, client: u8) -> (usize, usize) {
    let server = client % hosts.servers.max(1);
    (usize::from(client), usize::from(hosts.clients) + usize::from(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, missing: &Missing) -> Plan {
        let text = format!(
            "question = \"?\"\n[path]\nrate = \"10mbit\"\nrtt = \"10ms\"\n[factors]\n{text}\n\
             [traffic]\nduration = \"1s\""
        );
        let plan = study::Plan::parse(&text).unwrap();
        let test = plan.test(&plan.cell(0)).unwrap();
        of(&test, test.spec.clone(), missing)
    }

    #[test]
    fn sysctls_are_those_of_a_side_and_optional_ones_only_where_the_lab_has_them() {
        let text = "\"client.net.a\" = [\"1\"]\n\"server.net.b\" = [\"2\"]\n\"net.c\" = [\"3\"]\n\
                    [optional]\n\"net.d\" = \"4\"\n\"net.e\" = \"5\"";
        let plan = plan(text, &["net.e".to_owned()].into());
        let of = |host: usize| {
            let sysctls = &plan.hosts[host].sysctls;
            sysctls.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(of(0), ["net.d=4", "net.a=1", "net.c=3"]);
        assert_eq!(of(1), ["net.d=4", "net.b=2", "net.c=3"]);
    }

    #[test]
    fn hosts_of_a_side_have_its_settings_and_routers_none() {
        let plan = plan("hosts = [\"3x2\"]\n\"server.net.b\" = [\"2\"]", &Missing::new());
        let counts: Vec<usize> = plan.hosts.iter().map(|host| host.sysctls.len()).collect();
        assert_eq!(counts, [0, 0, 0, 1, 1, 0, 0]);
        assert_eq!(plan.hosts[5].role, Role::Router);
        assert_eq!(plan.links[0].name, PATH);
        let hosts = Hosts { clients: 3, servers: 2 };
        assert_eq!([0, 1, 2].map(|client| pair(hosts, client)), [(0, 3), (1, 4), (2, 3)]);
    }
}
