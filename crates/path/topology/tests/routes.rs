//! Routes over graphs of any form.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use proptest::prelude::*;
use std::fmt::Write as _;
use std::io;
use topology::plan::Role;
use topology::routes::{self, HostRoutes};
use topology::{Plan, PlanError};

fn parse(text: &str) -> Result<Plan, PlanError> {
    let mut no_files = |_: &str| Err(io::ErrorKind::NotFound.into());
    Plan::parse("graph.toml", text, &mut no_files)
}

/// Routers `r0` to `r(n-1)`, each joined to an earlier one, some more links
/// between them, and hosts that hang on them, each by one or two links.
fn graph() -> impl Strategy<Value = String> {
    let size = 1usize..9;
    size.prop_flat_map(|routers| {
        let tree = proptest::collection::vec((any::<prop::sample::Index>(), 0u32..4), routers - 1);
        let pair = (0..routers, 0..routers, 0u32..4);
        let more = proptest::collection::vec(pair, 0..8);
        let hosts = proptest::collection::vec((0..routers, 0u32..4), 2..8);
        let second = proptest::collection::vec((0..routers, 0u32..4), 0..3);
        (Just(routers), tree, more, hosts, second)
    })
    .prop_map(|(routers, tree, more, hosts, second)| {
        let mut text = String::new();
        for router in 0..routers {
            writeln!(text, "[router.r{router}]").unwrap();
        }
        for host in 0..hosts.len() {
            writeln!(text, "[host.h{host}]").unwrap();
        }
        let mut links = Vec::new();
        for (at, (earlier, rtt)) in tree.into_iter().enumerate() {
            links.push((format!("r{}", at + 1), format!("r{}", earlier.index(at + 1)), rtt));
        }
        for (one, other, rtt) in more {
            if one != other {
                links.push((format!("r{one}"), format!("r{other}"), rtt));
            }
        }
        for (host, (router, rtt)) in hosts.into_iter().enumerate().chain(second.into_iter().enumerate()) {
            links.push((format!("h{host}"), format!("r{router}"), rtt));
        }
        for (number, (one, other, rtt)) in links.into_iter().enumerate() {
            if one.starts_with('h') && one[1..].parse::<usize>().unwrap() >= 8 {
                continue;
            }
            writeln!(
                text,
                "[[link]]\nname = \"l{number}\"\nbetween = [\"{one}\", \"{other}\"]\npath = \"rate=1gbit,rtt={rtt}ms\""
            )
            .unwrap();
        }
        text
    })
}

/// Least round trip and, of those, least links from each host to each other,
/// through routers only (Floyd 1962): another way to the same figures.
fn least(plan: &Plan) -> Vec<Vec<Option<(u64, usize)>>> {
    let hosts = plan.hosts.len();
    let mut least = vec![vec![None; hosts]; hosts];
    for link in &plan.links {
        let [one, other] = link.ends;
        let cost = Some((link.path.rtt().nanos(), 1));
        for (from, to) in [(one, other), (other, one)] {
            if least[from][to].is_none() || cost < least[from][to] {
                least[from][to] = cost;
            }
        }
    }
    for through in (0..hosts).filter(|host| plan.hosts[*host].role == Role::Router) {
        for from in 0..hosts {
            for to in 0..hosts {
                let (Some(a), Some(b)) = (least[from][through], least[through][to]) else {
                    continue;
                };
                let sum: (u64, usize) = (a.0 + b.0, a.1 + b.1);
                if least[from][to].is_none_or(|known| sum < known) {
                    least[from][to] = Some(sum);
                }
            }
        }
    }
    least
}

proptest! {
    #[test]
    fn every_way_arrives_at_least_cost_through_routers_only(text in graph()) {
        let plan = parse(&text).unwrap();
        let table = routes::table(&plan).unwrap();
        let least = least(&plan);
        for (from, least) in least.iter().enumerate() {
            for to in (0..plan.hosts.len()).filter(|to| *to != from) {
                let way = table.links_between(&plan, from, to);
                let (mut at, mut rtt) = (from, 0);
                for link in &way {
                    prop_assert!(at == from || plan.hosts[at].role == Role::Router);
                    let ends = plan.links[*link].ends;
                    prop_assert!(ends.contains(&at));
                    at = if ends[0] == at { ends[1] } else { ends[0] };
                    rtt += plan.links[*link].path.rtt().nanos();
                }
                prop_assert_eq!(at, to);
                prop_assert_eq!(Some((rtt, way.len())), least[to]);
                let mut back = table.links_between(&plan, to, from);
                back.reverse();
                prop_assert_eq!(way, back);
            }
            prop_assert_eq!(table.next(from, from), None);
            match table.of(&plan, from) {
                HostRoutes::Default { link } => {
                    prop_assert_eq!(plan.links_at(from).collect::<Vec<_>>(), [link]);
                }
                HostRoutes::Each(hops) => {
                    prop_assert_eq!(hops.len(), plan.hosts.len() - 1);
                    for hop in hops {
                        prop_assert_eq!(table.next(from, hop.to), Some(hop.link));
                    }
                }
            }
        }
    }
}

/// alice on west, bob on east; between them `land` (10 ms a link) and `space`
/// (300 ms a link).
const TWO_WAYS: &str = r#"
host = { alice = {}, bob = {} }
router = { west = {}, land = {}, space = {}, east = {} }
link = [
    { between = ["alice", "west"], path = "rate=1gbit,rtt=1ms" },
    { between = ["west", "land"], path = "rate=1gbit,rtt=10ms" },
    { between = ["land", "east"], path = "rate=1gbit,rtt=10ms" },
    { between = ["west", "space"], path = "rate=1gbit,rtt=300ms" },
    { between = ["space", "east"], path = "rate=1gbit,rtt=300ms" },
    { between = ["east", "bob"], path = "rate=1gbit,rtt=1ms" },
    { name = "spare", between = ["west", "land"], path = "rate=1gbit,rtt=90ms" },
]
"#;

fn names(plan: &Plan, from: &str, to: &str) -> Vec<String> {
    let [from, to] = [from, to].map(|name| plan.host(name).unwrap());
    let way = routes::table(plan).unwrap().links_between(plan, from, to);
    way.into_iter().map(|link| plan.links[link].name.clone()).collect()
}

#[test]
fn a_route_takes_the_place_of_the_shortest() {
    let short = ["alice-west", "west-land", "land-east", "east-bob"];
    assert_eq!(names(&parse(TWO_WAYS).unwrap(), "alice", "bob"), short);

    let text = format!("{TWO_WAYS}\n[[route]]\non = \"west\"\nto = \"bob\"\nvia = \"space\"");
    let plan = parse(&text).unwrap();
    assert_eq!(
        names(&plan, "alice", "bob"),
        ["alice-west", "west-space", "space-east", "east-bob"]
    );
    let mut back = names(&plan, "bob", "alice");
    back.reverse();
    assert_eq!(back, short);

    let text = format!("{TWO_WAYS}\n[[route]]\non = \"west\"\nto = \"bob\"\nvia = \"spare\"");
    assert_eq!(
        names(&parse(&text).unwrap(), "alice", "bob"),
        ["alice-west", "spare", "land-east", "east-bob"]
    );
}

#[test]
fn routes_in_a_circle_are_refused() {
    let text = format!("{TWO_WAYS}\n[[route]]\non = \"land\"\nto = \"bob\"\nvia = \"west\"");
    let error = parse(&text).unwrap_err().to_string();
    assert_eq!(
        error,
        "graph.toml line 17: the routes to bob form a loop: land, west, land; change the one on land"
    );
}
