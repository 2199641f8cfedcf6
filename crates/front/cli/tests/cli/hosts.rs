//! Studies between real hosts, over a stand-in for ssh that runs the agents on this host.

use crate::program::{Server, command, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const FAR: &str = env!("CARGO_BIN_EXE_longhaul");

/// Two clients and a server, at three names of this host.
const PLAN: &str = r#"question = "Do two clients share a server?"
[hosts]
clients = ["127.0.0.1", "me@localhost"]
servers = ["far=127.0.0.1"]
[path]
rtt = "1ms"
[factors]
bitrate = ["5mbit", "10mbit"]
[traffic]
duration = "400ms"
[repeats]
count = 2
"#;
const RUNS: usize = 4;

fn script(file: &Path, text: &str) -> String {
    stall_retry::write_script(file, text);
    file.to_str().unwrap().to_owned()
}

struct Bench {
    folder: tempfile::TempDir,
    ssh: String,
}

impl Bench {
    fn new(plan: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // It takes `-- HOST COMMAND…`, and the agents are found by an argument of their own.
        let ssh = script(&folder.path().join("ssh"), "shift 2\nexec \"$@\"");
        std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
        Bench { folder, ssh }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn study(&self, far: &str, more: &[&str]) -> Vec<String> {
        let (plan, out) = (self.path("plan.toml"), self.path("results"));
        let start =
            ["study", "run", &plan, "--out", &out, "--ssh", &self.ssh, "--far-program", far];
        start.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn run(&self, far: &str, more: &[&str]) -> Output {
        let words = self.study(far, more);
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn rows(&self) -> Vec<Value> {
        let exported = run(&["study", "export", &self.path("results"), "--json"]);
        let text = String::from_utf8(exported.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Killed without warning, it leaves no agent, and goes on with the run that it was in.
#[test]
fn hosts_begin_together_and_a_killed_study_resumes() {
    let bench = Bench::new(PLAN);
    // Each agent notes its end, however that comes.
    let ends = bench.path("ends");
    let text = format!("{FAR} \"$@\"\necho end >> {ends}");
    let far = script(&bench.folder.path().join("far"), &text);
    let mut child = {
        let words = bench.study(&far, &[]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    while bench.rows().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = bench.rows().len();
    assert!((1..RUNS).contains(&begun), "{begun} runs were stored");
    let ended = || std::fs::read_to_string(&ends).unwrap_or_default().lines().count();
    let mut waited = 0;
    while ended() < 3 {
        assert!(waited < 500, "{} of 3 agents have ended", ended());
        std::thread::sleep(Duration::from_millis(20));
        waited += 1;
    }

    let resumed = bench.run(&far, &["--json"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", said(&resumed));
    let rows = bench.rows();
    let keys: BTreeSet<String> =
        rows.iter().map(|row| format!("{} {}", row["cell"], row["repeat"])).collect();
    assert_eq!((rows.len(), keys.len()), (RUNS, RUNS), "each run once");
    for row in &rows {
        assert_eq!(row["status"], "valid", "{row}");
        let skew = row["start_skew_ms"].as_f64().unwrap();
        let uncertainty = row["start_skew_uncertainty_ms"].as_f64().unwrap();
        assert!(skew >= 0.0 && uncertainty > 0.0, "{row}");
        for client in ["traffic-1", "traffic-2"] {
            assert!(row[format!("{client}.throughput_bps")].as_f64().unwrap() > 1e6, "{row}");
        }
    }
    let report: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    let hosts = report["hosts"].as_array().unwrap();
    let of = |host: &Value| format!("{} {}", host["role"].as_str().unwrap(), host["name"]);
    let of: Vec<String> = hosts.iter().map(of).collect();
    assert_eq!(of, ["client \"127.0.0.1\"", "client \"me@localhost\"", "server \"far=127.0.0.1\""]);
    assert!(hosts[0]["clock_uncertainty_ms"].as_f64().unwrap() > 0.0, "{report}");
    let page = std::fs::read_to_string(bench.path("results/index.html")).unwrap();
    assert!(page.contains("Start skew") && page.contains("no lab emulated"), "no conditions");
}

#[test]
fn a_server_that_runs_is_measured_from_this_host() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let token = token.to_str().unwrap();
    let server = Server::start(&["--tokens", token]);
    let plan = format!(
        "question = \"?\"\n[hosts]\nserver = \"127.0.0.1:{}\"\n[factors]\nstreams = [1, 2]\n\
         [traffic]\nduration = \"200ms\"\nbitrate = \"10mbit\"\n",
        server.port
    );
    let bench = Bench::new(&plan);
    let refused = bench.run("false", &["--attempts", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("run the same command again"), "{}", said(&refused));
    let done = bench.run("false", &["--token-file", token]);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    assert!(bench.rows().iter().all(|row| row["status"] == "valid"));
}

#[test]
fn what_no_agent_says_is_one_printable_line() {
    let bench = Bench::new(PLAN);
    let escape = "printf '\\033[2Jgone\\n' >&2; exit 1";
    for (text, expected) in [
        (escape, "gone"),
        ("echo '{\"hello\":{\"version\":9}}'", "version 9"),
        ("head -c 70000 /dev/zero", "more than 65536 bytes"),
        ("printf '{\"error\":{\"reason\":\"\\\\u001b[31mno\"}}\\n'", "no"),
    ] {
        let far = script(&bench.folder.path().join("far"), text);
        let output = bench.run(&far, &[]);
        let complaint = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}: {complaint}");
        assert!(complaint.contains(expected), "{text}: {complaint}");
        assert!(!complaint.contains('\u{1b}'), "{complaint:?}");
    }
    let out = bench.path("elsewhere");
    let output = run(&["study", "run", &bench.path("plan.toml"), "--out", &out, "--ssh", ""]);
    assert!(said(&output).contains("see --ssh"), "{}", said(&output));
}

/// Asked before anything is started.
#[test]
fn sysctls_are_confirmed() {
    let set = "\"server.net.ipv4.tcp_sack\" = [0, 1]\n[traffic]";
    let bench = Bench::new(&PLAN.replace("[traffic]", set));
    let far = script(&bench.folder.path().join("far"), &format!("touch {}", bench.path("begun")));
    let output = bench.run(&far, &[]);
    let complaint = said(&output);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("server.net.ipv4.tcp_sack = 0 | 1"), "{complaint}");
    assert!(complaint.contains("--allow-sysctls"), "{complaint}");
    assert!(!Path::new(&bench.path("begun")).exists());
}

/// An agent whose input ends, or is none, ends as well.
#[test]
fn an_agent_ends_with_its_input() {
    for (input, expected) in [
        ("", ""),
        ("garbage\n", "is not an agent message"),
        ("{\"time\":{}}\n", "the first request is not a hello"),
        ("{\"hello\":{\"version\":2}}\n", "version 2"),
        ("{\"hello\":{\"version\":1}}\n{\"stop\":{}}\n", "{\"stopped\":{}}"),
        (
            "{\"hello\":{\"version\":1}}\n{\"tune\":{\"settings\":[{\"key\":\"kernel.core_pattern\",\"value\":\"|/x\"}]}}\n",
            "not a sysctl, or not a value, that longhaul sets",
        ),
    ] {
        let mut child = Command::new(FAR)
            .args(["agent", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let answered = String::from_utf8(output.stdout).unwrap();
        assert!(answered.contains(expected), "{input}: {answered}");
    }
}
