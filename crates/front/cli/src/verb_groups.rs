//! The commands of the program in groups, for its help.

use clap::Command;
use std::fmt::Write;

/// Each command once, by purpose.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["test", "server", "web", "baseline", "ping", "trace", "watch"]),
    ("Explain", &["explain", "doctor", "capture", "pcap"]),
    ("Tune", &["tune", "bdp", "calc"]),
    ("Labs and studies", &["demo", "lab", "sim", "study"]),
    ("Accelerate", &["copy", "boost"]),
    ("Other", &["iperf3", "iperf2", "agent", "completions", "man", "help"]),
];

/// The command with its subcommands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{header}{group}:{header:#}");
        for name in names {
            let found = command.find_subcommand(name).and_then(Command::get_about);
            let about =
                found.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
            let _ = writeln!(text, "  {literal}{name:<11}{literal:#}  {about}");
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut names: Vec<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
        let help = grouped(command).render_help().to_string();
        assert!(help.contains("Labs and studies:\n  demo") && help.contains("Usage: longhaul"));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
