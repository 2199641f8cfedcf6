//! The type of flags that name an output file or directory. Only [`host::output_file`] and
//! [`host::capture_file`] open such paths.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// An output file, or a directory that is written to.
#[derive(Debug, Clone)]
pub(crate) struct OutputPath(PathBuf);

impl From<OsString> for OutputPath {
    fn from(path: OsString) -> Self {
        OutputPath(path.into())
    }
}

impl From<&str> for OutputPath {
    fn from(path: &str) -> Self {
        OutputPath(path.into())
    }
}

impl Deref for OutputPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
#[path = "../tests/lab/output_files/flags.rs"]
mod flags;

#[cfg(test)]
mod tests {
    use super::{OutputPath, flags};
    use clap::{Arg, Command, CommandFactory};
    use std::any::TypeId;

    /// Flags whose paths are read, or written to without a name (`doctor --disk`).
    const INPUTS: [&str; 52] = [
        "baseline --compare",
        "baseline --notes",
        "baseline --servers",
        "baseline --token-file",
        "boost edge --cache",
        "boost far --key-file",
        "boost near --key-file",
        "boost near --token-file",
        "boost plan target",
        "boost run --key-file",
        "boost verify --key-file",
        "boost verify --lab",
        "copy --token-file",
        "doctor --disk",
        "doctor --read",
        "doctor --root",
        "explain file",
        "iperf3 --authorized-users-path",
        "iperf3 --rsa-private-key-path",
        "iperf3 --rsa-public-key-path",
        "lab up plan",
        "pcap conversations files",
        "pcap endpoints files",
        "pcap expert file",
        "pcap files",
        "pcap follow file",
        "pcap handshake files",
        "pcap hierarchy files",
        "pcap io file",
        "pcap merge files",
        "pcap packets file",
        "pcap streams files",
        "pcap summary files",
        "server --history",
        "server --private-key",
        "server --tokens",
        "server --users",
        "sim compare plan",
        "sim run --control",
        "sim run plan",
        "study compare first",
        "study compare second",
        "study export folder",
        "study merge folders",
        "study report folder",
        "study run --token-file",
        "test --compare",
        "test --token-file",
        "trace --mmdb",
        "tune --journals",
        "tune verify --token-file",
        "web --history",
    ];

    /// Adds every flag of some types as "verb verb --flag", and whether it names a directory.
    fn add(command: &Command, path: &str, types: &[TypeId], found: &mut Vec<(String, bool)>) {
        let is = |arg: &&Arg| types.iter().any(|it| arg.get_value_parser().type_id() == *it);
        for arg in command.get_arguments().filter(is) {
            let name = match (arg.get_long(), arg.get_short()) {
                (Some(long), _) => format!("--{long}"),
                (None, Some(short)) => format!("-{short}"),
                (None, None) => arg.get_id().to_string(),
            };
            let is_directory = arg.get_value_names().is_some_and(|names| names == ["DIR"]);
            found.push((format!("{path} {name}").trim_start().to_owned(), is_directory));
        }
        for command in command.get_subcommands() {
            add(command, format!("{path} {}", command.get_name()).trim_start(), types, found);
        }
    }

    fn of_types(types: &[TypeId]) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        add(&crate::Cli::command(), "", types, &mut found);
        found.sort_unstable();
        found
    }

    /// The test of planted links runs a command for each of them.
    #[test]
    fn every_flag_that_names_an_output_file_is_attacked() {
        let mut attacked = Vec::new();
        for case in flags::CASES.iter().chain([&flags::SERVER_FILE]) {
            let (verb, _) = case.flag.rsplit_once(' ').unwrap();
            assert!(case.command.starts_with(verb) && case.command.contains("{}"), "{verb}");
            attacked.push((case.flag.to_owned(), case.target != flags::Target::File));
        }
        attacked.sort_unstable();
        attacked.dedup();
        let types = [TypeId::of::<OutputPath>(), TypeId::of::<(String, OutputPath)>()];
        assert_eq!(of_types(&types), attacked);
    }

    /// A flag that takes any other path is known to name no output file; that of kept results is
    /// checked by whoever opens it.
    #[test]
    fn other_paths_are_of_files_to_read() {
        let found = of_types(&[TypeId::of::<std::path::PathBuf>()]);
        assert_eq!(found.into_iter().map(|(flag, _)| flag).collect::<Vec<_>>(), INPUTS);
    }
}
