//! A program as written in a plan.

use super::{CommandLine, Content, OriginHost, Output, Program, ProgramFile, output};
use std::collections::BTreeMap;
use std::ops::Range;
use topology::toml_text::{Spanned, TomlError, TomlText};
use units::ByteCount;

/// The most arguments of a command line, bytes of an argument, and files.
const MAX_ARGUMENTS: usize = 200;
const MAX_ARGUMENT: usize = 4_000;
const MAX_FILES: usize = 20;
/// The longest text of a file.
const MAX_TEXT: usize = 64 << 10;
/// The largest file of zeros.
const MAX_ZEROS: ByteCount = ByteCount::from_bytes(8 << 40);

/// `[programs.NAME]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenProgram {
    server: Option<Spanned<Vec<String>>>,
    client: Spanned<Vec<String>>,
    output: Option<Spanned<String>>,
    #[serde(default)]
    exit_codes: Option<Spanned<Vec<i32>>>,
    #[serde(default)]
    privileged: bool,
    sends: Option<Spanned<String>>,
    origin: Option<WrittenOrigin>,
    #[serde(default)]
    files: BTreeMap<Spanned<String>, Spanned<WrittenFile>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOrigin {
    command: Spanned<Vec<String>>,
    path: Spanned<String>,
    slice: Spanned<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum WrittenFile {
    Text(String),
    Zeros { size: String },
}

/// The error and its place.
pub(crate) type Wrong = (Range<usize>, String);

impl WrittenProgram {
    /// Checks it.
    pub(crate) fn program(&self, name: &str) -> Result<Program, Wrong> {
        let output = self.output.as_ref().ok_or_else(|| {
            let problem = format!(
                "the program '{name}' has no output; say how its goodput is read from what it \
                 prints: output = one of {}",
                output::FORMATS
            );
            (self.client.span(), problem)
        })?;
        let codes =
            self.exit_codes.as_ref().map_or_else(|| vec![0], |codes| codes.get_ref().clone());
        Ok(Program {
            name: name.to_owned(),
            server: self.server.as_ref().map(command_line).transpose()?,
            client: command_line(&self.client)?,
            files: self.files()?,
            output: Output::parse(output.get_ref())
                .map_err(|wrong| (output.span(), wrong.to_string()))?,
            exit_codes: codes,
            privileged: self.privileged,
            origin: self.origin.as_ref().map(WrittenOrigin::host).transpose()?,
            server_sends: self.server_sends()?,
            built_in: false,
        })
    }

    fn server_sends(&self) -> Result<bool, Wrong> {
        match self.sends.as_ref().map(|sends| (sends.get_ref().as_str(), sends.span())) {
            None | Some(("client", _)) => Ok(false),
            Some(("server", _)) => Ok(true),
            Some((other, span)) => {
                Err((span, format!("sends = '{other}'; it is client or server")))
            }
        }
    }

    fn files(&self) -> Result<Vec<ProgramFile>, Wrong> {
        let mut files = Vec::new();
        for (name, written) in &self.files {
            let named = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let text = name.get_ref();
            if text.is_empty()
                || text.len() > 64
                || !text.chars().all(named)
                || text.starts_with('.')
            {
                let problem = "a file's name is 1 to 64 letters, digits, '-', '_' and '.', and \
                               does not begin with '.'";
                return Err((name.span(), problem.to_owned()));
            }
            let content = match written.get_ref() {
                WrittenFile::Text(text) if text.len() > MAX_TEXT => {
                    return Err((
                        written.span(),
                        format!("a file of text has at most {MAX_TEXT} bytes"),
                    ));
                }
                WrittenFile::Text(text) => Content::Text(text.clone()),
                WrittenFile::Zeros { size } => {
                    let bytes: Option<ByteCount> = size.parse().ok();
                    let bytes = bytes.filter(|bytes| *bytes <= MAX_ZEROS).ok_or_else(|| {
                        let problem =
                            format!("'{size}' is not a size up to {MAX_ZEROS}, such as 10GB");
                        (written.span(), problem)
                    })?;
                    Content::Zeros(bytes)
                }
            };
            files.push(ProgramFile { name: text.clone(), content });
        }
        if files.len() > MAX_FILES {
            return Err((
                self.client.span(),
                format!("{} files; at most {MAX_FILES}", files.len()),
            ));
        }
        Ok(files)
    }
}

impl WrittenOrigin {
    fn host(&self) -> Result<OriginHost, Wrong> {
        let path = self.path.get_ref().parse();
        let slice: Option<ByteCount> = self.slice.get_ref().parse().ok();
        let slice = slice.filter(|slice| *slice > ByteCount::ZERO);
        Ok(OriginHost {
            command: command_line(&self.command)?,
            path: path
                .map_err(|wrong: topology::PathError| (self.path.span(), wrong.to_string()))?,
            slice: slice
                .ok_or_else(|| (self.slice.span(), "slice is a size, such as 8MiB".to_owned()))?,
        })
    }
}

fn command_line(written: &Spanned<Vec<String>>) -> Result<CommandLine, Wrong> {
    let arguments = written.get_ref();
    let problem = match arguments.first() {
        None => {
            "a command line is a program and its arguments, such as [\"curl\", \"-s\"]".to_owned()
        }
        Some(program) if program.is_empty() => "the program has no name".to_owned(),
        Some(_) if arguments.len() > MAX_ARGUMENTS => {
            format!("{} arguments; at most {MAX_ARGUMENTS}", arguments.len())
        }
        Some(_) if arguments.iter().any(|one| one.len() > MAX_ARGUMENT || one.contains('\0')) => {
            format!("an argument has at most {MAX_ARGUMENT} bytes, and no zero bytes")
        }
        Some(_) => return Ok(CommandLine(arguments.clone())),
    };
    Err((written.span(), problem))
}

/// One that comes with longhaul.
pub(super) fn built_in(name: &str, text: &str) -> Result<Program, TomlError> {
    let text = TomlText::new(text);
    let written: WrittenProgram = text.read()?;
    let program = written.program(name).map_err(|(span, problem)| text.error(&span, problem))?;
    Ok(Program { built_in: true, ..program })
}
