//! From a text to tokens, each with its place.

use super::error::{FilterError, quoted};
use super::expression::Relation;
use core::ops::Range;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, number or address.
    Word(String),
    /// A text in quotes, with its escapes resolved.
    Quoted(Vec<u8>),
    /// A character in single quotes: a number, or a text of one.
    Character(u8),
    /// What is between brackets.
    Slice(String),
    Relation(Relation),
    And,
    Or,
    Xor,
    Not,
    In,
    Any,
    All,
    BitAnd,
    /// Which of several headers of a protocol.
    Layer,
    DotDot,
    Comma,
    Open,
    Close,
    OpenSet,
    CloseSet,
}

/// Operators by their spelling, longer ones first.
const OPERATORS: [(&str, Token); 26] = [
    ("===", Token::Relation(Relation::AllEqual)),
    ("!==", Token::Relation(Relation::AnyNotEqual)),
    ("==", Token::Relation(Relation::Equal)),
    ("!=", Token::Relation(Relation::NotEqual)),
    ("~=", Token::Relation(Relation::AnyNotEqual)),
    (">=", Token::Relation(Relation::GreaterOrEqual)),
    ("<=", Token::Relation(Relation::LessOrEqual)),
    ("&&", Token::And),
    ("||", Token::Or),
    ("^^", Token::Xor),
    ("..", Token::DotDot),
    (">", Token::Relation(Relation::Greater)),
    ("<", Token::Relation(Relation::Less)),
    ("=", Token::Relation(Relation::Equal)),
    ("!", Token::Not),
    ("~", Token::Relation(Relation::Matches)),
    ("&", Token::BitAnd),
    ("#", Token::Layer),
    (",", Token::Comma),
    ("(", Token::Open),
    (")", Token::Close),
    ("{", Token::OpenSet),
    ("}", Token::CloseSet),
    ("\u{2260}", Token::Relation(Relation::NotEqual)),
    ("\u{2265}", Token::Relation(Relation::GreaterOrEqual)),
    ("\u{2264}", Token::Relation(Relation::LessOrEqual)),
];

fn keyword(word: &str) -> Option<Token> {
    Some(match word {
        "and" => Token::And,
        "or" => Token::Or,
        "xor" => Token::Xor,
        "not" => Token::Not,
        "in" => Token::In,
        "any" => Token::Any,
        "all" => Token::All,
        "bitand" | "bitwise_and" => Token::BitAnd,
        "eq" | "any_eq" => Token::Relation(Relation::Equal),
        "ne" | "all_ne" => Token::Relation(Relation::NotEqual),
        "all_eq" => Token::Relation(Relation::AllEqual),
        "any_ne" => Token::Relation(Relation::AnyNotEqual),
        "gt" => Token::Relation(Relation::Greater),
        "lt" => Token::Relation(Relation::Less),
        "ge" => Token::Relation(Relation::GreaterOrEqual),
        "le" => Token::Relation(Relation::LessOrEqual),
        "matches" => Token::Relation(Relation::Matches),
        "contains" => Token::Relation(Relation::Contains),
        _ => return None,
    })
}

/// Whether a character can be in a name, number or address.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, FilterError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = match first {
            '"' | '\'' => quoted_token(rest, first, at)?,
            'r' | 'R' if rest.get(1..2) == Some("\"") => raw_string(rest, at)?,
            '[' => slice(rest, at)?,
            _ => operator(rest).or_else(|| word(rest)).ok_or_else(|| {
                let at = at..at + first.len_utf8();
                FilterError::new(at, format!("{} is no operator", quoted(&first.to_string())))
            })?,
        };
        found.push((token, at..at + length));
        at += length;
    }
    Ok(found)
}

fn operator(rest: &str) -> Option<(Token, usize)> {
    let found = OPERATORS.iter().find(|(spelling, _)| rest.starts_with(spelling));
    found.map(|(spelling, token)| (token.clone(), spelling.len()))
}

fn word(rest: &str) -> Option<(Token, usize)> {
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    // Two dots are a range.
    let end = rest.get(..end)?.find("..").unwrap_or(end);
    let text = rest.get(..end).filter(|text| !text.is_empty())?;
    Some((keyword(text).unwrap_or_else(|| Token::Word(text.to_owned())), end))
}

fn slice(rest: &str, at: usize) -> Result<(Token, usize), FilterError> {
    match rest.find(']') {
        Some(end) => Ok((Token::Slice(rest.get(1..end).unwrap_or_default().to_owned()), end + 1)),
        None => Err(FilterError::new(at..at + 1, "the bracket is not closed; add ']'")),
    }
}

/// A text in quotes, or a character.
fn quoted_token(rest: &str, quote: char, at: usize) -> Result<(Token, usize), FilterError> {
    let (bytes, length) = string(rest, quote, at)?;
    let token = match bytes[..] {
        [byte] if quote == '\'' => Token::Character(byte),
        _ => Token::Quoted(bytes),
    };
    Ok((token, length))
}

/// `r"..."`, in which a backslash is one.
fn raw_string(rest: &str, at: usize) -> Result<(Token, usize), FilterError> {
    let text = rest.get(2..).unwrap_or_default();
    match text.find('"') {
        Some(end) => {
            let bytes = text.get(..end).unwrap_or_default().as_bytes().to_vec();
            Ok((Token::Quoted(bytes), end + 3))
        }
        None => Err(not_closed(at)),
    }
}

fn not_closed(at: usize) -> FilterError {
    FilterError::new(at..at + 1, "the text is not closed; add a quotation mark")
}

/// A text in quotes: `\"`, `\\`, `\n`, `\r`, `\t`, `\0` and `\xHH`.
fn string(rest: &str, quote: char, at: usize) -> Result<(Vec<u8>, usize), FilterError> {
    let mut bytes = Vec::new();
    let mut each = rest.char_indices().skip(1);
    while let Some((place, c)) = each.next() {
        if c == quote {
            return Ok((bytes, place + c.len_utf8()));
        }
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escaped = each.next().map(|(_, c)| c);
        let byte = match escaped {
            Some('n') => Some(b'\n'),
            Some('r') => Some(b'\r'),
            Some('t') => Some(b'\t'),
            Some('0') => Some(0),
            Some('x') => {
                let digits = [each.next(), each.next()];
                let digits = digits.map(|it| it.and_then(|(_, c)| c.to_digit(16)));
                match digits {
                    [Some(high), Some(low)] => u8::try_from(high << 4 | low).ok(),
                    _ => None,
                }
            }
            Some(c @ ('"' | '\'' | '\\')) => u8::try_from(c).ok(),
            _ => None,
        };
        let Some(byte) = byte else {
            let message = "no such escape; use \\\\, \\\", \\n, \\r, \\t, \\0 or \\xHH, or r\"...\" for a \
                           regular expression";
            return Err(FilterError::new(at + place..at + place + 1, message));
        };
        bytes.push(byte);
    }
    Err(not_closed(at))
}
