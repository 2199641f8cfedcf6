//! The route whose metrics are changed, or copied, for a prefix.

use crate::RoutingTable;
use host::kernel_route::{KernelRoute, Unsupported};
use host::route_table::Surroundings;
use record::{RouteChange, RouteMetrics, RoutePrefix};
use std::io;
use std::net::IpAddr;

/// `RT_TABLE_MAIN` (linux/rtnetlink.h).
const MAIN: u32 = 254;

/// Most routes to one prefix: a host has one for each of its uplinks.
pub(crate) const MAX_ROUTES: usize = 16;

/// Why the route to a prefix cannot be planned for or changed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The routing table cannot be read.
    #[error("cannot read the routing table: {0}")]
    Table(#[from] io::Error),
    /// No route covers the prefix.
    #[error("no route leads to {0}; check the prefix, or add a route first: ip route add")]
    NoRoute(RoutePrefix),
    /// The prefix is an address of this host.
    #[error("{0} is an address of this host; give the prefix of far hosts")]
    OwnAddress(RoutePrefix),
    /// Policy routing sends packets by another table.
    #[error(
        "packets to {prefix} take routing table {table} (ip rule), and Longhaul changes table main \
         only; set the metrics in that table with ip route"
    )]
    OtherTable {
        /// The prefix.
        prefix: RoutePrefix,
        /// The number of the table.
        table: u32,
    },
    /// The route cannot be copied.
    #[error(
        "cannot copy the route in force ({route}) for {prefix}: {why}; set the metrics by hand"
    )]
    Copy {
        /// The prefix.
        prefix: RoutePrefix,
        /// The route in force.
        route: String,
        /// What is in the way.
        why: Unsupported,
    },
    /// The route cannot be replaced by one with other metrics.
    #[error(
        "cannot change the metrics of {route}: {why}; give a longer prefix, which gets a copy of it"
    )]
    Change {
        /// The route.
        route: String,
        /// What is in the way.
        why: Unsupported,
    },
    /// Several routes with the same key.
    #[error(
        "there are several routes to {0} with the same metric; delete all but one with ip route del"
    )]
    Ambiguous(RoutePrefix),
    /// More routes than a host has uplinks.
    #[error("there are more than 16 routes to {0}; give a longer prefix, which gets a copy of one")]
    TooMany(RoutePrefix),
    /// Not what the plan was made for.
    #[error(
        "the route to {0} is no longer the one of the plan ({1}): another program changed it; plan \
         again"
    )]
    Changed(RoutePrefix, String),
    /// Present metrics that a journal cannot hold.
    #[error("the metrics of {0} are out of range, so they could not be restored; set them by hand")]
    Metrics(String),
    /// The kernel lacks the congestion control.
    #[error(
        "{name} is not available; available: {available}; load the module if there is one: modprobe \
         tcp_{name}"
    )]
    NotAvailable {
        /// The congestion control.
        name: String,
        /// Those that the kernel has.
        available: String,
    },
}

/// The routes that a plan changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// How.
    pub(crate) change: RouteChange,
    /// The routes as they are: one to copy, or all to the prefix itself, that in force first.
    pub(crate) routes: Vec<KernelRoute>,
    /// Number of routes to parts of the prefix, which keep their metrics.
    pub(crate) within: usize,
    /// Why the prefix's own route, a copy, no longer follows the route in force.
    pub(crate) stale: Option<String>,
}

impl Found {
    /// Finds the routes for a prefix.
    pub(crate) fn new(table: &dyn RoutingTable, prefix: RoutePrefix) -> Result<Self, RouteError> {
        let all = table.around(prefix)?;
        let own = own_routes(&all, prefix);
        let change = if own.is_empty() { RouteChange::Copy } else { RouteChange::Metrics };
        let stale = own.first().and_then(|first| stale(first, &all));
        let routes = match own.is_empty() {
            true => vec![in_force_beyond(&all, prefix).ok_or(RouteError::NoRoute(prefix))?.clone()],
            false => own.into_iter().cloned().collect(),
        };
        check_table(table, prefix)?;
        check_routes(prefix, change, &routes)?;
        Ok(Found { change, routes, within: all.within, stale })
    }

    /// The route that packets take.
    pub(crate) fn in_force(&self) -> Option<&KernelRoute> {
        self.routes.first()
    }
}

/// A route as ip-route(8) shows it.
pub(crate) fn shown(route: &KernelRoute) -> String {
    let prefix = match route.prefix().is_default() {
        true => "default".to_owned(),
        false => route.prefix().to_string(),
    };
    format!("{prefix} {}", route.path_words())
}

/// The routes to the prefix itself, by their priority.
fn own_routes(all: &Surroundings, prefix: RoutePrefix) -> Vec<&KernelRoute> {
    let mut own: Vec<_> = all.covering.iter().filter(|one| one.prefix() == prefix).collect();
    own.sort_by_key(|one| one.priority());
    own
}

/// The routes with a key: the kernel may have several, such as one for each TOS.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keyed<'a> {
    None,
    One(&'a KernelRoute),
    Several,
}

impl<'a> Keyed<'a> {
    pub(crate) fn of(all: &'a Surroundings, prefix: RoutePrefix, priority: u32) -> Self {
        let mut with_key =
            all.covering.iter().filter(|one| one.prefix() == prefix && one.priority() == priority);
        match (with_key.next(), with_key.next()) {
            (None, _) => Keyed::None,
            (Some(route), None) => Keyed::One(route),
            (Some(_), Some(_)) => Keyed::Several,
        }
    }

    /// The route, if there is one and no other.
    pub(crate) fn one(self) -> Option<&'a KernelRoute> {
        match self {
            Keyed::One(route) => Some(route),
            Keyed::None | Keyed::Several => None,
        }
    }
}

/// The route in force for packets to the prefix if it had no route of its own: the longest prefix,
/// then one that is up, then the smallest priority.
pub(crate) fn in_force_beyond(all: &Surroundings, prefix: RoutePrefix) -> Option<&KernelRoute> {
    let shorter = all.covering.iter().filter(|one| one.prefix().length() < prefix.length());
    let rank =
        |one: &&KernelRoute| (u8::MAX - one.prefix().length(), !one.is_usable(), one.priority());
    shorter.min_by_key(rank)
}

/// Why a copy no longer follows the route in force; `None` if it does, or is none of Longhaul's.
pub(crate) fn stale(route: &KernelRoute, all: &Surroundings) -> Option<String> {
    if !route.is_own() {
        return None;
    }
    let Some(now) = in_force_beyond(all, route.prefix()) else {
        return Some("the route that it is a copy of is gone".to_owned());
    };
    (!now.is_same_path(route)).then(|| {
        format!(
            "the route in force beyond it is now {}, and the copy leads {}",
            shown(now),
            route.path_words()
        )
    })
}

/// Refuses a prefix that policy routing sends by another table.
fn check_table(table: &dyn RoutingTable, prefix: RoutePrefix) -> Result<(), RouteError> {
    // Addresses for documentation have no route but the default one (RFC 5737, RFC 3849).
    let address = match (prefix.is_default(), prefix.is_ipv4()) {
        (false, _) => prefix.first_host(),
        (true, true) => IpAddr::from([192, 0, 2, 1]),
        (true, false) => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
    };
    // Without a route that is up the main table's remain to be changed.
    let Ok(route) = table.lookup(address) else { return Ok(()) };
    let is_host = prefix.first_host() == prefix.address();
    match (route.table(), route.is_local()) {
        (_, true) if is_host => Err(RouteError::OwnAddress(prefix)),
        (MAIN, _) | (_, true) => Ok(()),
        (table, false) => Err(RouteError::OtherTable { prefix, table }),
    }
}

fn check_routes(
    prefix: RoutePrefix,
    change: RouteChange,
    routes: &[KernelRoute],
) -> Result<(), RouteError> {
    if routes.len() > MAX_ROUTES {
        return Err(RouteError::TooMany(prefix));
    }
    for (index, route) in routes.iter().enumerate() {
        let why = match change {
            RouteChange::Copy => route.not_copyable(),
            RouteChange::Metrics => route.unsupported(),
        };
        match (why, change) {
            (Some(why), RouteChange::Copy) => {
                return Err(RouteError::Copy { prefix, route: shown(route), why });
            }
            (Some(why), RouteChange::Metrics) => {
                return Err(RouteError::Change { route: shown(route), why });
            }
            (None, _) => {}
        }
        if routes.iter().take(index).any(|one| one.priority() == route.priority()) {
            return Err(RouteError::Ambiguous(prefix));
        }
        if !route.tcp_metrics().is_valid() {
            return Err(RouteError::Metrics(shown(route)));
        }
    }
    Ok(())
}

/// Refuses a congestion control that the kernel lacks. Routes may have any that it has: the list
/// of those allowed to users (`tcp_allowed_congestion_control`) does not apply to them.
pub(crate) fn check_available(
    settings: &dyn crate::Settings,
    metrics: &RouteMetrics,
) -> Result<(), RouteError> {
    let Some(name) = &metrics.congctl else { return Ok(()) };
    let available = settings.read(AVAILABLE).unwrap_or_default();
    match available.split(' ').any(|one| one == name) {
        true => Ok(()),
        false => Err(RouteError::NotAvailable { name: crate::apply::shown(name), available }),
    }
}

/// The congestion controls that the kernel has.
pub(crate) const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
