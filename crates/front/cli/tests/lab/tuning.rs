//! A host's own settings, in network namespaces made for the purpose: those of
//! the machine are never touched.

use crate::private;
use crate::program::{Ended, LONGHAUL, end, run, signal, start, until, worked};
use host::kernel_route::KernelRoute;
use host::{clock, netns::NetNs, route_table, sysctl};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What an apply may change in a namespace.
const KEYS: [&str; 7] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
];

const TARGET: [&str; 4] = ["--rate", "10gbit", "--rtt", "200ms"];

const KILLS: u32 = 50;

/// Whether a namespace can be made here.
pub(crate) fn can_be_done() -> bool {
    NetNs::create().is_ok()
}

fn values(namespace: &NetNs) -> Vec<String> {
    namespace.run(|| KEYS.map(|key| sysctl::read(key).unwrap()).to_vec()).unwrap()
}

fn tune(namespace: &NetNs, state: &Path, words: &[&str]) -> Child {
    let spawn = || {
        Command::new(LONGHAUL)
            .arg("tune")
            .args(words)
            .env("LONGHAUL_STATE_DIR", state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    namespace.run(spawn).unwrap().unwrap()
}

fn apply() -> Vec<&'static str> {
    [&["apply", "--yes"], &TARGET[..]].concat()
}

/// Kills it after a part of the time that it would take.
fn kill_after(mut child: Child, whole: Duration, share: f64) {
    std::thread::sleep(whole.mul_f64(share));
    let _ = child.kill();
    child.wait().unwrap();
}

/// Killed by the kernel at any moment of an apply and of its rollback, the
/// next rollback leaves everything as it was.
pub(crate) fn killed_while_tuning() {
    let (namespace, folder) = (NetNs::create().unwrap(), private::directory());
    let set = |key: &'static str, value| namespace.run(move || sysctl::write(key, value)).unwrap();
    // More to change.
    set("net.ipv4.tcp_sack", "0").unwrap();
    set("net.ipv4.tcp_timestamps", "0").unwrap();
    let before = values(&namespace);
    let state = folder.path();

    let begun = clock::now();
    let ended = end(tune(&namespace, state, &apply()));
    let whole = begun.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_ne!(values(&namespace), before);
    let rollback = || end(tune(&namespace, state, &["rollback", "--all", "--yes"]));
    assert_eq!(rollback().code, Some(0));
    assert_eq!(values(&namespace), before);

    let mut broken_off = 0;
    for round in 0..KILLS {
        let share = f64::from(round * 7 % KILLS) / f64::from(KILLS) * 1.2;
        kill_after(tune(&namespace, state, &apply()), whole, share);
        let status: Value =
            serde_json::from_str(&end(tune(&namespace, state, &["status", "--json"])).stdout)
                .unwrap();
        broken_off += u32::from(status["applied"][0]["broken_off"] == true);
        if round % 2 == 0 {
            kill_after(tune(&namespace, state, &["rollback", "--yes"]), whole, share / 2.0);
        }
        let ended = rollback();
        assert_eq!(ended.code, Some(0), "{round}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(values(&namespace), before, "{round}: {}", ended.stdout);
    }
    eprintln!("{broken_off} of {KILLS} were killed between the journal and the end");
}

/// The file for each boot, in a mount namespace that has a folder of its own
/// in the place of /etc/sysctl.d.
pub(crate) fn a_file_for_each_boot() {
    let script = "set -e; mount -t tmpfs -o mode=755 tmpfs /etc/sysctl.d; cd /etc/sysctl.d; \
        echo 'net.ipv4.tcp_sack = 1' > 90-longhaul.conf; cp 90-longhaul.conf /tmp/before; \
        longhaul tune apply --rate 10gbit --rtt 200ms --yes --persist >&2; \
        cat 90-longhaul.conf; sysctl -qp 90-longhaul.conf; ls; \
        longhaul tune rollback --yes >&2; cmp 90-longhaul.conf /tmp/before; ls";
    let script = script
        .replace("longhaul tune", &format!("{LONGHAUL} tune"))
        .replace("/tmp/before", "/mnt/before")
        .replace("set -e;", "set -e; mount -t tmpfs -o mode=755 tmpfs /mnt;");
    let child = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", &script])
        .env("LONGHAUL_STATE_DIR", "/mnt/state")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = end(child);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for line in ["net.ipv4.tcp_sack = 1", "net.ipv4.tcp_wmem = 4096 16384 1000341504"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    let names: Vec<&str> =
        ended.stdout.lines().filter(|line| line.contains("90-longhaul.conf")).collect();
    assert_eq!(names.len(), 2, "nothing beside it: {}", ended.stdout);
}

/// The same command on a host of a lab that runs; the other host stays.
pub(crate) fn a_labs_host_is_tuned() {
    let folder = private::directory();
    let path = "rate=100mbit,rtt=10ms";
    let lab = start(&["lab", "run", "--link", path, "--name", "tuned", "--", "sleep", "600"]);
    let exec = |host: &str, word: &str| {
        run(&["lab", "exec", "--lab", "tuned", host, "cat", &format!("/proc/sys/net/ipv4/{word}")])
    };
    until("the lab stands", || exec("server", "tcp_rmem").code == Some(0));
    let before = (exec("server", "tcp_rmem").stdout, exec("client", "tcp_rmem").stdout);
    let here = NetNs::current().unwrap();
    let inside = |words: &[&str]| -> Ended {
        let words = [words, &["--in-lab", "tuned:server"]].concat();
        end(tune(&here, folder.path(), &words))
    };
    // A link in the place of the labs' journals leads to what somebody wants to keep.
    let (labs, precious) = (folder.path().join("labs"), folder.path().join("precious"));
    std::fs::create_dir_all(precious.join("99999999/host")).unwrap();
    std::fs::write(precious.join("99999999/host/letter"), "precious").unwrap();
    std::os::unix::fs::symlink(&precious, &labs).unwrap();
    let ended = inside(&apply());
    assert!(ended.code == Some(2) && ended.stderr.contains("symbolic link"), "{}", ended.stderr);
    assert!(precious.join("99999999/host/letter").exists());
    std::fs::remove_file(&labs).unwrap();
    let ended = inside(&apply());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(exec("server", "tcp_rmem").stdout.trim_end().ends_with("1000341504"));
    assert_eq!(exec("client", "tcp_rmem").stdout, before.1);
    let status: Value = serde_json::from_str(&inside(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["applied"].as_array().unwrap().len(), 1, "{status}");
    assert_eq!(inside(&["rollback", "--yes"]).code, Some(0));
    assert_eq!(exec("server", "tcp_rmem").stdout, before.0);
    // The machine's file is not a lab's to write.
    let ended = inside(&[&apply()[..], &["--persist"]].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("--persist"), "{}", ended.stderr);
    signal("TERM", lab.id());
    let ended = end(lab);
    assert!(worked(&ended, 128 + 15), "{ended:?}");
}

/// What a route of the table may be: the default route, which a prefix gets a copy of, and the
/// route of another prefix with metrics of its own.
const ROUTES: &str = "set -e; ip link set lo up; ip link add v0 type veth peer name v1; \
    ip link set v0 addrgenmode none; ip link set v1 addrgenmode none; \
    ip link set v0 up; ip link set v1 up; ip addr add 10.0.0.1/24 dev v0; \
    ip -6 addr add fd00::1/64 dev v0 nodad; ip route add default via 10.0.0.254 proto dhcp metric 100; \
    ip route add 203.0.113.0/24 via 10.0.0.253 mtu lock 1400 initcwnd 20 congctl lock reno; \
    ip -6 route add default via fd00::254; ip -6 route add 2001:db8::/32 via fd00::253 metric 7";

/// Prefixes of both kinds and both families.
const PREFIXES: [&str; 4] =
    ["198.51.100.0/24", "203.0.113.0/24", "2001:db8:1::/48", "2001:db8::/32"];

fn in_shell(namespace: &NetNs, script: &str) -> String {
    let run = || Command::new("sh").args(["-c", script]).output();
    let output = namespace.run(run).unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Killed by the kernel at any moment of changing a route and of its rollback, the next rollback
/// leaves every byte of the routing table as it was.
pub(crate) fn killed_while_changing_routes() {
    let (namespace, folder) = (NetNs::create().unwrap(), private::directory());
    in_shell(&namespace, ROUTES);
    let state = folder.path();
    let of = |prefix: &str| {
        let all = route_table::around(prefix.parse().unwrap()).unwrap().covering;
        all.iter().map(KernelRoute::body).collect::<Vec<_>>()
    };
    let table = || {
        let four = namespace.run(|| [of(PREFIXES[0]), of(PREFIXES[1])]).unwrap();
        // IPv6 counts uses of a route in it.
        (four, in_shell(&namespace, "ip -d -4 route show table all; ip -d -6 route show table all"))
    };
    let before = table();
    let apply = |prefix| {
        let path =
            ["--rate", "100mbit", "--rtt", "173ms", "--congestion", "reno", "--initcwnd", "33"];
        let words = [&["apply", "--yes", "--route", prefix], &path[..]].concat();
        tune(&namespace, state, &words)
    };
    let rollback = || end(tune(&namespace, state, &["rollback", "--all", "--yes"]));
    let begun = clock::now();
    for prefix in PREFIXES {
        let ended = end(apply(prefix));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let whole = begun.elapsed().div_f64(PREFIXES.len() as f64);
    let changed = table();
    assert_eq!(changed.1.matches("initcwnd 33").count(), PREFIXES.len(), "{}", changed.1);
    assert_eq!(changed.1.matches("proto 76").count(), 2, "{}", changed.1);
    assert_eq!((rollback().code, table()), (Some(0), before.clone()));
    let mut broken_off = 0;
    for round in 0..KILLS {
        let share = f64::from(round * 7 % KILLS) / f64::from(KILLS) * 1.2;
        let prefix = PREFIXES[round as usize % PREFIXES.len()];
        kill_after(apply(prefix), whole, share);
        let status = end(tune(&namespace, state, &["status", "--json"])).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        broken_off += u32::from(status["applied"][0]["broken_off"] == true);
        if round % 2 == 0 {
            kill_after(tune(&namespace, state, &["rollback", "--yes"]), whole, share / 2.0);
        }
        let ended = rollback();
        assert_eq!(ended.code, Some(0), "{round}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(table(), before, "{round}: {}", ended.stdout);
    }
    eprintln!("{broken_off} of {KILLS} were killed between the journal and the end");
}

/// Connections over a changed route have its metrics, a stale copy is reported, and the printed
/// commands do the same.
pub(crate) fn a_route_is_tuned_for_programs_that_know_nothing_of_it() {
    let (namespace, folder) = (NetNs::create().unwrap(), private::directory());
    in_shell(&namespace, ROUTES);
    let run = |words: &[&str]| end(tune(&namespace, folder.path(), words));
    let path = ["--rate", "100mbit", "--rtt", "173ms", "--congestion", "reno", "--json"];
    let on = |verb: &[&str], prefix| run(&[verb, &["--route", prefix], &path[..]].concat());
    let before = in_shell(&namespace, "ip route");
    let plan: Value = serde_json::from_str(&on(&["plan"], PREFIXES[0]).stdout).unwrap();
    assert_eq!(
        (&plan["schema"], &plan["change"]),
        (&"longhaul.tune-route-plan/1".into(), &"copy".into())
    );
    assert!(on(&["apply", "--dry-run"], PREFIXES[0]).stdout.contains("\"dry_run\": true"));
    assert_eq!(in_shell(&namespace, "ip route"), before);
    let applied: Value =
        serde_json::from_str(&on(&["apply", "--yes"], PREFIXES[0]).stdout).unwrap();
    assert_eq!(applied["routes"][0]["outcome"], "set", "{applied}");
    let metrics = "congctl reno";
    assert!(in_shell(&namespace, "ip route get 198.51.100.7").contains(metrics));
    assert!(!in_shell(&namespace, "ip route get 192.0.2.7").contains(metrics));
    in_shell(&namespace, "ip route replace default via 10.0.0.252 proto dhcp metric 100");
    let status = run(&["status", "--route", PREFIXES[0]]);
    assert!(
        status.stdout.contains("Stale: the route in force beyond it is now default via 10.0.0.252")
    );
    assert!(run(&["status", "--route", PREFIXES[1]]).stdout.contains("nothing"));
    assert_eq!(run(&["rollback", "--yes", "--route", PREFIXES[0]]).code, Some(0));
    in_shell(&namespace, "ip route replace default via 10.0.0.254 proto dhcp metric 100");
    assert_eq!(in_shell(&namespace, "ip route"), before);
    for commands in ["commands", "other_hosts"] {
        let command = plan[commands][0].as_str().unwrap().replace("sudo ", "");
        in_shell(&namespace, &command);
        assert!(in_shell(&namespace, "ip route get 198.51.100.7").contains(metrics), "{command}");
        in_shell(&namespace, "ip route del 198.51.100.0/24");
    }
    let refused = on(&["apply", "--yes", "--persist"], PREFIXES[0]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--persist"), "{}", refused.stderr);
}
