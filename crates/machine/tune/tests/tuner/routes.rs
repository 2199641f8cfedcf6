//! Routes changed and reverted: killed at any operation, changed by others, and with journals that
//! an attacker wrote.

use crate::fake::{Fake, Last, identity};
use crate::fake_routes::{Body, metrics, usual};
use host::kernel_route::KernelRoute;
use record::{Outcome, RevertOutcome, RouteChange, RouteMetrics, SettingStatus, TuneRoutePlan};
use sha2::{Digest, Sha256};
use std::fs;
use tune::{Decision, Identity, JournalError, RouteGoal, Tuner, TunerError, advise_route};

const LAST: [Last; 3] = [Last::Not, Last::Half, Last::Whole];

/// A prefix without a route of its own, one with, and the default route, of which there are two.
pub(crate) const COPIED: &str = "198.51.100.0/24";
pub(crate) const CHANGED: &str = "203.0.113.0/24";
pub(crate) const DEFAULT: &str = "0.0.0.0/0";

pub(crate) fn plan(fake: &Fake, prefix: &str) -> TuneRoutePlan {
    let (rate, rtt) = ("100mbit".parse().unwrap(), "173ms".parse().unwrap());
    let loss = Some("0.1%".parse().unwrap());
    let goal = RouteGoal { loss, ..RouteGoal::new(prefix.parse().unwrap(), rate, rtt) };
    advise_route(fake, fake, &goal).unwrap()
}

pub(crate) fn apply(fake: &Fake, prefix: &str, death: Option<(u32, Last)>) -> bool {
    let (plan, lock) = (plan(fake, prefix), fake.lock());
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let applied = fake.tuner().apply_route(&lock, &plan);
    let killed = fake.revive();
    assert!(killed || applied.is_ok(), "{applied:?}");
    killed
}

pub(crate) fn undo_all(fake: &Fake, death: Option<(u32, Last)>) -> bool {
    let lock = fake.lock();
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let undone = fake.tuner().undo(&lock, true, &mut |foreign| panic!("{foreign:?}"));
    let killed = fake.revive();
    if !killed {
        assert_eq!(undone.unwrap().remain, 0);
    }
    killed
}

/// Every byte of the table, in its order.
pub(crate) fn table(fake: &Fake) -> Vec<Vec<u8>> {
    fake.routes.borrow().iter().map(KernelRoute::body).collect()
}

pub(crate) fn of(fake: &Fake, prefix: &str) -> Vec<KernelRoute> {
    let prefix = prefix.parse().unwrap();
    fake.routes.borrow().iter().filter(|one| one.prefix() == prefix).cloned().collect()
}

#[test]
fn a_prefix_without_a_route_gets_a_copy_of_the_one_in_force() {
    let fake = Fake::with_routes();
    let before = table(&fake);
    let plan = plan(&fake, COPIED);
    assert_eq!(plan.change, RouteChange::Copy);
    let would = fake.tuner().dry_run_route(&plan).unwrap();
    assert!(would.dry_run && would.routes.len() == 1 && table(&fake) == before);
    let applied = fake.tuner().apply_route(&fake.lock(), &plan).unwrap();
    assert_eq!(applied.routes[0].outcome, Outcome::Set);
    let copy = &of(&fake, COPIED)[0];
    // That with the smaller metric is in force.
    let origin = &usual()[0];
    assert!(copy.is_own() && copy.is_same_path(origin) && copy.priority() == origin.priority());
    assert_eq!(copy.tcp_metrics(), metrics("bbr", 45));
    assert_eq!(table(&fake)[..3], before);
    let status = fake.tuner().status().unwrap();
    let route = &status.applied[0].routes[0];
    assert_eq!((route.status, &route.stale), (SettingStatus::AsSet, &None));
    undo_all(&fake, None);
    assert_eq!((table(&fake), fake.left()), (before, vec![]));
}

#[test]
fn a_route_of_its_own_gets_metrics_and_keeps_the_rest() {
    let fake = Fake::with_routes();
    let before = table(&fake);
    apply(&fake, CHANGED, None);
    let (now, was) = (&of(&fake, CHANGED)[0], &usual()[2]);
    // As many segments of its MTU as fit 64 KiB.
    assert_eq!(now.tcp_metrics(), metrics("bbr", 48));
    assert!(now.mtu() == Some(1400) && !now.is_own() && now.is_same_path(was));
    undo_all(&fake, None);
    assert_eq!(table(&fake), before);
    // Both default routes, for the one that is in force after a failure of the other.
    apply(&fake, DEFAULT, None);
    assert!(of(&fake, DEFAULT).iter().all(|one| one.tcp_metrics() == metrics("bbr", 45)));
    undo_all(&fake, None);
    assert_eq!(table(&fake), before);
}

#[test]
fn an_apply_of_routes_killed_at_each_operation_is_reverted() {
    for (prefix, least) in [(COPIED, 5), (CHANGED, 5), (DEFAULT, 7)] {
        for last in LAST {
            let mut operation = 0;
            loop {
                operation += 1;
                let fake = Fake::with_routes();
                let before = table(&fake);
                let killed = apply(&fake, prefix, Some((operation, last)));
                undo_all(&fake, None);
                let what = format!("{prefix}: operation {operation}, {last:?}");
                assert_eq!((table(&fake), fake.left()), (before, vec![]), "{what}");
                if !killed {
                    break;
                }
            }
            // The journal (directory, file, name), each route with a line, the last line.
            assert!(operation > least, "{operation}");
        }
    }
}

#[test]
fn a_rollback_of_routes_killed_at_each_operation_can_be_resumed() {
    for prefix in [COPIED, CHANGED, DEFAULT] {
        for last in LAST {
            let mut operation = 0;
            loop {
                operation += 1;
                let fake = Fake::with_routes();
                let before = table(&fake);
                apply(&fake, prefix, None);
                assert_ne!(table(&fake), before);
                let killed = undo_all(&fake, Some((operation, last)));
                undo_all(&fake, None);
                let what = format!("{prefix}: operation {operation}, {last:?}");
                assert_eq!((table(&fake), fake.left()), (before, vec![]), "{what}");
                if !killed {
                    break;
                }
            }
            assert!(operation > 3, "{operation}");
        }
    }
}

#[test]
fn plans_for_routes_and_sysctls_stack() {
    let fake = Fake::with_routes();
    let (values, before) = (fake.snapshot(), table(&fake));
    let sysctls = fake.plan(&tune::Goal::Profile(tune::Profile::Server));
    apply(&fake, COPIED, None);
    let copied = table(&fake);
    fake.tuner().apply(&fake.lock(), &sysctls, false).unwrap();
    // The copy is now the prefix's own route.
    let second = TuneRoutePlan { metrics: metrics("reno", 12), ..plan(&fake, COPIED) };
    fake.tuner().apply_route(&fake.lock(), &second).unwrap();
    assert_eq!(of(&fake, COPIED)[0].tcp_metrics(), metrics("reno", 12));
    let status = fake.tuner().status().unwrap();
    let all = status.applied.iter().flat_map(|one| &one.routes);
    assert!(all.clone().count() == 2 && all.clone().all(|one| one.status == SettingStatus::AsSet));
    // Those of one prefix are reverted alone, the last one first.
    let route = Some(COPIED.parse().unwrap());
    let undo = |route, all| {
        let undone = fake.tuner().undo_of(&fake.lock(), route, all, &mut |_| panic!()).unwrap();
        (undone.undone, undone.remain)
    };
    assert_eq!(undo(Some(CHANGED.parse().unwrap()), true), (0, 3));
    assert_eq!((undo(route, false), table(&fake)), ((1, 2), copied));
    assert_eq!((undo(route, true), table(&fake)), ((1, 1), before));
    assert_ne!(fake.snapshot(), values);
    assert_eq!((undo(None, false), fake.snapshot()), ((1, 0), values));
}

#[test]
fn metrics_changed_by_others_need_a_decision() {
    for (prefix, decision, left, overwritten) in [
        (CHANGED, Decision::Keep, 1, false),
        (CHANGED, Decision::Accept, 0, false),
        (CHANGED, Decision::Overwrite, 0, true),
        (COPIED, Decision::Keep, 1, false),
        (COPIED, Decision::Overwrite, 0, true),
    ] {
        let fake = Fake::with_routes();
        let before = table(&fake);
        apply(&fake, prefix, None);
        let others = of(&fake, prefix)[0].with_tcp_metrics(&metrics("reno", 99));
        for one in fake.routes.borrow_mut().iter_mut().filter(|one| one.prefix() == others.prefix())
        {
            *one = others.clone();
        }
        let status = fake.tuner().status().unwrap();
        assert_eq!(status.applied[0].routes[0].status, SettingStatus::Foreign);
        let mut asked = Vec::new();
        let mut decide = |foreign: &tune::Foreign<'_>| {
            asked.push(format!("{} {}", foreign.key, foreign.now.unwrap()));
            decision
        };
        let undone = fake.tuner().undo(&fake.lock(), false, &mut decide).unwrap();
        assert_eq!(undone.remain, left, "{prefix} {decision:?}");
        assert_eq!(table(&fake) == before, overwritten, "{prefix} {decision:?}");
        assert!(asked.len() == 1 && asked[0].ends_with("congctl reno initcwnd 99"), "{asked:?}");
    }
}

#[test]
fn a_route_that_others_moved_is_not_moved_back() {
    // The gateway of the prefix's own route has changed since: only its metrics are restored.
    let fake = Fake::with_routes();
    apply(&fake, CHANGED, None);
    let moved = Body { prefix: CHANGED, gateway: "10.0.0.77", device: 9, ..Body::default() };
    fake.routes.borrow_mut()[2] = moved.with(&metrics("bbr", 48));
    undo_all(&fake, None);
    assert!(of(&fake, CHANGED)[0].is_same_path(&moved.route()));
    assert_eq!(of(&fake, CHANGED)[0].tcp_metrics(), metrics("reno", 20));
    // Another route in the place of the copy stays.
    let fake = Fake::with_routes();
    apply(&fake, COPIED, None);
    let theirs = Body { prefix: COPIED, priority: 100, gateway: "10.0.0.77", ..Body::default() };
    fake.routes.borrow_mut()[3] = theirs.with(&metrics("bbr", 45));
    undo_all(&fake, None);
    assert_eq!(of(&fake, COPIED), [theirs.with(&metrics("bbr", 45))]);
    // Of routes that are gone nothing is left.
    for prefix in [COPIED, CHANGED] {
        let fake = Fake::with_routes();
        apply(&fake, prefix, None);
        fake.routes.borrow_mut().retain(|one| one.prefix() != prefix.parse().unwrap());
        let without = table(&fake);
        assert_eq!(fake.tuner().status().unwrap().applied[0].routes[0].now, None);
        undo_all(&fake, None);
        assert_eq!((table(&fake), fake.left()), (without, vec![]));
    }
}

#[test]
fn a_copy_is_stale_once_the_route_in_force_changes() {
    let fake = Fake::with_routes();
    apply(&fake, COPIED, None);
    let stale = |fake: &Fake| fake.tuner().status().unwrap().applied[0].routes[0].stale.clone();
    assert_eq!(stale(&fake), None);
    // Its metrics alone do not matter.
    let default = fake.routes.borrow()[0].clone();
    fake.routes.borrow_mut()[0] = default.with_tcp_metrics(&metrics("reno", 10));
    assert_eq!(stale(&fake), None);
    fake.routes.borrow_mut()[0] =
        Body { gateway: "10.0.0.1", priority: 100, ..Body::default() }.route();
    assert!(stale(&fake).unwrap().contains("via 10.0.0.1"), "{:?}", stale(&fake));
    // A VPN's route to a shorter prefix would be in force.
    fake.routes.borrow_mut()[0] = default;
    let vpn = Body { prefix: "128.0.0.0/1", gateway: "10.8.0.1", device: 7, ..Body::default() };
    fake.routes.borrow_mut().push(vpn.route());
    assert!(stale(&fake).unwrap().contains("128.0.0.0/1 via 10.8.0.1"), "{:?}", stale(&fake));
    fake.routes.borrow_mut().retain(|one| one.prefix() == COPIED.parse().unwrap());
    assert!(stale(&fake).unwrap().contains("gone"));
    // The rollback deletes it all the same.
    undo_all(&fake, None);
    assert!(table(&fake).is_empty());
}

#[test]
fn what_the_kernel_refuses_is_left_as_it_was() {
    let fake = Fake::with_routes();
    let before = table(&fake);
    let plan = plan(&fake, COPIED);
    fake.frozen.set(true);
    let error = fake.tuner().apply_route(&fake.lock(), &plan).unwrap_err();
    assert!(matches!(error, TunerError::RoutesNotPermitted { .. }), "{error}");
    fake.frozen.set(false);
    fake.no_routes.set(Some(101));
    let error = fake.tuner().apply_route(&fake.lock(), &plan).unwrap_err();
    assert!(matches!(error, TunerError::RouteRefused { .. }), "{error}");
    assert_eq!((table(&fake), fake.left()), (before, vec![]));
    // A rollback without privileges keeps the journal.
    fake.no_routes.set(None);
    apply(&fake, COPIED, None);
    fake.no_routes.set(Some(1));
    let error = fake.tuner().undo(&fake.lock(), true, &mut |_| panic!()).unwrap_err();
    assert!(matches!(error, TunerError::RoutesNotPermitted { .. }), "{error}");
    assert_eq!(fake.left(), ["000001.journal"]);
}

#[test]
fn after_a_boot_a_route_without_the_metrics_is_left() {
    let fake = Fake::with_routes();
    apply(&fake, CHANGED, None);
    fake.routes.replace(usual());
    let own = fake.routes.borrow()[2].with_tcp_metrics(&metrics("cubic", 11));
    fake.routes.borrow_mut()[2] = own;
    let before = table(&fake);
    let tuner = Tuner { here: Identity { boot: "second".into(), ..identity() }, ..fake.tuner() };
    let undone = tuner.undo(&fake.lock(), true, &mut |_| panic!()).unwrap();
    assert_eq!((undone.routes[0].state, table(&fake)), (RevertOutcome::Gone, before));
}

/// Writes a journal as an attacker would: with the right checksums.
fn forge(fake: &Fake, schema: &str, records: &[String]) {
    let begun = records.first().unwrap();
    let identity = serde_json::to_string(&identity()).unwrap();
    let first = format!(
        "{{\"begun\":{{\"schema\":\"{schema}\",\"version\":\"0\",\"at_s\":0,\"identity\":{identity},\
         \"goal\":\"x\",{begun}}}}}"
    );
    let line = |record: &String| {
        let sum: String =
            Sha256::digest(record.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("{{\"sum\":\"{sum}\",\"record\":{record}}}\n")
    };
    let lines = std::iter::once(&first).chain(&records[1..]).map(line);
    fs::create_dir_all(&fake.state).unwrap();
    fs::write(fake.state.join("000001.journal"), lines.collect::<String>()).unwrap();
}

fn entry(prefix: &str, priority: u32, change: &str, rest: &str) -> String {
    format!(
        "\"entries\":[],\"routes\":[{{\"prefix\":\"{prefix}\",\"priority\":{priority},\"change\":\
         \"{change}\",{rest}}}]"
    )
}

const V2: &str = "longhaul.tune-journal/2";

/// Where packets to a few addresses go.
fn paths(fake: &Fake) -> Vec<String> {
    use tune::RoutingTable;
    let to = ["198.51.100.7", "203.0.113.7", "192.0.2.7", "10.0.0.7"];
    to.map(|to| fake.lookup(to.parse().unwrap()).unwrap().path_words()).to_vec()
}

#[test]
fn no_forged_journal_redirects_packets() {
    let both = "\"before\":{},\"planned\":{\"congctl\":\"bbr\"}";
    for (prefix, priority, change) in [
        // Would delete the default route, or a route to a prefix.
        (DEFAULT, 100, "copy"),
        (DEFAULT, 600, "copy"),
        (CHANGED, 0, "copy"),
        // Would add a route.
        (COPIED, 0, "metrics"),
        (COPIED, 100, "copy"),
        (DEFAULT, 100, "metrics"),
        (CHANGED, 0, "metrics"),
    ] {
        let fake = Fake::with_routes();
        let (count, before) = (table(&fake).len(), paths(&fake));
        forge(&fake, V2, &[entry(prefix, priority, change, both)]);
        let undone = fake.tuner().undo(&fake.lock(), true, &mut |_| Decision::Overwrite).unwrap();
        assert_eq!(undone.remain, 0, "{undone:?}");
        assert_eq!((table(&fake).len(), paths(&fake)), (count, before), "{prefix} {change}");
        if change == "copy" {
            assert_eq!(
                table(&fake),
                Fake::with_routes()
                    .routes
                    .borrow()
                    .iter()
                    .map(KernelRoute::body)
                    .collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn journals_with_more_than_metrics_are_refused() {
    let metrics = "\"before\":{},\"planned\":{\"congctl\":\"bbr\"}";
    let right = entry(CHANGED, 0, "metrics", metrics);
    let line = |text: &str| text.to_owned();
    let cases: Vec<(&str, Vec<String>)> = vec![
        (V2, vec![entry(CHANGED, 0, "metrics", &format!("{metrics},\"gateway\":\"10.6.6.6\""))]),
        (V2, vec![entry(CHANGED, 0, "metrics", &format!("{metrics},\"device\":\"tun0\""))]),
        (V2, vec![entry(CHANGED, 0, "metrics", "\"before\":{\"mtu\":68},\"planned\":{}")]),
        (V2, vec![entry(CHANGED, 0, "metrics", "\"before\":{\"initcwnd\":0},\"planned\":{}")]),
        (V2, vec![entry(CHANGED, 0, "metrics", "\"before\":{\"initcwnd\":99999},\"planned\":{}")]),
        (V2, vec![entry(CHANGED, 0, "metrics", "\"before\":{\"congctl\":\"a b\"},\"planned\":{}")]),
        (V2, vec![entry("203.0.113.1/24", 0, "metrics", metrics)]),
        (V2, vec![entry("127.0.0.0/8", 0, "copy", metrics)]),
        (V2, vec![entry(CHANGED, 0, "redirect", metrics)]),
        // A route before there were any, and one beside a sysctl.
        ("longhaul.tune-journal/1", vec![right.clone()]),
        (
            V2,
            vec![right.replace(
                "[],",
                "[{\"key\":\"net.ipv4.tcp_sack\",\"before\":\"1\",\"planned\":\"0\"}],",
            )],
        ),
        (
            V2,
            vec![right.replacen(
                "[{",
                &format!(
                    "[{{\"prefix\":\"{CHANGED}\",\"priority\":0,\"change\":\"copy\",{metrics}}},{{"
                ),
                1,
            )],
        ),
        (V2, vec![right.clone(), line("{\"file\":{\"before\":null,\"planned\":\"\"}}")]),
        (
            V2,
            vec![
                right.clone(),
                line("{\"route-set\":{\"prefix\":\"192.0.2.0/24\",\"priority\":0,\"now\":{}}}"),
            ],
        ),
        (
            V2,
            vec![
                right.clone(),
                line("{\"route-set\":{\"prefix\":\"203.0.113.0/24\",\"priority\":7,\"now\":{}}}"),
            ],
        ),
    ];
    for (schema, records) in cases {
        let fake = Fake::with_routes();
        let before = table(&fake);
        forge(&fake, schema, &records);
        let error =
            fake.tuner().undo(&fake.lock(), true, &mut |_| Decision::Overwrite).unwrap_err();
        assert!(
            matches!(error, TunerError::Journal(JournalError::Damaged { .. })),
            "{records:?}: {error}"
        );
        assert_eq!(table(&fake), before);
    }
    // The same without those is one.
    let fake = Fake::with_routes();
    forge(&fake, V2, &[right]);
    assert_eq!(fake.tuner().status().unwrap().applied[0].routes.len(), 1);
}

#[test]
fn journals_of_the_version_before_routes_are_read() {
    let fake = Fake::with_routes();
    let before = fake.snapshot();
    fake.put("net.ipv4.tcp_sack", "0");
    let entries =
        "\"entries\":[{\"key\":\"net.ipv4.tcp_sack\",\"before\":\"1\",\"planned\":\"0\"}]";
    forge(&fake, "longhaul.tune-journal/1", &[entries.to_owned(), "\"ended\"".to_owned()]);
    undo_all(&fake, None);
    assert_eq!((fake.snapshot(), fake.left()), (before, vec![]));
}

#[test]
fn metrics_out_of_range_are_not_planned_for() {
    let fake = Fake::with_routes();
    let huge = RouteMetrics { initcwnd: Some(70_000), ..RouteMetrics::default() };
    fake.routes.borrow_mut()[2] = Body { prefix: CHANGED, ..Body::default() }.with(&huge);
    let goal = RouteGoal::new(
        CHANGED.parse().unwrap(),
        "100mbit".parse().unwrap(),
        "173ms".parse().unwrap(),
    );
    let error = advise_route(&fake, &fake, &goal).unwrap_err().to_string();
    assert!(error.contains("could not be restored"), "{error}");
}
