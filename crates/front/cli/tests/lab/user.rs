//! A lab for an ordinary user. The device node is one of the test's own, in a
//! mount namespace of its own: the machine's may be closed to users, and
//! stays as it is.

use crate::private;
use crate::program::LONGHAUL;
use std::process::{Command, Output};

/// `nobody` of every system.
const USER: &str = "65534";

/// Whether a device node can be made here: by root, where the system lets it.
pub(crate) fn can_be_made() -> bool {
    as_user("0666", "true").is_ok_and(|output| output.status.success())
}

/// Runs a shell line as [`USER`], who sees /dev/net/tun with `mode`.
fn as_user(mode: &str, line: &str) -> std::io::Result<Output> {
    // The program lies where its user may read it.
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /mnt; cp {LONGHAUL} /mnt/longhaul; \
         mknod -m {mode} /mnt/tun c 10 200; mount --bind /mnt/tun /dev/net/tun; \
         exec setpriv --reuid={USER} --regid={USER} --clear-groups sh -c '{line}'"
    );
    Command::new("unshare").args(["--mount", "sh", "-c", &script]).output()
}

const RUN: &str = "/mnt/longhaul lab run --link rate=100mbit,rtt=20ms --";

pub(crate) fn has_a_lab() {
    let output = as_user("0666", &format!("{RUN} ping -c 2 -i 0.2 server")).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    // On a busy machine a lab may be too late for its path; the user has one all the same.
    assert!(output.status.success() || error.contains("not valid"), "{error}");
    assert!(text.contains("2 received"), "{text}");
}

/// The root directory of a chroot is not that of a mount. Its lab runs there, also where a program
/// joins it, and nothing stays mounted where mounts are shared.
pub(crate) fn has_a_lab_in_a_chroot() {
    let folder = private::directory();
    let root = folder.path().display();
    let script = format!(
        "set -e; mount --make-rshared /; cd {root}
         for name in /*; do
             if [ -L $name ]; then cp -a $name .$name; continue; fi
             [ -d $name ] && mkdir .$name && mount --rbind $name .$name
         done
         umount -l ./etc; cp -r /etc/. etc; umount -l ./tmp; touch tmp/here; cp {LONGHAUL} tmp/longhaul
         lines() {{ wc -l </proc/self/mountinfo; }}
         before=$(lines)
         chroot . /tmp/longhaul lab up --shape pair --path rate=10mbit,rtt=2ms --name rooted >log &
         for _ in $(seq 100); do [ -s log ] && break; sleep 0.1; done
         chroot . /tmp/longhaul lab exec --lab rooted client sh -c 'ls /tmp; ping -c 1 server'
         kill -INT $!; wait || true
         [ $before = $(lines) ] && echo nothing is left"
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("here\nlonghaul\n") && text.contains("1 received"), "{text}{error}");
    assert!(text.ends_with("nothing is left\n"), "{text}{error}");
}

pub(crate) fn closed_device() {
    let output = as_user("0600", &format!("{RUN} true")).unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.lines().count() == 1 && error.contains("chmod 0666 /dev/net/tun"), "{error}");
}
