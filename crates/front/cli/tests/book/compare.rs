//! Printed output against the output in the book.
//!
//! `[..]` stands for any text within a line, a line `...` for any number of
//! lines. With a tolerance, numbers and bars may differ by that share, and white
//! space (so line breaks too) does not count.

/// How strictly two outputs are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Line by line, character by character.
    Exact,
    /// Word by word; numbers agree within this share of the larger one.
    Within(f64),
}

const ANY_TEXT: &str = "[..]";
const ANY_LINES: &str = "...";

/// Whether `actual` is what `expected` says.
pub(crate) fn matches(expected: &[String], actual: &[String], mode: Mode) -> bool {
    match mode {
        Mode::Exact => sequence(&lines(expected), &lines(actual), &exact),
        Mode::Within(share) => {
            sequence(&words(expected), &words(actual), &|e, a| within(e, a, share))
        }
    }
}

fn lines(text: &[String]) -> Vec<&str> {
    text.iter().map(|line| line.trim_end()).collect()
}

/// All words. A wildcard that stands alone is one for any number of them.
fn words(text: &[String]) -> Vec<&str> {
    let words = text.iter().flat_map(|line| line.split_whitespace());
    words.map(|word| if word == ANY_TEXT { ANY_LINES } else { word }).collect()
}

/// Glob matching over lines or words.
fn sequence(expected: &[&str], actual: &[&str], same: &dyn Fn(&str, &str) -> bool) -> bool {
    // reach[i]: whether the expected items so far can match the first i actual ones.
    let mut reach = vec![false; actual.len() + 1];
    reach[0] = true;
    for item in expected {
        if *item == ANY_LINES {
            let mut any = false;
            for place in &mut reach {
                any |= *place;
                *place = any;
            }
            continue;
        }
        for i in (0..actual.len()).rev() {
            reach[i + 1] = reach[i] && same(item, actual[i]);
        }
        reach[0] = false;
    }
    reach[actual.len()]
}

/// One line, with `[..]` for any text.
fn exact(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split(ANY_TEXT);
    let Some(mut rest) = parts.next().and_then(|first| actual.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// One word: the same letters, and numbers and bars that agree.
fn within(expected: &str, actual: &str, share: f64) -> bool {
    if is_bar(expected) && is_bar(actual) {
        return bars_agree(expected, actual, share);
    }
    let found = pieces(actual);
    let agree =
        |(wanted, found): (&&str, &&str)| match (wanted.parse::<f64>(), found.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() <= share * a.abs().max(b.abs()) + 1e-9,
            _ => wanted == found,
        };
    let Some((head, tail)) = expected.split_once(ANY_TEXT) else {
        let wanted = pieces(expected);
        return wanted.len() == found.len() && wanted.iter().zip(&found).all(agree);
    };
    // Beside the wildcard a piece may be cut short.
    let (head, tail) = (pieces(head), pieces(tail));
    let begins = |(wanted, found): (&&str, &&str)| {
        agree((wanted, found)) || found.starts_with(*wanted) && !is_number(found)
    };
    let ends = |(wanted, found): (&&str, &&str)| {
        agree((wanted, found)) || found.ends_with(*wanted) && !is_number(found)
    };
    head.len().max(tail.len()) <= found.len()
        && head.iter().zip(&found).all(begins)
        && tail.iter().rev().zip(found.iter().rev()).all(ends)
}

/// Shares of a whole as shades.
const SHADES: [char; 4] = ['█', '▓', '▒', '░'];

fn is_bar(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| SHADES.contains(&c))
}

/// A bar shows measured shares: of each shade as much, within `share` of the whole.
fn bars_agree(expected: &str, actual: &str, share: f64) -> bool {
    let whole = expected.chars().count();
    let count = |bar: &str, shade| bar.chars().filter(|c| *c == shade).count();
    whole == actual.chars().count()
        && SHADES.iter().all(|shade| {
            let differ = count(expected, *shade).abs_diff(count(actual, *shade));
            differ as f64 <= share * whole as f64 + 1e-9
        })
}

fn is_number(piece: &str) -> bool {
    piece.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// A word cut into numbers and what is between them.
fn pieces(word: &str) -> Vec<&str> {
    let of_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let number = of_number(first);
        let end = rest.find(|c| of_number(c) != number).unwrap_or(rest.len());
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    pieces
}

/// `expected` with the lines that no longer match replaced by those printed.
/// Lines that still match keep their wildcards, and `...` stays where it is.
pub(crate) fn blessed(expected: &[String], actual: &[String], mode: Mode) -> Vec<String> {
    if matches(expected, actual, mode) {
        return expected.to_vec();
    }
    let same = |e: &String, a: &String| {
        e != ANY_LINES && matches(std::slice::from_ref(e), std::slice::from_ref(a), mode)
    };
    let mut result = Vec::new();
    let (mut from, mut at) = (0, 0);
    for (next, place) in anchors(expected, actual, &same) {
        result.extend(filled(&expected[from..next], &actual[at..place]));
        result.push(expected[next].clone());
        (from, at) = (next + 1, place + 1);
    }
    result.extend(filled(&expected[from..], &actual[at..]));
    result
}

/// The longest common subsequence, as pairs of indices.
fn anchors(
    expected: &[String],
    actual: &[String],
    same: &dyn Fn(&String, &String) -> bool,
) -> Vec<(usize, usize)> {
    let (rows, columns) = (expected.len(), actual.len());
    let mut length = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            length[i][j] = if same(&expected[i], &actual[j]) {
                length[i + 1][j + 1] + 1
            } else {
                length[i + 1][j].max(length[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < rows && j < columns {
        if same(&expected[i], &actual[j]) && length[i][j] == length[i + 1][j + 1] + 1 {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if length[i + 1][j] >= length[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// What takes the place of lines between two that match.
fn filled(expected: &[String], actual: &[String]) -> Vec<String> {
    let first = expected.iter().position(|line| line == ANY_LINES);
    let last = expected.iter().rposition(|line| line == ANY_LINES);
    let (Some(first), Some(last)) = (first, last) else { return actual.to_vec() };
    let after = expected.len() - last - 1;
    if actual.len() < first + after {
        return actual.to_vec();
    }
    let mut lines = actual[..first].to_vec();
    lines.push(ANY_LINES.to_owned());
    lines.extend_from_slice(&actual[actual.len() - after..]);
    lines
}

/// The rules above, by example.
pub(crate) fn rules() {
    let text = |lines: &str| lines.lines().map(str::to_owned).collect::<Vec<_>>();
    let check = |expected: &str, actual: &str, mode, yes: bool| {
        assert_eq!(matches(&text(expected), &text(actual), mode), yes, "{expected:?} {actual:?}");
    };
    let within = Mode::Within(0.1);
    check("a\n...\nd", "a\nb\nc\nd", Mode::Exact, true);
    check("a\n...\nd", "a\nd", Mode::Exact, true);
    check("a\n...\nd", "a\nd\ne", Mode::Exact, false);
    check("in [..] s", "in 3.1 s", Mode::Exact, true);
    check("in [..] s", "in 3.1 ms", Mode::Exact, false);
    check("[..]b[..]b", "abb", Mode::Exact, true);
    check("rate  100 Mbit/s", "rate 95 Mbit/s", within, true);
    check("rate 100 Mbit/s", "rate 89 Mbit/s", within, false);
    check("rate 100 Mbit/s", "rate 100 kbit/s", within, false);
    check("a window of 64 kB,\nwhich", "a window\nof 65.3 kB, which", within, true);
    check("(100 %)", "(95 %)", within, true);
    check("= 50.1/50.1/[..] ms", "= 50.04/50.07/0.01 ms", within, true);
    check("= 50.1/50.1/[..] ms", "= 30.04/50.07/0.01 ms", within, false);
    check("grade [..]: loss[..]", "grade C: loss,", within, true);
    check("before 40 [..]\nafter", "before 40.1 1 2\nafter", within, true);
    check("██████████ 100 %", "█████████▒ 97 %", within, true);
    check("██████████ 100 %", "████████▒▒ 97 %", within, false);
    check("██████████ 100 %", "█████████ 97 %", within, false);
    check("...\nwindow 2.16 MB", "lab\nall\nwindow 2.2 MB", within, true);
    let bless = |expected: &str, actual: &str| {
        blessed(&text(expected), &text(actual), Mode::Exact).join("\n")
    };
    assert_eq!(bless("a [..]\nold", "a 7\nnew"), "a [..]\nnew");
    assert_eq!(bless("...\nold\n...", "x\nnew\ny"), "...");
    assert_eq!(bless("head\n...\nold", "head\nx\ny\nnew"), "head\n...\nnew");
}
