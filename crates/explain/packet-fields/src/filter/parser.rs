//! From tokens to an expression. `!` binds closest, then `&&`, then `^^`, then `||`.

use super::error::FilterError;
use super::expression::{Condition, Expression, Operand, Relation, Source, Test};
use super::function::Function;
use super::lexer::{Token, tokens};
use super::literal::{Literal, integer};
use super::pattern::Pattern;
use super::slice::slices;
use super::unknown::unknown;
use super::{MAX_DEPTH, MAX_ELEMENTS, MAX_LENGTH};
use crate::field::{Field, protocol_from_name};
use crate::names;
use crate::value::FieldKind;
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
    pub(super) fn kind(&self) -> FieldKind {
        let length: Option<usize> = self.slices.iter().map(|slice| slice.length).sum();
        match (&self.source, self.slices.is_empty(), self.mask) {
            (_, false, Some(_)) => FieldKind::Hex(8 * length.unwrap_or(4).min(4) as u8),
            (_, false, None) | (Source::Protocol(_), ..) => FieldKind::Bytes,
            (Source::Field(field), true, _) => field.description().kind,
            (Source::Call(function, arguments), true, _) => {
                let of = arguments.first().map_or(FieldKind::Presence, Operand::kind);
                function.kind(of).unwrap_or(of)
            }
        }
    }

    /// The names of its values.
    fn names(&self) -> &'static [(i64, &'static str)] {
        match self.source {
            Source::Field(field) if self.slices.is_empty() && self.mask.is_none() => {
                names::of(field)
            }
            _ => &[],
        }
    }

    fn name(&self) -> String {
        Operand { mask: None, ..self.clone() }.to_string()
    }

    /// Whether it is a protocol as a whole.
    fn is_protocol(&self) -> bool {
        matches!(self.source, Source::Protocol(_)) && self.slices.is_empty()
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
        self.list(&Token::Or, Self::xor, Expression::Or)
    }

    fn xor(&mut self) -> Result<Expression, FilterError> {
        self.list(&Token::Xor, Self::and, Expression::Xor)
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
        let searches = matches!(
            condition,
            Condition::Exists
                | Condition::Matches { .. }
                | Condition::Compare { relation: Relation::Contains, .. }
        );
        if operand.is_protocol() && !searches {
            let message =
                "a protocol can be tested for, searched with 'contains' and 'matches', or sliced";
            return Err(FilterError::new(start, message));
        }
        if matches!(operand.source, Source::Call(..)) && condition == Condition::Exists {
            let message = format!("{} is compared with a value", operand.name());
            return Err(FilterError::new(start, message));
        }
        let test = Expression::Test(Test { operand, condition });
        Ok(if negated { Expression::Not(Box::new(test)) } else { test })
    }

    /// A field, protocol or function, with its slice and its mask.
    fn operand(&mut self) -> Result<Operand, FilterError> {
        let at = self.range();
        let name = match self.peek() {
            Some(Token::Word(name)) => name,
            None => return Err(self.error("the filter ends where a field is expected")),
            Some(_) => return Err(self.error("a field or protocol is expected here")),
        };
        let is_call = self.tokens.get(self.at + 1).is_some_and(|(it, _)| *it == Token::Open);
        let source = match Function::from_name(name).filter(|_| is_call) {
            Some(function) => self.call(function)?,
            None => {
                let found = source(name);
                self.at += 1;
                found.ok_or_else(|| FilterError::new(at.clone(), unknown(name)))?
            }
        };
        let mut operand = Operand { source, layer: None, slices: Vec::new(), mask: None };
        if self.peek() == Some(&Token::Layer) {
            operand.layer = Some(self.layer(&operand)?);
        }
        if let Some(Token::Slice(text)) = self.peek() {
            let kind = operand.kind();
            let has_bytes = matches!(
                kind,
                FieldKind::Bytes
                    | FieldKind::Text
                    | FieldKind::Ethernet
                    | FieldKind::Ipv4
                    | FieldKind::Ipv6
            );
            if !has_bytes {
                return Err(self.error(format!("{name} cannot be sliced: only bytes can")));
            }
            operand.slices = slices(text).ok_or_else(|| {
                self.error("a slice is [offset:length], [from-to] or [offset], or several of them")
            })?;
            self.at += 1;
        }
        if self.takes(&Token::BitAnd) {
            operand.mask = Some(self.mask(&operand, at)?);
        }
        Ok(operand)
    }

    fn mask(&mut self, operand: &Operand, at: Range<usize>) -> Result<i64, FilterError> {
        let has_bits = match &operand.slices[..] {
            [] => operand.kind().is_integer(),
            slices => {
                let length: Option<usize> = slices.iter().map(|slice| slice.length).sum();
                length.is_some_and(|length| length <= 4)
            }
        };
        if !has_bits {
            let message = format!("'&' needs a number, and {} is none", operand.name());
            return Err(FilterError::new(at, message));
        }
        let mask = match self.peek() {
            Some(Token::Word(text)) => integer(text).filter(|mask| *mask >= 0),
            _ => None,
        };
        let mask =
            mask.ok_or_else(|| self.error("a number is expected after '&', such as 0x12"))?;
        self.at += 1;
        Ok(mask)
    }

    /// `#1`: which of several headers.
    fn layer(&mut self, operand: &Operand) -> Result<i8, FilterError> {
        let is_field = matches!(operand.source, Source::Field(_));
        if !is_field {
            return Err(self.error("'#' follows a field"));
        }
        self.at += 1;
        let number = match self.peek() {
            Some(Token::Word(text)) => text.parse().ok().filter(|number: &i8| *number != 0),
            _ => None,
        };
        let number = number.ok_or_else(|| {
            self.error("which header is expected after '#': 1 for the first, -1 for the last")
        })?;
        self.at += 1;
        Ok(number)
    }

    /// A function with its arguments.
    fn call(&mut self, function: Function) -> Result<Source, FilterError> {
        let name = function.name();
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels are nested")));
        }
        self.depth += 1;
        // The name and the parenthesis.
        self.at += 2;
        let (mut arguments, mut kind) = (Vec::new(), None);
        loop {
            let at = self.range();
            let argument = self.operand()?;
            let its = argument.kind();
            let is_whole_protocol = argument.is_protocol() && function != Function::Len;
            let makes = function.kind(its).filter(|_| !is_whole_protocol);
            if makes.is_none() || kind.is_some_and(|kind| of_kind(kind) != of_kind(its)) {
                let message = format!("{name}() is not for {}", argument.name());
                return Err(FilterError::new(at, message));
            }
            kind = Some(its);
            arguments.push(argument);
            if self.takes(&Token::Close) {
                break;
            }
            if arguments.len() >= function.most_arguments() || !self.takes(&Token::Comma) {
                return Err(self.error(format!("{name}() is not closed; add ')'")));
            }
        }
        self.depth -= 1;
        Ok(Source::Call(function, arguments))
    }

    fn comparison(
        &mut self,
        operand: &Operand,
        relation: Relation,
        all: bool,
    ) -> Result<Condition, FilterError> {
        let (at, kind) = (self.range(), operand.kind());
        if relation == Relation::Matches {
            return self.matching(operand, all);
        }
        if relation == Relation::Contains && !matches!(kind, FieldKind::Bytes | FieldKind::Text) {
            let message = format!("{} has no parts to search; compare it", operand.name());
            return Err(FilterError::new(at, message));
        }
        // A text is one even where it is the name of something.
        let is_operand = match self.peek() {
            Some(Token::Word(name))
                if names::value_of(name.as_bytes(), operand.names()).is_none() =>
            {
                let next = self.tokens.get(self.at + 1).map(|(token, _)| token);
                let is_call = Function::from_name(name).is_some() && next == Some(&Token::Open);
                is_call || (kind != FieldKind::Text && source(name).is_some())
            }
            _ => false,
        };
        if is_operand {
            let other = self.operand()?;
            let is_same = of_kind(kind) == of_kind(other.kind());
            if kind == FieldKind::Presence || !is_same || relation == Relation::Contains {
                let message = format!("{} and {} cannot be compared", operand.name(), other.name());
                return Err(FilterError::new(at, message));
            }
            return Ok(Condition::CompareWith { relation, all, other });
        }
        let literal = self.literal(operand)?;
        Ok(Condition::Compare { relation, all, literal })
    }

    fn matching(&mut self, operand: &Operand, all: bool) -> Result<Condition, FilterError> {
        let at = self.range();
        if !matches!(operand.kind(), FieldKind::Bytes | FieldKind::Text) {
            let name = operand.name();
            let message = format!("{name} is no text; compare it, or write string({name})");
            return Err(FilterError::new(at, message));
        }
        let text = match self.next() {
            Some(Token::Quoted(bytes)) => core::str::from_utf8(bytes).ok().map(str::to_owned),
            Some(Token::Character(byte)) => Some(char::from(*byte).to_string()),
            Some(Token::Word(text)) => Some(text.clone()),
            _ => None,
        };
        let Some(text) = text else {
            return Err(FilterError::new(at, "a regular expression in quotes is expected here"));
        };
        Ok(Condition::Matches { all, pattern: Pattern::new(&text, at)? })
    }

    fn literal(&mut self, operand: &Operand) -> Result<Literal, FilterError> {
        let at = self.range();
        let Some(token) = self.next() else {
            return Err(FilterError::new(at, "the filter ends where a value is expected"));
        };
        Literal::of(token, operand.kind(), (&operand.name(), operand.names()), at)
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
fn of_kind(kind: FieldKind) -> FieldKind {
    match kind {
        FieldKind::Decimal(_) | FieldKind::Hex(_) | FieldKind::Signed | FieldKind::Boolean => {
            FieldKind::Signed
        }
        FieldKind::Date => FieldKind::Time,
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
