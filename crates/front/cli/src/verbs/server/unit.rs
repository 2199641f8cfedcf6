//! Prints a systemd unit that runs a server with the given flags
//! (systemd.service(5), systemd.exec(5)). The server needs only the network, so
//! the unit revokes everything else.

use super::ServerArgs;
use super::settings::LimitArgs;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use host::sysctl;
use perf::server::Limits;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Grace period in seconds: a stop may take this much longer than the longest test.
const GRACE_S: u64 = 60;

/// Memory of the program itself: code, allocator, log and metrics.
const PROGRAM: u64 = 64 << 20;
/// Largest socket buffer if the sysctls cannot be read: the default maximum of
/// `tcp_rmem` (tcp(7)).
const WINDOW: u64 = 6 << 20;

/// Flags whose files the unit passes as credentials, since its user cannot read
/// any others.
const FILES: [&str; 3] = ["tokens", "private-key", "users"];

/// Name and path of a credential.
type File = (String, String);

/// The variable parts of a unit.
#[derive(Debug)]
struct Unit {
    program: String,
    /// The server's flags; credentials are in `%d`.
    flags: Vec<String>,
    files: Vec<File>,
    stop_s: u64,
    tasks: u64,
    /// Bytes.
    memory_max: u64,
    low_port: bool,
}

/// Maximum streams of all tests.
fn most_streams(limits: &LimitArgs) -> u64 {
    let all = 2 * u64::from(limits.max_tests) * u64::from(limits.max_streams);
    all.min(limits.max_total_streams.into())
}

/// Maximum memory of a server within its limits, in bytes: the
/// program, its budgets for messages and for buffers, and the socket buffers of
/// all streams, which the kernel charges to the service as well. At most three
/// quarters of `machine`, so that the server runs out of memory before it does.
fn memory_max(buffers: u64, streams: u64, window: u64, machine: u64) -> u64 {
    let needed = (PROGRAM + Limits::default().message_memory.bytes())
        .saturating_add(buffers)
        .saturating_add(streams.saturating_mul(window));
    needed.min(machine / 4 * 3)
}

/// The largest socket buffer of this kernel, in bytes: the maximum of autotuning,
/// or twice what a program may request (socket(7), `SO_RCVBUF`).
fn largest_window() -> u64 {
    let tuned = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]
        .map(|key| sysctl::read_triple(key).map(|[_, _, most]| most));
    let requested = ["net.core.rmem_max", "net.core.wmem_max"]
        .map(|key| sysctl::read(key).ok()?.trim().parse::<u64>().ok().map(|most| 2 * most));
    tuned.into_iter().chain(requested).flatten().max().unwrap_or(WINDOW)
}

pub(super) fn print(args: &ServerArgs, console: &mut Console) -> Outcome {
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
    let (limits, streams) = (&args.limits, most_streams(&args.limits));
    let machine = host::memory::total().map_or(u64::MAX, units::ByteCount::bytes);
    let unit = Unit {
        program: text(program.into_os_string())?,
        flags,
        files,
        stop_s: limits.max_time + GRACE_S,
        // A thread for each stream, one for each test, and those that authenticate a client.
        tasks: streams + u64::from(limits.max_tests) + u64::from(limits.max_half_open) + 64,
        memory_max: memory_max(limits.max_memory.bytes(), streams, largest_window(), machine),
        low_port: (1..1024).contains(&args.listen.port),
    };
    console.print(&unit.text());
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
        if !FILES.contains(&name) {
            flags.push(quoted(word));
            continue;
        }
        let file = joined.or_else(|| words.next().map(String::as_str)).unwrap_or_default();
        let path = std::path::absolute(Path::new(file)).and_then(|path: PathBuf| {
            path.into_os_string().into_string().map_err(|_| std::io::ErrorKind::InvalidInput.into())
        });
        let path = path.map_err(|error| {
            Failure::usage(format!("cannot pass {file:?} to the unit: {error}"))
        })?;
        flags.push(format!("--{name} %d/{name}"));
        files.push((name.to_owned(), path));
    }
    Ok((flags, files))
}

/// Quotes a word of a command line (systemd.service(5), "Command lines").
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
# Stopping waits for running tests; this exceeds the longest of them.
TimeoutStopSec={stop_s}
LimitNOFILE=65536
TasksMax={tasks}
# Messages, --max-memory and the socket buffers of --max-total-streams; at most
# three quarters of the memory of this machine.
MemoryMax={memory_max}

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
            memory_max = self.memory_max,
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
    fn memory_covers_the_budget_and_the_windows_and_leaves_the_machine_some() {
        let budget = Limits::default().message_memory.bytes();
        let few = memory_max(512 << 20, 256, 6 << 20, 64 << 30);
        assert!(few > budget + (512 << 20) + 256 * (6 << 20) && few < 4 << 30, "{few}");
        assert_eq!(memory_max(512 << 20, 2048, 6 << 20, 16 << 30), 12 << 30);
        assert_eq!(memory_max(u64::MAX, u64::MAX, u64::MAX, u64::MAX), u64::MAX / 4 * 3);
        assert!(largest_window() > 0);
    }

    #[test]
    fn a_low_port_keeps_its_one_capability() {
        let mut unit = Unit {
            program: "/usr/local/bin/longhaul".to_owned(),
            flags: words(&["server"]),
            files: vec![("tokens".to_owned(), "/etc/50%".to_owned())],
            stop_s: 120,
            tasks: 100,
            memory_max: 1 << 30,
            low_port: true,
        };
        let text = unit.text();
        assert!(text.contains("\nExecStart=/usr/local/bin/longhaul server\n"), "{text}");
        assert!(text.contains("\nLoadCredential=tokens:/etc/50%%\n"), "{text}");
        assert!(text.contains("\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"));
        assert!(text.contains("\nTimeoutStopSec=120\nLimitNOFILE=65536\nTasksMax=100\n"));
        assert!(text.contains("\nMemoryMax=1073741824\n"));
        unit.low_port = false;
        assert!(unit.text().contains("\nCapabilityBoundingSet=\n"));
    }
}
