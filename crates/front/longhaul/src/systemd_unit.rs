//! A systemd unit that runs a server (systemd.service(5), systemd.exec(5)). Servers need only the
//! network, so the unit revokes everything else.

use host::sysctl;

/// Memory of the program itself: code, allocator, log and metrics.
const PROGRAM: u64 = 64 << 20;
/// Largest socket buffer if the sysctls cannot be read: the default maximum of
/// `tcp_rmem` (tcp(7)).
const WINDOW: u64 = 6 << 20;

/// The variable parts of a unit.
#[derive(Debug, Clone, Default)]
pub struct Unit {
    /// What the server is for.
    pub description: &'static str,
    /// The path of the program.
    pub program: String,
    /// Its arguments, [`quoted`]; credentials are in `%d`.
    pub flags: Vec<String>,
    /// Name and path of each credential.
    pub files: Vec<(String, String)>,
    /// The longest time of a stop, in seconds.
    pub stop_s: u64,
    /// Maximum threads.
    pub tasks: u64,
    /// Maximum memory, in bytes.
    pub memory_max: u64,
    /// What that memory is for.
    pub memory_of: &'static str,
    /// Whether a port is below 1024.
    pub low_port: bool,
}

/// Maximum memory of a server within its limits, in bytes: the program, its `buffers`, and the
/// socket buffers of all `streams`, which the kernel charges to the service as well. At most three
/// quarters of this machine's, so that the server runs out of memory before it does.
#[must_use]
pub fn memory_max(buffers: u64, streams: u64) -> u64 {
    let machine = host::memory::total().map_or(u64::MAX, units::ByteCount::bytes);
    bounded_memory(buffers, streams, largest_window(), machine)
}

fn bounded_memory(buffers: u64, streams: u64, window: u64, machine: u64) -> u64 {
    let needed = PROGRAM.saturating_add(buffers).saturating_add(streams.saturating_mul(window));
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

/// Quotes a word of a command line (systemd.service(5), "Command lines").
#[must_use]
pub fn quoted(word: &str) -> String {
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
    /// The file.
    #[must_use]
    pub fn text(&self) -> String {
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
Description={description}
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
# {memory_of}; at most
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
            description = self.description,
            memory_of = self.memory_of,
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
        let few = bounded_memory(512 << 20, 256, 6 << 20, 64 << 30);
        assert!(few > (512 << 20) + 256 * (6 << 20) && few < 4 << 30, "{few}");
        assert_eq!(bounded_memory(512 << 20, 2048, 6 << 20, 16 << 30), 12 << 30);
        assert_eq!(bounded_memory(u64::MAX, u64::MAX, u64::MAX, u64::MAX), u64::MAX / 4 * 3);
        assert!(memory_max(0, 0) > 0);
        assert!(largest_window() > 0);
    }

    #[test]
    fn a_low_port_keeps_its_one_capability() {
        let mut unit = Unit {
            program: "/usr/local/bin/longhaul".to_owned(),
            flags: vec!["server".to_owned()],
            description: "A server",
            memory_of: "Buffers",
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
