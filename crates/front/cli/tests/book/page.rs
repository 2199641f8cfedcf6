//! One page of the book, run: its `console` and `sh` blocks from top to bottom, in a
//! folder and, where that is allowed, a network namespace of its own. A block
//! with `file=NAME` is written to that file, one with `no-run="WHY"` is skipped.

use crate::compare::{Mode, blessed, matches};
use crate::markdown::{Block, blocks, commands};
use crate::private;
use host::netlink::Netlink;
use host::netns::NetNs;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a command is run before its output counts as wrong.
const TRIES: u32 = 3;

/// A lab's exit code where the machine could not carry the path.
const NOT_VALID: i32 = 3;

/// Longest that a command may take, as timeout(1) reads it.
const LONGEST: &str = "60";

/// Why a page did not come out as printed.
pub(crate) enum Outcome {
    Matched,
    /// The machine did not let it be decided.
    Undecided(String),
    Differs(String),
}

/// Something that runs until the page is done.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-s", "INT", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// Whether the commands of a block are run; only a `console` block says what they print.
pub(crate) fn is_run(block: &Block) -> bool {
    let is_shell = ["console", "sh"].contains(&block.language.as_str());
    is_shell && option(block, "no-run").is_none()
}

/// Whether a page has anything to run.
pub(crate) fn has_commands(page: &str) -> bool {
    blocks(page).iter().any(is_run)
}

/// Whether any of it needs a lab.
pub(crate) fn needs_lab(page: &str) -> bool {
    let of = |block: &Block| commands(block).into_iter().map(|(command, _)| command);
    blocks(page)
        .iter()
        .filter(|block| is_run(block))
        .flat_map(of)
        .any(|command| command.contains("longhaul lab") || command.contains("longhaul demo"))
}

/// Runs every command of the page; with `bless` the page is rewritten.
pub(crate) fn run(file: &Path, root: &Path, bless: bool) -> Outcome {
    let text = fs::read_to_string(file).unwrap();
    let folder = private::directory();
    // Labs are found by sockets of their network namespace: there are no others here.
    let place = Position { folder: folder.path(), network: network() };
    std::os::unix::fs::symlink(root.join("examples"), folder.path().join("examples")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut wrong = Vec::new();
    let mut background = Vec::new();
    let mut replaced = Vec::new();
    let found = blocks(&text);
    for block in &found {
        if let Some(name) = option(block, "file") {
            fs::write(folder.path().join(name), block.lines.join("\n") + "\n").unwrap();
        }
        if !is_run(block) {
            continue;
        }
        if block.language == "sh" {
            match scripted(block, &place) {
                Ok(failed) => wrong.extend(failed.map(|why| format!("{}: {why}", file.display()))),
                Err(reason) => return Outcome::Undecided(reason),
            }
            continue;
        }
        let mode = mode(block);
        let mut rewritten = Vec::new();
        for (command, expected) in commands(block) {
            let printed = match command.strip_suffix(" &") {
                Some(command) => {
                    background.push(start(command, &place));
                    Vec::new()
                }
                None => match tried(&command, &expected, block, mode, &place) {
                    Ok(printed) => printed,
                    Err(reason) => return Outcome::Undecided(reason),
                },
            };
            if !matches(&expected, &printed, mode) {
                wrong.push(format!(
                    "{}:{}: $ {command}\nin the book:\n{}\nprinted:\n{}",
                    file.strip_prefix(root).unwrap().display(),
                    block.start + 1,
                    expected.join("\n"),
                    printed.join("\n"),
                ));
            }
            rewritten.push(blessed(&expected, &printed, mode));
        }
        replaced.push((block, rewritten));
    }
    if wrong.is_empty() {
        return Outcome::Matched;
    }
    if bless {
        for (block, outputs) in replaced.into_iter().rev() {
            lines.splice(block.start..block.start + block.lines.len(), with(block, outputs));
        }
        fs::write(file, lines.join("\n") + "\n").unwrap();
    }
    Outcome::Differs(wrong.join("\n\n"))
}

/// The block's lines with other outputs after its commands.
fn with(block: &Block, outputs: Vec<Vec<String>>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut outputs = outputs.into_iter();
    let mut pending: Option<Vec<String>> = None;
    let mut continues = false;
    for line in &block.lines {
        let begins = line.starts_with("$ ");
        if begins {
            lines.extend(pending.take().unwrap_or_default());
            pending = outputs.next();
        }
        if begins || continues {
            continues = line.ends_with('\\');
            lines.push(line.clone());
        }
    }
    lines.extend(pending.unwrap_or_default());
    lines
}

/// The value of `name=value` in the info string.
pub(crate) fn option<'a>(block: &'a Block, name: &str) -> Option<&'a str> {
    block.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn mode(block: &Block) -> Mode {
    option(block, "tolerance").map_or(Mode::Exact, |share| {
        let percent: f64 = share.strip_suffix('%').unwrap().parse().unwrap();
        Mode::Within(percent / 100.0)
    })
}

/// Runs the lines of an `sh` block, of which each has to end with the status of the block; returns
/// the first that does not. `status=any` is for verdicts about the machine. `Err` where no lab was
/// valid.
fn scripted(block: &Block, place: &Position) -> Result<Option<String>, String> {
    let status = option(block, "status").unwrap_or("0");
    for (command, _) in commands(block).iter().filter(|(command, _)| !command.is_empty()) {
        let fits = |code: Option<i32>| match (code, status) {
            (Some(0 | 1), "any") => true,
            (code, status) => code.is_some_and(|code| code.to_string() == status),
        };
        let mut ended = once(command, place);
        for _ in 1..TRIES {
            if ended.0 == Some(NOT_VALID) && !fits(ended.0) {
                ended = once(command, place);
            }
        }
        let (code, printed) = ended;
        let shown = format!("$ {command}\n{}\nexit code {code:?}", printed.join("\n"));
        match code {
            code if fits(code) => {}
            Some(NOT_VALID) => return Err(shown),
            _ => return Ok(Some(shown)),
        }
    }
    Ok(None)
}

/// What the command printed, the last of up to three times where it depends
/// on the machine. `Err` where no lab was valid.
fn tried(
    command: &str,
    expected: &[String],
    block: &Block,
    mode: Mode,
    place: &Position,
) -> Result<Vec<String>, String> {
    let status: i32 = option(block, "status").map_or(0, |status| status.parse().unwrap());
    for attempt in 1..=TRIES {
        let (code, printed) = once(command, place);
        if code == Some(status) && (matches(expected, &printed, mode) || mode == Mode::Exact) {
            return Ok(printed);
        }
        let last = attempt == TRIES || mode == Mode::Exact;
        match code {
            Some(code) if code == status && last => return Ok(printed),
            Some(NOT_VALID) if attempt == TRIES => {
                return Err(format!("$ {command}\n{}", printed.join("\n")));
            }
            Some(NOT_VALID) => {}
            code if code != Some(status) && last => {
                let mut printed = printed;
                printed.push(format!("exit code {code:?} instead of {status}"));
                return Ok(printed);
            }
            _ => {}
        }
    }
    unreachable!("the last attempt returns")
}

/// A network namespace with its loopback device up.
pub(crate) fn network() -> Option<NetNs> {
    let namespace = NetNs::create().ok()?;
    let started = namespace.run(|| {
        let netlink = Netlink::open()?;
        netlink.bring_up(netlink.index("lo")?, None, None)
    });
    started.and_then(|started| started).ok().map(|()| namespace)
}

/// Where the commands of a page run.
struct Position<'a> {
    folder: &'a Path,
    network: Option<NetNs>,
}

impl Position<'_> {
    fn spawn(&self, mut command: Command) -> Child {
        match &self.network {
            Some(network) => network.run(move || command.spawn()).unwrap().unwrap(),
            None => command.spawn().unwrap(),
        }
    }
}

fn shell(command: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_longhaul"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("timeout");
    shell
        .args(["--kill-after", "5", LONGEST, "sh", "-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env("LONGHAUL_STATE_DIR", folder.join(".state"))
        .env_remove("LONGHAUL_TOKEN")
        .stdin(Stdio::null());
    shell
}

/// Runs it with standard output and standard error in the order written.
fn once(command: &str, place: &Position) -> (Option<i32>, Vec<String>) {
    let mut shell = shell(&format!("exec 2>&1\n{command}"), place.folder);
    shell.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = place.spawn(shell).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    (output.status.code(), text.lines().map(str::to_owned).collect())
}

/// Starts it in a group of its own, and waits until it has written a line.
fn start(command: &str, place: &Position) -> Background {
    let log: PathBuf = place.folder.join(".background.log");
    let _ = fs::remove_file(&log);
    let mut shell = shell(command, place.folder);
    let output = File::create(&log).unwrap();
    shell.stdout(output.try_clone().unwrap()).stderr(output).process_group(0);
    let child = Background(place.spawn(shell));
    for _ in 0..200 {
        if fs::read_to_string(&log).is_ok_and(|text| text.contains('\n')) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{command} wrote nothing within 10 s")
}
