//! The routing table of a fake host, whose changes can be killed too.

use crate::fake::Fake;
use host::kernel_route::KernelRoute;
use host::route_table::Surroundings;
use record::{RouteMetrics, RoutePrefix};
use std::io;
use std::net::IpAddr;
use tune::{Disk, RoutingTable};

/// `RTPROT_STATIC`.
const STATIC: u8 = 4;

/// A route's body as the kernel sends it.
pub(crate) struct Body {
    pub(crate) prefix: &'static str,
    pub(crate) gateway: &'static str,
    pub(crate) device: u32,
    pub(crate) priority: u32,
    pub(crate) protocol: u8,
    pub(crate) table: u8,
    /// `RTN_*`.
    pub(crate) kind: u8,
    /// Further attributes.
    pub(crate) more: Vec<(u16, Vec<u8>)>,
}

impl Default for Body {
    fn default() -> Self {
        Body {
            prefix: "0.0.0.0/0",
            gateway: "10.0.0.254",
            device: 2,
            priority: 0,
            protocol: STATIC,
            table: 254,
            kind: 1,
            more: Vec::new(),
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

impl Body {
    pub(crate) fn route(&self) -> KernelRoute {
        let prefix: RoutePrefix = self.prefix.parse().unwrap();
        let family = if prefix.is_ipv4() { 2 } else { 10 };
        let mut body = vec![
            family,
            prefix.length(),
            0,
            0,
            self.table,
            self.protocol,
            0,
            self.kind,
            0,
            0,
            0,
            0,
        ];
        let mut put = |kind: u16, value: &[u8]| {
            body.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        };
        put(15, &u32::from(self.table).to_ne_bytes());
        if !prefix.is_default() {
            put(1, &octets(prefix.address()));
        }
        if self.priority > 0 {
            put(6, &self.priority.to_ne_bytes());
        }
        put(5, &octets(self.gateway.parse().unwrap()));
        put(4, &self.device.to_ne_bytes());
        for (kind, value) in &self.more {
            put(*kind, value);
        }
        KernelRoute::parse(&body).unwrap()
    }

    pub(crate) fn with(&self, metrics: &RouteMetrics) -> KernelRoute {
        self.route().with_tcp_metrics(metrics)
    }
}

pub(crate) fn metrics(congctl: &str, initcwnd: u32) -> RouteMetrics {
    RouteMetrics {
        congctl: Some(congctl.to_owned()),
        initcwnd: Some(initcwnd),
        ..RouteMetrics::default()
    }
}

/// The host's default route, and one of a prefix with an MTU.
pub(crate) fn usual() -> Vec<KernelRoute> {
    let mtu = [&[8, 0, 2, 0][..], &1400u32.to_ne_bytes()].concat();
    vec![
        Body { priority: 100, protocol: 16, ..Body::default() }.route(),
        Body { gateway: "10.1.0.254", device: 3, priority: 600, ..Body::default() }.route(),
        Body {
            prefix: "203.0.113.0/24",
            gateway: "10.0.0.253",
            more: vec![(8, mtu)],
            ..Body::default()
        }
        .with(&metrics("reno", 20)),
    ]
}

impl Fake {
    pub(crate) fn with_routes() -> Self {
        let fake = Fake::new();
        fake.routes.replace(usual());
        fake
    }

    /// The central invariant for routes: before one is changed, a journal has its prefix.
    fn journal_has_route(&self, route: &KernelRoute) {
        let prefix = format!("\"prefix\":\"{}\"", route.prefix());
        let known = self.list(&self.state).unwrap().iter().any(|name| {
            let text = std::fs::read_to_string(self.state.join(name)).unwrap_or_default();
            name.ends_with(".journal") && text.contains(&prefix)
        });
        assert!(known, "{prefix} is changed without a journal");
    }

    /// One atomic change of the table.
    fn change_routes(
        &self,
        route: &KernelRoute,
        change: impl Fn(&mut Vec<KernelRoute>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.alive()?;
        self.journal_has_route(route);
        if let Some(error) = self.no_routes.get() {
            return Err(io::Error::from_raw_os_error(error));
        }
        let changed = self.step(|| (), || change(&mut self.routes.borrow_mut()));
        self.busy.set(self.busy_after_change.get());
        changed
    }
}

fn has_key(one: &KernelRoute, route: &KernelRoute) -> bool {
    (one.prefix(), one.priority()) == (route.prefix(), route.priority())
}

impl RoutingTable for Fake {
    fn around(&self, prefix: RoutePrefix) -> io::Result<Surroundings> {
        self.alive()?;
        if self.busy.get() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let routes = self.routes.borrow();
        let main = || routes.iter().filter(|one| one.table() == 254);
        let covering = main().filter(|one| one.prefix().contains(&prefix)).cloned().collect();
        let is_within =
            |one: &&KernelRoute| prefix.contains(&one.prefix()) && one.prefix() != prefix;
        Ok(Surroundings { covering, within: main().filter(is_within).count() })
    }

    fn lookup(&self, address: IpAddr) -> io::Result<KernelRoute> {
        self.alive()?;
        let host: RoutePrefix = address.to_string().parse().unwrap();
        let routes = self.routes.borrow();
        let matching = routes.iter().filter(|one| one.prefix().contains(&host));
        // Other tables come first, as policy routing has them.
        let best = matching.max_by_key(|one| (one.table() != 254, one.prefix().length()));
        best.cloned().ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    fn may_change(&self) -> io::Result<()> {
        self.alive()?;
        match self.frozen.get() {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }

    fn add(&self, route: &KernelRoute) -> io::Result<()> {
        self.change_routes(route, |all| {
            if all.iter().any(|one| has_key(one, route)) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            all.push(route.clone());
            Ok(())
        })
    }

    fn replace(&self, route: &KernelRoute) -> io::Result<()> {
        self.change_routes(route, |all| {
            let place = all.iter_mut().find(|one| has_key(one, route));
            *place.ok_or(io::ErrorKind::NotFound)? = route.clone();
            Ok(())
        })
    }

    fn delete(&self, route: &KernelRoute) -> io::Result<()> {
        self.change_routes(route, |all| {
            let place = all.iter().position(|one| has_key(one, route) && one.is_own());
            all.remove(place.ok_or(io::ErrorKind::NotFound)?);
            Ok(())
        })
    }
}
