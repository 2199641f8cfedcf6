//! A filter as a flat list of tests with jumps.

use super::expression::{Condition, Expression, Operand, Relation, Slice, Source, Test};
use super::literal::Literal;
use crate::value::Value;
use crate::view::PacketView;
use core::cmp::Ordering;
use std::borrow::Cow;

/// A step; what it decides is the verdict until the next one decides.
#[derive(Debug, Clone)]
enum Step {
    Test(Test),
    Not,
    /// Keeps the verdict until [`Step::Xor`].
    Keep,
    /// Whether the verdict differs from the one kept last.
    Xor,
    /// Continues at a later step if the verdict is that.
    Skip {
        when: bool,
        to: usize,
    },
}

/// The steps of a filter.
#[derive(Debug, Clone)]
pub(super) struct Program {
    steps: Vec<Step>,
}

impl Program {
    /// Compiles an expression, whose depth the parser bounds.
    pub(super) fn of(expression: &Expression) -> Self {
        let mut program = Program { steps: Vec::new() };
        program.add(expression);
        program
    }

    fn add(&mut self, expression: &Expression) {
        let (parts, when) = match expression {
            Expression::Test(test) => return self.steps.push(Step::Test(test.clone())),
            Expression::Not(inner) => {
                self.add(inner);
                return self.steps.push(Step::Not);
            }
            Expression::Xor(parts) => {
                for (place, part) in parts.iter().enumerate() {
                    if place > 0 {
                        self.steps.push(Step::Keep);
                    }
                    self.add(part);
                    if place > 0 {
                        self.steps.push(Step::Xor);
                    }
                }
                return;
            }
            Expression::Or(parts) => (parts, true),
            Expression::And(parts) => (parts, false),
        };
        let mut skips = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                skips.push(self.steps.len());
                self.steps.push(Step::Skip { when, to: 0 });
            }
            self.add(part);
        }
        let end = self.steps.len();
        for place in skips {
            if let Some(Step::Skip { to, .. }) = self.steps.get_mut(place) {
                *to = end;
            }
        }
    }

    #[inline]
    pub(super) fn matches(&self, view: &PacketView<'_>) -> bool {
        let (mut verdict, mut at) = (true, 0);
        // At most one for each level of nesting, of which there are fewer than bits.
        let mut kept = 0_u128;
        // Jumps go forward only.
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match step {
                Step::Test(test) => verdict = test.holds(view),
                Step::Not => verdict = !verdict,
                Step::Keep => kept = kept << 1 | u128::from(verdict),
                Step::Xor => {
                    verdict ^= kept & 1 == 1;
                    kept >>= 1;
                }
                Step::Skip { when, to } if *when == verdict => at = *to,
                Step::Skip { .. } => {}
            }
        }
        verdict
    }
}

/// Parts of bytes, one behind the other; `None` where one of them is not there.
fn sliced<'a>(slices: &[Slice], bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let part = |slice: &Slice| {
        let from = match usize::try_from(slice.from) {
            Ok(from) => from,
            Err(_) => bytes.len().checked_sub(slice.from.unsigned_abs() as usize)?,
        };
        let rest = bytes.get(from..)?;
        match slice.length {
            Some(length) => rest.get(..length),
            None => Some(rest),
        }
    };
    match slices {
        [slice] => part(slice).map(Cow::Borrowed),
        slices => {
            let mut all = Vec::new();
            for slice in slices {
                all.extend_from_slice(part(slice)?);
            }
            Some(Cow::Owned(all))
        }
    }
}

/// The bits of a value that the mask leaves; bytes count as one number.
fn masked(value: Value<'_>, mask: i64) -> Option<Value<'_>> {
    let number = match value {
        Value::Integer(number) => number,
        Value::Bytes(bytes) => {
            bytes.iter().take(4).fold(0, |number, byte| number << 8 | i64::from(*byte))
        }
        _ => return None,
    };
    Some(Value::Integer(number & mask))
}

impl Operand {
    /// Hands each of its values in a packet to `emit`.
    pub(super) fn each(&self, view: &PacketView<'_>, emit: &mut dyn FnMut(Value<'_>)) {
        if self.slices.is_empty() && self.mask.is_none() {
            return self.each_whole(view, emit);
        }
        let mut put = |value: Option<Value<'_>>| {
            let value = match self.mask {
                Some(mask) => value.and_then(|value| masked(value, mask)),
                None => value,
            };
            if let Some(value) = value {
                emit(value);
            }
        };
        self.each_whole(view, &mut |value| {
            if self.slices.is_empty() {
                return put(Some(value));
            }
            let mut part = |bytes: &[u8]| {
                put(sliced(&self.slices, bytes).as_deref().map(Value::Bytes));
            };
            match value {
                Value::Bytes(bytes) => part(bytes),
                Value::Text(text) => part(text.as_bytes()),
                Value::Ethernet(address) => part(&address),
                Value::Ipv4(address) => part(&address.to_be_bytes()),
                Value::Ipv6(address) => part(&address.to_be_bytes()),
                Value::Present | Value::Integer(_) | Value::Time(_) => {}
            }
        });
    }

    /// The same without slice and mask.
    fn each_whole(&self, view: &PacketView<'_>, emit: &mut dyn FnMut(Value<'_>)) {
        match (&self.source, self.layer) {
            (Source::Field(field), None) => view.each_value(*field, emit),
            (Source::Field(field), Some(layer)) => view.each_value_of(*field, layer, emit),
            (Source::Protocol(protocol), _) => {
                view.each_header(*protocol, |bytes| emit(Value::Bytes(bytes)));
            }
            (Source::Call(function, arguments), _) => function.apply(arguments, view, emit),
        }
    }
}

impl Relation {
    #[inline]
    fn holds(self, order: Ordering) -> bool {
        match self {
            Relation::Equal | Relation::AllEqual => order.is_eq(),
            Relation::NotEqual | Relation::AnyNotEqual => order.is_ne(),
            Relation::Greater => order.is_gt(),
            Relation::Less => order.is_lt(),
            Relation::GreaterOrEqual => order.is_ge(),
            Relation::LessOrEqual => order.is_le(),
            Relation::Contains | Relation::Matches => false,
        }
    }

    /// Whether every value has to compare so.
    fn is_for_all(self) -> bool {
        matches!(self, Relation::AllEqual | Relation::NotEqual)
    }
}

/// What comparisons of several values say: any of them, or all and at least one.
#[derive(Default)]
struct Verdicts {
    any: bool,
    other: bool,
}

impl Verdicts {
    #[inline]
    fn add(&mut self, holds: bool) {
        self.any |= holds;
        self.other |= !holds;
    }

    fn decide(&self, for_all: bool) -> bool {
        self.any && !(for_all && self.other)
    }
}

impl Test {
    #[inline]
    fn holds(&self, view: &PacketView<'_>) -> bool {
        let mut verdicts = Verdicts::default();
        match &self.condition {
            Condition::Exists => {
                let has_bits = self.operand.mask.is_some();
                self.operand.each(view, &mut |value| {
                    verdicts.add(!has_bits || value != Value::Integer(0));
                });
                verdicts.any
            }
            Condition::Compare { relation, all, literal } => {
                self.operand.each(view, &mut |value| {
                    verdicts.add(match relation {
                        Relation::Contains => literal.is_in(&value),
                        relation => literal.order(&value).is_some_and(|it| relation.holds(it)),
                    });
                });
                verdicts.decide(*all || relation.is_for_all())
            }
            Condition::CompareWith { relation, all, other } => {
                self.operand.each(view, &mut |value| {
                    other.each(view, &mut |its| {
                        verdicts.add(order(&value, &its).is_some_and(|it| relation.holds(it)));
                    });
                });
                verdicts.decide(*all || relation.is_for_all())
            }
            Condition::Matches { all, pattern } => {
                self.operand.each(view, &mut |value| {
                    verdicts.add(match value {
                        Value::Bytes(bytes) => pattern.is_match(bytes),
                        Value::Text(text) => pattern.is_match(text.as_bytes()),
                        _ => false,
                    });
                });
                verdicts.decide(*all)
            }
            Condition::In(ranges) => {
                self.operand.each(view, &mut |value| {
                    verdicts.add(ranges.iter().any(|range| is_within(&value, range)));
                });
                verdicts.any
            }
        }
    }
}

fn is_within(value: &Value<'_>, (low, high): &(Literal, Literal)) -> bool {
    low.order(value).is_some_and(Ordering::is_ge) && high.order(value).is_some_and(Ordering::is_le)
}

/// The order of two values of one kind.
fn order(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Integer(a), Value::Integer(b)) | (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Ethernet(a), Value::Ethernet(b)) => a.cmp(b),
        (Value::Ipv4(a), Value::Ipv4(b)) => a.cmp(b),
        (Value::Ipv6(a), Value::Ipv6(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        _ => return None,
    })
}
