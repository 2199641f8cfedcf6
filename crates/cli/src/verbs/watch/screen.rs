//! The whole terminal: connections refreshed in place, and keys.

use super::ending::Ending;
use super::keys::{self, Key};
use super::{Ended, Kept, WatchArgs, look};
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use host::{clock, terminal};
use record::WatchReport;
use report::terminal::{self as drawn, Room, Style};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use watch::Watcher;

/// How often the size of the terminal is asked for, at least.
const GLANCE: Duration = Duration::from_millis(250);

/// Whether the terminal's other screen is in use.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back as it was; from any thread, any number of times.
pub(super) fn leave() {
    if IN_USE.swap(false, Ordering::Relaxed) {
        let mut out = io::stdout().lock();
        // There may be no terminal any more.
        let _ = out.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
    terminal::restore();
}

/// The other screen of the terminal, without a cursor, until dropped.
struct Screen {
    keys: terminal::Keys,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        let keys = terminal::Keys::listen()?;
        // A panic's words are for the screen that stays.
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

/// What is on it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Table,
    /// A connection, by its id.
    Follow(String),
    Help,
}

/// What keys have made of it.
struct State {
    page: Page,
    /// The row at hand, and its connection.
    marked: usize,
    at_hand: Option<String>,
    paused: bool,
    /// A filter under construction.
    typing: Option<String>,
    report: WatchReport,
}

pub(super) fn run(
    watcher: &mut Watcher,
    args: &WatchArgs,
    kept: &mut Kept,
    ending: &Ending,
    console: &Console,
) -> Outcome {
    look(watcher, kept)?;
    let mut screen = Screen::enter().map_err(|error| {
        Failure::work(format!("cannot use this terminal: {error}; --once prints a table"))
    })?;
    let mut state = State {
        page: Page::Table,
        marked: 0,
        at_hand: None,
        paused: false,
        typing: None,
        report: watcher.report(0),
    };
    let result = refresh(&mut screen, watcher, args, kept, ending, console, &mut state);
    drop(screen);
    result
}

fn refresh(
    screen: &mut Screen,
    watcher: &mut Watcher,
    args: &WatchArgs,
    kept: &mut Kept,
    ending: &Ending,
    console: &Console,
    state: &mut State,
) -> Outcome {
    let begun = clock::now();
    // The first difference comes soon, the others at their time.
    let mut due = args.interval.min(Duration::from_millis(300));
    let mut size = Console::size();
    draw(watcher, args, console, size, state).map_err(Failure::work)?;
    let stdin = io::stdin();
    loop {
        let left = due.saturating_sub(begun.elapsed()).min(GLANCE);
        let (end, key) = ending.wait_or_key(stdin.as_fd(), left).map_err(Failure::work)?;
        if end {
            return Ok(DONE);
        }
        let mut changed = false;
        if key {
            let mut bytes = [0; 256];
            // A terminal that has gone reads as nothing, or as an error.
            let Ok(length @ 1..) = screen.keys.read(&mut bytes) else { return Ok(DONE) };
            for key in keys::parse(bytes.get(..length).unwrap_or_default()) {
                if !press(key, watcher, state) {
                    return Ok(DONE);
                }
            }
            changed = true;
        }
        if begun.elapsed() >= due {
            due = begun.elapsed() + args.interval;
            // A recording goes on while the screen stands still.
            if state.paused && kept.is_none() {
                continue;
            }
            match look(watcher, kept) {
                Ok(()) => {}
                Err(Ended::Process) => return Ok(DONE),
                Err(ended) => return Err(ended.into()),
            }
            changed |= !state.paused;
        }
        let now = Console::size();
        if changed || now != size {
            size = now;
            draw(watcher, args, console, size, state).map_err(Failure::work)?;
        }
    }
}

/// Does what a key says; `false` is to quit.
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
        state.marked = to.min(last);
        state.at_hand = state.report.connections.get(state.marked).map(|c| c.who.id.clone());
    };
    let marked = state.marked;
    match key {
        Key::Char('q') => return false,
        Key::Char('s') => watcher.sort = watcher.sort.next(),
        Key::Char('p') => state.paused = !state.paused,
        Key::Char('?' | 'h') => state.page = Page::Help,
        Key::Char('/') if state.page == Page::Table => {
            state.typing = Some(watcher.selection.text.clone());
        }
        Key::Char('b') => watcher.selection.busy = !watcher.selection.busy,
        Key::Up | Key::Char('k') => go(state, marked.saturating_sub(1)),
        Key::Down | Key::Char('j') => go(state, marked + 1),
        Key::PageUp => go(state, marked.saturating_sub(10)),
        Key::PageDown => go(state, marked + 10),
        Key::Enter if state.page == Page::Table => {
            if let Some(one) = state.report.connections.get(marked) {
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
    // The last line is for keys, and every row takes one at least.
    let lines = height.saturating_sub(1).max(1);
    state.report = watcher.report(args.top.unwrap_or(lines).min(lines));
    // The mark stays with its connection while that is on the screen.
    let mut all = state.report.connections.iter();
    match all.position(|one| state.at_hand.as_ref() == Some(&one.who.id)) {
        Some(at) => state.marked = at,
        None => state.marked = state.marked.min(state.report.connections.len().saturating_sub(1)),
    }
    let order = watcher.sort.to_string();
    let text = match &state.page {
        Page::Table => {
            let marked = state.at_hand.is_some().then_some(state.marked);
            drawn::watch(&state.report, &order, Room { lines, marked }, &style)
        }
        Page::Follow(id) => match watcher.one(id) {
            Some(one) => drawn::follow(&one, &watcher.history(id), shares, &style),
            None => "This connection has ended. Esc goes back.\n".to_owned(),
        },
        Page::Help => HELP.to_owned(),
    };
    let mut out = String::from("\x1b[H");
    for line in text.lines().take(lines) {
        out.push_str(line);
        out.push_str("\x1b[K\r\n");
    }
    out.push_str("\x1b[J");
    let cut: String = status(watcher, state).chars().take(width.saturating_sub(1)).collect();
    out.push_str(&format!("\x1b[{height};1H{cut}"));
    let mut stdout = io::stdout().lock();
    stdout.write_all(out.as_bytes())?;
    stdout.flush()
}

/// An interval by cause, where there was anything to send.
fn shares(earlier: &record::Seen, later: &record::Seen) -> Option<record::Shares> {
    let known = earlier.has_clocks && later.has_clocks;
    let has_sent = later.sent.busy_us > earlier.sent.busy_us;
    diagnose::shares_between(&earlier.sent, &later.sent).filter(|_| known && has_sent)
}

const HELP: &str = "\
Keys
  s            sort: by rate, round trip, retransmits, limit
  /            filter: a piece of a program's name, an address or a port; Esc ends it
  b            those that carry payload, or all
  up, down     the row at hand; Page Up, Page Down
  Enter        follow it
  Esc          back to the table
  p            pause, and go on
  q            quit

  bit/s        payload acknowledged (to the right) or received (to the left)
  RTT, min     smoothed and least round trip, ms
  cwnd, flight congestion window, and bytes sent that are neither acknowledged nor lost
  again        segments sent again over the interval

  The bar shows where the interval went: held by the receive window, held by the send
  buffer, in the network's hands, nothing to send. The line beside it says what limited
  the connection over its last 30 looks. Counters below are this host's.
";

fn status(watcher: &Watcher, state: &State) -> String {
    if let Some(text) = &state.typing {
        return format!("filter: {text}_   Enter keeps it, Esc clears it");
    }
    let mut text = String::new();
    if state.paused {
        text.push_str("PAUSED  ");
    }
    if !watcher.selection.text.is_empty() {
        text.push_str(&format!("filter '{}'  ", watcher.selection.text));
    }
    if watcher.selection.busy {
        text.push_str("busy only  ");
    }
    text.push_str(match state.page {
        Page::Table => "q quit  s sort  / filter  b busy  Enter follow  p pause  ? help",
        Page::Follow(_) => "q quit  p pause  Esc back  ? help",
        Page::Help => "q quit  Esc back",
    });
    text
}
