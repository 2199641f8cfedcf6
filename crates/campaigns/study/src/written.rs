//! A plan as written: its tables, each value with its position.

use crate::program::WrittenProgram;
use std::collections::BTreeMap;
use topology::toml_text::{Entries, Spanned};

/// The whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPlan {
    pub(crate) question: Spanned<String>,
    #[serde(default)]
    pub(crate) path: Option<Spanned<Entries>>,
    #[serde(default)]
    pub(crate) hosts: Option<Spanned<Entries>>,
    #[serde(default = "Entries::none")]
    pub(crate) factors: Spanned<Entries>,
    #[serde(default = "Entries::none")]
    pub(crate) paired: Spanned<Entries>,
    #[serde(default = "Entries::none")]
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
    pub(crate) reference: Option<Spanned<String>>,
    pub(crate) note: Option<Spanned<String>>,
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
