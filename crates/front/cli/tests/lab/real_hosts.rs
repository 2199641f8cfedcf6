//! Sysctls of a study between real hosts, which are namespaces: set with a journal, and reverted
//! also after the agent was killed.

use crate::private;
use crate::program::{LONGHAUL, end, until};
use host::{netns::NetNs, sysctl};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const KEY: &str = "net.ipv4.tcp_rmem";
const VALUE: &str = "4096 65536 131072";

const PLAN: &str = r#"question = "Does throughput follow the receive buffer?"
[hosts]
clients = ["127.0.0.1"]
servers = ["127.0.0.1"]
[factors]
"server.net.ipv4.tcp_rmem" = ["4096 65536 131072"]
[traffic]
duration = "DURATION"
bitrate = "10mbit"
"#;

fn spawn(namespace: &NetNs, state: &Path, words: &[&str]) -> Child {
    let spawn = || {
        Command::new(LONGHAUL)
            .args(words)
            .env("LONGHAUL_STATE_DIR", state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    namespace.run(spawn).unwrap().unwrap()
}

fn value(namespace: &NetNs) -> String {
    namespace.run(|| sysctl::read(KEY).unwrap()).unwrap()
}

pub(crate) fn sysctls_of_hosts_are_reverted() {
    let namespace = NetNs::create().unwrap();
    let up = || Command::new("ip").args(["link", "set", "lo", "up"]).status();
    assert!(namespace.run(up).unwrap().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let state = private::directory();
    let state = state.path();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ssh = path("ssh");
    // The second agent, which serves, is the one that sets something.
    let script = format!("shift 2\necho $$ >> {}\nexec \"$@\"", path("ids"));
    stall_retry::write_script(ssh.as_ref(), &script);
    let study = |duration: &str, out: &str| {
        let plan = path("plan.toml");
        fs::write(&plan, PLAN.replace("DURATION", duration)).unwrap();
        let words = [
            "study",
            "run",
            &plan,
            "--out",
            &path(out),
            "--ssh",
            &ssh,
            "--far-program",
            LONGHAUL,
            "--allow-sysctls",
            "--attempts",
            "1",
        ];
        spawn(&namespace, state, &words)
    };
    let before = value(&namespace);
    assert_ne!(before, VALUE);

    // While it runs the value is set, and when it was killed without warning it is reverted.
    let mut killed = study("60s", "killed");
    until("the value is set", || value(&namespace) == VALUE);
    killed.kill().unwrap();
    killed.wait().unwrap();
    until("the value is reverted", || value(&namespace) == before);

    // The agents were killed as well: the journal is there.
    let mut killed = study("60s", "also");
    until("the value is set", || value(&namespace) == VALUE);
    let ids = fs::read_to_string(path("ids")).unwrap();
    for id in ids.lines().rev().take(2) {
        let _ = Command::new("kill").args(["-9", id]).status();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(value(&namespace), VALUE);
    // The next study reverts it before it sets its own, so that it is as before at the end.
    let ended = end(study("300ms", "next"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(value(&namespace), before);
    let status = end(spawn(&namespace, state, &["tune", "status", "--json"]));
    assert!(status.stdout.contains("\"applied\": []"), "{}", status.stdout);
}
