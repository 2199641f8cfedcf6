//! What a filter says, as a tree whose depth is bounded; its text is a filter again.

use super::literal::Literal;
use crate::field::{Field, protocols};
use capture::dissect::Protocol;
use core::fmt;

/// A filter's logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Any of them.
    Or(Vec<Expression>),
    /// All of them.
    And(Vec<Expression>),
    /// The opposite.
    Not(Box<Expression>),
    /// A test of a field.
    Test(Test),
}

/// How values are compared. Of several values one decides, unless the name says *all*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    /// All differ.
    NotEqual,
    AllEqual,
    AnyNotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Contains,
}

impl Relation {
    /// The operator.
    #[must_use]
    pub(crate) fn spelling(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::NotEqual => "!=",
            Relation::AllEqual => "===",
            Relation::AnyNotEqual => "!==",
            Relation::Greater => ">",
            Relation::Less => "<",
            Relation::GreaterOrEqual => ">=",
            Relation::LessOrEqual => "<=",
            Relation::Contains => "contains",
        }
    }
}

/// Bytes of a value: from, and how many; to the end where that is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(super) from: usize,
    pub(super) length: Option<usize>,
}

/// What has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A field.
    Field(Field),
    /// A protocol: the bytes from its header on.
    Protocol(Protocol),
}

/// A source, and which part of its values counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(super) source: Source,
    pub(super) slice: Option<Slice>,
    pub(super) mask: Option<i64>,
}

/// What is asked of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It is there, or has a bit set under its mask.
    Exists,
    /// It compares so with a constant. `all` says that every value has to.
    Compare {
        /// How.
        relation: Relation,
        /// Whether the quantifier `all` was written.
        all: bool,
        /// With what.
        literal: Literal,
    },
    /// It compares so with another field.
    CompareWith {
        /// How.
        relation: Relation,
        /// As above.
        all: bool,
        /// With what.
        other: Operand,
    },
    /// It is in one of these ranges.
    In(Vec<(Literal, Literal)>),
}

/// A test of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub(super) operand: Operand,
    pub(super) condition: Condition,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Expression], between: &str| {
            for (place, part) in parts.iter().enumerate() {
                if place > 0 {
                    write!(f, " {between} ")?;
                }
                match part {
                    Expression::Or(_) | Expression::And(_) => write!(f, "({part})")?,
                    _ => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Expression::Or(parts) => list(f, parts, "||"),
            Expression::And(parts) => list(f, parts, "&&"),
            Expression::Not(inner) => match **inner {
                Expression::Or(_) | Expression::And(_) => write!(f, "!({inner})"),
                _ => write!(f, "!{inner}"),
            },
            Expression::Test(test) => write!(f, "{test}"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Field(field) => f.write_str(field.description().name)?,
            Source::Protocol(protocol) => {
                let name = protocols().find(|(_, its)| *its == protocol).map(|(name, _)| name);
                f.write_str(name.unwrap_or_default())?;
            }
        }
        match self.slice {
            Some(Slice { from, length: Some(length) }) => write!(f, "[{from}:{length}]")?,
            Some(Slice { from, length: None }) => write!(f, "[{from}:]")?,
            None => {}
        }
        match self.mask {
            Some(mask) => write!(f, " & 0x{mask:x}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |all: &bool| if *all { "all " } else { "" };
        let Test { operand, condition } = self;
        match condition {
            Condition::Exists => write!(f, "{operand}"),
            Condition::Compare { relation, all: every, literal } => {
                write!(f, "{}{operand} {} {literal}", all(every), relation.spelling())
            }
            Condition::CompareWith { relation, all: every, other } => {
                write!(f, "{}{operand} {} {other}", all(every), relation.spelling())
            }
            Condition::In(ranges) => {
                write!(f, "{operand} in {{")?;
                for (place, (low, high)) in ranges.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    if low == high {
                        write!(f, "{comma}{low}")?;
                    } else {
                        write!(f, "{comma}{low} .. {high}")?;
                    }
                }
                f.write_str("}")
            }
        }
    }
}
