//! Routes that other programs change between a plan, its apply, the reading back and the undo.

use crate::fake::Fake;
use crate::fake_routes::Body;
use crate::routes::{CHANGED, COPIED, DEFAULT, apply, of, plan, table, undo_all};
use record::{Outcome, RevertOutcome, SettingStatus};
use tune::Decision;

#[test]
fn what_was_changed_but_not_read_back_is_reverted() {
    for prefix in [COPIED, CHANGED, DEFAULT] {
        let fake = Fake::with_routes();
        let (before, plan) = (table(&fake), plan(&fake, prefix));
        fake.busy_after_change.set(true);
        let applied = fake.tuner().apply_route(&fake.lock(), &plan).unwrap();
        assert!(applied.journal.is_some(), "{prefix}");
        assert_eq!(applied.routes[0].outcome, Outcome::Bounded);
        assert!(applied.routes[0].note.contains("not read back"));
        assert_ne!(table(&fake), before);
        fake.busy_after_change.set(false);
        fake.busy.set(false);
        undo_all(&fake, None);
        assert_eq!((table(&fake), fake.left()), (before, vec![]), "{prefix}");
    }
}

#[test]
fn a_copy_beside_another_programs_route_keeps_its_journal() {
    let fake = Fake::with_routes();
    let before = table(&fake);
    apply(&fake, COPIED, None);
    let priority = of(&fake, COPIED)[0].priority();
    let other = Body { prefix: COPIED, priority, gateway: "10.0.0.252", ..Body::default() };
    fake.routes.borrow_mut().push(other.route());
    let status = fake.tuner().status().unwrap();
    assert_eq!(status.applied[0].routes[0].status, SettingStatus::Foreign);
    let undone = fake.tuner().undo(&fake.lock(), false, &mut |_| Decision::Overwrite).unwrap();
    let route = &undone.routes[0];
    assert_eq!((route.state, undone.remain), (RevertOutcome::Failed, 1));
    assert!(route.note.contains("ip route del"), "{}", route.note);
    assert_eq!(of(&fake, COPIED).len(), 2);
    fake.routes.borrow_mut().pop();
    undo_all(&fake, None);
    assert_eq!((table(&fake), fake.left()), (before, vec![]));
}

#[test]
fn a_plan_is_not_applied_to_another_route() {
    let fake = Fake::with_routes();
    let (copied, changed) = (plan(&fake, COPIED), plan(&fake, CHANGED));
    // The gateway of the one, and all of the other, are gone by the time of the apply.
    fake.routes.borrow_mut()[0] =
        Body { priority: 100, protocol: 16, gateway: "10.0.0.251", ..Body::default() }.route();
    fake.routes.borrow_mut().remove(2);
    let before = table(&fake);
    for plan in [copied, changed] {
        let error = fake.tuner().apply_route(&fake.lock(), &plan).unwrap_err().to_string();
        assert!(error.contains("plan again"), "{error}");
        assert_eq!((table(&fake), fake.left()), (before.clone(), vec![]));
    }
}
