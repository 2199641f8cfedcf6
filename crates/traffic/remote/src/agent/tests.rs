//! Agents that do not follow the protocol, as scripts in the place of ssh.

use super::*;
use std::path::PathBuf;

/// A program that is an agent as the script says, and its directory.
fn script(text: &str) -> (tempfile::TempDir, Launcher) {
    let folder = tempfile::tempdir().unwrap();
    let program: PathBuf = folder.path().join("agent");
    stall_retry::write_script(&program, text);
    (folder, Launcher::Here { program })
}

const HELLO: &str = r#"read line; echo '{"hello":{"version":1,"longhaul":"0","host":{"kernel":"k","cores":1,"tcp_rmem":null,"tcp_wmem":null,"busy_before":null},"address":null}}'"#;

fn start(text: &str) -> Result<Agent, RemoteError> {
    let (_folder, launcher) = script(text);
    Agent::start(&launcher, clock::now(), &StopFlag::new())
}

#[test]
fn whatever_is_no_agent_is_refused_in_one_line() {
    for (text, expected) in [
        ("exit 0", "does not run"),
        ("echo 'longhaul: not found' >&2; exit 127", "(longhaul: not found)"),
        ("echo hello", "\"hello\" is not an agent message"),
        ("head -c 100000 /dev/zero", "a line of more than 65536 bytes"),
        ("yes", "is not an agent message"),
        (r#"echo '{"hello":{"version":2}}'"#, "version 2"),
        (r#"echo '{"time":{"clock_ns":1,"unix_ns":1}}'"#, "a reply to another request"),
        (r#"echo '{"error":{"reason":"no disk"}}'"#, "no disk"),
        (r#"printf '{"hello":{"ver'; exit 1"#, "does not run"),
    ] {
        let error = start(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_host_that_is_an_option_or_a_command_never_reaches_ssh() {
    use crate::WrongHost::{Character, Option};
    for (host, expected) in [
        ("-oProxyCommand=touch /tmp/x", Option),
        ("host;touch${IFS}x", Character(';')),
        ("$(id)@host", Character('$')),
    ] {
        let (ssh, host) = (vec!["false".into()], host.to_owned());
        let launcher = Launcher::Ssh { ssh, host, program: "longhaul".into() };
        let error = Agent::start(&launcher, clock::now(), &StopFlag::new()).unwrap_err();
        assert!(matches!(&error, RemoteError::Host { why, .. } if *why == expected), "{error}");
    }
}

/// One deadline covers a whole reply, not each byte.
#[test]
fn a_reply_byte_by_byte_is_late() {
    let mut agent = start(&format!("{HELLO}; while sleep 0.05; do printf x; done")).unwrap();
    let began = clock::now();
    let limit = Duration::from_millis(300);
    let error = agent.request(&Request::Time {}, limit, MAX_REPLY, &StopFlag::new()).unwrap_err();
    assert!(matches!(error, RemoteError::Late { .. }), "{error}");
    assert!(began.elapsed() >= limit);
    agent.process.kill();
}

#[test]
fn an_agent_that_does_not_read_is_late_and_one_that_dies_is_named() {
    let mut agent = start(&format!("{HELLO}; exec sleep 100")).unwrap();
    let long = "x".repeat(300_000);
    let limit = Duration::from_millis(200);
    let error = agent.process.send(&long, limit, &StopFlag::new()).unwrap_err();
    assert!(matches!(error, RemoteError::Late { .. }), "{error}");
    let stop = StopFlag::new();
    stop.raise();
    let error = agent.process.receive(10, limit, &stop).unwrap_err();
    assert!(matches!(error, RemoteError::Interrupted), "{error}");
    // It would wait for the script's end.
    agent.process.kill();

    let mut agent = start(&format!("{HELLO}; read line; printf '{{\"ran\"'; exit 3")).unwrap();
    let error = agent.run(None, Vec::new(), Duration::ZERO, &StopFlag::new()).unwrap_err();
    assert!(matches!(error, RemoteError::Ended { .. }), "{error}");
}

#[test]
fn absurd_numbers_are_no_time() {
    let time = r#"read line; echo '{"time":{"clock_ns":18446744073709551615,"unix_ns":18446744073709551615}}'"#;
    let mut agent = start(&format!("{HELLO}; {time}; {time}; read line")).unwrap();
    agent.compare_clocks(2, &StopFlag::new()).unwrap();
    assert_eq!(agent.offset(), None);
    assert!(agent.wall_offset_s().is_some_and(|(ahead, _)| ahead.is_finite()));
    let fewer = r#"read line; echo '{"ran":{"flows":[]}}'"#;
    let mut agent = start(&format!("{HELLO}; {fewer}")).unwrap();
    let flow = FlowRequest {
        at_ns: 0,
        server: "x".into(),
        port: 1,
        ip: None,
        protocol: record::Protocol::Tcp,
        direction: record::Direction::Forward,
        seconds: 1.0,
        omit_s: 0,
        streams: 1,
        congestion: None,
        window_bytes: None,
        rate_bps: None,
        pacing_bps: None,
        block_bytes: None,
    };
    let error = agent.run(None, vec![flow], Duration::ZERO, &StopFlag::new()).unwrap_err();
    assert!(matches!(error, RemoteError::Protocol { .. }), "{error}");
}
