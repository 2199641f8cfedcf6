//! Built-in topologies: who is joined to whom, by what.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io;
use topology::plan::{MAX_HOSTS, Role};
use topology::routes::{self, HostRoutes};
use topology::{PathSpec, Plan, Shape, ShapeKind};
use units::Rtt;

const PATH: &str = "rate=100mbit,rtt=40ms";

fn no_files(_: &str) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

fn plan(shape: &Shape) -> Plan {
    Plan::from_shape(shape, &mut no_files).unwrap()
}

fn refused(shape: &Shape) -> String {
    let error = Plan::from_shape(shape, &mut no_files).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

fn with_path(kind: ShapeKind) -> Shape {
    Shape { path: Some(PATH.to_owned()), ..Shape::new(kind) }
}

fn dumbbell(rtts: &[u64]) -> Shape {
    Shape {
        bottleneck: Some("rate=100mbit".to_owned()),
        rtts: rtts.iter().map(|millis| Rtt::from_nanos(millis * 1_000_000)).collect(),
        ..Shape::new(ShapeKind::Dumbbell)
    }
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.hosts.iter().map(|host| host.name.as_str()).collect()
}

/// Round trip from host to host, in ms.
fn millis(plan: &Plan, from: &str, to: &str) -> u64 {
    let table = routes::table(plan).unwrap();
    let [from, to] = [from, to].map(|name| plan.host(name).unwrap());
    let links = table.links_between(plan, from, to);
    links.iter().map(|link| plan.links[*link].path.rtt().nanos() / 1_000_000).sum()
}

#[test]
fn a_pair_is_what_one_link_gives() {
    let drawn = plan(&with_path(ShapeKind::Pair));
    let path = drawn.links[0].path.clone();
    assert_eq!(drawn, Plan::pair(path, "cubic", &[], false));
    assert_eq!(drawn.hosts[1].ipv4.to_string(), "10.0.0.2");
    assert_eq!(drawn.hosts[1].ipv6.to_string(), "fd00::2");
    let table = routes::table(&drawn).unwrap();
    assert_eq!(table.of(&drawn, 1), HostRoutes::Default { link: 0 });
}

#[test]
fn a_dumbbells_pairs_have_their_own_round_trips() {
    let plan = plan(&dumbbell(&[10, 40, 160]));
    assert_eq!(plan.name, "dumbbell");
    assert_eq!(
        names(&plan),
        ["client1", "client2", "client3", "server1", "server2", "server3", "left", "right"]
    );
    assert_eq!(plan.links.len(), 7);
    for (pair, rtt) in [(1, 10), (2, 40), (3, 160)] {
        assert_eq!(millis(&plan, &format!("client{pair}"), &format!("server{pair}")), rtt);
    }
    // All cross the bottleneck, and it has what they share.
    assert_eq!(
        plan.links[plan.link("bottleneck").unwrap()].path.rtt(),
        Rtt::from_nanos(10_000_000)
    );
    let (left, bottleneck) = (plan.host("left").unwrap(), plan.link("bottleneck").unwrap());
    assert_eq!(plan.device(left, bottleneck), "lab0");
    assert_eq!(plan.device(left, plan.link("client3-left").unwrap()), "lab3");
}

#[test]
fn a_dumbbells_bottleneck_may_have_its_own_round_trip() {
    let mut shape = dumbbell(&[20]);
    shape.pairs = Some(2);
    shape.bottleneck = Some("rate=100mbit,rtt=5ms".to_owned());
    let plan = plan(&shape);
    assert_eq!(millis(&plan, "left", "right"), 5);
    assert_eq!(millis(&plan, "client2", "server2"), 20);

    shape.rtts.clear();
    assert_eq!(millis(&self::plan(&shape), "client1", "server1"), 5);

    shape.rtts = vec![Rtt::from_nanos(4_000_000)];
    assert!(refused(&shape).contains("pair 1, 4 ms, is shorter than that of the bottleneck, 5 ms"));
}

#[test]
fn a_dumbbells_links_may_say_their_delays_and_queues_in_any_form() {
    let mut shape = dumbbell(&[700]);
    for (bottleneck, own) in [
        ("geo,loss=1%", 600),
        ("rate=100mbit,up.delay=3ms,down.delay=4ms", 7),
        ("rate=100mbit,@5s.loss=1%", 700),
        ("rate=100mbit,queue=codel,limit=500p", 700),
    ] {
        shape.bottleneck = Some(bottleneck.to_owned());
        let plan = plan(&shape);
        assert_eq!(millis(&plan, "left", "right"), own, "{bottleneck}");
        assert_eq!(millis(&plan, "client1", "server1"), 700, "{bottleneck}");
    }
    for access in
        ["rate=unlimited", "rate=1gbit,up.queue=10p,down.queue=20p", "rate=1gbit,queue=codel"]
    {
        shape.access = Some(access.to_owned());
        assert_eq!(millis(&plan(&shape), "client1", "server1"), 700, "{access}");
    }
    for access in ["geo", "rate=1gbit,up.delay=1ms"] {
        shape.access = Some(access.to_owned());
        assert!(refused(&shape).contains("omit rtt"), "{access}");
    }
}

#[test]
fn a_chain_has_routers_in_a_row() {
    let plan = plan(&Shape { routers: Some(3), ..with_path(ShapeKind::Chain) });
    assert_eq!(names(&plan), ["client", "server", "r1", "r2", "r3"]);
    let links: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["client-r1", "r1-r2", "r2-r3", "r3-server"]);
    assert_eq!(millis(&plan, "client", "server"), 160);
}

#[test]
fn a_star_has_a_router_in_the_middle() {
    let plan = plan(&Shape { hosts: Some(64), ..with_path(ShapeKind::Star) });
    assert_eq!(plan.hosts.len(), 65);
    assert_eq!(plan.hosts[64].role, Role::Router);
    assert_eq!(plan.hosts[63].ipv6.to_string(), "fd00::40");
    assert_eq!(millis(&plan, "host1", "host64"), 80);
    let table = routes::table(&plan).unwrap();
    assert_eq!(table.of(&plan, 5), HostRoutes::Default { link: 5 });
    assert!(matches!(table.of(&plan, 64), HostRoutes::Each(hops) if hops.len() == 64));
}

#[test]
fn the_largest_of_each_and_one_more() {
    let star = |hosts| Shape { hosts: Some(hosts), ..with_path(ShapeKind::Star) };
    let chain = |routers| Shape { routers: Some(routers), ..with_path(ShapeKind::Chain) };
    let pairs = |pairs| Shape { pairs: Some(pairs), ..dumbbell(&[10]) };
    for (fits, beyond) in
        [(star(249), star(250)), (chain(248), chain(249)), (pairs(124), pairs(125))]
    {
        assert_eq!(plan(&fits).hosts.len(), MAX_HOSTS);
        assert!(refused(&beyond).contains(" takes "));
    }
    for nothing in [star(0), star(1), chain(0), pairs(0), star(u32::MAX)] {
        assert!(refused(&nothing).contains(" takes "));
    }
}

#[test]
fn what_a_shape_lacks_or_does_not_have() {
    let says = |shape: &Shape, part: &str| {
        let error = refused(shape);
        assert!(error.contains(part), "{error}");
    };
    says(&Shape::new(ShapeKind::Pair), "a pair needs 'path'");
    says(&with_path(ShapeKind::Star), "a star needs 'hosts'");
    says(&with_path(ShapeKind::Chain), "a chain needs 'routers'");
    says(&Shape::new(ShapeKind::Dumbbell), "a dumbbell needs 'bottleneck'");
    says(&dumbbell(&[]), "a dumbbell needs 'pairs'");
    says(&Shape { pairs: Some(3), ..with_path(ShapeKind::Pair) }, "a pair has no key 'pairs'");
    says(&Shape { path: Some(PATH.to_owned()), ..dumbbell(&[10]) }, "a dumbbell has no key 'path'");
    says(&Shape { pairs: Some(3), ..dumbbell(&[10, 20]) }, "2 round-trip times for 3 pairs");
    let access = Some("rate=1gbit,rtt=3ms".to_owned());
    says(&Shape { access, ..dumbbell(&[10]) }, "omit rtt");
    let bottleneck = Some("rate=0".to_owned());
    says(&Shape { bottleneck, ..dumbbell(&[10]) }, "link 'bottleneck'");
    assert!("ring".parse::<ShapeKind>().unwrap_err().to_string().contains("the shapes are pair"));
}

#[test]
fn a_dumbbell_of_unequal_sides_has_one_path_and_a_link_for_each_host() {
    let path: PathSpec = "rate=100mbit,rtt=40ms,mtu=1400".parse().unwrap();
    let plan = Plan::dumbbell(path.clone(), 4, 2);
    let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    let expected =
        ["client1", "client2", "client3", "client4", "server1", "server2", "left", "right"];
    assert_eq!(names, expected);
    assert_eq!((plan.links.len(), plan.links[0].name.as_str()), (7, "path"));
    assert_eq!(plan.links[0].path, path);
    for link in &plan.links[1..] {
        let access = &link.path;
        assert_eq!((access.rate(), access.rtt().secs_f64(), access.mtu()), (None, 0.0, 1400));
    }
    // Upwards is from the clients to the servers on every link.
    let table = routes::table(&plan).unwrap();
    let ends = table.links_between(&plan, 0, 5).into_iter().map(|link| plan.links[link].ends);
    assert_eq!(ends.collect::<Vec<_>>(), [[0, 6], [6, 7], [7, 5]]);
}
