//! A systemd unit for a server with the flags at hand (systemd.service(5),
//! systemd.exec(5)). The server needs the network and nothing else, so
//! everything else is taken away.

use super::ServerArgs;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a test may outlast its length by before it is closed, and what is left
/// to say goodbye: added to the longest test for how long a stop may take.
const GRACE_S: u64 = 60;

/// Flags whose files the unit hands over, since its user may read no others.
const FILES: [&str; 3] = ["tokens", "private-key", "users"];

/// Name and path of a file that the unit hands over.
type File = (String, String);

/// What a unit depends on.
#[derive(Debug)]
struct Unit {
    program: String,
    /// The server's flags; files handed over are named by `%d`.
    flags: Vec<String>,
    files: Vec<File>,
    stop_s: u64,
    tasks: u64,
    low_port: bool,
}

pub(super) fn print(args: &ServerArgs, console: &mut Console) -> Outcome {
    let program = std::env::current_exe()
        .map_err(|error| Failure::work(format!("cannot tell this program's path: {error}")))?;
    if ["/home", "/root", "/run/user", "/tmp"].iter().any(|hidden| program.starts_with(hidden)) {
        console.say(&format!(
            "warning: the unit does not see {}; install the program, for example into /usr/local/bin, and print the unit from there",
            program.display()
        ));
    }
    let given: Vec<String> = std::env::args_os().skip(1).map(text).collect::<Result<_, _>>()?;
    let (flags, files) = flags(&given)?;
    let (tests, streams) = (u64::from(args.limits.max_tests), u64::from(args.limits.max_streams));
    let unit = Unit {
        program: text(program.into_os_string())?,
        flags,
        files,
        stop_s: args.limits.max_time + GRACE_S,
        // A thread for each stream of both directions, one for each test, and those that greet.
        tasks: (tests * (2 * streams + 1) + u64::from(args.limits.max_half_open) + 64).min(32_768),
        low_port: (1..1024).contains(&args.listen.port),
    };
    console.print(&unit.text());
    Ok(DONE)
}

fn text(word: OsString) -> Result<String, Failure> {
    word.into_string().map_err(|word| {
        Failure::usage(format!("{} is not UTF-8: a unit cannot hold it", word.display()))
    })
}

/// The command line as the unit repeats it.
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
        if !FILES.contains(&name) {
            flags.push(quoted(word));
            continue;
        }
        let file = joined.or_else(|| words.next().map(String::as_str)).unwrap_or_default();
        let path = std::path::absolute(Path::new(file)).and_then(|path: PathBuf| {
            path.into_os_string().into_string().map_err(|_| std::io::ErrorKind::InvalidInput.into())
        });
        let path =
            path.map_err(|error| Failure::usage(format!("cannot hand over {file:?}: {error}")))?;
        flags.push(format!("--{name} %d/{name}"));
        files.push((name.to_owned(), path));
    }
    Ok((flags, files))
}

/// A word of a command line (systemd.service(5), "Command lines").
fn quoted(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        match c {
            '%' => out.push_str("%%"),
            '$' => out.push_str("$$"),
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,[]@+%$".contains(c);
    if !word.is_empty() && word.chars().all(plain) { out } else { format!("\"{out}\"") }
}

impl Unit {
    fn text(&self) -> String {
        let program = quoted(&self.program);
        let command =
            std::iter::once(program.as_str()).chain(self.flags.iter().map(String::as_str));
        let command: Vec<&str> = command.collect();
        let mut files = String::new();
        for (name, path) in &self.files {
            files.push_str(&format!("LoadCredential={name}:{}\n", path.replace('%', "%%")));
        }
        let capabilities = if self.low_port {
            "AmbientCapabilities=CAP_NET_BIND_SERVICE\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE"
        } else {
            "CapabilityBoundingSet="
        };
        format!(
            "\
[Unit]
Description=Longhaul server for network throughput tests
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=2
# A stop lets running tests finish; this is longer than the longest.
TimeoutStopSec={stop_s}
LimitNOFILE=65536
TasksMax={tasks}

DynamicUser=yes
{files}{capabilities}
NoNewPrivileges=yes
UMask=0077
ProtectSystem=strict
ProtectHome=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
PrivateDevices=yes
PrivateTmp=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
",
            command = command.join(" "),
            stop_s = self.stop_s,
            tasks = self.tasks,
        )
    }
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
    fn words_keep_their_meaning() {
        for (word, expected) in [
            ("-p5201", "-p5201"),
            ("[::1]:80", "[::1]:80"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("50%", "50%%"),
            ("$HOME", "$$HOME"),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("a\nExecStart=b;", "\"a\\x0aExecStart=b;\""),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_low_port_keeps_its_one_capability() {
        let mut unit = Unit {
            program: "/usr/local/bin/longhaul".to_owned(),
            flags: words(&["server"]),
            files: vec![("tokens".to_owned(), "/etc/50%".to_owned())],
            stop_s: 120,
            tasks: 100,
            low_port: true,
        };
        let text = unit.text();
        assert!(text.contains("\nExecStart=/usr/local/bin/longhaul server\n"), "{text}");
        assert!(text.contains("\nLoadCredential=tokens:/etc/50%%\n"), "{text}");
        assert!(text.contains("\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"));
        assert!(text.contains("\nTimeoutStopSec=120\n"));
        unit.low_port = false;
        assert!(unit.text().contains("\nCapabilityBoundingSet=\n"));
    }
}
