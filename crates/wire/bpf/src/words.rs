//! The words of a filter.

use crate::{FilterError, MAX_LENGTH};

/// Splits a filter at white space; parentheses, `!`, `&&` and `||` are words of their own.
pub(crate) fn split(filter: &str) -> Result<Vec<String>, FilterError> {
    if filter.len() > MAX_LENGTH {
        return Err(FilterError::TooLong);
    }
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut rest = filter.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '(' | ')' | '!' => {
                words.push(next.to_string());
                open = false;
            }
            '&' | '|' if rest.peek() == Some(&next) => {
                rest.next();
                words.push(if next == '&' { "and" } else { "or" }.to_owned());
                open = false;
            }
            space if space.is_whitespace() => open = false,
            other => match words.last_mut().filter(|_| open) {
                Some(word) => word.push(other),
                None => {
                    words.push(other.to_string());
                    open = true;
                }
            },
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_need_no_space() {
        let words = |text: &str| split(text).unwrap().join(" ");
        assert_eq!(words("!(tcp||udp)&&port 80"), "! ( tcp or udp ) and port 80");
        assert_eq!(words("  host\tfd00::1\n"), "host fd00::1");
        assert_eq!(words(""), "");
        assert_eq!(words("a&b | c"), "a&b | c");
    }

    #[test]
    fn the_length_is_bounded() {
        assert!(split(&" ".repeat(MAX_LENGTH)).is_ok());
        assert_eq!(split(&" ".repeat(MAX_LENGTH + 1)), Err(FilterError::TooLong));
    }
}
