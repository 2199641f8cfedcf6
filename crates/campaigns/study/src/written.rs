//! A plan as written: its tables, each value with its position.

use crate::program::WrittenProgram;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::Spanned;

/// The whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPlan {
    pub(crate) question: Spanned<String>,
    #[serde(default)]
    pub(crate) path: Option<Spanned<Entries>>,
    #[serde(default)]
    pub(crate) hosts: Option<Spanned<Entries>>,
    #[serde(default = "no_entries")]
    pub(crate) factors: Spanned<Entries>,
    #[serde(default = "no_entries")]
    pub(crate) paired: Spanned<Entries>,
    #[serde(default = "no_entries")]
    pub(crate) traffic: Spanned<Entries>,
    #[serde(default)]
    flows: BTreeMap<Spanned<String>, Entries>,
    #[serde(default)]
    programs: BTreeMap<Spanned<String>, WrittenProgram>,
    #[serde(default)]
    pub(crate) optional: Option<Entries>,
    #[serde(default)]
    pub(crate) repeats: Option<WrittenRepeats>,
    #[serde(default)]
    pub(crate) plots: Vec<WrittenPlot>,
    #[serde(default)]
    pub(crate) quick: Option<Entries>,
    #[serde(default)]
    pub(crate) source: Option<WrittenSource>,
}

impl WrittenPlan {
    /// The tables below `[flows]`, in the order of the file.
    pub(crate) fn flows_in_order(&self) -> Vec<(&Spanned<String>, &Entries)> {
        let mut flows: Vec<_> = self.flows.iter().collect();
        flows.sort_by_key(|(name, _)| name.span().start);
        flows
    }

    /// The tables below `[programs]`, in the order of the file.
    pub(crate) fn programs_in_order(&self) -> Vec<(&Spanned<String>, &WrittenProgram)> {
        let mut programs: Vec<_> = self.programs.iter().collect();
        programs.sort_by_key(|(name, _)| name.span().start);
        programs
    }

    pub(crate) fn flow_names(&self) -> Vec<String> {
        self.flows_in_order().into_iter().map(|(name, _)| name.get_ref().clone()).collect()
    }
}

/// `[repeats]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenRepeats {
    pub(crate) count: Option<Spanned<i64>>,
    pub(crate) seed: Option<Spanned<i64>>,
    pub(crate) order: Option<Spanned<String>>,
    /// Half the interval over the mean, such as `5%`.
    pub(crate) until: Option<Spanned<String>>,
    pub(crate) most: Option<Spanned<i64>>,
}

/// `[[plots]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPlot {
    pub(crate) title: Option<Spanned<String>>,
    pub(crate) kind: Spanned<String>,
    pub(crate) x: Option<Spanned<String>>,
    pub(crate) by: Option<Spanned<String>>,
    pub(crate) y: Option<Spanned<String>>,
}

/// `[source]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenSource {
    /// A document of the built-in studies.
    pub(crate) document: Option<Spanned<String>>,
    pub(crate) title: Option<Spanned<String>>,
    pub(crate) author: Option<Spanned<String>>,
    pub(crate) date: Option<Spanned<String>>,
    pub(crate) address: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) published: BTreeMap<Spanned<String>, Vec<WrittenValue>>,
    /// The reason of each value that the document does not state.
    #[serde(default)]
    pub(crate) assumed: BTreeMap<Spanned<String>, Spanned<String>>,
}

/// A value of the document: number and unit as it spells them.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenValue {
    pub(crate) value: Spanned<String>,
    pub(crate) line: Spanned<i64>,
    pub(crate) section: Option<Spanned<String>>,
}

/// One value, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// A string, a number or a truth value, as text.
    One(String),
    /// An array of those.
    List(Vec<(String, Range<usize>)>),
}

/// `key = value`.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Written,
    pub(crate) value_span: Range<usize>,
}

/// The entries of a table in the order of the file; tables within are keys with dots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries(pub(crate) Vec<Entry>);

/// A value or a table.
enum Branch {
    Leaf(Written),
    Fork(Vec<Entry>),
}

struct Scalar(String);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(AnyBranch)? {
            Branch::Fork(mut entries) => {
                entries.sort_by_key(|entry| entry.key_span.start);
                Ok(Entries(entries))
            }
            Branch::Leaf(_) => Err(de::Error::custom("expected a table")),
        }
    }
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyBranch)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(AnyBranch)? {
            Branch::Leaf(Written::One(text)) => Ok(Scalar(text)),
            _ => Err(de::Error::custom("expected a string or a number")),
        }
    }
}

struct AnyBranch;

impl<'de> Visitor<'de> for AnyBranch {
    type Value = Branch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, or an array of them")
    }

    fn visit_str<E>(self, text: &str) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(text.to_owned())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(number.to_string())))
    }

    fn visit_bool<E>(self, on: bool) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(u8::from(on).to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Branch, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Scalar>>()? {
            let span = item.span();
            list.push((item.into_inner().0, span));
        }
        Ok(Branch::Leaf(Written::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Branch, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, branch)) = map.next_entry::<Spanned<String>, Spanned<Branch>>()? {
            let (key_span, value_span) = (key.span(), branch.span());
            let key = key.into_inner();
            match branch.into_inner() {
                Branch::Leaf(value) => entries.push(Entry { key, key_span, value, value_span }),
                Branch::Fork(below) => entries.extend(
                    below.into_iter().map(|e| Entry { key: format!("{key}.{}", e.key), ..e }),
                ),
            }
        }
        Ok(Branch::Fork(entries))
    }
}

/// A table that is not there.
pub(crate) fn no_entries() -> Spanned<Entries> {
    Spanned::new(0..0, Entries::default())
}
