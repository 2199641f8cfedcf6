//! Studies between real hosts: access to the hosts, and their settings.

use crate::ask;
use crate::console::Console;
use crate::failure::Failure;
use crate::token;
use clap::Args;
use longhaul::study::StudyHostAccess;
use report::untrusted::clean;
use std::path::PathBuf;
use study::Study;

/// For plans with `[hosts]`.
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    /// ssh command, with its options, for a plan with `[hosts]`
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    ssh: String,
    /// Program to run on the other hosts
    #[arg(long, value_name = "PROGRAM", default_value = "longhaul")]
    far_program: String,
    /// Read the token for the plan's running server from FILE
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Set the plan's sysctls on real hosts without asking
    ///
    /// Each host journals the previous values, and they are reverted after each run.
    #[arg(long)]
    allow_sysctls: bool,
}

impl HostArgs {
    pub(super) fn access(&self, console: &mut Console) -> Result<StudyHostAccess, Failure> {
        let token = self.token_file.as_ref().map(|file| token::of_file(file, console));
        Ok(StudyHostAccess {
            ssh: self.ssh.split_whitespace().map(str::to_owned).collect(),
            far_program: self.far_program.clone(),
            own_program: std::env::current_exe().map_err(Failure::work)?,
            token: token.transpose()?,
        })
    }
}

/// Returns true if the plan's sysctls may be set on real hosts.
pub(super) fn allowed(
    args: &HostArgs,
    study: &Study,
    console: &mut Console,
) -> Result<bool, Failure> {
    let Some(hosts) = study.real_hosts() else { return Ok(true) };
    let all = study.parts.iter().flat_map(|part| part.plan.sysctls());
    let lines: Vec<String> =
        all.map(|(name, values)| format!("  {name} = {}", values.join(" | "))).collect();
    if lines.is_empty() || args.allow_sysctls {
        return Ok(true);
    }
    let (clients, servers) = (hosts.client_names().join(", "), hosts.server_names().join(", "));
    console.say(&clean(&format!("The plan sets sysctls on {clients} and {servers}:")));
    for line in lines {
        console.say(&clean(&line));
    }
    console.say("Each host journals the previous values; they are reverted after each run.");
    ask::yes("Set them?", "--allow-sysctls, after reading them")
}
