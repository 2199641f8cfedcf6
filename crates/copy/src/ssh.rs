//! Starts the far end over the user's own ssh, which authenticates both hosts.

use crate::CopyError;
use crate::hello::MAX_LINE;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The far end's process, as far as ssh shows it. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FarEnd {
    ssh: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Why a host is not given to ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongHost {
    /// ssh would take it for an option.
    #[error("a host cannot begin with \"-\": ssh would take it for an option")]
    Option,
    /// It is empty, or no name.
    #[error("this is not a host: write HOST:PATH")]
    NoName,
}

/// Checks that a host can be given to ssh.
///
/// # Errors
/// Why not.
pub fn check_host(host: &str) -> Result<(), WrongHost> {
    if host.starts_with('-') || host.split('@').any(|part| part.starts_with('-')) {
        return Err(WrongHost::Option);
    }
    let is_wrong = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.ends_with('@') || host.contains(is_wrong) {
        return Err(WrongHost::NoName);
    }
    Ok(())
}

impl FarEnd {
    /// Runs `program copy-server` on the host; `ssh` is the command with its own options.
    pub(crate) fn start(ssh: &[String], host: &str, program: &str) -> Result<Self, CopyError> {
        check_host(host).map_err(|error| CopyError::Local(format!("{host}: {error}")))?;
        let (command, options) = ssh
            .split_first()
            .ok_or_else(|| CopyError::Local("the ssh command is empty; see --ssh".into()))?;
        let mut child = Command::new(command)
            .args(options)
            .args(["--", host, program, "copy-server"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                CopyError::Local(format!(
                    "cannot run {command}: {error}; install ssh, name it with --ssh, or use a \
                     server and --token"
                ))
            })?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let output = output.ok_or_else(|| CopyError::Local("ssh has no output".into()))?;
        Ok(FarEnd { ssh: child, input, output: BufReader::new(output) })
    }

    /// Sends a line and receives the answer.
    pub(crate) fn exchange(&mut self, line: &str, host: &str) -> Result<String, CopyError> {
        let no_answer = |how: &str| {
            CopyError::Connection(format!(
                "{how} on {host} over ssh: check that \"ssh {host} longhaul --version\" works, or \
                 name the program with --far-program"
            ))
        };
        let input = self.input.as_mut().ok_or_else(|| no_answer("no input"))?;
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .map_err(|_| no_answer("longhaul does not start"))?;
        let mut answer = String::new();
        let mut limited = self.output.by_ref().take(MAX_LINE as u64);
        limited.read_line(&mut answer).map_err(|_| no_answer("longhaul does not answer"))?;
        if answer.is_empty() {
            return Err(no_answer("longhaul does not start"));
        }
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        // The end of its input ends the far end, and that ends ssh.
        drop(self.input.take());
        for _ in 0..50 {
            if matches!(self.ssh.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_no_options() {
        for good in ["host", "user@host", "192.0.2.1", "2001:db8::1", "a-b"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for wrong in ["-oProxyCommand=x", "user@-oX", "-"] {
            assert_eq!(check_host(wrong), Err(WrongHost::Option), "{wrong}");
        }
        for wrong in ["", "a b", "user@", "a\n"] {
            assert_eq!(check_host(wrong), Err(WrongHost::NoName), "{wrong}");
        }
    }
}
