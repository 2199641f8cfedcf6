//! What a filter says, as a tree whose depth is bounded; its text is a filter again.

use super::function::Function;
use super::literal::Literal;
use super::pattern::Pattern;
use crate::field::{Field, Tested, protocols};
use core::fmt;

/// A filter's logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// An odd number of them.
    Xor(Vec<Expression>),
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
    /// By a regular expression.
    Matches,
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
            Relation::Matches => "matches",
        }
    }
}

/// Bytes of a value: from, counted from the end where that is negative, and how many; to the end
/// where that is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(super) from: i32,
    pub(super) length: Option<usize>,
}

/// What has values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A field.
    Field(Field),
    /// A protocol: the bytes from its header on.
    Protocol(Tested),
    /// What a function makes of others.
    Call(Function, Vec<Operand>),
}

/// A source, and which part of its values counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(super) source: Source,
    /// Which of its protocol's headers, from 1; from the last one on where it is negative.
    pub(super) layer: Option<i8>,
    /// Parts of the bytes, one behind the other; all of them where it is empty.
    pub(super) slices: Vec<Slice>,
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
    /// A regular expression finds something in it.
    Matches {
        /// As above.
        all: bool,
        /// What is looked for.
        pattern: Pattern,
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
                    Expression::Xor(_) | Expression::Or(_) | Expression::And(_) => {
                        write!(f, "({part})")?;
                    }
                    _ => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Expression::Xor(parts) => list(f, parts, "^^"),
            Expression::Or(parts) => list(f, parts, "||"),
            Expression::And(parts) => list(f, parts, "&&"),
            Expression::Not(inner) => match **inner {
                Expression::Xor(_) | Expression::Or(_) | Expression::And(_) => {
                    write!(f, "!({inner})")
                }
                _ => write!(f, "!{inner}"),
            },
            Expression::Test(test) => write!(f, "{test}"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Field(field) => f.write_str(field.description().name)?,
            Source::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (place, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(")")?;
            }
            Source::Protocol(protocol) => {
                let name = protocols().find(|(_, its)| its == protocol).map(|(name, _)| name);
                f.write_str(name.unwrap_or_default())?;
            }
        }
        if let Some(layer) = self.layer {
            write!(f, "#{layer}")?;
        }
        for (place, Slice { from, length }) in self.slices.iter().enumerate() {
            write!(f, "{}{from}:", if place > 0 { "," } else { "[" })?;
            length.map_or(Ok(()), |length| write!(f, "{length}"))?;
        }
        if !self.slices.is_empty() {
            f.write_str("]")?;
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
            Condition::Matches { all: every, pattern } => {
                write!(f, "{}{operand} matches {pattern}", all(every))
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
