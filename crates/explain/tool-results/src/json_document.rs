//! The complete JSON document in a text that has more: prompts before it, a second document or a
//! part of one after it, quotes of a mail, and numbers that are none.

use serde::de::IgnoredAny;
use serde_json::Deserializer;
use std::borrow::Cow;

/// Places at which a document may begin that are tried.
const MAX_TRIED: usize = 16;

/// What iperf3 and other C programs print for numbers that are none; longer ones first.
const NO_NUMBERS: [&str; 12] = [
    "-nan(ind)",
    "nan(ind)",
    "-1.#IND",
    "1.#QNAN",
    "-1.#INF",
    "1.#INF",
    "-Infinity",
    "Infinity",
    "-nan",
    "nan",
    "-inf",
    "inf",
];

/// A document, and what is said of the rest.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    pub(crate) document: Cow<'a, str>,
    pub(crate) notes: Vec<String>,
}

/// Where the text has JSON: after the white space of the first line that begins with `{`.
pub(crate) fn begins_at(text: &str) -> Option<usize> {
    starts(text).next().map(|(place, _)| place)
}

/// The same of each such line, with its indentation.
fn starts(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let indent = line.len() - line.trim_start().len();
        let place = at + indent;
        at += line.len();
        line.trim_start().starts_with('{').then_some((place, indent))
    })
}

/// The lines of a text that are JSON, each a document, and what is said of the others.
pub(crate) fn lines(text: &str) -> Found<'_> {
    let is_json = |line: &&str| line.trim_start().starts_with('{');
    let others = text.lines().filter(|line| !line.trim().is_empty() && !is_json(line)).count();
    if others == 0 {
        return Found { document: Cow::Borrowed(text), notes: Vec::new() };
    }
    let document = text.lines().filter(is_json).collect::<Vec<_>>().join("\n");
    let (s, were) = if others == 1 { ("", "was") } else { ("s", "were") };
    let notes = vec![format!("{others} line{s} between those of the result {were} ignored")];
    Found { document: Cow::Owned(document), notes }
}

/// The text without the quotes that a mail program puts before each line, if most have them.
pub(crate) fn unquoted(text: &str) -> Cow<'_, str> {
    let quoted = |line: &&str| line.trim_start().starts_with('>');
    let head = || text.lines().filter(|line| !line.trim().is_empty()).take(64);
    if head().filter(quoted).count() * 2 <= head().count() {
        return Cow::Borrowed(text);
    }
    let bare = |line: &str| line.trim_start().trim_start_matches(['>', ' ']).to_owned();
    Cow::Owned(text.lines().map(bare).collect::<Vec<_>>().join("\n"))
}

/// The first complete document; if none is complete, what begins first, whose reader will say
/// what is wrong.
pub(crate) fn complete(text: &str) -> Found<'_> {
    let mut tried = 0;
    let mut first: Option<(usize, usize)> = None;
    for (start, indent) in starts(text).take(MAX_TRIED * 64) {
        let from = text.get(start..).unwrap_or_default();
        // What is indented further is inside of the first one.
        if first.is_some_and(|(_, its)| indent > its) {
            continue;
        }
        tried += 1;
        if tried > MAX_TRIED {
            break;
        }
        first.get_or_insert((start, indent));
        if let Some(end) = end_of(from) {
            let (document, rest) = from.split_at_checked(end).unwrap_or((from, ""));
            return found(text, start, Cow::Borrowed(document), rest, false);
        }
        if let Some(mut numbered) = without_no_numbers(from)
            && let Some(end) = end_of(&numbered)
        {
            let rest = numbered.split_off(end);
            return found(text, start, Cow::Owned(numbered), &rest, true);
        }
    }
    let start = first.map_or(0, |(start, _)| start);
    found(text, start, Cow::Borrowed(text.get(start..).unwrap_or_default()), "", false)
}

fn found<'a>(
    text: &str,
    start: usize,
    document: Cow<'a, str>,
    rest: &str,
    has_no_numbers: bool,
) -> Found<'a> {
    let mut notes = Vec::new();
    let before = text.get(..start).unwrap_or_default();
    notes.extend(ignored(before, "before"));
    let is_again = rest.trim_start().starts_with('{');
    if is_again {
        notes.push("another document, or a part of one, follows and was ignored".to_owned());
    } else {
        notes.extend(ignored(rest, "after"));
    }
    if has_no_numbers {
        notes.push("numbers that are none (nan, inf) count as not reported".to_owned());
    }
    Found { document, notes }
}

/// `1 line before the document was ignored`.
fn ignored(text: &str, place: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let (s, were) = if lines == 1 { ("", "was") } else { ("s", "were") };
    (lines > 0).then(|| format!("{lines} line{s} {place} the document {were} ignored"))
}

/// Where the complete document at the beginning of a text ends.
fn end_of(text: &str) -> Option<usize> {
    let mut documents = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    documents.next()?.ok()?;
    Some(documents.byte_offset())
}

/// The text with `null` for numbers that are none; `None` if there are none of these.
fn without_no_numbers(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped, mut changed) = (false, false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // A value begins after one of these.
        let is_value = !is_string && out.ends_with([':', ' ', '\t', ',', '[']);
        let head = rest.get(..rest.len().min(9)).unwrap_or(rest);
        let word = NO_NUMBERS.iter().find(|word| {
            is_value && head.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
        });
        if let Some(word) = word {
            out.push_str("null");
            changed = true;
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        if c == '"' && !is_escaped {
            is_string = !is_string;
        }
        is_escaped = c == '\\' && !is_escaped;
        out.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    changed.then_some(out)
}
