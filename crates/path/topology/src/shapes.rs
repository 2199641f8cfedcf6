//! Built-in topologies.
//!
//! ```text
//!  pair       client ──path── server
//!
//!  dumbbell   client1 ─┐                    ┌─ server1
//!             client2 ─┤ left ─bottleneck─ right ├─ server2
//!
//!  chain      client ─ r1 ─ r2 ─ … ─ server          each link as `path`
//!
//!  star       host1, host2, … each joined to hub by a link as `path`
//! ```

use crate::plan::{MAX_HOSTS, Problem, Role};
use crate::{PathError, PathSpec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use units::Rtt;

/// The default access link of a dumbbell.
const ACCESS: &str = "rate=1gbit";

/// The queue of an access link where nobody says: Linux's default for a device
/// (`txqueuelen`). One BDP, which a link has by default, would be no packets at
/// all on the many access links without a delay.
const ACCESS_QUEUE: &str = "queue=1000p";

/// By which keys a path says its round trip.
const DELAYS: &[&str] = &["rtt", "delay"];

/// An example for messages.
const PATH: &str = "\"rate=100mbit,rtt=40ms\"";

/// Which built-in topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeKind {
    /// Two hosts and a link.
    Pair,
    /// Pairs of hosts that share one bottleneck.
    Dumbbell,
    /// Two hosts with routers in a row between them.
    Chain,
    /// Hosts around one router.
    Star,
}

impl ShapeKind {
    const fn name(self) -> &'static str {
        match self {
            ShapeKind::Pair => "pair",
            ShapeKind::Dumbbell => "dumbbell",
            ShapeKind::Chain => "chain",
            ShapeKind::Star => "star",
        }
    }

    /// Its keys, besides its kind.
    const fn parts(self) -> (&'static [Part], &'static str) {
        match self {
            ShapeKind::Pair => (&[Part::Path], "path"),
            ShapeKind::Dumbbell => (
                &[Part::Pairs, Part::Bottleneck, Part::Access, Part::Rtts],
                "pairs, bottleneck, access and rtts",
            ),
            ShapeKind::Chain => (&[Part::Routers, Part::Path], "routers and path"),
            ShapeKind::Star => (&[Part::Hosts, Part::Path], "hosts and path"),
        }
    }
}

impl fmt::Display for ShapeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ShapeKind {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let all = [ShapeKind::Pair, ShapeKind::Dumbbell, ShapeKind::Chain, ShapeKind::Star];
        let found = all.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| {
            let name = text.chars().filter(|c| !c.is_control()).take(32).collect();
            Problem::UnknownShape(name)
        })
    }
}

/// A built-in topology and its measures. What a kind does not have is refused
/// when a plan is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Which.
    pub kind: ShapeKind,
    /// The link of a pair, each link of a chain or a star.
    pub path: Option<String>,
    /// Pairs of a dumbbell; as many as `rtts` by default.
    pub pairs: Option<u32>,
    /// Hosts of a star; the router in the middle is not counted.
    pub hosts: Option<u32>,
    /// Routers of a chain.
    pub routers: Option<u32>,
    /// The link that a dumbbell's pairs share, from `left` to `right`. Where it
    /// does not say its round trip it has that of the pair with the shortest.
    pub bottleneck: Option<String>,
    /// Each access link of a dumbbell: a rate above the bottleneck's, 1 Gbit/s
    /// by default, and without a round trip of its own.
    pub access: Option<String>,
    /// Round trip of each pair of a dumbbell, from host to host, or one for all.
    /// The part of it that the bottleneck does not take is between the client and `left`.
    #[serde(default)]
    pub rtts: Vec<Rtt>,
}

/// A measure of a shape, for saying where something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Path,
    Pairs,
    Hosts,
    Routers,
    Bottleneck,
    Access,
    Rtts,
}

impl Part {
    const fn key(self) -> &'static str {
        match self {
            Part::Path => "path",
            Part::Pairs => "pairs",
            Part::Hosts => "hosts",
            Part::Routers => "routers",
            Part::Bottleneck => "bottleneck",
            Part::Access => "access",
            Part::Rtts => "rtts",
        }
    }
}

/// Hosts and links of a shape.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) hosts: Vec<(String, Role)>,
    pub(crate) links: Vec<LayoutLink>,
}

/// A link of a shape.
#[derive(Debug)]
pub(crate) struct LayoutLink {
    pub(crate) name: String,
    pub(crate) ends: [usize; 2],
    /// The text of its path.
    pub(crate) path: String,
    /// The part of the shape that the text comes from.
    pub(crate) part: Part,
}

impl Layout {
    fn host(&mut self, name: String, role: Role) -> usize {
        self.hosts.push((name, role));
        self.hosts.len() - 1
    }

    /// A link; it is called after its ends unless it has a name.
    fn join(&mut self, name: Option<&str>, ends: [usize; 2], path: String, part: Part) {
        let name = name
            .map_or_else(|| ends.map(|end| self.hosts[end].0.as_str()).join("-"), str::to_owned);
        self.links.push(LayoutLink { name, ends, path, part });
    }
}

/// The error in a shape, and the part that has it.
type Wrong = (Part, Problem);

impl Shape {
    /// A shape of that kind, with no measures.
    #[must_use]
    pub const fn new(kind: ShapeKind) -> Self {
        Shape {
            kind,
            path: None,
            pairs: None,
            hosts: None,
            routers: None,
            bottleneck: None,
            access: None,
            rtts: Vec::new(),
        }
    }

    /// Its hosts and links. `parse` reads a path: a dumbbell must know how much
    /// of a round trip its bottleneck takes.
    pub(crate) fn layout(
        &self,
        parse: &mut dyn FnMut(&str) -> Result<PathSpec, PathError>,
    ) -> Result<Layout, Wrong> {
        self.check_parts()?;
        match self.kind {
            ShapeKind::Pair => self.pair(),
            ShapeKind::Dumbbell => self.dumbbell(parse),
            ShapeKind::Chain => self.chain(),
            ShapeKind::Star => self.star(),
        }
    }

    fn check_parts(&self) -> Result<(), Wrong> {
        let given = [
            (Part::Path, self.path.is_some()),
            (Part::Pairs, self.pairs.is_some()),
            (Part::Hosts, self.hosts.is_some()),
            (Part::Routers, self.routers.is_some()),
            (Part::Bottleneck, self.bottleneck.is_some()),
            (Part::Access, self.access.is_some()),
            (Part::Rtts, !self.rtts.is_empty()),
        ];
        let (parts, known) = self.kind.parts();
        let foreign = given.into_iter().find(|(part, given)| *given && !parts.contains(part));
        match foreign {
            Some((part, _)) => {
                let (kind, key) = (self.kind.name(), part.key());
                Err((part, Problem::NotOfShape { kind, key, known }))
            }
            None => Ok(()),
        }
    }

    fn needs(&self, part: Part, example: &'static str) -> Wrong {
        (part, Problem::ShapeNeeds { kind: self.kind.name(), key: part.key(), example })
    }

    fn the_path(&self) -> Result<&str, Wrong> {
        self.path.as_deref().ok_or_else(|| self.needs(Part::Path, PATH))
    }

    /// A number of things, of which each is `each` hosts beside `others`.
    fn count(
        &self,
        part: Part,
        number: Option<u32>,
        (least, each, others): (usize, usize, usize),
        example: &'static str,
    ) -> Result<usize, Wrong> {
        let number = number.ok_or_else(|| self.needs(part, example))?;
        let most = (MAX_HOSTS - others) / each;
        match usize::try_from(number) {
            Ok(fits) if (least..=most).contains(&fits) => Ok(fits),
            _ => {
                let (kind, key) = (self.kind.name(), part.key());
                let [least, most] = [least, most].map(|limit| limit as u64);
                Err((part, Problem::ShapeSize { kind, key, number: number.into(), least, most }))
            }
        }
    }

    fn pair(&self) -> Result<Layout, Wrong> {
        let path = self.the_path()?;
        let mut layout = Layout::default();
        let ends = ["client", "server"].map(|name| layout.host(name.to_owned(), Role::Host));
        layout.join(Some("path"), ends, path.to_owned(), Part::Path);
        Ok(layout)
    }

    fn chain(&self) -> Result<Layout, Wrong> {
        let path = self.the_path()?;
        let routers = self.count(Part::Routers, self.routers, (1, 1, 2), "3")?;
        let mut layout = Layout::default();
        let [client, server] =
            ["client", "server"].map(|name| layout.host(name.to_owned(), Role::Host));
        let mut last = client;
        for number in 1..=routers {
            let router = layout.host(format!("r{number}"), Role::Router);
            layout.join(None, [last, router], path.to_owned(), Part::Path);
            last = router;
        }
        layout.join(None, [last, server], path.to_owned(), Part::Path);
        Ok(layout)
    }

    fn star(&self) -> Result<Layout, Wrong> {
        let path = self.the_path()?;
        let hosts = self.count(Part::Hosts, self.hosts, (2, 1, 1), "8")?;
        let mut layout = Layout::default();
        for number in 1..=hosts {
            layout.host(format!("host{number}"), Role::Host);
        }
        let hub = layout.host("hub".to_owned(), Role::Router);
        for host in 0..hosts {
            layout.join(None, [host, hub], path.to_owned(), Part::Path);
        }
        Ok(layout)
    }

    fn dumbbell(
        &self,
        parse: &mut dyn FnMut(&str) -> Result<PathSpec, PathError>,
    ) -> Result<Layout, Wrong> {
        let bottleneck = self.bottleneck.as_deref();
        let bottleneck =
            bottleneck.ok_or_else(|| self.needs(Part::Bottleneck, "\"rate=100mbit\""))?;
        let listed = u32::try_from(self.rtts.len()).ok().filter(|listed| *listed > 0);
        let pairs = self.count(Part::Pairs, self.pairs.or(listed), (1, 2, 2), "4")?;
        if !matches!(self.rtts.len(), 0 | 1) && self.rtts.len() != pairs {
            return Err((Part::Rtts, Problem::RoundTrips { rtts: self.rtts.len(), pairs }));
        }
        let access = self.access.as_deref().unwrap_or(ACCESS);
        if self.access.is_some() && says(access, DELAYS) {
            let reason = "omit rtt; rtts gives the RTT of each pair".to_owned();
            let link = "access".to_owned();
            return Err((Part::Access, Problem::Path { link, reason }));
        }
        let access = if says(access, &["queue"]) {
            access.to_owned()
        } else {
            format!("{access},{ACCESS_QUEUE}")
        };
        let bottleneck = match self.rtts.iter().min() {
            Some(shortest) if !says(bottleneck, DELAYS) => with_rtt(bottleneck, *shortest),
            _ => bottleneck.to_owned(),
        };
        let shared = parse(&bottleneck).map_err(|error| {
            let (link, reason) = ("bottleneck".to_owned(), error.to_string());
            (Part::Bottleneck, Problem::Path { link, reason })
        })?;

        let mut layout = Layout::default();
        let mut hosts = |side: &str| -> Vec<usize> {
            (1..=pairs).map(|number| layout.host(format!("{side}{number}"), Role::Host)).collect()
        };
        let (clients, servers) = (hosts("client"), hosts("server"));
        let [left, right] =
            ["left", "right"].map(|name| layout.host(name.to_owned(), Role::Router));
        layout.join(Some("bottleneck"), [left, right], bottleneck, Part::Bottleneck);
        for pair in 0..pairs {
            let asked = self.rtts.get(pair).or(self.rtts.first()).copied();
            let whole = asked.unwrap_or(shared.rtt());
            let Some(rest) = whole.nanos().checked_sub(shared.rtt().nanos()) else {
                let (rtt, least) = (whole.to_string(), shared.rtt().to_string());
                return Err((Part::Rtts, Problem::ShortRoundTrip { pair: pair + 1, rtt, least }));
            };
            let rest = Rtt::from_nanos(rest);
            layout.join(None, [clients[pair], left], with_rtt(&access, rest), Part::Access);
            layout.join(None, [right, servers[pair]], with_rtt(&access, Rtt::ZERO), Part::Access);
        }
        Ok(layout)
    }
}

/// Returns true if a path's text says one of these keys from the beginning on, of one
/// way or both: itself, or by a name such as `geo` that stands for a whole path.
fn says(path: &str, keys: &[&str]) -> bool {
    path.split(',').map(str::trim).any(|part| match part.split_once('=') {
        Some((key, _)) if key.starts_with('@') => false,
        Some((key, _)) => keys.contains(&key.rsplit('.').next().unwrap_or(key).trim()),
        None => !part.is_empty(),
    })
}

/// Nanoseconds are what a round trip is kept in: nothing is rounded.
fn with_rtt(path: &str, rtt: Rtt) -> String {
    match rtt.nanos() {
        nanos if nanos.is_multiple_of(1_000_000) => format!("{path},rtt={}ms", nanos / 1_000_000),
        nanos => format!("{path},rtt={nanos}ns"),
    }
}
