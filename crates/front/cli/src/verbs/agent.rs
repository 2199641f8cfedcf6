//! `longhaul agent`: the program that longhaul starts on other hosts.

use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use ::agent::{AgentError, Host};
use clap::Args;
use std::net::IpAddr;

/// Run tests for longhaul on another host, over stdin and stdout
///
/// "longhaul study" and "longhaul copy" start it over ssh. It acts with the rights of the user
/// who logs in: it runs tests, serves tests to clients with the study's token, sets sysctls
/// that the study's user has confirmed, and reads or writes the files of one copy. When its
/// input ends, it stops all of that and reverts the sysctls.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentArgs {
    /// Take requests from standard input
    #[arg(long, required = true)]
    stdio: bool,
}

const EXAMPLES: &str = "\
Examples:
  ssh HOST longhaul agent --stdio       the command that longhaul runs

To restrict a key to this command, in ~/.ssh/authorized_keys:
  restrict,command=\"longhaul agent --stdio\" ssh-ed25519 AAAA...";

pub(crate) fn run(args: &AgentArgs, console: &mut Console) -> Outcome {
    let AgentArgs { stdio: _ } = args;
    let stop = stop::on_signals();
    let host = Host {
        journals: longhaul::tune::journals(),
        address: std::env::var("SSH_CONNECTION").ok().as_deref().and_then(server_address),
    };
    let mut answer = |line: &str| console.print(line);
    match ::agent::serve(std::io::stdin(), &mut answer, host, &stop) {
        Ok(()) => Ok(DONE),
        // Whoever started it was told.
        Err(AgentError::Protocol(_) | AgentError::Copy(_)) => Ok(FAILED),
        Err(error) => Err(Failure::work(format!("agent: {error}"))),
    }
}

/// The third field of `SSH_CONNECTION` (ssh(1)).
fn server_address(ssh_connection: &str) -> Option<IpAddr> {
    ssh_connection.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_servers() {
        let found = server_address("192.0.2.7 50522 2001:db8::1 22");
        assert_eq!(found, Some("2001:db8::1".parse().unwrap()));
        for wrong in ["", "1.2.3.4 5", "a b c d"] {
            assert_eq!(server_address(wrong), None);
        }
    }
}
