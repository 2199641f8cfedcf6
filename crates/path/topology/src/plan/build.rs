//! From what was written to a plan that is checked.

use super::error::{PlanError, Problem};
use super::names::{self, listed, short};
use super::source::{At, Source};
use super::written::{HostText, LinkText, PlanText, RouteText};
use super::{
    HostPlan, LinkPlan, MAX_HOSTS, MAX_LINKS, Plan, Role, RoutePlan, addresses, changes, programs,
    time,
};
use crate::routes;
use crate::shapes::Layout;
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
    source: &Source,
    read: &mut Reader<'_>,
) -> Result<Plan, PlanError> {
    let mut paths = Paths { read, known: HashMap::new() };
    let name = match &written.name {
        Some(name) => {
            names::check("plan", &name.value).map_err(|wrong| source.error_at(name, wrong))?;
            name.value.clone()
        }
        None => name,
    };
    let duration = written.duration.as_ref().map(|duration| {
        let time = time::parse("duration", &duration.value.0);
        let time =
            time.and_then(|time| if time.is_zero() { Err(Problem::NoTime) } else { Ok(time) });
        time.map_err(|wrong| source.error_at(duration, wrong))
    });
    let driver = written.driver.as_ref().map(|driver| {
        driver.value.parse().map_err(|known| {
            let name = short(&driver.value, MAX_LISTED);
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
    pub(super) source: &'a Source,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl<'a> Find<'a> {
    fn new(plan: &Plan, source: &'a Source) -> Self {
        let names: Vec<String> = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let numbers = names.iter().cloned().zip(0..).collect();
        Find { source, names, numbers }
    }

    /// The host of that name; `who` asks for it.
    pub(super) fn host(
        &self,
        name: &At<String>,
        who: impl FnOnce() -> String,
    ) -> Result<usize, PlanError> {
        self.numbers.get(&name.value).copied().ok_or_else(|| {
            let host = short(&name.value, MAX_LISTED);
            let known = listed(self.names.iter().map(String::as_str), MAX_LISTED);
            self.source.error_at(name, Problem::UnknownHost { who: who(), host, known })
        })
    }
}

fn layout(
    written: &PlanText,
    source: &Source,
    paths: &mut Paths<'_, '_>,
) -> Result<Layout, PlanError> {
    let Some(shape) = &written.shape else { return Ok(Layout::default()) };
    let layout = shape.value.shape(source)?.layout(&mut |text| paths.parse(text));
    layout.map_err(|(part, problem)| source.error_at(&shape.value.position(part), problem))
}

/// A host's name, what it is, and what is said about it.
type DeclaredHost<'a> = (At<String>, Role, Option<&'a HostText>);

/// Every host: those of the shape first, which the file may say more about,
/// then the others in the order of writing.
fn declare_hosts<'a>(
    written: &'a PlanText,
    layout: &Layout,
    source: &Source,
) -> Result<Vec<DeclaredHost<'a>>, PlanError> {
    let shape =
        written.shape.as_ref().map_or(At::unplaced(()), |shape| shape.value.kind.position());
    let drawn = layout.hosts.iter().map(|(name, role)| (shape.map(|()| name.clone()), *role, None));
    let mut hosts: Vec<DeclaredHost<'a>> = drawn.collect();
    let mut known: HashMap<String, usize> =
        layout.hosts.iter().map(|(name, _)| name.clone()).zip(0..).collect();
    let plain = written.hosts.iter().map(|(name, host)| (name, Role::Host, host));
    let routers = written.routers.iter().map(|(name, host)| (name, Role::Router, host));
    let mut described: Vec<_> = plain.chain(routers).collect();
    described.sort_by_key(|(name, ..)| name.offset());
    for (name, role, text) in described {
        names::check_host(&name.value).map_err(|wrong| source.error_at(name, wrong))?;
        match known.get(&name.value) {
            Some(&number) if hosts[number].1 == role && hosts[number].2.is_none() => {
                hosts[number] = (name.clone(), role, Some(text));
            }
            Some(_) => {
                let name_of = name.value.clone();
                return Err(source.error_at(name, Problem::HostTwice { name: name_of }));
            }
            None => {
                known.insert(name.value.clone(), hosts.len());
                hosts.push((name.clone(), role, Some(text)));
            }
        }
        if hosts.len() > MAX_HOSTS {
            return Err(source.error_at(name, Problem::TooManyHosts));
        }
    }
    Ok(hosts)
}

fn hosts(written: &PlanText, layout: &Layout, source: &Source) -> Result<Vec<HostPlan>, PlanError> {
    let declared = declare_hosts(written, layout, source)?;
    let asked = |which: fn(&HostText) -> Option<&At<String>>| {
        let one = |(name, _, text): &DeclaredHost<'_>| {
            (name.value.clone(), text.and_then(which).cloned())
        };
        declared.iter().map(one).collect::<Vec<_>>()
    };
    let ipv4 = addresses::give(&asked(|text| text.address.as_ref()), source)?;
    let ipv6 = addresses::give(&asked(|text| text.address6.as_ref()), source)?;
    let mut hosts = Vec::with_capacity(declared.len());
    for ((name, role, text), (ipv4, ipv6)) in declared.iter().zip(ipv4.into_iter().zip(ipv6)) {
        let congestion = text.and_then(|text| text.congestion.as_ref());
        let own = text.map_or(&[][..], |text| &text.sysctl.0[..]);
        hosts.push(HostPlan {
            name: name.value.clone(),
            role: *role,
            ipv4,
            ipv6,
            congestion: match congestion.or(written.congestion.as_ref()) {
                Some(congestion) => checked_congestion(congestion, source)?,
                None => CONGESTION.to_owned(),
            },
            sysctls: settings(&[&written.sysctl.0, own], source)?,
            tuned: text.and_then(|text| text.tuned).unwrap_or(written.tuned),
            line: source.line(name),
        });
    }
    Ok(hosts)
}

/// A name as the kernel keeps it: at most 15 characters (`TCP_CA_NAME_MAX`).
/// Whether the machine has it, is for who makes the lab.
fn checked_congestion(name: &At<String>, source: &Source) -> Result<String, PlanError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..16).contains(&name.value.len()) && name.value.chars().all(is_name) {
        return Ok(name.value.clone());
    }
    let problem = Problem::Congestion { name: short(&name.value, 20) };
    Err(source.error_at(name, problem))
}

/// Settings of all hosts, then a host's own, which take their place.
fn settings(
    layers: &[&[(At<String>, String)]],
    source: &Source,
) -> Result<Vec<(String, String)>, PlanError> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for (at, value) in layers.iter().flat_map(|layer| layer.iter()) {
        let key = || short(&at.value, 60);
        // The name becomes a path below /proc/sys.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !at.value.chars().all(is_name) || at.value.split('.').any(str::is_empty) {
            return Err(source.error_at(at, Problem::SettingName { key: key() }));
        }
        if !at.value.starts_with("net.") {
            return Err(source.error_at(at, Problem::Setting { key: key() }));
        }
        if value.contains(char::is_control) && value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(source.error_at(at, Problem::SettingValue { key: key() }));
        }
        match settings.iter_mut().find(|(known, _)| *known == at.value) {
            Some((_, known)) => known.clone_from(value),
            None => settings.push((at.value.clone(), value.clone())),
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
    let mut add = |link: LinkPlan, position: &At<()>| {
        if names.insert(link.name.clone(), links.len()).is_some() {
            return Err(source.error_at(position, Problem::LinkTwice { name: link.name }));
        }
        links.push(link);
        if links.len() > MAX_LINKS {
            return Err(source.error_at(position, Problem::TooManyLinks));
        }
        Ok(())
    };
    let read = |name: &str, text: &At<String>, paths: &mut Paths<'_, '_>| {
        paths.parse(&text.value).map_err(|error| {
            let reason = error.to_string();
            source.error_at(text, Problem::Path { link: name.to_owned(), reason })
        })
    };
    for link in &layout.links {
        let shape = written.shape.as_ref().map(|shape| shape.value.position(link.part));
        let position = shape.unwrap_or(At::unplaced(()));
        let text = position.map(|()| link.path.clone());
        let path = read(&link.name, &text, paths)?;
        let (line, name) = (source.line(&position), link.name.clone());
        add(LinkPlan { name, ends: link.ends, path, line }, &position)?;
    }
    for at in &written.links {
        let LinkText { name, between, path: text } = &at.value;
        let [first, second] = &between.value[..] else {
            return Err(source.error_at(between, Problem::Ends { ends: between.value.len() }));
        };
        if let Some(name) = name {
            names::check("link", &name.value).map_err(|wrong| source.error_at(name, wrong))?;
        }
        let joined = || [first, second].map(|end| short(&end.value, 32)).join("-");
        let name_of = name.as_ref().map_or_else(joined, |name| name.value.clone());
        let who = || format!("link '{name_of}'");
        let ends = [find.host(first, who)?, find.host(second, who)?];
        if ends[0] == ends[1] {
            let (link, host) = (name_of, first.value.clone());
            return Err(source.error_at(second, Problem::Itself { link, host }));
        }
        let path = read(&name_of, text, paths)?;
        let (line, position) = (source.line(text), name.as_ref().unwrap_or(first).position());
        add(LinkPlan { name: name_of, ends, path, line }, &position)?;
    }
    Ok(links)
}

fn overrides(
    written: &[At<RouteText>],
    plan: &Plan,
    find: &Find<'_>,
) -> Result<Vec<RoutePlan>, PlanError> {
    let source = find.source;
    let mut routes: Vec<RoutePlan> = Vec::new();
    for at in written {
        let RouteText { on: on_name, to: to_name, via } = &at.value;
        let who = || format!("the route on {}", short(&on_name.value, 32));
        let (on, to) = (find.host(on_name, who)?, find.host(to_name, who)?);
        if on == to {
            let on = on_name.value.clone();
            return Err(source.error_at(to_name, Problem::RouteToItself { on }));
        }
        let names = || (on_name.value.clone(), to_name.value.clone());
        if routes.iter().any(|route| (route.on, route.to) == (on, to)) {
            let (on, to) = names();
            return Err(source.error_at(on_name, Problem::RouteTwice { on, to }));
        }
        let Some(link) = next_link(plan, on, &via.value) else {
            let (on_name, to) = names();
            let mut known: Vec<&str> =
                plan.links_at(on).map(|link| plan.far_end(on, link).name.as_str()).collect();
            known.dedup();
            let known = listed(known.into_iter(), MAX_LISTED);
            let via_name = short(&via.value, 32);
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
