//! The full-screen view: connections refreshed in place, and keys.

use super::ending::Ending;
use super::keys::{self, Key};
use super::{WatchArgs, full};
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use host::{clock, terminal};
use longhaul::watch::{Polled, WatchSession, Watcher};
use record::WatchReport;
use report::terminal::{self as drawn, Style, Viewport};
use report::untrusted;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time between checks of the terminal's size.
const RESIZE_CHECK: Duration = Duration::from_millis(250);

/// True if the terminal's alternate screen is in use.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Restores the terminal; from any thread, any number of times.
pub(super) fn leave() {
    if IN_USE.swap(false, Ordering::Relaxed) {
        let mut out = io::stdout().lock();
        // The terminal may be gone.
        let _ = out.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
    terminal::restore();
}

/// The terminal's alternate screen, without a cursor, until dropped.
struct Screen {
    keys: terminal::RawMode,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        let keys = terminal::RawMode::enable()?;
        // A panic message must appear on the main screen.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
        }));
        IN_USE.store(true, Ordering::Relaxed);
        let screen = Screen { keys };
        io::stdout().write_all(b"\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// The page on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Table,
    /// A connection, by its id.
    Follow(String),
}

/// The state of the view.
struct State {
    page: Page,
    /// True if the help covers the page.
    help: bool,
    /// The selected row, and the id of its connection.
    row: usize,
    selected: Option<String>,
    paused: bool,
    /// The filter while it is edited.
    typing: Option<String>,
    report: WatchReport,
    /// The reason the recording stopped, if it did.
    note: Option<String>,
}

pub(super) fn run(
    session: &mut WatchSession,
    args: &WatchArgs,
    ending: &Ending,
    console: &Console,
) -> Outcome {
    let note = match session.poll()? {
        Polled::Complete => None,
        Polled::RecordingFull => Some(full(args)),
        Polled::ProcessEnded => return Err(Failure::work("the process has ended")),
    };
    let mut screen = Screen::enter().map_err(|error| {
        Failure::work(format!("cannot use this terminal: {error}; --once prints a table"))
    })?;
    let mut state = State {
        page: Page::Table,
        help: false,
        row: 0,
        selected: None,
        paused: false,
        typing: None,
        report: session.watcher.report(0),
        note,
    };
    let result = refresh(&mut screen, session, args, ending, console, &mut state);
    drop(screen);
    if let Some(note) = &state.note {
        console::note(note);
    }
    result
}

fn refresh(
    screen: &mut Screen,
    session: &mut WatchSession,
    args: &WatchArgs,
    ending: &Ending,
    console: &Console,
    state: &mut State,
) -> Outcome {
    let started = clock::now();
    // The first rates appear early.
    let mut due = args.interval.min(Duration::from_millis(300));
    let mut size = Console::size();
    draw(&mut session.watcher, args, console, size, state).map_err(Failure::work)?;
    let stdin = io::stdin();
    loop {
        let left = due.saturating_sub(started.elapsed()).min(RESIZE_CHECK);
        let (end, key) = ending.wait_or_key(stdin.as_fd(), left).map_err(Failure::work)?;
        if end {
            return Ok(DONE);
        }
        let mut changed = false;
        if key {
            let mut bytes = [0; 256];
            // A terminal that is gone reads as empty, or as an error.
            let Ok(length @ 1..) = screen.keys.read(&mut bytes) else { return Ok(DONE) };
            for key in keys::parse(bytes.get(..length).unwrap_or_default()) {
                if !press(key, &mut session.watcher, state) {
                    return Ok(DONE);
                }
            }
            changed = true;
        }
        if started.elapsed() >= due {
            due = started.elapsed() + args.interval;
            // A recording continues while the screen is paused.
            if state.paused && !session.is_recording() {
                continue;
            }
            match session.poll()? {
                Polled::Complete => {}
                Polled::RecordingFull => {
                    state.note = Some(full(args));
                    changed = true;
                }
                Polled::ProcessEnded => return Ok(DONE),
            }
            changed |= !state.paused;
        }
        let now = Console::size();
        if changed || now != size {
            size = now;
            draw(&mut session.watcher, args, console, size, state).map_err(Failure::work)?;
        }
    }
}

/// Handles a key; `false` to quit.
fn press(key: Key, watcher: &mut Watcher, state: &mut State) -> bool {
    if let Some(mut text) = state.typing.take() {
        match key {
            Key::Enter => return true,
            Key::Escape => text.clear(),
            Key::Backspace => drop(text.pop()),
            Key::Char(c) if text.chars().count() < 60 => text.push(c),
            _ => {}
        }
        watcher.selection.text.clone_from(&text);
        state.typing = (key != Key::Escape).then_some(text);
        return true;
    }
    let last = state.report.connections.len().saturating_sub(1);
    let go = |state: &mut State, to: usize| {
        state.row = to.min(last);
        state.selected = state.report.connections.get(state.row).map(|c| c.who.id.clone());
    };
    let row = state.row;
    match key {
        Key::Char('q') => return false,
        Key::Char('s') => watcher.sort = watcher.sort.next(),
        Key::Char('p') => state.paused = !state.paused,
        Key::Char('?' | 'h') => state.help = !state.help,
        Key::Escape if state.help => state.help = false,
        Key::Char('/') if !state.help && state.page == Page::Table => {
            state.typing = Some(watcher.selection.text.clone());
        }
        Key::Char('b') => watcher.selection.busy = !watcher.selection.busy,
        Key::Up | Key::Char('k') => go(state, row.saturating_sub(1)),
        Key::Down | Key::Char('j') => go(state, row + 1),
        Key::PageUp => go(state, row.saturating_sub(10)),
        Key::PageDown => go(state, row + 10),
        Key::Enter if !state.help && state.page == Page::Table => {
            if let Some(one) = state.report.connections.get(row) {
                watcher.follow(Some(&one.who.id));
                state.page = Page::Follow(one.who.id.clone());
            }
        }
        Key::Escape => {
            if matches!(state.page, Page::Follow(_)) {
                watcher.follow(None);
            }
            state.page = Page::Table;
        }
        _ => {}
    }
    true
}

fn draw(
    watcher: &mut Watcher,
    args: &WatchArgs,
    console: &Console,
    (width, height): (usize, usize),
    state: &mut State,
) -> io::Result<()> {
    let style = Style { width, ..console.out };
    // The last line is the status line.
    let lines = height.saturating_sub(1).max(1);
    state.report = watcher.report(args.top.unwrap_or(lines).min(lines));
    // The selection follows its connection while that is on the screen.
    let mut all = state.report.connections.iter();
    match all.position(|one| state.selected.as_ref() == Some(&one.who.id)) {
        Some(at) => state.row = at,
        None => state.row = state.row.min(state.report.connections.len().saturating_sub(1)),
    }
    let order = watcher.sort.to_string();
    let text = match &state.page {
        _ if state.help => drawn::watch_help(&style),
        Page::Table => {
            let selected = state.selected.is_some().then_some(state.row);
            drawn::watch(&state.report, &order, Viewport { lines, selected }, &style)
        }
        Page::Follow(id) => match watcher.connection(id) {
            Some(one) => drawn::follow(&one, &watcher.history(id), shares, &style),
            None => "This connection has ended. Esc goes back.\n".to_owned(),
        },
    };
    let mut out = String::from("\x1b[H");
    for line in text.lines().take(lines) {
        out.push_str(&untrusted::line(line, style.colour));
        out.push_str("\x1b[K\r\n");
    }
    out.push_str("\x1b[J");
    let status = status(watcher, state);
    let cut =
        untrusted::excerpt(whole_items(&status, width.saturating_sub(1)), width.saturating_sub(1));
    out.push_str(&format!("\x1b[{height};1H{cut}"));
    let mut stdout = io::stdout().lock();
    stdout.write_all(out.as_bytes())?;
    stdout.flush()
}

/// The items of a status line that fit, the first one in any case; two spaces divide them.
fn whole_items(status: &str, width: usize) -> &str {
    let mut fitting = status;
    while fitting.chars().count() > width {
        let Some((shorter, _)) = fitting.rsplit_once("  ") else { break };
        fitting = shorter;
    }
    fitting
}

/// Shares of an interval by cause, if anything was sent.
fn shares(
    earlier: &record::ConnectionSample,
    later: &record::ConnectionSample,
) -> Option<record::Shares> {
    let known = earlier.has_timers && later.has_timers;
    let has_sent = later.sent.busy_us > earlier.sent.busy_us;
    diagnose::shares_between(&earlier.sent, &later.sent).filter(|_| known && has_sent)
}

fn status(watcher: &Watcher, state: &State) -> String {
    if let Some(text) = &state.typing {
        return format!("filter: {text}_   Enter apply, Esc clear");
    }
    let mut text = String::new();
    if state.paused {
        text.push_str("PAUSED  ");
    }
    if state.note.is_some() {
        text.push_str("RECORDING STOPPED  ");
    }
    if !watcher.selection.text.is_empty() {
        text.push_str(&format!("filter '{}'  ", watcher.selection.text));
    }
    if watcher.selection.busy {
        text.push_str("busy only  ");
    }
    text.push_str(match state.page {
        _ if state.help => "q quit  ? close help",
        Page::Table => "q quit  ? help  s sort  / filter  b busy  Enter follow  p pause",
        Page::Follow(_) => "q quit  ? help  p pause  Esc back",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_has_whole_items() {
        let status = "q quit  ? help  s sort";
        assert_eq!(whole_items(status, 22), status);
        assert_eq!(whole_items(status, 21), "q quit  ? help");
        assert_eq!(whole_items(status, 3), "q quit");
    }
}
