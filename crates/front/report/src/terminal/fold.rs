//! Lines for a terminal that is narrower than they are.

use super::line::words;
use unicode_width::UnicodeWidthChar;

/// Breaks lines of more than `width` columns between words, and not between a number and its
/// unit; shorter lines stay as they are. A continuation is indented as its line is. Escape
/// sequences of colours (SGR) take no columns. A single word that is too long stays whole.
#[must_use]
pub fn fold(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
        if columns(content) <= width {
            out.push_str(content);
        } else {
            fold_line(content, width, &mut out);
        }
        out.push_str(end);
    }
    out
}

fn fold_line(line: &str, width: usize, out: &mut String) {
    let indent = line.chars().take_while(|c| *c == ' ').count().min(width / 2);
    let margin = " ".repeat(indent);
    out.push_str(&margin);
    let mut used = indent;
    for (at, word) in words(line).iter().enumerate() {
        let wide = columns(word);
        if at > 0 && used + 1 + wide > width {
            out.push('\n');
            out.push_str(&margin);
            used = indent;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += wide;
    }
}

/// Columns of a text without its escape sequences.
fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut parts = text.split("\x1b[");
    count += width_of(parts.next().unwrap_or_default());
    for part in parts {
        count += width_of(part.split_once('m').map_or(part, |(_, shown)| shown));
    }
    count
}

fn width_of(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        assert_eq!(fold("fits as it  is\n", 14), "fits as it  is\n");
        assert_eq!(fold("lab: RTT is 40 ms long", 13), "lab: RTT is\n40 ms long");
        assert_eq!(fold("  one two three\nx", 9), "  one two\n  three\nx");
        assert_eq!(fold("", 1), "");
        // Longer than the terminal: whole, alone.
        assert_eq!(fold("see https://example.net/ now", 10), "see\nhttps://example.net/\nnow");
        // Colours take no room.
        assert_eq!(fold("\x1b[1mone two\x1b[0m three", 13), "\x1b[1mone two\x1b[0m three");
        assert_eq!(fold("\x1b[1mone two\x1b[0m three", 12), "\x1b[1mone two\x1b[0m\nthree");
    }

    proptest::proptest! {
        #[test]
        fn words_are_kept_in_order(text in "[a-z 0-9.%\n]{0,200}", width in 1..90_usize) {
            let folded = fold(&text, width);
            let words = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            proptest::prop_assert_eq!(words(&folded), words(&text));
            for line in folded.lines().filter(|line| columns(line) > width) {
                // A number and its unit are one word.
                proptest::prop_assert!(super::words(line).len() <= 1);
            }
        }
    }
}
