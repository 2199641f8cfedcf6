//! The host that ssh connects to for a name that only its configuration knows.

use crate::host_name::check_host;
use host::{clock, wait};
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

/// Most that ssh may print, bytes; and the time it may take.
const MAX_OUTPUT: usize = 256 << 10;
const ANSWER: Duration = Duration::from_secs(5);

/// Returns the name or address that ssh connects to for `host`, as its own configuration says
/// (`ssh -G`; `HostName` in ssh_config(5)). `None` if it does not say within 5 s.
#[must_use]
pub fn resolved_host(ssh: &[String], host: &str) -> Option<String> {
    check_host(host).ok()?;
    let (name, options) = ssh.split_first()?;
    let mut command = Command::new(name);
    command.args(options).args(["-G", "--", host]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let printed = child.stdout.take().map(printed).unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    let printed = String::from_utf8_lossy(&printed);
    let line = printed.lines().find_map(|line| line.strip_prefix("hostname "))?;
    Some(line.trim().to_owned()).filter(|found| check_host(found).is_ok())
}

fn printed(mut output: ChildStdout) -> Vec<u8> {
    let until = clock::now() + ANSWER;
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while all.len() < MAX_OUTPUT {
        let left = until.saturating_duration_since(clock::now());
        if left.is_zero() || !matches!(wait::readable([output.as_fd()], Some(left)), Ok([true])) {
            return Vec::new();
        }
        match output.read(&mut buffer) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Vec::new(),
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_says_where_it_connects_to() {
        let directory = tempfile::tempdir().unwrap();
        let found = |script: &str| {
            let ssh = directory.path().join("ssh");
            stall_retry::write_script(&ssh, script);
            resolved_host(&[ssh.to_str().unwrap().to_owned(), "-4".to_owned()], "user@alias")
        };
        let prints = "echo \"user x\"\necho \"hostname $4.example\"\necho \"port 22\"";
        assert_eq!(found(prints).as_deref(), Some("user@alias.example"));
        assert_eq!(
            found("[ \"$1 $2 $3\" = '-4 -G --' ] && echo hostname 192.0.2.1").as_deref(),
            Some("192.0.2.1")
        );
        for silent in ["exit 1", "echo hostname", "echo 'hostname -oX'", "yes"] {
            assert_eq!(found(silent), None, "{silent}");
        }
        assert_eq!(resolved_host(&[], "host"), None);
        assert_eq!(resolved_host(&["/no/such/ssh".to_owned()], "host"), None);
    }
}
