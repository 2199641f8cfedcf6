//! Functions of filters: `len(tcp.payload) > 1000`.

use super::expression::Operand;
use crate::value::{FieldKind, Value};
use crate::view::PacketView;
use core::cmp::Ordering;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// Bytes of each value.
    Len,
    /// How many values there are.
    Count,
    /// A text in lower case.
    Lower,
    /// A text in upper case.
    Upper,
    /// Any value as a text.
    String,
    /// The largest of all values.
    Max,
    /// The smallest.
    Min,
    /// Without the sign.
    Abs,
}

/// Functions by name.
const FUNCTIONS: [(&str, Function); 8] = [
    ("len", Function::Len),
    ("count", Function::Count),
    ("lower", Function::Lower),
    ("upper", Function::Upper),
    ("string", Function::String),
    ("max", Function::Max),
    ("min", Function::Min),
    ("abs", Function::Abs),
];

impl Function {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(its, _)| *its == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, its)| *its == self).map_or("", |(name, _)| name)
    }

    /// Most arguments.
    pub(super) fn most_arguments(self) -> usize {
        const MAX: usize = 16;
        if matches!(self, Function::Max | Function::Min) { MAX } else { 1 }
    }

    /// What it makes of arguments of that kind; `None` if they are not for it.
    pub(super) fn kind(self, of: FieldKind) -> Option<FieldKind> {
        let is_number = matches!(
            of,
            FieldKind::Decimal(_)
                | FieldKind::Hex(_)
                | FieldKind::Signed
                | FieldKind::Time
                | FieldKind::Boolean
        );
        match self {
            Function::Count => Some(FieldKind::Decimal(32)),
            Function::Len => matches!(
                of,
                FieldKind::Text
                    | FieldKind::Bytes
                    | FieldKind::Ethernet
                    | FieldKind::Ipv4
                    | FieldKind::Ipv6
            )
            .then_some(FieldKind::Decimal(32)),
            Function::Lower | Function::Upper => (of == FieldKind::Text).then_some(FieldKind::Text),
            Function::String => {
                (!matches!(of, FieldKind::Presence | FieldKind::Bytes)).then_some(FieldKind::Text)
            }
            Function::Max | Function::Min | Function::Abs => is_number.then_some(of),
        }
    }

    /// Hands what it makes of the arguments' values to `emit`.
    pub(super) fn apply(
        self,
        arguments: &[Operand],
        view: &PacketView<'_>,
        emit: &mut dyn FnMut(Value<'_>),
    ) {
        let mut count = 0;
        let mut extreme: Option<i64> = None;
        let mut is_time = false;
        for argument in arguments {
            let kind = argument.kind();
            argument.each(view, &mut |value| match self {
                Function::Count => count += 1,
                Function::Max | Function::Min => {
                    let Some(number) = number(value) else { return };
                    is_time = matches!(value, Value::Time(_));
                    let order =
                        if self == Function::Max { Ordering::Greater } else { Ordering::Less };
                    if extreme.is_none_or(|its| number.cmp(&its) == order) {
                        extreme = Some(number);
                    }
                }
                _ => self.of_each(value, kind, emit),
            });
        }
        if count > 0 {
            emit(Value::Integer(count));
        }
        if let Some(number) = extreme {
            emit(if is_time { Value::Time(number) } else { Value::Integer(number) });
        }
    }

    /// Of those that make a value of each.
    fn of_each(self, value: Value<'_>, kind: FieldKind, emit: &mut dyn FnMut(Value<'_>)) {
        match (self, value) {
            (Function::Len, value) => {
                let length = match value {
                    Value::Bytes(bytes) => bytes.len(),
                    Value::Text(text) => text.len(),
                    Value::Ethernet(address) => address.len(),
                    Value::Ipv4(_) => 4,
                    Value::Ipv6(_) => 16,
                    Value::Present | Value::Integer(_) | Value::Time(_) => return,
                };
                emit(Value::Integer(length as i64));
            }
            (Function::Lower, Value::Text(text)) => emit(Value::Text(&text.to_ascii_lowercase())),
            (Function::Upper, Value::Text(text)) => emit(Value::Text(&text.to_ascii_uppercase())),
            (Function::String, value) => {
                let mut text = String::new();
                // Formatting into a string cannot fail.
                let _ = value.write(kind, &mut text);
                emit(Value::Text(&text));
            }
            (Function::Abs, Value::Integer(number)) => {
                emit(Value::Integer(number.saturating_abs()));
            }
            (Function::Abs, Value::Time(ns)) => emit(Value::Time(ns.saturating_abs())),
            _ => {}
        }
    }
}

fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(number) | Value::Time(number) => Some(number),
        _ => None,
    }
}
