//! From tokens to an expression. `!` binds closest, then `&&`, then `||`.

use super::error::{FilterError, quoted};
use super::expression::{Condition, Expression, Operand, Relation, Slice, Source, Test};
use super::lexer::{Token, tokens};
use super::literal::{Literal, integer};
use super::{MAX_DEPTH, MAX_ELEMENTS, MAX_LENGTH};
use crate::field::{Field, nearest, protocol_from_name};
use crate::value::Kind;
use core::ops::Range;

/// Parses the text of a filter.
pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > MAX_LENGTH {
        let message = format!("a filter has at most {MAX_LENGTH} bytes");
        return Err(FilterError::new(0..1, message));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, end: text.trim_end().len() };
    let expression = parser.or()?;
    match parser.peek() {
        None => Ok(expression),
        Some(Token::Close) => Err(parser.error("no parenthesis is open here; omit ')'")),
        Some(Token::Relation(_)) => {
            Err(parser.error("comparisons cannot be chained; combine two of them with '&&'"))
        }
        Some(_) => Err(parser.error("'&&' or '||' is missing here")),
    }
}

struct Parser<'a> {
    tokens: &'a [(Token, Range<usize>)],
    at: usize,
    depth: usize,
    /// Where the text ends.
    end: usize,
}

impl Operand {
    /// What its values are, after the slice and the mask.
    fn kind(&self) -> Kind {
        match (self.source, self.slice, self.mask) {
            (_, Some(slice), Some(_)) => Kind::Hex(8 * slice.length.unwrap_or(4).min(4) as u8),
            (_, Some(_), None) | (Source::Protocol(_), ..) => Kind::Bytes,
            (Source::Field(field), None, _) => field.description().kind,
        }
    }

    fn name(&self) -> String {
        Operand { mask: None, ..*self }.to_string()
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes the token if it is the next one.
    fn takes(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Where the next token is.
    fn range(&self) -> Range<usize> {
        self.tokens.get(self.at).map_or(self.end..self.end, |(_, range)| range.clone())
    }

    fn error(&self, message: impl Into<String>) -> FilterError {
        FilterError::new(self.range(), message)
    }

    fn list(
        &mut self,
        separator: &Token,
        next: fn(&mut Self) -> Result<Expression, FilterError>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, FilterError> {
        let first = next(self)?;
        if self.peek() != Some(separator) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.takes(separator) {
            parts.push(next(self)?);
        }
        Ok(join(parts))
    }

    fn or(&mut self) -> Result<Expression, FilterError> {
        self.list(&Token::Or, Self::and, Expression::Or)
    }

    fn and(&mut self) -> Result<Expression, FilterError> {
        self.list(&Token::And, Self::unary, Expression::And)
    }

    fn unary(&mut self) -> Result<Expression, FilterError> {
        let (is_not, is_open) =
            (self.peek() == Some(&Token::Not), self.peek() == Some(&Token::Open));
        if !is_not && !is_open {
            return self.test();
        }
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels are nested")));
        }
        self.depth += 1;
        let opened = self.range();
        self.at += 1;
        let inner = if is_not { self.unary()? } else { self.or()? };
        if is_open && !self.takes(&Token::Close) {
            return Err(match self.peek() {
                None => FilterError::new(opened, "the parenthesis is not closed; add ')'"),
                Some(_) => self.error("'&&', '||' or ')' is missing here"),
            });
        }
        self.depth -= 1;
        Ok(if is_not { Expression::Not(Box::new(inner)) } else { inner })
    }

    fn test(&mut self) -> Result<Expression, FilterError> {
        let quantified = matches!(self.peek(), Some(Token::Any | Token::All));
        let all = self.peek() == Some(&Token::All);
        self.at += usize::from(quantified);
        let start = self.range();
        let operand = self.operand()?;
        let negated = self.peek() == Some(&Token::Not)
            && self.tokens.get(self.at + 1).is_some_and(|(token, _)| *token == Token::In);
        self.at += usize::from(negated);
        let condition = match self.peek() {
            Some(Token::In) => {
                self.at += 1;
                self.set(&operand)?
            }
            Some(Token::Relation(relation)) => {
                self.at += 1;
                self.comparison(&operand, quantified_relation(*relation, quantified, all), all)?
            }
            _ if quantified => {
                return Err(self.error("a comparison is expected after 'any' and 'all'"));
            }
            _ => Condition::Exists,
        };
        if matches!(operand.source, Source::Protocol(_))
            && operand.slice.is_none()
            && !matches!(
                condition,
                Condition::Exists | Condition::Compare { relation: Relation::Contains, .. }
            )
        {
            let message = "a protocol can be tested for, searched with 'contains', or sliced";
            return Err(FilterError::new(start, message));
        }
        let test = Expression::Test(Test { operand, condition });
        Ok(if negated { Expression::Not(Box::new(test)) } else { test })
    }

    /// A field or protocol, with its slice and its mask.
    fn operand(&mut self) -> Result<Operand, FilterError> {
        let at = self.range();
        let name = match self.peek() {
            Some(Token::Word(name)) => name,
            None => return Err(self.error("the filter ends where a field is expected")),
            Some(_) => return Err(self.error("a field or protocol is expected here")),
        };
        let Some(source) = source(name) else {
            return Err(FilterError::new(at, unknown(name)));
        };
        self.at += 1;
        let mut operand = Operand { source, slice: None, mask: None };
        if let Some(Token::Slice(text)) = self.peek() {
            if !matches!(operand.kind(), Kind::Bytes | Kind::Ethernet) {
                return Err(self.error(format!("{name} cannot be sliced: only bytes can")));
            }
            operand.slice = match slice(text) {
                Some(slice) => Some(slice),
                None => return Err(self.error("a slice is [offset:length], [from-to] or [offset]")),
            };
            self.at += 1;
        }
        if self.takes(&Token::BitAnd) {
            let mask = match self.peek() {
                Some(Token::Word(text)) => integer(text),
                _ => None,
            };
            let has_bits = match operand.slice {
                Some(slice) => slice.length.is_some_and(|length| length <= 4),
                None => operand.kind().is_integer(),
            };
            if !has_bits {
                return Err(FilterError::new(
                    at,
                    format!("'&' needs a number, and {name} is none"),
                ));
            }
            let Some(mask) = mask.filter(|mask| *mask >= 0) else {
                return Err(self.error("a number is expected after '&', such as 0x12"));
            };
            self.at += 1;
            operand.mask = Some(mask);
        }
        Ok(operand)
    }

    fn comparison(
        &mut self,
        operand: &Operand,
        relation: Relation,
        all: bool,
    ) -> Result<Condition, FilterError> {
        let (at, kind) = (self.range(), operand.kind());
        if relation == Relation::Contains && !matches!(kind, Kind::Bytes | Kind::Text) {
            let message = format!("{} has no parts to search; compare it", operand.name());
            return Err(FilterError::new(at, message));
        }
        if kind != Kind::Text
            && let Some(Token::Word(name)) = self.peek()
            && source(name).is_some()
        {
            let other = self.operand()?;
            let is_same = core::mem::discriminant(&of_kind(kind))
                == core::mem::discriminant(&of_kind(other.kind()));
            if kind == Kind::Presence || !is_same || relation == Relation::Contains {
                let message = format!("{} and {} cannot be compared", operand.name(), other.name());
                return Err(FilterError::new(at, message));
            }
            return Ok(Condition::CompareWith { relation, all, other });
        }
        let literal = self.literal(operand)?;
        Ok(Condition::Compare { relation, all, literal })
    }

    fn literal(&mut self, operand: &Operand) -> Result<Literal, FilterError> {
        let at = self.range();
        let Some(token) = self.next() else {
            return Err(FilterError::new(at, "the filter ends where a value is expected"));
        };
        Literal::of(token, operand.kind(), at, &operand.name())
    }

    fn set(&mut self, operand: &Operand) -> Result<Condition, FilterError> {
        let opened = self.range();
        if !self.takes(&Token::OpenSet) {
            return Err(self.error("a set is expected here, such as {80, 8000 .. 8080}"));
        }
        let mut ranges = Vec::new();
        while !self.takes(&Token::CloseSet) {
            if self.peek().is_none() {
                return Err(FilterError::new(opened, "the set is not closed; add '}'"));
            }
            if ranges.len() >= MAX_ELEMENTS {
                return Err(self.error(format!("a set has at most {MAX_ELEMENTS} elements")));
            }
            let at = self.range();
            let low = self.literal(operand)?;
            let high =
                if self.takes(&Token::DotDot) { self.literal(operand)? } else { low.clone() };
            if is_above(&low, &high) {
                return Err(FilterError::new(at, "the range ends before it begins"));
            }
            ranges.push((low, high));
            self.takes(&Token::Comma);
        }
        if ranges.is_empty() {
            return Err(FilterError::new(opened, "the set is empty"));
        }
        Ok(Condition::In(ranges))
    }
}

/// The relation with `any` or `all` before the test.
fn quantified_relation(relation: Relation, quantified: bool, all: bool) -> Relation {
    match relation {
        Relation::Equal | Relation::AllEqual if all => Relation::AllEqual,
        Relation::NotEqual | Relation::AnyNotEqual if all => Relation::NotEqual,
        Relation::Equal | Relation::AllEqual if quantified => Relation::Equal,
        Relation::NotEqual | Relation::AnyNotEqual if quantified => Relation::AnyNotEqual,
        other => other,
    }
}

/// Kinds whose values compare with each other, as one of them.
fn of_kind(kind: Kind) -> Kind {
    match kind {
        Kind::Decimal(_) | Kind::Hex(_) | Kind::Signed | Kind::Boolean => Kind::Signed,
        other => other,
    }
}

fn is_above(low: &Literal, high: &Literal) -> bool {
    match (low, high) {
        (Literal::Integer(a), Literal::Integer(b)) | (Literal::Time(a), Literal::Time(b)) => a > b,
        (Literal::Ipv4(a, _), Literal::Ipv4(b, _)) => a > b,
        (Literal::Ipv6(a, _), Literal::Ipv6(b, _)) => a > b,
        _ => false,
    }
}

fn source(name: &str) -> Option<Source> {
    let protocol = || protocol_from_name(name).map(Source::Protocol);
    Field::from_name(name).map(Source::Field).or_else(protocol)
}

fn unknown(name: &str) -> String {
    if integer(name).is_some() {
        return format!("{} is a number; a comparison begins with a field", quoted(name));
    }
    if name == "matches" {
        return "regular expressions are not supported; use 'contains'".to_owned();
    }
    let shown = quoted(name);
    match nearest(name) {
        Some(nearest) => format!("{shown} is no field or protocol; did you mean '{nearest}'?"),
        None => format!("{shown} is no field or protocol; 'pcap packets --fields' lists them"),
    }
}

/// `[offset:length]`, `[from-to]`, `[offset]`, `[:length]`, `[offset:]`.
fn slice(text: &str) -> Option<Slice> {
    let number = |text: &str| text.trim().parse::<u16>().ok().map(usize::from);
    if let Some((from, length)) = text.split_once(':') {
        let from = if from.trim().is_empty() { 0 } else { number(from)? };
        let length = if length.trim().is_empty() { None } else { Some(number(length)?) };
        return Some(Slice { from, length }).filter(|slice| slice.length != Some(0));
    }
    if let Some((from, to)) = text.split_once('-') {
        let (from, to) = (number(from)?, number(to)?);
        return Some(Slice { from, length: Some(to.checked_sub(from)? + 1) });
    }
    Some(Slice { from: number(text)?, length: Some(1) })
}
