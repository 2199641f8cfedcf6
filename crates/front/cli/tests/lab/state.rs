//! Root's state in a directory that somebody else can change.

use crate::private;
use crate::program::{Ended, LONGHAUL, end};
use host::netns::NetNs;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// `nobody` of every system.
const NOBODY: u32 = 65534;

const APPLY: [&str; 6] = ["apply", "--yes", "--rate", "10gbit", "--rtt", "200ms"];

pub(crate) fn refused() {
    let folder = private::directory();
    let path = folder.path();
    let [theirs, open, real, link] = ["theirs", "open", "real", "link"].map(|n| path.join(n));
    for directory in [&theirs, &open, &real] {
        fs::create_dir(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    chown(&theirs, Some(NOBODY), None).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(&real, &link).unwrap();
    let namespace = NetNs::create().unwrap();
    let tune = |state: &Path, words: &[&str]| -> Ended {
        let mut command = Command::new(LONGHAUL);
        command.arg("tune").args(words).env("LONGHAUL_STATE_DIR", state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end(namespace.run(move || command.spawn()).unwrap().unwrap())
    };
    for (component, why) in [
        (&theirs, "is owned by uid 65534"),
        (&open, "is writable by other users (mode 1777)"),
        (&link, "is a symbolic link"),
    ] {
        for words in [&APPLY[..], &["status"], &["rollback", "--yes"]] {
            for state in [component.clone(), component.join("deeper/state")] {
                let ended = tune(&state, words);
                let said = format!("{} {why}; ", component.display());
                assert_eq!(ended.code, Some(2), "{}", ended.stderr);
                assert!(ended.stderr.contains(&said), "{}", ended.stderr);
                assert!(ended.stderr.lines().count() == 1, "{}", ended.stderr);
                assert!(ended.stderr.contains("LONGHAUL_STATE_DIR"), "{}", ended.stderr);
            }
        }
    }
    for directory in [&theirs, &open, &real] {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0, "{}", directory.display());
    }
    assert_eq!(tune(&real, &["status"]).code, Some(0));
}

/// The user whose environment root has may have planted anything there: journals
/// that root wrote are moved, and what names other settings is reported.
pub(crate) fn moved() {
    let script = r#"set -e
        for place in /var/lib /etc/sysctl.d /mnt; do
            mount -t tmpfs -o mode=755 tmpfs $place
        done
        line() {
            sum=$(printf %s "$1" | sha256sum | cut -c1-16)
            printf '{"sum":"%s","record":%s}\n' "$sum" "$1"
        }
        LONGHAUL_STATE_DIR=/mnt/xdg/longhaul longhaul tune apply --yes --rate 10gbit --rtt 200ms >&2
        cd /mnt/xdg/longhaul/tune
        { head -n 1 000001.journal
          line '{"file":{"before":"kernel.core_pattern = |/mnt/evil\n","planned":""}}'
          line '"ended"'; } > 000002.journal
        cp 000001.journal 000003.journal
        chown 65534 000003.journal /mnt/xdg /mnt/xdg/longhaul /mnt/xdg/longhaul/tune
        ln -s /etc/passwd 000004.journal
        export XDG_STATE_HOME=/mnt/xdg HOME=/mnt/home
        unset LONGHAUL_STATE_DIR
        longhaul tune status --json
        echo; ls /mnt/xdg/longhaul/tune >&2
        longhaul tune rollback --yes --all --force >&2
        cat /proc/sys/net/ipv4/tcp_wmem
        ls /etc/sysctl.d /mnt/xdg/longhaul/tune
        test -s /etc/passwd"#;
    let script = script.replace("longhaul tune", &format!("{LONGHAUL} tune"));
    let child = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ended = end(child.unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (json, rest) = ended.stdout.rsplit_once("}\n").unwrap();
    let status: Value = serde_json::from_str(&format!("{json}}}")).unwrap();
    let journal = "/var/lib/longhaul/tune/000001.journal";
    assert_eq!(status["applied"].as_array().unwrap().len(), 1, "{status}");
    assert_eq!(status["applied"][0]["journal"], journal);
    let old = "/mnt/xdg/longhaul/tune";
    for said in [
        format!("moved the journal {old}/000001.journal to {journal}\n"),
        format!("ignored {old}/000002.journal: "),
        "'kernel.core_pattern'".to_owned(),
        format!("ignored {old}/000003.journal: {old}/000003.journal is owned by uid 65534"),
        format!("{old}/000004.journal is a symbolic link"),
    ] {
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
    }
    // As it was, nothing is set at each boot, and what is not followed is still there.
    assert!(!rest.contains("1000341504") && !rest.contains("90-longhaul"), "{rest}");
    assert!(rest.contains("000002.journal") && rest.contains("000004.journal"), "{rest}");
}
