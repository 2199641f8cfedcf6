//! A plan's text as its author wrote it, with the place of each thing.

use super::error::{PlanError, Problem};
use super::forms;
use super::scalar::{Scalar, Sysctls};
use super::source::{At, Source};
use crate::shapes::{Part, Shape};
use std::collections::BTreeMap;

/// A whole file. Keys and their meaning are explained in `examples/`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlanText {
    pub(super) name: Option<At<String>>,
    pub(super) duration: Option<At<Scalar>>,
    pub(super) driver: Option<At<String>>,
    pub(super) congestion: Option<At<String>>,
    pub(super) tuned: bool,
    pub(super) sysctl: Sysctls,
    #[serde(rename = "host", deserialize_with = "forms::named")]
    pub(super) hosts: BTreeMap<At<String>, HostText>,
    #[serde(rename = "router", deserialize_with = "forms::named")]
    pub(super) routers: BTreeMap<At<String>, HostText>,
    #[serde(deserialize_with = "forms::one")]
    pub(super) shape: Option<At<ShapeText>>,
    #[serde(rename = "link", deserialize_with = "forms::list")]
    pub(super) links: Vec<At<LinkText>>,
    #[serde(rename = "route", deserialize_with = "forms::list")]
    pub(super) routes: Vec<At<RouteText>>,
    #[serde(rename = "run", deserialize_with = "forms::list")]
    pub(super) programs: Vec<At<ProgramText>>,
    #[serde(rename = "change", deserialize_with = "forms::list")]
    pub(super) changes: Vec<At<ChangeText>>,
}

/// `[host.alice]` or `[router.r1]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HostText {
    pub(super) address: Option<At<String>>,
    pub(super) address6: Option<At<String>>,
    pub(super) congestion: Option<At<String>>,
    pub(super) tuned: Option<bool>,
    pub(super) sysctl: Sysctls,
}

/// `[[link]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkText {
    pub(super) name: Option<At<String>>,
    /// Two; TOML's reader would not miss a third where an array is asked for.
    pub(super) between: At<Vec<At<String>>>,
    pub(super) path: At<String>,
}

/// `[[route]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteText {
    pub(super) on: At<String>,
    pub(super) to: At<String>,
    pub(super) via: At<String>,
}

/// `[[run]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramText {
    pub(super) on: At<String>,
    pub(super) command: At<String>,
    #[serde(default)]
    pub(super) background: bool,
    pub(super) wait: Option<At<String>>,
    pub(super) start: Option<At<Scalar>>,
    pub(super) stop: Option<At<Scalar>>,
}

/// `[[change]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeText {
    pub(super) at: At<Scalar>,
    pub(super) link: At<String>,
    pub(super) set: At<String>,
}

/// `[shape]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShapeText {
    pub(super) kind: At<String>,
    pub(super) path: Option<At<String>>,
    pub(super) pairs: Option<At<u32>>,
    pub(super) hosts: Option<At<u32>>,
    pub(super) routers: Option<At<u32>>,
    pub(super) bottleneck: Option<At<String>>,
    pub(super) access: Option<At<String>>,
    pub(super) rtts: Option<At<Vec<At<Scalar>>>>,
}

impl PlanText {
    /// A plan that says no more than a shape.
    pub(super) fn of_shape(shape: &Shape) -> Self {
        let text = |text: &Option<String>| text.clone().map(At::unplaced);
        let number = |number: Option<u32>| number.map(At::unplaced);
        let rtts = shape.rtts.iter().map(|rtt| {
            // Nanoseconds are what it is kept in: nothing is rounded on the way.
            At::unplaced(Scalar(format!("{}ns", rtt.nanos())))
        });
        let shape = ShapeText {
            kind: At::unplaced(shape.kind.to_string()),
            path: text(&shape.path),
            pairs: number(shape.pairs),
            hosts: number(shape.hosts),
            routers: number(shape.routers),
            bottleneck: text(&shape.bottleneck),
            access: text(&shape.access),
            rtts: (!shape.rtts.is_empty()).then(|| At::unplaced(rtts.collect())),
        };
        PlanText { shape: Some(At::unplaced(shape)), ..PlanText::default() }
    }
}

impl ShapeText {
    /// The shape it asks for.
    pub(super) fn shape(&self, source: &Source) -> Result<Shape, PlanError> {
        let kind = self.kind.value.parse().map_err(|wrong| source.error_at(&self.kind, wrong))?;
        let mut shape = Shape::new(kind);
        let text = |text: &Option<At<String>>| text.as_ref().map(|text| text.value.clone());
        let number = |number: &Option<At<u32>>| number.as_ref().map(|number| number.value);
        shape.path = text(&self.path);
        shape.bottleneck = text(&self.bottleneck);
        shape.access = text(&self.access);
        shape.pairs = number(&self.pairs);
        shape.hosts = number(&self.hosts);
        shape.routers = number(&self.routers);
        for rtt in self.rtts.iter().flat_map(|rtts| &rtts.value) {
            let parsed = rtt.value.0.parse().map_err(|error: units::ParseError| {
                source.error_at(rtt, Problem::Time { key: "rtts", wrong: error.to_string() })
            });
            shape.rtts.push(parsed?);
        }
        Ok(shape)
    }

    /// Where a part of it stands; a part that is missing, where the kind does.
    pub(super) fn position(&self, part: Part) -> At<()> {
        let text = |text: &Option<At<String>>| text.as_ref().map(At::position);
        let number = |number: &Option<At<u32>>| number.as_ref().map(At::position);
        let position = match part {
            Part::Path => text(&self.path),
            Part::Bottleneck => text(&self.bottleneck),
            Part::Access => text(&self.access),
            Part::Pairs => number(&self.pairs),
            Part::Hosts => number(&self.hosts),
            Part::Routers => number(&self.routers),
            Part::Rtts => self.rtts.as_ref().map(At::position),
        };
        position.unwrap_or(self.kind.position())
    }
}
