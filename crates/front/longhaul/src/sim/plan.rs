//! A lab's plan as a path and flows: what it has that needs real hosts is refused.

use super::flow_group::FlowGroup;
use super::plan_programs::{self, Program};
use crate::{Fault, Field, Problem, input};
use record::PathChange;
use std::time::Duration;
use topology::plan::{ProgramPlan, Role};
use topology::{PathSpec, Plan};

/// What the simulator takes of a plan.
pub(super) struct SimPlan {
    /// The link's path from each moment on, the first at zero.
    pub(super) paths: Vec<(Duration, PathSpec)>,
    pub(super) changes: Vec<PathChange>,
    pub(super) duration: Option<Duration>,
    /// The flows of its programs.
    pub(super) flows: Vec<FlowGroup>,
}

/// Reads a plan. With `replaced`, its programs are not read: others take their place.
pub(super) fn read(file: &str, text: &str, replaced: bool) -> Result<SimPlan, Problem> {
    let plan = Plan::parse(file, text, &mut input::of_a_path)
        .map_err(|error| Problem::new(Fault::Request, error))?;
    check(&plan)?;
    let link = plan.links.first().ok_or_else(|| refused(&plan, None, "no link"))?;
    let changes = plan
        .changes
        .iter()
        .map(|change| PathChange { at_s: change.at.as_secs_f64(), set: change.set.clone() });
    let later = plan.changes.iter().map(|change| (change.at, change.path.clone()));
    let paths = std::iter::once((Duration::ZERO, link.path.clone())).chain(later).collect();
    let flows = if replaced { Vec::new() } else { flows(&plan, link.ends)? };
    Ok(SimPlan { paths, changes: changes.collect(), duration: plan.duration, flows })
}

/// Two hosts with the system's own settings, and one link.
fn check(plan: &Plan) -> Result<(), Problem> {
    let is_pair = plan.hosts.len() == 2
        && plan.links.len() == 1
        && plan.hosts.iter().all(|host| host.role == Role::Host);
    if !is_pair {
        let what = format!("{} hosts and routers, {} links", plan.hosts.len(), plan.links.len());
        return Err(refused(plan, None, &what));
    }
    if let Some(host) = plan.hosts.iter().find(|host| !host.sysctls.is_empty()) {
        let (key, _) = &host.sysctls[0];
        let what = format!("sysctl {key}, which only a kernel has");
        return Err(refused(plan, host.line, &what));
    }
    // What a plan changes later would have to begin with the repetition.
    let repeats = plan
        .links
        .iter()
        .any(|link| link.path.schedules(0).iter().any(|schedule| schedule.repeat.is_some()));
    if repeats && !plan.changes.is_empty() {
        return Err(refused(plan, None, "both a path that repeats and [[change]]"));
    }
    Ok(())
}

fn flows(plan: &Plan, [from, to]: [usize; 2]) -> Result<Vec<FlowGroup>, Problem> {
    let mut groups = Vec::new();
    for program in &plan.programs {
        let host = &plan.hosts[program.host];
        let read = plan_programs::read(&program.command, &host.congestion);
        let read = read.map_err(|why| not_run(plan, program, &why))?;
        let Program::Client { host: server, mut flows } = read else { continue };
        if plan.host(&server).is_none() {
            return Err(not_run(plan, program, &format!("no host {server}")));
        }
        if program.host != from || plan.host(&server) != Some(to) {
            let [from, to] = [from, to].map(|host| plan.hosts[host].name.as_str());
            let why = format!("data goes from {from} to {to}, the order of the link's ends");
            return Err(not_run(plan, program, &why));
        }
        flows.start = program.start;
        let end = flows.stop.map(|length| program.start + length);
        flows.stop = end.into_iter().chain(program.stop).min();
        flows.spec = flows.to_spec();
        groups.push(flows);
    }
    Ok(groups)
}

fn not_run(plan: &Plan, program: &ProgramPlan, why: &str) -> Problem {
    let file = plan.file.as_deref().unwrap_or("the plan");
    let line = program.line.map_or(String::new(), |line| format!(" line {line}"));
    let what = format!("{file}{line}: the simulator cannot run this program: {why}");
    Problem::field(Field::Flows, what, "the flows instead of the plan's programs")
}

fn refused(plan: &Plan, line: Option<usize>, what: &str) -> Problem {
    let file = plan.file.as_deref().unwrap_or("the plan");
    let line = line.map_or(String::new(), |line| format!(" line {line}"));
    Problem::new(
        Fault::Request,
        format!(
            "{file}{line}: the plan has {what}; the simulator takes two hosts, one link between \
             them, [[change]], and iperf3 or longhaul test as programs"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = "duration = \"20s\"\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n\
                        path = \"rate=10mbit,rtt=20ms\"\n";

    #[test]
    fn programs_that_send_are_flows() {
        let text = format!(
            "congestion = \"reno\"\n{PAIR}[[change]]\nat = \"5s\"\nlink = \"a-b\"\nset = \"loss=1%\"\n\
             [[run]]\non = \"b\"\ncommand = \"iperf3 -s\"\nbackground = true\n\
             [[run]]\non = \"a\"\ncommand = \"iperf3 -c b -t 4 -P 2\"\nstart = \"1s\"\n\
             [[run]]\non = \"a\"\ncommand = \"longhaul test b -C bbr -b 5M\"\nstop = \"9s\"\n"
        );
        let plan = read("p.toml", &text, false).unwrap();
        assert_eq!((plan.paths.len(), plan.changes.len()), (2, 1));
        let shown: Vec<_> = plan
            .flows
            .iter()
            .map(|flow| (flow.count, flow.control_name(), flow.start, flow.stop))
            .collect();
        let second = Duration::from_secs;
        assert_eq!(
            shown,
            [(2, "reno", second(1), Some(second(5))), (1, "bbr", second(0), Some(second(9)))]
        );
        assert_eq!(read("p.toml", &text, true).unwrap().flows, []);
    }

    #[test]
    fn what_needs_real_hosts_is_refused_in_one_line() {
        let with = |more: &str| format!("{PAIR}{more}");
        for (text, part) in [
            (
                with(
                    "[host.c]\n[[link]]\nbetween = [\"b\", \"c\"]\npath = \"rate=1gbit,rtt=1ms\"\n",
                )
                .replace("[host.b]", "[router.b]"),
                "3 hosts",
            ),
            (
                format!("[sysctl]\n\"net.ipv4.tcp_sack\" = 0\n{}", PAIR.replace("duration", "#")),
                "tcp_sack",
            ),
            (with("[[run]]\non = \"a\"\ncommand = \"ping b\"\n"), "p.toml line 9"),
            (with("[[run]]\non = \"b\"\ncommand = \"iperf3 -c a\"\n"), "from a to b"),
            (with("[[run]]\non = \"a\"\ncommand = \"iperf3 -c b | tee x\"\n"), "a shell"),
        ] {
            let problem = read("p.toml", &text, false).err().unwrap().to_string();
            assert!(problem.contains(part) && !problem.contains('\n'), "{text}: {problem}");
        }
    }
}
