//! Prints a systemd unit that runs a server with the flags that this process was given.

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use longhaul::systemd_unit::{Unit, quoted};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Flags whose files the unit passes as credentials, since its user cannot read
/// any others. Those of `--tls` are passed as well.
const FILES: [&str; 3] = ["tokens", "private-key", "users"];

/// Name and path of a credential.
type File = (String, String);

/// Prints the unit, with the program and its flags.
pub(crate) fn print(unit: &Unit, console: &mut Console) -> Outcome {
    let program = std::env::current_exe().map_err(|error| {
        Failure::work(format!("cannot determine the path of this program: {error}"))
    })?;
    if ["/home", "/root", "/run/user", "/tmp"].iter().any(|hidden| program.starts_with(hidden)) {
        console.say(&format!(
            "warning: the unit cannot access {}; install the program to /usr/local/bin, for example, and print the unit from there",
            program.display()
        ));
    }
    let given: Vec<String> = std::env::args_os().skip(1).map(text).collect::<Result<_, _>>()?;
    let (flags, files) = flags(&given)?;
    let program = text(program.into_os_string())?;
    console.print(&Unit { program, flags, files, ..unit.clone() }.text());
    Ok(DONE)
}

fn text(word: OsString) -> Result<String, Failure> {
    word.into_string().map_err(|word| {
        Failure::usage(format!(
            "{} is not UTF-8 and cannot be written to a unit; rename it",
            word.display()
        ))
    })
}

/// The command line for the unit.
fn flags(given: &[String]) -> Result<(Vec<String>, Vec<File>), Failure> {
    let (mut flags, mut files) = (Vec::new(), Vec::new());
    let mut words = given.iter().filter(|word| *word != "--systemd-unit");
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").unwrap_or_default();
        let (name, joined) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, None),
        };
        let name = match name {
            "rsa-private-key-path" => "private-key",
            "authorized-users-path" => "users",
            other => other,
        };
        if name == "history" {
            return Err(Failure::usage(
                "a unit may write nowhere: leave out --history, then add StateDirectory= and --history to the unit",
            ));
        }
        if !FILES.contains(&name) && name != "tls" {
            flags.push(quoted(word));
            continue;
        }
        let value = joined.or_else(|| words.next().map(String::as_str)).unwrap_or_default();
        if name != "tls" {
            flags.push(format!("--{name} %d/{name}"));
            files.push((name.to_owned(), absolute(value)?));
            continue;
        }
        let pair = value.split_once(',');
        flags.push(format!("--tls {}", if pair.is_some() { "credentials" } else { value }));
        for (name, file) in
            pair.into_iter().flat_map(|pair| [("certificate", pair.0), ("key", pair.1)])
        {
            files.push((name.to_owned(), absolute(file)?));
        }
    }
    Ok((flags, files))
}

/// The path from the root.
fn absolute(file: &str) -> Result<String, Failure> {
    let path = std::path::absolute(Path::new(file)).and_then(|path: PathBuf| {
        path.into_os_string().into_string().map_err(|_| std::io::ErrorKind::InvalidInput.into())
    });
    path.map_err(|error| Failure::usage(format!("cannot pass {file:?} to the unit: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_repeated() {
        let given = ["server", "--systemd-unit", "-p", "80", "--tokens", "/etc/my words", "--json"];
        let (flags, files) = flags(&words(&given)).unwrap();
        assert_eq!(flags, ["server", "-p", "80", "--tokens %d/tokens", "--json"]);
        assert_eq!(files, [("tokens".to_owned(), "/etc/my words".to_owned())]);
        let (flags, files) =
            super::flags(&words(&["--users=u", "--authorized-users-path", "/v"])).unwrap();
        assert_eq!(flags, ["--users %d/users", "--users %d/users"]);
        assert!(files[0].1.starts_with('/') && files[0].1.ends_with("/u"));
    }

    #[test]
    fn a_file_to_write_is_refused() {
        for given in [["web", "--history", "h.db"], ["web", "--history=h.db", "--json"]] {
            assert!(flags(&words(&given)).is_err());
        }
    }

    #[test]
    fn a_certificate_is_a_credential() {
        let (of_files, files) = flags(&words(&["web", "--tls", "/c.pem,/k.pem"])).unwrap();
        assert_eq!(of_files, ["web", "--tls credentials"]);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, files[1].1.as_str()), (vec!["certificate", "key"], "/k.pem"));
        let (made, files) = flags(&words(&["--tls=self-signed", "--json"])).unwrap();
        assert_eq!((made, files.len()), (words(&["--tls self-signed", "--json"]), 0));
    }
}
