//! Refuses a command that would write one file twice, or over a file that it is given to read:
//! `-o X --html X` leaves a page where a document was asked for.

use crate::failure::Failure;
use crate::output_path::OutputPath;
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

/// A path on the command line, and the flag that gave it.
struct Given {
    flag: String,
    path: PathBuf,
}

/// # Errors
/// Two flags name one output file, or a flag the file that is read.
pub(crate) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { return Ok(()) };
        (command, matches) = (found, below);
    }
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for arg in command.get_arguments() {
        let names_directory = arg.get_value_names().is_some_and(|names| names == ["DIR"]);
        written.extend(
            outputs(arg, matches).filter(|_| !names_directory).map(|path| given(arg, path)),
        );
        // Results are compared with those in a file that is then replaced.
        if arg.is_positional() {
            read.extend(all::<PathBuf>(arg, matches).map(|path| given(arg, path)));
        }
    }
    written.retain(|one| is_file(&one.path));
    for (index, one) in written.iter().enumerate() {
        if let Some(other) = written[..index].iter().find(|other| same(&one.path, &other.path)) {
            return Err(Failure::usage(format!(
                "{} and {} would both write {}: give each a file of its own",
                other.flag,
                one.flag,
                one.path.display()
            )));
        }
        if read.iter().any(|other| same(&one.path, &other.path)) {
            return Err(Failure::usage(format!(
                "{} would overwrite {}, which is read: give it another name",
                one.flag,
                one.path.display()
            )));
        }
    }
    Ok(())
}

fn outputs<'a>(arg: &'a Arg, matches: &'a ArgMatches) -> impl Iterator<Item = &'a Path> {
    let named = all::<(String, OutputPath)>(arg, matches).map(|(_, path)| path);
    all::<OutputPath>(arg, matches).chain(named).map(|path| &**path)
}

/// The values of an argument, if they have this type.
fn all<'a, T: Clone + Send + Sync + 'static>(
    arg: &Arg,
    matches: &'a ArgMatches,
) -> impl Iterator<Item = &'a T> {
    matches.try_get_many(arg.get_id().as_str()).ok().flatten().into_iter().flatten()
}

fn given(arg: &Arg, path: impl AsRef<Path>) -> Given {
    let flag = match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => arg.get_id().to_string(),
    };
    Given { flag, path: path.as_ref().to_owned() }
}

/// Not standard output, nor a device, which take anything in turn.
fn is_file(path: &Path) -> bool {
    path != Path::new("-") && path.metadata().ok().is_none_or(|found| found.is_file())
}

/// Where both parents are there, links in them are followed.
fn same(one: &Path, other: &Path) -> bool {
    resolved(one) == resolved(other)
}

fn resolved(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let parent = absolute.parent()?.canonicalize().ok();
    Some(match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => absolute,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    fn refused(words: &str) -> Option<String> {
        let command = crate::Cli::command();
        let words = std::iter::once("longhaul").chain(words.split(' '));
        let matches = command.clone().try_get_matches_from(words).unwrap();
        super::check(&command, &matches).err().map(|failure| failure.to_string())
    }

    #[test]
    fn one_file_is_not_written_twice() {
        for words in [
            "sim run --link rate=1gbit,rtt=1ms --flow cubic -o x --html x",
            "sim run --link rate=1gbit,rtt=1ms --flow cubic -o x --html ./x",
            "lab run --link rate=1gbit,rtt=1ms --report x --pcap client=x -- true",
            "lab run --link rate=1gbit,rtt=1ms --pcap client=x --pcap server=x -- true",
        ] {
            let said = refused(words).unwrap_or_else(|| panic!("{words}"));
            assert!(said.contains("would both write"), "{said}");
        }
        for words in [
            "sim run --link rate=1gbit,rtt=1ms --flow cubic -o x --html y",
            "sim run --link rate=1gbit,rtt=1ms --flow cubic -o /dev/null --html /dev/null",
            "test server --html x --compare x",
        ] {
            assert_eq!(refused(words), None, "{words}");
        }
    }

    #[test]
    fn what_is_read_is_not_overwritten() {
        let said = refused("explain x --html x").unwrap();
        assert!(said.contains("--html would overwrite x"), "{said}");
        assert_eq!(refused("explain x --html y"), None);
    }
}
