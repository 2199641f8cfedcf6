//! Addresses that need their interface, and hosts with several addresses, in a network namespace
//! of the test's own.

use crate::program::{Ended, LONGHAUL, end};
use host::netlink::Netlink;
use host::netns::NetNs;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const LINK_LOCAL: &str = "fe80::77";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A namespace whose loopback has a link-local address.
fn namespace() -> NetNs {
    let namespace = NetNs::create().unwrap();
    let work = || {
        let netlink = Netlink::open().unwrap();
        let loopback = netlink.index("lo").unwrap();
        netlink.bring_up(loopback, None, None).unwrap();
        netlink.add_address(loopback, LINK_LOCAL.parse().unwrap()).unwrap();
        // The kernel adds the route in the background.
        let own = host::address::parse(&format!("{LINK_LOCAL}%lo")).unwrap();
        let socket = UdpSocket::bind(own).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let arrives = || {
            socket.send_to(&[0], socket.local_addr()?)?;
            socket.recv(&mut [0])
        };
        assert!((0..1_000).any(|_| arrives().is_ok()));
    };
    namespace.run(work).unwrap();
    namespace
}

/// Runs a script in it, which begins with a server of each kind.
fn run(namespace: &NetNs, script: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("data"), vec![7; 300_000]).unwrap();
    let servers = format!(
        "trap 'kill $(jobs -p)' EXIT; cd {folder}; LH={LONGHAUL}
         $LH server --root root --writable --tokens token -p 5299 >log 2>&1 &
         $LH server >/dev/null 2>&1 &
         $LH iperf2 -s >/dev/null 2>&1 & $LH iperf2 -s -u >/dev/null 2>&1 &
         until grep -q copies log; do sleep 0.05; done; sleep 0.2\n",
        folder = folder.path().display(),
    );
    let spawn = || {
        let mut command = Command::new("bash");
        command.args(["-c", &(servers + script)]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    end(namespace.run(spawn).unwrap().unwrap())
}

pub(crate) fn link_local_addresses_work_with_their_interface() {
    let namespace = namespace();
    let modes = [
        "test ADDRESS -t 0.3",
        "test ADDRESS -t 0.3 -R -B ADDRESS",
        "test ADDRESS -t 0.3 -u -b 1mbit --yes",
        "test ADDRESS -t 0.3 --udt",
        "test ADDRESS -t 0.3 --udt --native",
        "iperf3 -c ADDRESS -t 1",
        "iperf3 -c ADDRESS -t 1 -u -b 1M",
        "iperf2 -c ADDRESS -t 0.3",
        "iperf2 -c ADDRESS -t 0.3 -d -L 5555",
        "iperf2 -c ADDRESS -t 0.3 -u -b 1m",
        "copy --quiet --token-file token --transport udt data [ADDRESS]:udt",
        "copy --quiet --token-file token --transport tcp data [ADDRESS]:tcp",
        "ping ADDRESS -c 1",
        "trace ADDRESS -c 1",
        "doctor --to ADDRESS --rate 1mbit",
    ];
    let zoned = format!("{LINK_LOCAL}%lo");
    let script: Vec<String> = modes
        .iter()
        .map(|mode| {
            let with = mode.replace("ADDRESS", &zoned);
            format!("$LH {with} >out 2>&1 || {{ echo \"{with}: $?\"; tail -3 out; }}")
        })
        .collect();
    let ended = run(&namespace, &(script.join("\n") + "\ncmp data root/udt && cmp data root/tcp"));
    // `doctor` exits with 1 where a check fails.
    let failures: Vec<&str> =
        ended.stdout.lines().filter(|line| !line.contains("doctor")).collect();
    assert!(ended.code == Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(!failures.iter().any(|line| line.contains(&zoned)), "{}", ended.stdout);
    let without: Vec<String> = modes
        .iter()
        .map(|mode| {
            format!("echo '{mode}'; $LH {} 2>&1 | tail -1", mode.replace("ADDRESS", LINK_LOCAL))
        })
        .collect();
    let ended = run(&namespace, &without.join("\n"));
    let advice = format!("link-local: add the interface: {LINK_LOCAL}%");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2 * modes.len(), "{}", ended.stdout);
    for pair in lines.chunks(2) {
        assert!(pair[1].contains(&advice), "{pair:?}");
    }
}

pub(crate) fn answers_come_from_the_address_that_was_asked() {
    let namespace = namespace();
    // From a socket of all addresses, the kernel would answer from 127.0.0.1.
    let script = "$LH copy --quiet --token-file token --transport udt data 127.0.0.9:udt
         cmp data root/udt; echo $?
         for how in -u '-u --full-duplex' '-u -d -L 5556'; do
             $LH iperf2 -c 127.0.0.9 -t 0.3 -b 1m $how 2>&1
         done";
    let ended = run(&namespace, script);
    assert!(ended.stdout.starts_with("0\n"), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains("no server report"), "{}", ended.stdout);
    let reports = ended.stdout.matches("Server Report").count();
    assert!(reports >= 2, "{}", ended.stdout);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
}
