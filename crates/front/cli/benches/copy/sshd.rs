//! An sshd of the bench's own: its keys and configuration are in the bench's directory.

use crate::write_script;
use bench_harness::Fallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SSHD: &str = "/usr/sbin/sshd";
pub(crate) const PORT: &str = "2222";

/// Makes keys, and the script that runs sshd in the foreground in a mount namespace of its
/// own: sshd wants a directory in `/run`.
pub(crate) fn prepare(directory: &Path) -> Fallible<PathBuf> {
    if !Path::new(SSHD).exists() {
        return Err("scp needs a server: apt-get install openssh-server".into());
    }
    for name in ["host-key", "user-key"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(directory.join(name))
            .stdout(Stdio::null())
            .status()?;
        if !made.success() {
            return Err("ssh-keygen failed".into());
        }
    }
    let path = |name: &str| directory.join(name).display().to_string();
    let configuration = format!(
        "Port {PORT}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PidFile none\nSubsystem sftp internal-sftp\nPermitRootLogin yes\n",
        path("host-key"),
        path("user-key.pub")
    );
    fs::write(directory.join("sshd.conf"), configuration)?;
    let script = directory.join("sshd");
    let run = format!(
        "#!/bin/sh\nmount -t tmpfs tmpfs /run && mkdir /run/sshd\nexec {SSHD} -D -e -f {}\n",
        path("sshd.conf")
    );
    write_script(&script, &run)?;
    Ok(script)
}

/// scp with the bench's keys.
pub(crate) fn scp(directory: &Path) -> Command {
    let mut scp = Command::new("scp");
    scp.args(["-q", "-r", "-P", PORT, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i"])
        .arg(directory.join("user-key"));
    scp
}
