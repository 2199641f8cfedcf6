//! Who is reached through which link.
//!
//! Every host has the way to every other that is shortest by round-trip time,
//! of those the one with the fewest links, and of those the one whose links
//! were written first: so the way back is the way there. Only routers pass on
//! what is for others. What a plan says of a route takes the place of one host's
//! choice; the table is refused where that leads in a circle.

use crate::plan::{MAX_LINKS, Plan, PlanError, Problem, Role, listed};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What stands in [`Table::next`] for no link. No plan has as many.
const NONE: usize = usize::MAX;

/// Most names a message lists of one side of a gap.
const MAX_LISTED: usize = 4;

/// Everyone's next links. Made by [`table`], it leads from each host to each
/// other without a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Of each target, each host's link towards it.
    next: Vec<Vec<usize>>,
}

/// The routes of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRoutes {
    /// A host with one link: all goes there. (A router with one link has a
    /// list: two routers that each sent the other what they do not know would
    /// never end.)
    Default {
        /// The link.
        link: usize,
    },
    /// One for each other host, in their order.
    Each(Vec<NextHop>),
}

/// The way to one host begins with a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// The host to be reached.
    pub to: usize,
    /// The link at the host that sends.
    pub link: usize,
}

/// The routes of all hosts of a plan.
///
/// # Errors
/// Where one host cannot reach another, or routes lead in a circle or through a
/// host that does not forward; at the line of a route or a host that can be changed.
pub fn table(plan: &Plan) -> Result<Table, PlanError> {
    let at = |line, problem: Problem| {
        let (file, problem) = (plan.file.clone(), Box::new(problem));
        PlanError { file, line, problem }
    };
    let graph = Graph::new(plan);
    let mut table = Table { next: Vec::with_capacity(plan.hosts.len()) };
    for target in 0..plan.hosts.len() {
        let next = graph.towards(target);
        let cut_off = (0..next.len()).find(|host| *host != target && next[*host] == NONE);
        if let Some(host) = cut_off {
            let (line, problem) = graph.explain_unreachable(host.min(target), host.max(target));
            return Err(at(line, problem));
        }
        table.next.push(next);
    }
    for route in &plan.routes {
        let via = plan.far(route.on, route.link);
        if via != route.to && plan.hosts[via].role == Role::Host {
            let [on, to, via] = [route.on, route.to, via].map(|host| plan.hosts[host].name.clone());
            return Err(at(route.line, Problem::RouteThroughHost { on, to, via }));
        }
        table.next[route.to][route.on] = route.link;
    }
    for route in &plan.routes {
        if let Some(routing_loop) = table.routing_loop(plan, route.on, route.to) {
            let name = |host: usize| plan.hosts[host].name.as_str();
            let (on, to) = (name(route.on).to_owned(), name(route.to).to_owned());
            let routing_loop = routing_loop.into_iter().map(name).collect::<Vec<_>>().join(", ");
            return Err(at(route.line, Problem::RoutingLoop { to, routing_loop, on }));
        }
    }
    Ok(table)
}

impl Table {
    /// The link that a host takes towards another; `None` towards itself.
    #[must_use]
    pub fn next(&self, from: usize, to: usize) -> Option<usize> {
        Some(self.next[to][from]).filter(|link| *link != NONE)
    }

    /// The links on the way from one host to another, in order.
    #[must_use]
    pub fn links_between(&self, plan: &Plan, from: usize, to: usize) -> Vec<usize> {
        let mut at = from;
        let step = || {
            let link = self.next(at, to)?;
            at = plan.far(at, link);
            Some(link)
        };
        std::iter::from_fn(step).take(plan.hosts.len()).collect()
    }

    /// The routes of one host.
    #[must_use]
    pub fn of(&self, plan: &Plan, host: usize) -> HostRoutes {
        let mut links = plan.links_at(host);
        if let (Role::Host, Some(link), None) = (plan.hosts[host].role, links.next(), links.next())
        {
            return HostRoutes::Default { link };
        }
        let hop = |to| Some(NextHop { to, link: self.next(host, to)? });
        HostRoutes::Each((0..self.next.len()).filter_map(hop).collect())
    }

    /// The hosts that pass what is for `to` around among themselves, where what
    /// leaves `from` comes to such; the first of them again at the end.
    fn routing_loop(&self, plan: &Plan, from: usize, to: usize) -> Option<Vec<usize>> {
        let (mut at, mut passed) = (from, Vec::new());
        while let Some(link) = self.next(at, to) {
            if let Some(start) = passed.iter().position(|host| *host == at) {
                passed.drain(..start);
                passed.push(at);
                return Some(passed);
            }
            passed.push(at);
            at = plan.far(at, link);
        }
        None
    }
}

/// What a way costs, the most important first: ways are compared by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// Sum of the links' round trips, ns.
    rtt: u64,
    links: u32,
    /// The links as a set, the last written in the most significant place.
    /// No two ways have the same, so no two are equal, in either direction.
    which: [u64; MAX_LINKS.div_ceil(64)],
}

impl Cost {
    fn plus(mut self, other: &Cost) -> Cost {
        self.rtt = self.rtt.saturating_add(other.rtt);
        self.links += other.links;
        for (ours, theirs) in self.which.iter_mut().zip(other.which) {
            *ours |= theirs;
        }
        self
    }
}

/// The cost of one link.
pub(crate) fn cost(plan: &Plan, link: usize) -> Cost {
    let mut which = [0; MAX_LINKS.div_ceil(64)];
    let words = which.len();
    if let Some(word) = words.checked_sub(1 + link / 64) {
        which[word] = 1 << (link % 64);
    }
    Cost { rtt: plan.links[link].path.rtt().nanos(), links: 1, which }
}

/// Hosts with their links and neighbours.
struct Graph<'a> {
    plan: &'a Plan,
    costs: Vec<Cost>,
    /// Of each host: link, and who is at its other end.
    neighbours: Vec<Vec<(usize, usize)>>,
}

impl<'a> Graph<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut neighbours = vec![Vec::new(); plan.hosts.len()];
        for (number, link) in plan.links.iter().enumerate() {
            let [first, second] = link.ends;
            neighbours[first].push((number, second));
            neighbours[second].push((number, first));
        }
        let costs = (0..plan.links.len()).map(|link| cost(plan, link)).collect();
        Graph { plan, costs, neighbours }
    }

    /// Each host's link towards `target` (Dijkstra 1959, from the target
    /// outwards: a link costs the same both ways).
    fn towards(&self, target: usize) -> Vec<usize> {
        let mut next = vec![NONE; self.neighbours.len()];
        let mut best: Vec<Option<Cost>> = vec![None; self.neighbours.len()];
        let mut queue = BinaryHeap::from([Reverse((Cost::default(), target))]);
        best[target] = Some(Cost::default());
        while let Some(Reverse((cost, host))) = queue.pop() {
            let forwards = host == target || self.plan.hosts[host].role == Role::Router;
            if !forwards || best[host].is_some_and(|best| best < cost) {
                continue;
            }
            for &(link, neighbour) in &self.neighbours[host] {
                let through = cost.plus(&self.costs[link]);
                if best[neighbour].is_none_or(|best| through < best) {
                    best[neighbour] = Some(through);
                    next[neighbour] = link;
                    queue.push(Reverse((through, neighbour)));
                }
            }
        }
        next
    }

    /// Why there is no way from one host to another, and the line of the host
    /// that can be changed.
    fn explain_unreachable(&self, from: usize, to: usize) -> (Option<usize>, Problem) {
        let name = |host: usize| self.plan.hosts[host].name.clone();
        let before = self.reached(to);
        // Along the shortest way through anyone, the first that will not forward.
        let mut at = before[from];
        while let Some(host) = at.filter(|host| *host != to) {
            if self.plan.hosts[host].role == Role::Host {
                let (from, to, through) = (name(from), name(to), name(host));
                return (self.plan.hosts[host].line, Problem::ThroughHost { from, to, through });
            }
            at = before[host];
        }
        let side = |of: usize| {
            let reached = self.reached(of);
            let hosts = self.plan.hosts.iter().zip(&reached);
            let names: Vec<&str> =
                hosts.filter_map(|(host, next)| next.map(|_| host.name.as_str())).collect();
            listed(names.into_iter(), MAX_LISTED)
        };
        let problem = Problem::Disconnected {
            from: name(from),
            to: name(to),
            here: side(from),
            there: side(to),
        };
        (self.plan.hosts[to].line, problem)
    }

    /// Of each host that is joined to `to`, by whatever host, the next on a way
    /// of the fewest links; `to` itself is its own next.
    fn reached(&self, to: usize) -> Vec<Option<usize>> {
        let mut next = vec![None; self.neighbours.len()];
        next[to] = Some(to);
        let mut queue = VecDeque::from([to]);
        while let Some(host) = queue.pop_front() {
            for &(_, neighbour) in &self.neighbours[host] {
                if next[neighbour].is_none() {
                    next[neighbour] = Some(host);
                    queue.push_back(neighbour);
                }
            }
        }
        next
    }
}
