//! Values that people write with or without quotes.

use super::source::At;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;

/// A string, a number or a truth value, as text: `tcp_sack = 1` and
/// `tcp_sack = "1"` say the same, and `start = 5` is told that it wants a unit
/// by who knows units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar(pub(super) String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(Tree)? {
            Branch::Leaf(text) => Ok(Scalar(text)),
            Branch::Fork(_) => Err(de::Error::custom("expected a string or a number, not a table")),
        }
    }
}

/// Settings in the order of writing. `"net.ipv4.tcp_sack" = 1` is one name;
/// without the quotes TOML makes it tables within tables, and the same is meant.
#[derive(Debug, Clone, Default)]
pub(super) struct Sysctls(pub(super) Vec<(At<String>, String)>);

impl<'de> Deserialize<'de> for Sysctls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(Tree)? {
            Branch::Leaf(_) => {
                Err(de::Error::custom("expected settings, such as { \"net.ipv4.tcp_sack\" = 1 }"))
            }
            Branch::Fork(mut settings) => {
                settings.sort_by_key(|(key, _)| key.offset());
                Ok(Sysctls(settings))
            }
        }
    }
}

/// Settings below one name, or the value of one.
enum Branch {
    Leaf(String),
    Fork(Vec<(At<String>, String)>),
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Branch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Branch, E> {
        Ok(Branch::Leaf(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Branch, E> {
        Ok(Branch::Leaf(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Branch, E> {
        Ok(Branch::Leaf(number.to_string()))
    }

    fn visit_bool<E>(self, on: bool) -> Result<Branch, E> {
        Ok(Branch::Leaf(u8::from(on).to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Branch, A::Error> {
        let mut settings = Vec::new();
        while let Some((key, below)) = map.next_entry::<At<String>, Branch>()? {
            match below {
                Branch::Leaf(value) => settings.push((key, value)),
                Branch::Fork(below) => settings.extend(below.into_iter().map(|(rest, value)| {
                    let name = format!("{}.{}", key.value, rest.value);
                    (rest.map(|_| name), value)
                })),
            }
        }
        Ok(Branch::Fork(settings))
    }
}
