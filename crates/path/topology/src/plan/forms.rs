//! `[one]`, `[some.named]` and `[[lists]]` of tables: whoever writes one for the
//! other is told so in TOML's terms, not in a parser's.

use crate::toml_text::Spanned;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// `[shape]`.
pub(super) fn one<'de, D, T>(deserializer: D) -> Result<Option<Spanned<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Spanned::<Table<T>>::deserialize(deserializer).map(|at| Some(content(at)))
}

/// `[host.alice]`, `[host.bob]`.
pub(super) fn named<'de, D, T>(deserializer: D) -> Result<BTreeMap<Spanned<String>, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let tables = Table::<BTreeMap<Spanned<String>, Table<T>>>::deserialize(deserializer)?;
    Ok(tables.0.into_iter().map(|(name, table)| (name, table.0)).collect())
}

/// `[[link]]` and the next.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<Spanned<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// A table, and never an array of its values in the order of our fields, which
/// serde would take as well.
struct Table<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TableVisitor(PhantomData)).map(Table)
    }
}

fn content<T>(table: Spanned<Table<T>>) -> Spanned<T> {
    Spanned::new(table.span(), table.into_inner().0)
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with a heading in single brackets, such as [host.alice] or [shape]")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<Spanned<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list; each has its heading in double brackets, such as [[link]] or [[run]]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Spanned<T>>, A::Error> {
        let mut list = Vec::new();
        while let Some(at) = seq.next_element::<Spanned<Table<T>>>()? {
            list.push(content(at));
        }
        Ok(list)
    }
}
