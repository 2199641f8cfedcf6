//! Many hosts, and the ways into a running lab.

use crate::program::{Ended, LONGHAUL, end, processes, run, signal, start, until, valid, worked};
use serde_json::Value;
use std::process::Child;

fn plan(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

const CHAIN: &str = r#"
name = "NAME"
[host.alice]
[host.bob]
[router.r1]
[[link]]
name = "near"
between = ["alice", "r1"]
path = "rate=1gbit,rtt=4ms"
[[link]]
name = "wan"
between = ["r1", "bob"]
path = "rate=100mbit,rtt=20ms"
"#;

/// Through a router, over IPv4 and IPv6, with a change in between; and what
/// the programs write comes with the host's name.
pub(crate) fn hosts_reach_each_other() {
    let text = CHAIN.replace("NAME", "reach").to_owned()
        + r#"
[[run]]
on = "alice"
command = "ping -c 2 -i 0.2 bob && ping -6 -c 1 bob; sleep 1; ping -c 1 bob"
[[change]]
at = "900ms"
link = "wan"
set = "rtt=120ms"
"#;
    let (_folder, file) = plan(&text);
    let ended = run(&["lab", "up", &file, "--json"]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let times: Vec<f64> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("alice | "))
        .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(times.len(), 4, "{}", ended.stderr);
    assert!(times[..3].iter().all(|time| (23.9..100.0).contains(time)), "{times:?}");
    assert!((123.9..250.0).contains(&times[3]), "{times:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let wan = report["links"].as_array().unwrap().iter().find(|l| l["link"] == "wan").unwrap();
    assert_eq!(wan["asked"]["changes"][0]["set"], "rtt=120ms", "{wan}");
    assert_eq!(report["programs"][0]["exit_code"], 0, "{report}");
}

/// 64 hosts around a router stand within seconds; `make bench` holds 2 s.
pub(crate) fn sixty_four_hosts() {
    let begun = host::clock::now();
    let shape =
        ["lab", "up", "--shape", "star", "--hosts", "64", "--path", "rate=100mbit,rtt=10ms"];
    let child = start(&[&shape[..], &["--name", "sixty-four"]].concat());
    until("the lab stands", || {
        run(&["lab", "exec", "--lab", "sixty-four", "host1", "true"]).code == Some(0)
    });
    eprintln!("64 hosts stood after {:.1} s", begun.elapsed().as_secs_f64());
    let ended = run(&["lab", "exec", "--lab", "sixty-four", "host1", "ping", "-c", "1", "host64"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    signal("INT", child.id());
    stopped(child);
}

/// It ends by the signal; a busy machine may make its links not valid.
fn stopped(child: Child) {
    let ended = end(child);
    assert!(worked(&ended, 130), "{ended:?}");
}

/// A lab of two hosts that stands until it is told to end.
fn standing(name: &str) -> Child {
    let (folder, file) = plan(&CHAIN.replace("NAME", name));
    let child = start(&["lab", "up", &file, "--name", name]);
    until("the lab stands", || {
        run(&["lab", "exec", "--lab", name, "alice", "true"]).code == Some(0)
    });
    drop(folder);
    child
}

pub(crate) fn ways_in() {
    let child = standing("ways-in");
    let inside =
        |host: &str, line: &str| run(&["lab", "exec", "--lab", "ways-in", host, "sh", "-c", line]);
    assert_eq!(inside("bob", "exit 7").code, Some(7));
    let said = |ended: &Ended| ended.stderr.lines().last().unwrap_or_default().to_owned();
    let ended = inside("carol", "true");
    assert!(ended.code == Some(2) && said(&ended).contains("alice, bob, r1"), "{ended:?}");
    let ended = run(&["lab", "exec", "--lab", "ways-in", "bob", "no-such-program"]);
    assert!(ended.code == Some(2) && said(&ended).contains("no-such-program"), "{ended:?}");
    let ended = run(&["lab", "exec", "--lab", "nowhere", "bob", "true"]);
    assert!(ended.code == Some(2) && said(&ended).contains("ways-in"), "{ended:?}");

    let list: Value = serde_json::from_str(&run(&["lab", "list", "--json"]).stdout).unwrap();
    let own = list.as_array().unwrap().iter().find(|lab| lab["name"] == "ways-in").unwrap();
    assert_eq!(own["links"][1]["name"], "wan", "{own}");

    let ended =
        run(&["lab", "exec", "--lab", "ways-in", "-J", "bob", "sh", "-c", "echo said; exit 7"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(ended.code == Some(7) && ended.stderr.contains("said"), "{ended:?}");
    assert_eq!((&document["on"], &document["exit_code"]), (&"bob".into(), &7.into()));

    let ended = run(&["lab", "set", "--lab", "ways-in", "--json", "wan", "loss=99%"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["link"], &document["set"]), (&"wan".into(), &"loss=99%".into()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = inside("alice", "ping -q -c 40 -i 0.002 -W 1 bob");
    assert!(
        ended.stdout.contains("% packet loss") && !ended.stdout.contains(" 0% packet"),
        "{ended:?}"
    );
    for (settings, part) in
        [("wan rate=0", "zero"), ("sky loss=1%", "near, wan"), ("wan mtu=9000", "mtu")]
    {
        let (link, set) = settings.split_once(' ').unwrap();
        let ended = run(&["lab", "set", "--lab", "ways-in", link, set]);
        assert!(ended.code == Some(2) && said(&ended).contains(part), "{settings}: {ended:?}");
    }
    traces_are_sent();
    let (_folder, file) = plan(&CHAIN.replace("NAME", "other"));
    let ended = run(&["lab", "up", &file, "--name", "ways-in"]);
    assert!(ended.code == Some(2) && said(&ended).contains("ways-in"), "{ended:?}");
    signal("INT", child.id());
    stopped(child);
}

/// The document of a lab with one program; what the program writes is beside it.
pub(crate) fn a_run_as_json() {
    let link = ["lab", "run", "--link", "rate=10mbit,rtt=2ms", "--json", "--"];
    let ended = valid(|| run(&[&link[..], &["sh", "-c", "echo said; exit 5"]].concat()));
    assert!(worked(&ended, 5) && ended.stderr.contains("said"), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["schema"], "longhaul.lab/1");
    assert_eq!(document["programs"][0]["exit_code"], 5, "{document}");
    assert_eq!(document["links"][0]["rate_bps"], 10_000_000, "{document}");
}

/// The lab has ended when its reader types the next command: that starts it again.
pub(crate) fn the_next_command_starts_the_lab() {
    let server = format!("{LONGHAUL} server --one-off");
    let link = ["lab", "run", "--link", "rate=10mbit,rtt=2ms", "--server", &server, "--"];
    let ended = run(&[&link[..], &[LONGHAUL, "test", "server", "-t", "1", "--json"]].concat());
    assert!(worked(&ended, 0), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let next = document["next"]["command"].as_str().unwrap();
    let lab =
        format!("longhaul lab run --link rate=10mbit,rtt=2ms --server '{server}' -- longhaul ");
    assert!(next.starts_with(&lab), "{next}");
}

/// A trace is read by who asks, from where they stand, and goes to the lab in
/// parts; what is no trace is not repeated.
fn traces_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let trace: String = (1..=100_000).map(|ms| format!("{ms}\n")).collect();
    std::fs::write(folder.path().join("trace"), trace).unwrap();
    std::fs::write(folder.path().join("secret"), "root:secret:19000\n").unwrap();
    let set = |rate: &str| {
        let output = std::process::Command::new(LONGHAUL)
            .args(["lab", "set", "--lab", "ways-in", "wan", rate])
            .current_dir(folder.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(set("rate=trace:trace"), (Some(0), String::new()));
    for (rate, says) in [
        ("rate=trace:none", "cannot read 'none'"),
        ("rate=trace:/dev/zero", "a device"),
        ("rate=trace:secret", "line 1: expected"),
    ] {
        let (code, said) = set(rate);
        assert!(code == Some(2) && said.contains(says), "{rate}: {said}");
        assert!(!said.contains("root"), "{said}");
    }
}

/// A capture at the sender has the lost packets too, each with its fate.
pub(crate) fn captures_tell_fates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.pcapng").to_str().unwrap().to_owned();
    let capture = format!("client={file}");
    let arguments =
        ["lab", "run", "--link", "rate=100mbit,rtt=2ms,loss=20%,seed=3", "--pcap", &capture];
    let ended = run(
        &[&arguments[..], &["--", "ping", "-q", "-c", "100", "-i", "0.002", "server"]].concat()
    );
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let bytes = std::fs::read(&file).unwrap();
    // A section header of pcapng, then comments in clear.
    assert_eq!(&bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let text = String::from_utf8_lossy(&bytes);
    let (lost, came) =
        (text.matches("dropped-loss").count(), text.matches("delivered, queued").count());
    assert!(lost > 5 && came > 100, "{lost} lost, {came} delivered");
}

/// Whoever is killed, nothing is left and the others end.
pub(crate) fn killed_while_up() {
    for victim in ["outside", "inside", "exec"] {
        let name = format!("killed-{victim}");
        let mut child = standing(&name);
        let program = start(&["lab", "exec", "--lab", &name, "bob", "sleep", "61.381"]);
        until("it runs", || processes("sleep\x0061.381").len() >= 2);
        let mark = format!("--name\0{name}");
        let inside = || processes(&mark).into_iter().filter(|id| *id != child.id()).min();
        match victim {
            "outside" => signal("KILL", child.id()),
            "inside" => signal("KILL", inside().unwrap()),
            _ => signal("KILL", program.id()),
        }
        let begun = host::clock::now();
        assert_ne!(end(program).code, Some(0));
        until("the program is gone", || processes("sleep\x0061.381").is_empty());
        if victim == "exec" {
            assert!(child.try_wait().unwrap().is_none(), "the lab goes on");
            signal("INT", child.id());
        }
        assert_ne!(end(child).code, Some(0));
        assert!(begun.elapsed().as_secs() < 10, "{victim}: {:?}", begun.elapsed());
        until("nothing is left", || processes(&mark).is_empty());
    }
}

/// A program that fails ends the lab, with its exit code and last words.
pub(crate) fn a_program_fails() {
    let text = CHAIN.replace("NAME", "fails")
        + "[[run]]\non = \"alice\"\ncommand = \"echo first; echo last words; exit 9\"\n\
           [[run]]\non = \"bob\"\ncommand = \"sleep 61.382\"\n";
    let (_folder, file) = plan(&text);
    let ended = run(&["lab", "up", &file]);
    assert!(worked(&ended, 1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("exit code 9") && ended.stderr.contains("last words"),
        "{}",
        ended.stderr
    );
    assert!(processes("61.382").is_empty());
}

/// Refused before anything is made, in one line that names the plan's.
pub(crate) fn bad_plans() {
    let hosts = "[host.a]\n[host.b]\n";
    let link = |path: &str| format!("[[link]]\nbetween = [\"a\", \"b\"]\npath = \"{path}\"\n");
    for (text, part) in [
        (
            hosts.to_owned()
                + "[[link]]\nbetween = [\"a\", \"x\"]\npath = \"rate=1mbit,rtt=1ms\"\n",
            "line 4",
        ),
        (hosts.to_owned() + &link("rate=0,rtt=1ms"), "line 5"),
        (hosts.to_owned() + &link("rate=100tbit,rtt=3600s"), "memory"),
        (
            "[host.a]\naddress = \"10.0.0.9\"\n[host.b]\naddress = \"10.0.0.9\"\n".to_owned()
                + &link("rate=1mbit,rtt=1ms"),
            "10.0.0.9",
        ),
        (hosts.to_owned() + "[host.c]\n" + &link("rate=1mbit,rtt=1ms"), "c"),
        ("nonsense".to_owned(), "line 1"),
    ] {
        let (_folder, file) = plan(&text);
        let ended = run(&["lab", "up", &file]);
        assert_eq!(ended.code, Some(2), "{text}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let ended = run(&["lab", "up", "no-such-file.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no-such-file.toml"), "{ended:?}");
}

/// The link by itself, in the shape that is promised.
pub(crate) fn a_link_is_checked() {
    let check =
        || run(&["lab", "check", "--link", "rate=50mbit,rtt=10ms,loss=1%", "-t", "1", "--json"]);
    let ended = valid(check);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    // A machine that was never in time has said so, and why.
    let in_time = report["valid"] == true;
    assert_eq!(ended.code, Some(if in_time { 0 } else { 3 }), "{}", ended.stderr);
    assert!(in_time || !report["reasons"].as_array().unwrap().is_empty(), "{report}");
    let did = &report["achieved"];
    assert!((did["rate_bps"].as_f64().unwrap() / 50e6 - 1.0).abs() < 0.01, "{did}");
    for key in ["p50", "p99", "max"] {
        assert!(did["lateness_us"][key].is_u64(), "{did}");
    }
    assert!(did["loss"].is_f64() && did["drops"]["queue"].is_u64(), "{did}");
    assert!(report["cpu"].is_f64() && report["asked"]["link"].is_string(), "{report}");
    let human = run(&["lab", "check", "--link", "rate=50mbit,rtt=10ms", "-t", "0.3"]);
    assert!(human.stdout.contains("idle RTT"), "{}", human.stdout);
}

/// A service of this machine, on its loopback alone, behind the path.
pub(crate) fn the_machine_at_the_far_end() {
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in service.incoming() {
            std::io::Write::write_all(&mut stream.unwrap(), b"behind the path\n").unwrap();
        }
    });
    let read = format!("exec 3<>/dev/tcp/machine/{port}; cat <&3");
    let arguments = ["lab", "run", "--link", "rate=10mbit,rtt=50ms", "--far-end", "machine", "--"];
    let ended = run(&[&arguments[..], &["bash", "-c", &read]].concat());
    assert!(worked(&ended, 0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "behind the path\n");
}

/// The machine's network behind the path. The machine is a namespace here, and
/// its network another: nothing of the real one is touched.
pub(crate) fn the_network_behind_the_machine() {
    let lab = format!("{LONGHAUL} lab run --link rate=100mbit,rtt=30ms --far-end machine --nat --");
    let script = format!(
        "set -e; ip link set lo up; ip link add up0 type veth peer name net0
         unshare -n sleep 20 & far=$!
         until [ \"$(readlink /proc/$far/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]
         do sleep 0.05; done
         ip link set net0 netns $far
         ip addr add 203.0.113.1/24 dev up0; ip link set up0 up
         nsenter -t $far -n ip addr add 203.0.113.9/24 dev net0
         nsenter -t $far -n ip link set net0 up
         {lab} true || echo refused $?
         sysctl -qw net.ipv4.ip_forward=1
         {lab} ping -c 2 -i 0.2 203.0.113.9 || true
         ip -o link | grep -c longhaul || true
         kill $far"
    );
    let output = std::process::Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|s| String::from_utf8(s).unwrap());
    assert!(out.contains("refused 2") && err.contains("ip_forward=1"), "{out}{err}");
    assert!(out.contains("2 received"), "{out}{err}");
    assert!(out.ends_with("0\n"), "no device is left: {out}");
}
