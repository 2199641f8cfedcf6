//! Lenient parsing of values as iperf3 writes them.
//!
//! iperf3 keeps every JSON number as a double and prints some integers as
//! `1e+06`, some counters as -1, and a division by zero as `null`. All of that
//! is read; a value of another type counts as missing. Nothing here builds a
//! tree: an array or an object in the place of a number is skipped while it is
//! read, so that a message never needs more memory than a few times its length.

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};
use std::{fmt, marker::PhantomData};

/// A JSON value where one number or flag is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `null`, a string, an array or an object.
    Other,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a sign, fraction or exponent.
    Unsigned(u64),
    /// A negative number without a fraction or exponent.
    Negative(i64),
    /// Any other number.
    Real(f64),
}

impl Scalar {
    /// As an integer: saturated if out of range, rounded if not an integer.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`as` saturates, which is what is wanted of a hostile 1e300"
    )]
    pub fn integer(self) -> Option<i64> {
        match self {
            Scalar::Other => None,
            Scalar::Bool(flag) => Some(i64::from(flag)),
            Scalar::Unsigned(number) => Some(i64::try_from(number).unwrap_or(i64::MAX)),
            Scalar::Negative(number) => Some(number),
            Scalar::Real(number) => Some(number.round() as i64),
        }
    }

    /// As a finite real number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles elsewhere too")]
    pub fn real(self) -> Option<f64> {
        match self {
            Scalar::Other | Scalar::Bool(_) => None,
            Scalar::Unsigned(number) => Some(number as f64),
            Scalar::Negative(number) => Some(number as f64),
            Scalar::Real(number) => Some(number).filter(|number| number.is_finite()),
        }
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(u64::try_from(number).map_or(Scalar::Negative(number), Scalar::Unsigned))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Unsigned(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Real(number))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar, A::Error> {
        skip_seq(seq).map(|()| Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
        skip_map(map).map(|()| Scalar::Other)
    }
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// An integer that may be missing.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Scalar::deserialize(deserializer)?.integer())
}

/// An integer; zero if it is not a number.
pub(crate) fn int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(maybe(deserializer)?.unwrap_or(0))
}

/// A finite real number; zero if it is not one.
pub(crate) fn real<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(maybe_real(deserializer)?.unwrap_or(0.0))
}

/// A finite real number that may be missing.
pub(crate) fn maybe_real<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Ok(Scalar::deserialize(deserializer)?.real())
}

/// A flag: `true`, or a number other than zero.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(int(deserializer)? != 0)
}

/// `true` or `false`; anything else counts as missing.
pub(crate) fn maybe_bool<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<bool>, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Bool(flag) => Some(flag),
        _ => None,
    })
}

/// A whole number from 0; anything else counts as missing.
pub(crate) fn maybe_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Unsigned(count) => Some(count),
        _ => None,
    })
}

/// A text that may be missing; anything else counts as missing.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    short_text::<{ usize::MAX }, D>(deserializer)
}

/// A text of which the first `MAX` characters are kept; anything else counts
/// as missing.
///
/// # Errors
/// The input is not JSON.
pub fn short_text<'de, const MAX: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(OnlyVisitor(ShortText { most: MAX }))
}

/// An object of known fields; anything else counts as missing.
pub(crate) fn object<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(OnlyVisitor(Object(PhantomData)))
}

/// Whether the value is an object.
pub(crate) fn is_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct AnyObject {}
    Ok(object::<AnyObject, D>(deserializer)?.is_some())
}

/// The one type of JSON value that is read; any other counts as missing.
trait Only<'de>: Sized {
    type Value;

    fn text(self, _: &str) -> Option<Self::Value> {
        None
    }

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Self::Value>, A::Error> {
        skip_map(map).map(|()| None)
    }
}

struct ShortText {
    most: usize,
}

impl Only<'_> for ShortText {
    type Value = String;

    fn text(self, text: &str) -> Option<String> {
        let end = text.char_indices().nth(self.most).map_or(text.len(), |(at, _)| at);
        Some(text[..end].to_owned())
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Only<'de> for Object<T> {
    type Value = T;

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

struct OnlyVisitor<O>(O);

impl<'de, O: Only<'de>> Visitor<'de> for OnlyVisitor<O> {
    type Value = Option<O::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.text(text))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        skip_seq(seq).map(|()| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.map(map)
    }
}

/// A list of which the first `MAX` elements are kept; the rest is skipped
/// while it is read.
///
/// # Errors
/// The input is not a list, or a kept element is not a `T`.
pub fn bounded<'de, T: Deserialize<'de>, const MAX: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(BoundedVisitor { most: MAX, element: PhantomData })
}

struct BoundedVisitor<T> {
    most: usize,
    element: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for BoundedVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.most {
            match seq.next_element()? {
                Some(element) => kept.push(element),
                None => return Ok(kept),
            }
        }
        skip_seq(seq)?;
        Ok(kept)
    }
}
