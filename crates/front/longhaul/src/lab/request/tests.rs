//! Tests of the checks of a lab's request.

use super::*;

const LINK: &str = "rate=10mbit,rtt=20ms";

fn problem(change: impl FnOnce(&mut LabRequest, &mut PairRequest)) -> Problem {
    let mut request = LabRequest::new(LINK, ["true"]);
    let LabHosts::Pair(mut pair) = request.hosts.clone() else { unreachable!() };
    change(&mut request, &mut pair);
    request.hosts = LabHosts::Pair(pair);
    request.check().unwrap_err()
}

fn field(problem: &Problem) -> Option<Field> {
    problem.remedy.as_ref().map(|remedy| remedy.field)
}

#[test]
fn a_wrong_field_is_named() {
    assert_eq!(LabRequest::new(LINK, ["true"]).with_server("true").check(), Ok(()));
    let cases: [(Problem, Option<Field>, &str); 7] = [
        (problem(|_, pair| pair.link = String::new()), Some(Field::Link), ""),
        (problem(|_, pair| pair.link = "rate=fast".to_owned()), Some(Field::Link), "fast"),
        (
            problem(|_, pair| pair.sysctls = vec![("kernel.pid_max".to_owned(), "9".to_owned())]),
            Some(Field::Sysctls),
            "whole machine",
        ),
        (problem(|_, pair| pair.programs[0].command.clear()), Some(Field::Programs), "name"),
        (
            problem(|request, _| request.environment = vec![("A=B".to_owned(), String::new())]),
            Some(Field::Environment),
            "",
        ),
        (problem(|_, pair| pair.programs[0].host = "nobody".to_owned()), None, "client, server"),
        (
            problem(|request, _| request.captures = vec![("x".to_owned(), "f".into())]),
            None,
            "client, server",
        ),
    ];
    for (problem, expected, words) in cases {
        assert_eq!((problem.fault, field(&problem)), (Fault::Request, expected), "{problem}");
        assert!(problem.message.contains(words), "{problem}");
    }
}

#[test]
fn a_plan_is_checked_with_its_line() {
    let (file, text) = ("two.toml".to_owned(), "[host.a]\n[[run]]\non = \"b\"\n".to_owned());
    let hosts = LabHosts::Plan { file, text };
    let problem = LabRequest { hosts, ..LabRequest::default() }.check().unwrap_err();
    assert!(problem.message.contains("two.toml"), "{problem}");
}

#[test]
fn the_far_end_machine_is_a_host_of_that_name() {
    let mut request = LabRequest::new(LINK, ["true"]);
    let LabHosts::Pair(pair) = &mut request.hosts else { unreachable!() };
    pair.far_end = FarEnd::Machine;
    request.captures = vec![("machine".to_owned(), "file".into())];
    assert_eq!(request.check(), Ok(()));
}
