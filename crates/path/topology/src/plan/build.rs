//! From what was written to a plan that is checked.

use super::error::{PlanError, Problem};
use super::names::{self, listed};
use super::source::{Source, position, unplaced};
use super::written::{HostText, LinkText, PlanText, RouteText};
use super::{
    HostPlan, LinkPlan, MAX_HOSTS, MAX_LINKS, Plan, Role, RoutePlan, addresses, changes, programs,
    time,
};
use crate::routes;
use crate::shapes::Layout;
use crate::toml_text::{Entries, Spanned, Written, short};
use crate::{PathError, PathSpec, Reader};
use std::collections::HashMap;

/// Hosts have this congestion control unless they are told another: the
/// machine's own default differs from kernel to kernel.
const CONGESTION: &str = "cubic";

/// Most names that a message lists.
const MAX_LISTED: usize = 12;

/// Builds a plan; `name` is for one that does not say its own.
pub(super) fn build(
    name: String,
    written: &PlanText,
    source: &Source<'_>,
    read: &mut Reader<'_>,
) -> Result<Plan, PlanError> {
    let mut paths = Paths { read, known: HashMap::new() };
    let name = match &written.name {
        Some(name) => {
            names::check("plan", name.get_ref()).map_err(|wrong| source.error_at(name, wrong))?;
            name.get_ref().clone()
        }
        None => name,
    };
    let duration = written.duration.as_ref().map(|duration| {
        let time = time::parse("duration", &duration.get_ref().0);
        let time =
            time.and_then(|time| if time.is_zero() { Err(Problem::NoTime) } else { Ok(time) });
        time.map_err(|wrong| source.error_at(duration, wrong))
    });
    let driver = written.driver.as_ref().map(|driver| {
        driver.get_ref().parse().map_err(|known| {
            let name = short(driver.get_ref(), MAX_LISTED);
            source.error_at(driver, Problem::Driver { name, known })
        })
    });
    let layout = layout(written, source, &mut paths)?;
    let mut plan = Plan {
        name,
        file: source.file.clone(),
        hosts: hosts(written, &layout, source)?,
        links: Vec::new(),
        routes: Vec::new(),
        programs: Vec::new(),
        changes: Vec::new(),
        duration: duration.transpose()?,
        driver: driver.transpose()?.unwrap_or_default(),
    };
    let find = Find::new(&plan, source);
    plan.links = links(written, &layout, &find, &mut paths)?;
    if plan.hosts.len() < 2 || plan.links.is_empty() {
        return Err(source.plan_error(Problem::Empty));
    }
    plan.routes = overrides(&written.routes, &plan, &find)?;
    routes::table(&plan)?;
    plan.programs = programs::read(&written.programs, plan.duration, &find)?;
    plan.changes = changes::read(&written.changes, &plan, source, &mut paths)?;
    Ok(plan)
}

/// Reads paths, each text once: a recorded trace is then shared by all links
/// that have it.
pub(super) struct Paths<'a, 'r> {
    read: &'a mut Reader<'r>,
    known: HashMap<String, PathSpec>,
}

impl Paths<'_, '_> {
    pub(super) fn parse(&mut self, text: &str) -> Result<PathSpec, PathError> {
        if let Some(path) = self.known.get(text) {
            return Ok(path.clone());
        }
        let path = PathSpec::parse(text, self.read)?;
        self.known.insert(text.to_owned(), path.clone());
        Ok(path)
    }

    /// A path with other settings.
    pub(super) fn change(&mut self, path: &PathSpec, set: &str) -> Result<PathSpec, PathError> {
        path.with(set, self.read)
    }
}

/// Hosts by their names.
pub(super) struct Find<'a> {
    pub(super) source: &'a Source<'a>,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl<'a> Find<'a> {
    fn new(plan: &Plan, source: &'a Source<'a>) -> Self {
        let names: Vec<String> = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let numbers = names.iter().cloned().zip(0..).collect();
        Find { source, names, numbers }
    }

    /// The host of that name; `who` asks for it.
    pub(super) fn host(
        &self,
        name: &Spanned<String>,
        who: impl FnOnce() -> String,
    ) -> Result<usize, PlanError> {
        self.numbers.get(name.get_ref()).copied().ok_or_else(|| {
            let host = short(name.get_ref(), MAX_LISTED);
            let known = listed(self.names.iter().map(String::as_str), MAX_LISTED);
            self.source.error_at(name, Problem::UnknownHost { who: who(), host, known })
        })
    }
}

fn layout(
    written: &PlanText,
    source: &Source<'_>,
    paths: &mut Paths<'_, '_>,
) -> Result<Layout, PlanError> {
    let Some(shape) = &written.shape else { return Ok(Layout::default()) };
    let layout = shape.get_ref().shape(source)?.layout(&mut |text| paths.parse(text));
    layout.map_err(|(part, problem)| source.error_at(&shape.get_ref().position_of(part), problem))
}

/// A host's name, what it is, and what is said about it.
type DeclaredHost<'a> = (Spanned<String>, Role, Option<&'a HostText>);

/// Every host: those of the shape first, which the file may say more about,
/// then the others in the order of writing.
fn declare_hosts<'a>(
    written: &'a PlanText,
    layout: &Layout,
    source: &Source<'_>,
) -> Result<Vec<DeclaredHost<'a>>, PlanError> {
    let shape = written
        .shape
        .as_ref()
        .map_or_else(|| unplaced(()), |shape| position(&shape.get_ref().kind));
    let drawn = layout
        .hosts
        .iter()
        .map(|(name, role)| (Spanned::new(shape.span(), name.clone()), *role, None));
    let mut hosts: Vec<DeclaredHost<'a>> = drawn.collect();
    let mut known: HashMap<String, usize> =
        layout.hosts.iter().map(|(name, _)| name.clone()).zip(0..).collect();
    let plain = written.hosts.iter().map(|(name, host)| (name, Role::Host, host));
    let routers = written.routers.iter().map(|(name, host)| (name, Role::Router, host));
    let mut described: Vec<_> = plain.chain(routers).collect();
    described.sort_by_key(|(name, ..)| name.span().start);
    for (name, role, text) in described {
        names::check_host(name.get_ref()).map_err(|wrong| source.error_at(name, wrong))?;
        match known.get(name.get_ref()) {
            Some(&number) if hosts[number].1 == role && hosts[number].2.is_none() => {
                hosts[number] = (name.clone(), role, Some(text));
            }
            Some(_) => {
                let name_of = name.get_ref().clone();
                return Err(source.error_at(name, Problem::HostTwice { name: name_of }));
            }
            None => {
                known.insert(name.get_ref().clone(), hosts.len());
                hosts.push((name.clone(), role, Some(text)));
            }
        }
        if hosts.len() > MAX_HOSTS {
            return Err(source.error_at(name, Problem::TooManyHosts));
        }
    }
    Ok(hosts)
}

fn hosts(
    written: &PlanText,
    layout: &Layout,
    source: &Source<'_>,
) -> Result<Vec<HostPlan>, PlanError> {
    let declared = declare_hosts(written, layout, source)?;
    let asked = |which: fn(&HostText) -> Option<&Spanned<String>>| {
        let one = |(name, _, text): &DeclaredHost<'_>| {
            (name.get_ref().clone(), text.and_then(which).cloned())
        };
        declared.iter().map(one).collect::<Vec<_>>()
    };
    let ipv4 = addresses::give(&asked(|text| text.address.as_ref()), source)?;
    let ipv6 = addresses::give(&asked(|text| text.address6.as_ref()), source)?;
    let mut hosts = Vec::with_capacity(declared.len());
    for ((name, role, text), (ipv4, ipv6)) in declared.iter().zip(ipv4.into_iter().zip(ipv6)) {
        let congestion = text.and_then(|text| text.congestion.as_ref());
        let own = text.map(|text| &text.sysctl);
        hosts.push(HostPlan {
            name: name.get_ref().clone(),
            role: *role,
            ipv4,
            ipv6,
            congestion: match congestion.or(written.congestion.as_ref()) {
                Some(congestion) => checked_congestion(congestion, source)?,
                None => CONGESTION.to_owned(),
            },
            sysctls: settings([Some(&written.sysctl), own], source)?,
            tuned: text.and_then(|text| text.tuned).unwrap_or(written.tuned),
            line: source.line(name),
        });
    }
    Ok(hosts)
}

/// A name as the kernel keeps it: at most 15 characters (`TCP_CA_NAME_MAX`).
/// Whether the machine has it, is for who makes the lab.
fn checked_congestion(name: &Spanned<String>, source: &Source<'_>) -> Result<String, PlanError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..16).contains(&name.get_ref().len()) && name.get_ref().chars().all(is_name) {
        return Ok(name.get_ref().clone());
    }
    let problem = Problem::Congestion { name: short(name.get_ref(), 20) };
    Err(source.error_at(name, problem))
}

/// Settings of all hosts, then a host's own, which take their place.
fn settings(
    layers: [Option<&Entries>; 2],
    source: &Source<'_>,
) -> Result<Vec<(String, String)>, PlanError> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for entry in layers.into_iter().flatten().flat_map(|layer| &layer.0) {
        let name = &entry.key;
        let key = || short(name, 60);
        let wrong =
            |problem| Err(source.error_at(&Spanned::new(entry.key_span.clone(), ()), problem));
        // The name becomes a path below /proc/sys.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.chars().all(is_name) || name.split('.').any(str::is_empty) {
            return wrong(Problem::SettingName { key: key() });
        }
        if !name.starts_with("net.") {
            return wrong(Problem::Setting { key: key() });
        }
        let Written::One(value) = &entry.value else {
            return wrong(Problem::SettingList { key: key() });
        };
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return wrong(Problem::SettingValue { key: key() });
        }
        match settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone_from(value),
            None => settings.push((name.clone(), value.clone())),
        }
    }
    Ok(settings)
}

fn links(
    written: &PlanText,
    layout: &Layout,
    find: &Find<'_>,
    paths: &mut Paths<'_, '_>,
) -> Result<Vec<LinkPlan>, PlanError> {
    let source = find.source;
    let mut links = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut add = |link: LinkPlan, position: &Spanned<()>| {
        if names.insert(link.name.clone(), links.len()).is_some() {
            return Err(source.error_at(position, Problem::LinkTwice { name: link.name }));
        }
        links.push(link);
        if links.len() > MAX_LINKS {
            return Err(source.error_at(position, Problem::TooManyLinks));
        }
        Ok(())
    };
    let read = |name: &str, text: &Spanned<String>, paths: &mut Paths<'_, '_>| {
        paths.parse(text.get_ref()).map_err(|error| {
            let reason = error.to_string();
            source.error_at(text, Problem::Path { link: name.to_owned(), reason })
        })
    };
    for link in &layout.links {
        let shape = written.shape.as_ref().map(|shape| shape.get_ref().position_of(link.part));
        let position = shape.unwrap_or_else(|| unplaced(()));
        let text = Spanned::new(position.span(), link.path.clone());
        let path = read(&link.name, &text, paths)?;
        let (line, name) = (source.line(&position), link.name.clone());
        add(LinkPlan { name, ends: link.ends, path, line }, &position)?;
    }
    for at in &written.links {
        let LinkText { name, between, path: text } = at.get_ref();
        let [first, second] = &between.get_ref()[..] else {
            return Err(source.error_at(between, Problem::Ends { ends: between.get_ref().len() }));
        };
        if let Some(name) = name {
            names::check("link", name.get_ref()).map_err(|wrong| source.error_at(name, wrong))?;
        }
        let joined = || [first, second].map(|end| short(end.get_ref(), 32)).join("-");
        let name_of = name.as_ref().map_or_else(joined, |name| name.get_ref().clone());
        let who = || format!("link '{name_of}'");
        let ends = [find.host(first, who)?, find.host(second, who)?];
        if ends[0] == ends[1] {
            let (link, host) = (name_of, first.get_ref().clone());
            return Err(source.error_at(second, Problem::Itself { link, host }));
        }
        let path = read(&name_of, text, paths)?;
        let (line, position) = (source.line(text), position(name.as_ref().unwrap_or(first)));
        add(LinkPlan { name: name_of, ends, path, line }, &position)?;
    }
    Ok(links)
}

fn overrides(
    written: &[Spanned<RouteText>],
    plan: &Plan,
    find: &Find<'_>,
) -> Result<Vec<RoutePlan>, PlanError> {
    let source = find.source;
    let mut routes: Vec<RoutePlan> = Vec::new();
    for at in written {
        let RouteText { on: on_name, to: to_name, via } = at.get_ref();
        let who = || format!("the route on {}", short(on_name.get_ref(), 32));
        let (on, to) = (find.host(on_name, who)?, find.host(to_name, who)?);
        if on == to {
            let on = on_name.get_ref().clone();
            return Err(source.error_at(to_name, Problem::RouteToItself { on }));
        }
        let names = || (on_name.get_ref().clone(), to_name.get_ref().clone());
        if routes.iter().any(|route| (route.on, route.to) == (on, to)) {
            let (on, to) = names();
            return Err(source.error_at(on_name, Problem::RouteTwice { on, to }));
        }
        let Some(link) = next_link(plan, on, via.get_ref()) else {
            let (on_name, to) = names();
            let mut known: Vec<&str> =
                plan.links_at(on).map(|link| plan.far_end(on, link).name.as_str()).collect();
            known.dedup();
            let known = listed(known.into_iter(), MAX_LISTED);
            let via_name = short(via.get_ref(), 32);
            let problem = Problem::NoNeighbour { on: on_name, to, via: via_name, known };
            return Err(source.error_at(via, problem));
        };
        routes.push(RoutePlan { on, to, link, line: source.line(via) });
    }
    Ok(routes)
}

/// The link at `on` that `via` means: the best one to the neighbour of that
/// name, or the one that is named so.
fn next_link(plan: &Plan, on: usize, via: &str) -> Option<usize> {
    let neighbour = |link: &usize| plan.far_end(on, *link).name == via;
    let best = plan.links_at(on).filter(neighbour).min_by_key(|link| routes::cost(plan, *link));
    best.or_else(|| plan.links_at(on).find(|link| plan.links[*link].name == via))
}
