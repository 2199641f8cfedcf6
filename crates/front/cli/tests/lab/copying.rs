//! `longhaul copy` over a path: UDT with losses, and TCP where UDP is blocked.

use crate::program::{LONGHAUL, lab_with, worked};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A directory with a token and an empty `root`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    folder
}

fn data(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Copies some files over `link`, and gives the result and what was said.
fn copied(link: &str) -> (Value, String) {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("tree")).unwrap();
    let data = data(5_000_000);
    fs::write(path("tree/data"), &data).unwrap();
    for small in 0..200 {
        fs::write(path(&format!("tree/{small}")), small.to_string()).unwrap();
    }
    let (root, token, tree) = (path("root"), path("token"), path("tree"));
    let server = format!("{LONGHAUL} server --root {root} --writable --tokens {token}");
    let copy = [LONGHAUL, "copy", "--json", "--token-file", &token, &tree, "server:"];
    let ended = lab_with(link, &["--server", &server], &copy);
    assert!(worked(&ended, 0), "{link}: {}", ended.stderr);
    assert!(fs::read(path("root/tree/data")).unwrap() == data, "{link}");
    for small in 0..200 {
        let copy = fs::read_to_string(path(&format!("root/tree/{small}"))).unwrap();
        assert_eq!(copy, small.to_string(), "{link}");
    }
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["entries"], 202, "{document}");
    (document, ended.stderr)
}

pub(crate) fn copies_survive_losses_and_blocked_udp() {
    let (document, said) = copied("rate=200mbit,rtt=20ms,loss=0.5%,seed=3");
    assert_eq!(document["transport"], "udt-native", "{said}");
    let (document, said) = copied("rate=200mbit,rtt=20ms,udp.blackhole=yes");
    assert_eq!(document["transport"], "tcp", "{said}");
    assert!(said.contains("UDP is blocked"), "{said}");
}

pub(crate) fn copies_move_to_tcp_where_udp_is_policed() {
    let link = "rate=100mbit,rtt=20ms,udp.police=10mbit:64KiB";
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (root, token) = (path("root"), path("token"));
    let server = format!("{LONGHAUL} server --root {root} --writable --tokens {token}");
    let data = data(50_000_000);
    fs::write(path("up"), &data).unwrap();
    fs::write(path("root/down"), &data).unwrap();
    let there = folder.path().to_str().unwrap();
    for (from, to, copy) in
        [(path("up").as_str(), "server:", "root/up"), ("server:down", there, "down")]
    {
        let copied = [LONGHAUL, "copy", "--json", "--token-file", &token, from, to];
        let ended = lab_with(link, &["--server", &server], &copied);
        assert!(worked(&ended, 0), "{from}: {}", ended.stderr);
        assert!(fs::read(path(copy)).unwrap() == data, "{from}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["transport"], "tcp", "{from}: {}", ended.stderr);
        assert!(ended.stderr.contains("may be policed"), "{from}: {}", ended.stderr);
        assert!(ended.stderr.contains("continuing over TCP"), "{from}: {}", ended.stderr);
    }
}

/// Packets of more than `mtu` bytes to the server vanish.
pub(crate) fn copies_pass_where_full_size_packets_vanish() {
    for (mtu, transport) in [(1_280, "tcp"), (1_400, "auto")] {
        let link = format!("rate=100mbit,rtt=10ms,up.mtu={mtu}");
        let folder = folder();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (root, token) = (path("root"), path("token"));
        let server = format!("{LONGHAUL} server --root {root} --writable --tokens {token}");
        let data = data(5_000_000);
        fs::write(path("up"), &data).unwrap();
        fs::write(path("root/down"), &data).unwrap();
        let copy = format!("{LONGHAUL} copy --json --token-file {token} --transport {transport}");
        let there = folder.path().display();
        let script = format!("{copy} {} server: && {copy} server:down {there}", path("up"));
        let ended = lab_with(&link, &["--server", &server], &["sh", "-c", &script]);
        assert!(worked(&ended, 0), "{link}: {}", ended.stderr);
        assert!(fs::read(path("root/up")).unwrap() == data, "{link}");
        assert!(fs::read(path("down")).unwrap() == data, "{link}");
        let documents = serde_json::Deserializer::from_str(&ended.stdout).into_iter::<Value>();
        for document in documents.map(Result::unwrap) {
            // It does not wait for a timeout of the connection, which is 30 s.
            let seconds = document["elapsed_s"].as_f64().unwrap();
            assert!(seconds < 15.0, "{link} {transport}: {seconds} s, {}", ended.stderr);
            assert_eq!(document["resumed"], 0, "{document}");
        }
        let notes = ended.stderr.matches("full-size packets vanish on the path").count();
        assert_eq!(notes, 2, "{link} {transport}: {}", ended.stderr);
    }
}
