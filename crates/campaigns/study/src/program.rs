//! Programs whose transfers a study measures: their command lines, the files that they need,
//! and how their output is read.
//!
//! ```toml
//! [programs.fetch]
//! server = ["nginx", "-p", "{dir}", "-c", "nginx.conf"]
//! client = ["curl", "--write-out", "%{json}", "http://{server_in_url}:{port}/file"]
//! output = "curl"
//! [programs.fetch.files]
//! "nginx.conf" = "..."
//! file = { size = "1TB" }
//! ```
//!
//! Arguments are passed as they are: no shell reads them. A [`Placeholder`] in them, and in the
//! text of a file, stands for what a test has in its place.

mod output;
mod written;

pub use output::{NoGoodput, Output, Reported};
pub(crate) use written::WrittenProgram;

use record::{StudyProgram, StudyProgramFile};
use std::fmt;
use std::sync::{Arc, OnceLock};
use topology::PathSpec;
use units::ByteCount;

/// A program, or a pair of them, that transfers data over a lab's path.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name in the plan.
    pub name: String,
    /// What the server runs until the client has ended; `None`: nothing.
    pub server: Option<CommandLine>,
    /// What the client runs.
    pub client: CommandLine,
    /// Files below `{dir}`, made before each run.
    pub files: Vec<ProgramFile>,
    /// How the client's output is read.
    pub output: Output,
    /// Exit codes of the client that are no failure.
    pub exit_codes: Vec<i32>,
    /// Whether it keeps the privileges of the user who runs the study.
    pub privileged: bool,
    /// What runs on a host behind the server, from which that fetches.
    pub origin: Option<OriginHost>,
    /// Whether the server sends.
    pub server_sends: bool,
    /// Whether it comes with longhaul, and runs without being confirmed.
    pub built_in: bool,
}

/// A host behind the server of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginHost {
    /// What runs there until the client has ended.
    pub command: CommandLine,
    /// The path between server and origin.
    pub path: PathSpec,
    /// The size of the slices in which the server fetches.
    pub slice: ByteCount,
}

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its name, without a directory.
    pub name: String,
    /// What is in it.
    pub content: Content,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text, with placeholders.
    Text(String),
    /// That many zeros, of which none are stored.
    Zeros(ByteCount),
}

/// Arguments with placeholders, the program first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

/// What a test has in the place of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// `{server}`: the server's address.
    Server,
    /// `{server_in_url}`: the same, in brackets if it is an IPv6 address (RFC 3986).
    ServerInUrl,
    /// `{port}`: a port of the server that no other flow of the test has.
    Port,
    /// `{seconds}`: how long it sends, warm-up included.
    Seconds,
    /// `{streams}`: parallel connections.
    Streams,
    /// `{bitrate}`: bit/s of each stream.
    Bitrate,
    /// `{block}`: bytes per write.
    Block,
    /// `{dir}`: an empty directory that it can write to.
    Dir,
    /// `{object}`: bytes of the object.
    Object,
    /// `{range}`: bytes of it that are asked for, as in the header Range.
    Range,
    /// `{cache_state}`: `cold`, `warm` or `expired`.
    CacheState,
    /// `{origin_in_url}`: the origin's address, in brackets if it is an IPv6 address.
    OriginInUrl,
    /// `{longhaul}`: this program.
    Longhaul,
}

impl Placeholder {
    /// Every placeholder.
    pub const ALL: [Placeholder; 13] = [
        Placeholder::Server,
        Placeholder::ServerInUrl,
        Placeholder::Port,
        Placeholder::Seconds,
        Placeholder::Streams,
        Placeholder::Bitrate,
        Placeholder::Block,
        Placeholder::Dir,
        Placeholder::Object,
        Placeholder::Range,
        Placeholder::CacheState,
        Placeholder::OriginInUrl,
        Placeholder::Longhaul,
    ];

    /// As written.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Placeholder::Server => "{server}",
            Placeholder::ServerInUrl => "{server_in_url}",
            Placeholder::Port => "{port}",
            Placeholder::Seconds => "{seconds}",
            Placeholder::Streams => "{streams}",
            Placeholder::Bitrate => "{bitrate}",
            Placeholder::Block => "{block}",
            Placeholder::Dir => "{dir}",
            Placeholder::Object => "{object}",
            Placeholder::Range => "{range}",
            Placeholder::CacheState => "{cache_state}",
            Placeholder::OriginInUrl => "{origin_in_url}",
            Placeholder::Longhaul => "{longhaul}",
        }
    }

    /// A text with every placeholder replaced by its value. Other words in braces stay, such
    /// as curl's `%{json}`.
    pub fn fill(text: &str, value: impl Fn(Placeholder) -> String) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            match Placeholder::ALL.into_iter().find(|known| from.starts_with(known.text())) {
                Some(known) => {
                    filled.push_str(&value(known));
                    rest = &from[known.text().len()..];
                }
                None => {
                    filled.push('{');
                    rest = &from[1..];
                }
            }
        }
        filled + rest
    }
}

impl ProgramFile {
    /// A file of text; zeros are nothing to read.
    fn report(&self) -> Option<StudyProgramFile> {
        match &self.content {
            Content::Text(text) => {
                Some(StudyProgramFile { name: self.name.clone(), text: text.clone() })
            }
            Content::Zeros(_) => None,
        }
    }
}

impl CommandLine {
    /// The arguments with every placeholder replaced.
    pub fn fill(&self, value: impl Fn(Placeholder) -> String) -> Vec<String> {
        self.0.iter().map(|argument| Placeholder::fill(argument, &value)).collect()
    }

    fn has(&self, placeholder: Placeholder) -> bool {
        self.0.iter().any(|argument| argument.contains(placeholder.text()))
    }
}

impl fmt::Display for CommandLine {
    /// As a shell would take it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, argument) in self.0.iter().enumerate() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%{}".contains(c);
            let space = if index > 0 { " " } else { "" };
            if !argument.is_empty() && argument.chars().all(plain) {
                write!(f, "{space}{argument}")?;
            } else {
                write!(f, "{space}'{}'", argument.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

/// The programs that come with longhaul, as in a plan's `[programs.NAME]`.
const BUILT_IN: [(&str, &str); 5] = [
    ("edge", include_str!("../programs/edge.toml")),
    ("http", include_str!("../programs/http.toml")),
    ("iperf2", include_str!("../programs/iperf2.toml")),
    ("iperf3", include_str!("../programs/iperf3.toml")),
    ("object", include_str!("../programs/object.toml")),
];

impl Program {
    /// Those that come with longhaul.
    pub(crate) fn built_in() -> &'static [Arc<Program>] {
        static ALL: OnceLock<Vec<Arc<Program>>> = OnceLock::new();
        ALL.get_or_init(|| {
            // Their texts are checked by a test.
            let all = BUILT_IN.iter().filter_map(|(name, text)| written::built_in(name, text).ok());
            all.map(Arc::new).collect()
        })
    }

    /// Whether its command lines or files have it.
    pub(crate) fn has(&self, placeholder: Placeholder) -> bool {
        self.client.has(placeholder)
            || self.server.as_ref().is_some_and(|server| server.has(placeholder))
            || self.files.iter().any(|file| match &file.content {
                Content::Text(text) => text.contains(placeholder.text()),
                Content::Zeros(_) => false,
            })
    }

    /// For reports.
    #[must_use]
    pub fn report(&self) -> StudyProgram {
        StudyProgram {
            name: self.name.clone(),
            server: self.server.as_ref().map(CommandLine::to_string),
            client: self.client.to_string(),
            output: self.output.to_string(),
            files: self.files.iter().filter_map(ProgramFile::report).collect(),
            privileged: self.privileged,
            built_in: self.built_in,
        }
    }

    /// The programs that it starts, by the first word of each command line, other than longhaul.
    pub fn executables(&self) -> impl Iterator<Item = &str> {
        let origin = self.origin.as_ref().map(|origin| &origin.command);
        let lines = [Some(&self.client), self.server.as_ref(), origin].into_iter().flatten();
        let names = lines.filter_map(|line| line.0.first()).map(String::as_str);
        names.filter(|name| *name != Placeholder::Longhaul.text())
    }

    /// Whether its connections have the port that a test gives it.
    #[must_use]
    pub fn has_port(&self) -> bool {
        self.has(Placeholder::Port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_come_with_longhaul_are_valid() {
        assert_eq!(Program::built_in().len(), BUILT_IN.len());
        for (name, text) in BUILT_IN {
            let program = written::built_in(name, text).unwrap();
            assert!(program.has_port() && program.built_in && !program.privileged, "{name}");
        }
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        let value = |placeholder: Placeholder| placeholder.text().trim_matches(['{', '}']).into();
        let text = "%{json} {{port}} {server}:{port} {ports} {";
        assert_eq!(Placeholder::fill(text, value), "%{json} {port} server:port {ports} {");
        // What is filled in is not read again.
        assert_eq!(Placeholder::fill("{dir}", |_| "{port}".to_owned()), "{port}");
    }

    #[test]
    fn a_command_line_is_shown_as_a_shell_would_take_it() {
        let line = ["sh", "-c", "echo 'a b'", ""].map(str::to_owned).to_vec();
        assert_eq!(CommandLine(line).to_string(), r"sh -c 'echo '\''a b'\''' ''");
    }
}
