//! `longhaul copy`, over a stand-in for ssh that runs the far end on this host.

use crate::program::{Server, run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// A program that takes `-- HOST COMMAND…` and runs the command here, as ssh would there.
fn stand_in(directory: &Path) -> String {
    let path = directory.join("ssh");
    stall_retry::write_script(&path, "shift 2\nexec \"$@\"");
    path.to_str().unwrap().to_owned()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_far_end_is_started_over_ssh() {
    let directory = tempfile::tempdir().unwrap();
    let (ssh, far) = (stand_in(directory.path()), env!("CARGO_BIN_EXE_longhaul"));
    let copy = |more: &[&str]| {
        let start = ["copy", "--ssh", &ssh, "--far-program", far];
        run(&[&start, more].concat())
    };
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let data: Vec<u8> =
        (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 9) as u8).collect();
    std::fs::write(path("data"), &data).unwrap();

    let remote = format!("localhost:{}", path("up"));
    let up = copy(&["--json", &path("data"), &remote]);
    assert_eq!(up.status.code(), Some(0), "{}", said(&up));
    assert!(std::fs::read(path("up")).unwrap() == data);
    let document: Value = serde_json::from_slice(&up.stdout).unwrap();
    assert_eq!(document["schema"], "longhaul.copy/1");
    assert_eq!(document["transport"], "udt-native");
    assert_eq!(document["bytes"], data.len());
    assert_eq!((&document["entries"], &document["failed"]), (&1.into(), &0.into()));

    let down = copy(&["--transport", "tcp", "-P", "2", &remote, &path("down")]);
    assert_eq!(down.status.code(), Some(0), "{}", said(&down));
    assert!(std::fs::read(path("down")).unwrap() == data);
    let text = String::from_utf8(down.stdout).unwrap();
    assert!(text.contains("1 entry, 3 MB in") && text.contains("TCP (TLS)"), "{text}");

    // What cannot be copied is reported, and the rest is copied.
    std::fs::create_dir(path("tree")).unwrap();
    std::fs::write(path("tree/a"), "a").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path("tree/\u{1b}[31mlink")).unwrap();
    let partly = copy(&["-q", &path("tree"), &format!("localhost:{}", path("copied"))]);
    assert_eq!(partly.status.code(), Some(1));
    assert_eq!(std::fs::read(path("copied/a")).unwrap(), b"a");
    let complaint = said(&partly);
    assert!(complaint.contains("leads out of the copy"), "{complaint}");
    assert!(!complaint.contains('\u{1b}') && partly.stdout.is_empty(), "{complaint:?}");

    let missing = copy(&["localhost:/no/such/file", &path("down")]);
    assert_eq!(missing.status.code(), Some(1));
    let complaint = said(&missing);
    assert!(complaint.lines().count() == 1, "{complaint}");
    assert!(complaint.contains("/no/such/file: No such file"), "{complaint}");
}

#[test]
fn the_far_end_cannot_name_an_address_to_connect_to() {
    let directory = tempfile::tempdir().unwrap();
    let far = env!("CARGO_BIN_EXE_longhaul");
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("data"), "data").unwrap();
    // As sshd says it, the far end was reached at 127.0.0.1.
    let says = "shift 2\nSSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' exec \"$@\"";
    let knows = format!("[ \"$1\" = -G ] && exec echo hostname 127.0.0.1\n{says}");
    for (name, script, is_known) in [("stranger", says, false), ("alias", &knows, true)] {
        stall_retry::write_script(Path::new(&path(name)), script);
        let remote = format!("an-alias.invalid:{}", path("copied"));
        let copy = ["copy", "--ssh", &path(name), "--far-program", far, &path("data"), &remote];
        let copied = run(&copy);
        assert_eq!(copied.status.success(), is_known, "{name}: {}", said(&copied));
        assert_eq!(
            said(&copied).contains("reports are not used: give one"),
            !is_known,
            "{}",
            said(&copied)
        );
    }
}

#[test]
fn a_server_shares_a_directory_with_whoever_has_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("root")).unwrap();
    std::fs::write(path("root/file"), "served").unwrap();
    std::fs::write(path("tokens"), "# ours\n0123456789abcdef\n").unwrap();
    let tokens = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path("tokens"), tokens).unwrap();
    let port = free_port();
    let (tokens, root) = (path("tokens"), path("root"));
    let arguments = ["--root", &root, "--tokens", &tokens, "--copy-port", &port];
    let mut server = Server::start(&arguments);
    let got = path("got");
    let copy = run(&["copy", "--token-file", &tokens, "-p", &port, "127.0.0.1:file", &got]);
    assert_eq!(copy.status.code(), Some(0), "{}", said(&copy));
    assert_eq!(std::fs::read(&got).unwrap(), b"served");
    assert!(server.line().contains(": sends file"));
    assert!(server.line().contains(": 1 entry, 6 bytes: complete"));
    let refused = run(&["copy", "--token-file", &tokens, "-p", &port, &got, "127.0.0.1:x"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("--writable"), "{}", said(&refused));
    server.signal("TERM");
    while !server.line().is_empty() {}
}

/// A port that nothing used a moment ago.
fn free_port() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port().to_string()
}

#[test]
fn mistakes_get_one_line() {
    let long = "x".repeat(300);
    for (arguments, expected) in [
        (&["a", "b"][..], "HOST:PATH"),
        (&["h1:a", "h2:b", "."], "on one host"),
        (&["h1:a", "h2:b"], "one side must be this host"),
        (&["/no/such", "host:"], "/no/such: No such file"),
        (&["host:a", "/no/such/dir/"], "create it first"),
        (&["-oX:a", "."], "unexpected argument"),
        (&["--", "-oX:a", "."], "take it for an option"),
        (&["", "host:"], "a path is empty"),
        (&["--ssh", "no-such-ssh", "/etc/hostname", "host:"], "no-such-ssh"),
        (&["--ssh", "false", "/etc/hostname", "host:"], "longhaul --version"),
        (&["--ssh", "", "/etc/hostname", "host:"], "see --ssh"),
        (&["--limit", "0", "a", "host:"], "rate of zero"),
        (&["-C", "warp", "a", "host:"], "bbr, cubic or reno"),
        (&["--token-file", "/no/such", "a", "host:"], "cannot read the token"),
        (&["--token-file", "/dev/null", "a", "host:"], "token"),
        (&[&long, "host:"], "name too long"),
    ] {
        let output = run(&[&["copy"], arguments].concat());
        let complaint = said(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {output:?}");
        let found = complaint.to_lowercase().contains(&expected.to_lowercase());
        assert!(found, "{arguments:?}: {complaint}");
    }
    for (arguments, expected) in [
        (&["--root", "/"][..], "--tokens"),
        (&["--root", "/no/such", "--tokens", "/dev/null"], "tokens"),
        (&["--writable"], "--root"),
    ] {
        let output = run(&[&["server"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
}
