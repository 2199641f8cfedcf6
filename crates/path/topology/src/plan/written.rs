//! A plan's text as its author wrote it, with the place of each thing.

use super::error::{PlanError, Problem};
use super::forms;
use super::source::{Source, position, unplaced};
use crate::shapes::{Part, Shape};
use crate::toml_text::{Entries, Scalar, Spanned};
use std::collections::BTreeMap;

/// A whole file. Keys and their meaning are explained in `examples/`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlanText {
    pub(super) name: Option<Spanned<String>>,
    pub(super) duration: Option<Spanned<Scalar>>,
    pub(super) driver: Option<Spanned<String>>,
    pub(super) congestion: Option<Spanned<String>>,
    pub(super) tuned: bool,
    pub(super) sysctl: Entries,
    #[serde(rename = "host", deserialize_with = "forms::named")]
    pub(super) hosts: BTreeMap<Spanned<String>, HostText>,
    #[serde(rename = "router", deserialize_with = "forms::named")]
    pub(super) routers: BTreeMap<Spanned<String>, HostText>,
    #[serde(deserialize_with = "forms::one")]
    pub(super) shape: Option<Spanned<ShapeText>>,
    #[serde(rename = "link", deserialize_with = "forms::list")]
    pub(super) links: Vec<Spanned<LinkText>>,
    #[serde(rename = "route", deserialize_with = "forms::list")]
    pub(super) routes: Vec<Spanned<RouteText>>,
    #[serde(rename = "run", deserialize_with = "forms::list")]
    pub(super) programs: Vec<Spanned<ProgramText>>,
    #[serde(rename = "change", deserialize_with = "forms::list")]
    pub(super) changes: Vec<Spanned<ChangeText>>,
}

/// `[host.alice]` or `[router.r1]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HostText {
    pub(super) address: Option<Spanned<String>>,
    pub(super) address6: Option<Spanned<String>>,
    pub(super) congestion: Option<Spanned<String>>,
    pub(super) tuned: Option<bool>,
    pub(super) sysctl: Entries,
}

/// `[[link]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkText {
    pub(super) name: Option<Spanned<String>>,
    /// Two; TOML's reader would not miss a third where an array is asked for.
    pub(super) between: Spanned<Vec<Spanned<String>>>,
    pub(super) path: Spanned<String>,
}

/// `[[route]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteText {
    pub(super) on: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) via: Spanned<String>,
}

/// `[[run]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramText {
    pub(super) on: Spanned<String>,
    pub(super) command: Spanned<String>,
    #[serde(default)]
    pub(super) background: bool,
    pub(super) wait: Option<Spanned<String>>,
    pub(super) start: Option<Spanned<Scalar>>,
    pub(super) stop: Option<Spanned<Scalar>>,
}

/// `[[change]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeText {
    pub(super) at: Spanned<Scalar>,
    pub(super) link: Spanned<String>,
    pub(super) set: Spanned<String>,
}

/// `[shape]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShapeText {
    pub(super) kind: Spanned<String>,
    pub(super) path: Option<Spanned<String>>,
    pub(super) pairs: Option<Spanned<u32>>,
    pub(super) hosts: Option<Spanned<u32>>,
    pub(super) routers: Option<Spanned<u32>>,
    pub(super) bottleneck: Option<Spanned<String>>,
    pub(super) access: Option<Spanned<String>>,
    pub(super) rtts: Option<Spanned<Vec<Spanned<Scalar>>>>,
}

impl PlanText {
    /// A plan that says no more than a shape.
    pub(super) fn of_shape(shape: &Shape) -> Self {
        let text = |text: &Option<String>| text.clone().map(unplaced);
        let number = |number: Option<u32>| number.map(unplaced);
        let rtts = shape.rtts.iter().map(|rtt| {
            // Nanoseconds are what it is kept in: nothing is rounded on the way.
            unplaced(Scalar(format!("{}ns", rtt.nanos())))
        });
        let shape = ShapeText {
            kind: unplaced(shape.kind.to_string()),
            path: text(&shape.path),
            pairs: number(shape.pairs),
            hosts: number(shape.hosts),
            routers: number(shape.routers),
            bottleneck: text(&shape.bottleneck),
            access: text(&shape.access),
            rtts: (!shape.rtts.is_empty()).then(|| unplaced(rtts.collect())),
        };
        PlanText { shape: Some(unplaced(shape)), ..PlanText::default() }
    }
}

impl ShapeText {
    /// The shape it asks for.
    pub(super) fn shape(&self, source: &Source<'_>) -> Result<Shape, PlanError> {
        let kind =
            self.kind.get_ref().parse().map_err(|wrong| source.error_at(&self.kind, wrong))?;
        let mut shape = Shape::new(kind);
        let text =
            |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.get_ref().clone());
        let number =
            |number: &Option<Spanned<u32>>| number.as_ref().map(|number| *number.get_ref());
        shape.path = text(&self.path);
        shape.bottleneck = text(&self.bottleneck);
        shape.access = text(&self.access);
        shape.pairs = number(&self.pairs);
        shape.hosts = number(&self.hosts);
        shape.routers = number(&self.routers);
        for rtt in self.rtts.iter().flat_map(Spanned::get_ref) {
            let parsed = rtt.get_ref().0.parse().map_err(|error: units::ParseError| {
                source.error_at(rtt, Problem::Time { key: "rtts", wrong: error.to_string() })
            });
            shape.rtts.push(parsed?);
        }
        Ok(shape)
    }

    /// Where a part of it stands; a part that is missing, where the kind does.
    pub(super) fn position_of(&self, part: Part) -> Spanned<()> {
        let text = |text: &Option<Spanned<String>>| text.as_ref().map(position);
        let number = |number: &Option<Spanned<u32>>| number.as_ref().map(position);
        let found = match part {
            Part::Path => text(&self.path),
            Part::Bottleneck => text(&self.bottleneck),
            Part::Access => text(&self.access),
            Part::Pairs => number(&self.pairs),
            Part::Hosts => number(&self.hosts),
            Part::Routers => number(&self.routers),
            Part::Rtts => self.rtts.as_ref().map(position),
        };
        found.unwrap_or_else(|| position(&self.kind))
    }
}
