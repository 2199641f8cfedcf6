//! Other users, other hosts, reboots, and settings that cannot be written.

use crate::fake::{Fake, identity};
use record::{Outcome, RevertOutcome, SettingStatus, TuneRollback};
use tune::{Decision, Goal, Identity, JournalError, Profile, Tuner, TunerError};

const RMEM: &str = "net.ipv4.tcp_rmem";
const CORE: &str = "net.core.rmem_max";
const GOAL: Goal = Goal::Profile(Profile::Server);

fn apply(fake: &Fake, goal: &Goal, persist: bool) -> record::TuneApplied {
    fake.tuner().apply(&fake.lock(), &fake.plan(goal), persist).unwrap()
}

fn undo(fake: &Fake, all: bool, decision: Decision) -> TuneRollback {
    fake.tuner().undo(&fake.lock(), all, &mut |_| decision).unwrap()
}

fn state(undone: &TuneRollback, key: &str) -> RevertOutcome {
    undone.settings.iter().find(|one| one.key == key).unwrap().state
}

#[test]
fn each_value_is_read_back() {
    let fake = Fake::new();
    fake.bounds.borrow_mut().insert(CORE.to_owned(), 1 << 20);
    let before = fake.snapshot();
    let applied = apply(&fake, &GOAL, false);
    for one in &applied.settings {
        let expected = if one.key == CORE { Outcome::Bounded } else { Outcome::Set };
        assert_eq!(one.outcome, expected, "{one:?}");
        assert_eq!(one.now, fake.get(&one.key));
    }
    // A value bounded by the kernel is still ours.
    let undone = undo(&fake, false, Decision::Keep);
    assert!(undone.settings.iter().all(|one| one.state == RevertOutcome::Restored), "{undone:?}");
    assert_eq!(fake.snapshot(), before);
}

#[test]
fn settings_without_write_access_are_skipped() {
    let fake = Fake::new();
    fake.hide("net.ipv4.tcp_ecn");
    fake.closed.borrow_mut().insert(CORE.to_owned(), 13);
    fake.closed.borrow_mut().insert("net.core.wmem_max".to_owned(), 30);
    // Opened, partly accepted, then refused: it must be unchanged.
    fake.refusing.borrow_mut().insert("net.ipv4.tcp_wmem".to_owned(), 22);
    let wmem = fake.get("net.ipv4.tcp_wmem");
    let plan = fake.plan(&GOAL);
    assert_eq!(plan.left_out[0].key, "net.ipv4.tcp_ecn");
    let applied = fake.tuner().apply(&fake.lock(), &plan, false).unwrap();
    let skipped: Vec<&str> = applied
        .settings
        .iter()
        .filter(|one| one.outcome == Outcome::Skipped && !one.note.is_empty())
        .map(|one| one.key.as_str())
        .collect();
    assert_eq!(skipped, [CORE, "net.core.wmem_max", "net.ipv4.tcp_wmem"]);
    assert_eq!(fake.get("net.ipv4.tcp_wmem"), wmem);
    assert_eq!(fake.get(RMEM), "4096 131072 134217728");
    let undone = undo(&fake, false, Decision::Keep);
    assert!(undone.settings.iter().all(|one| one.state == RevertOutcome::Restored), "{undone:?}");
    assert_eq!(fake.get(RMEM), "4096 131072 6291456");
}

#[test]
fn without_privileges_nothing_is_written() {
    let fake = Fake::new();
    let plan = fake.plan(&GOAL);
    for one in &plan.settings {
        fake.closed.borrow_mut().insert(one.key.clone(), 13);
    }
    let error = fake.tuner().dry_run(&plan, false).unwrap_err();
    assert!(matches!(error, TunerError::NotPermitted { .. }), "{error}");
    let error = fake.tuner().apply(&fake.lock(), &plan, true).unwrap_err();
    assert!(matches!(error, TunerError::NotPermitted { .. }), "{error}");
    assert_eq!(fake.left(), [""; 0]);
    // As in a user namespace, where opening is permitted and writing is not.
    for key in std::mem::take(&mut *fake.closed.borrow_mut()).into_keys() {
        fake.refusing.borrow_mut().insert(key, 1);
    }
    let before = fake.snapshot();
    let error = fake.tuner().apply(&fake.lock(), &plan, false).unwrap_err();
    assert!(matches!(error, TunerError::NotPermitted { .. }), "{error}");
    assert_eq!((fake.snapshot(), fake.left()), (before, vec![]));
}

#[test]
fn without_privileges_rollback_keeps_the_journal() {
    let fake = Fake::new();
    let before = fake.snapshot();
    apply(&fake, &GOAL, false);
    let tuned = fake.snapshot();
    fake.frozen.set(true);
    let error = fake.tuner().undo(&fake.lock(), true, &mut |_| panic!()).unwrap_err();
    assert!(matches!(error, TunerError::NotPermitted { .. }), "{error}");
    assert_eq!((fake.snapshot(), fake.left()), (tuned, vec!["000001.journal".to_owned()]));
    fake.frozen.set(false);
    undo(&fake, true, Decision::Keep);
    assert_eq!(fake.snapshot(), before);
}

#[test]
fn an_overriding_file_is_named() {
    let fake = Fake::new();
    let beside = |name: &str, text: &str| {
        std::fs::write(fake.conf.with_file_name(name), text).unwrap();
    };
    beside("10-early.conf", "net.core.rmem_max = 1\n");
    beside("99-sysctl.conf", "net.core.rmem_max = 2\n");
    beside("99-same.conf", "net/core/rmem_max = 268435456\n");
    let applied = apply(&fake, &GOAL, true);
    assert_eq!(applied.notes.len(), 1, "{:?}", applied.notes);
    assert!(applied.notes[0].contains("99-sysctl.conf overrides net.core.rmem_max"), "{applied:?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let fake = Fake::new();
    let before = fake.snapshot();
    let applied = fake.tuner().dry_run(&fake.plan(&GOAL), true).unwrap();
    assert!(applied.dry_run && applied.journal.is_none() && applied.settings.len() > 4);
    assert_eq!((fake.snapshot(), fake.left()), (before, vec![]));
}

#[test]
fn a_value_changed_by_others_needs_a_decision() {
    for (decision, ends, journals) in [
        (Decision::Overwrite, "212992", 0),
        (Decision::Accept, "777", 0),
        (Decision::Keep, "777", 1),
    ] {
        let fake = Fake::new();
        apply(&fake, &GOAL, false);
        fake.put(CORE, "777");
        let status = fake.tuner().status().unwrap();
        let standing =
            |key| status.applied[0].settings.iter().find(|one| one.key == key).unwrap().status;
        assert_eq!(
            (standing(CORE), standing(RMEM)),
            (SettingStatus::Foreign, SettingStatus::AsSet)
        );
        let mut asked = Vec::new();
        let undone = fake
            .tuner()
            .undo(&fake.lock(), false, &mut |foreign| {
                asked.push((foreign.key.to_owned(), foreign.now.map(str::to_owned)));
                decision
            })
            .unwrap();
        assert_eq!(asked, [(CORE.to_owned(), Some("777".to_owned()))]);
        assert_eq!((fake.get(CORE).as_str(), undone.remain), (ends, journals), "{decision:?}");
        assert_eq!(fake.get(RMEM), "4096 131072 6291456");
    }
}

#[test]
fn a_kept_value_can_be_overwritten_later() {
    let fake = Fake::new();
    let before = fake.snapshot();
    apply(&fake, &GOAL, false);
    fake.put(CORE, "777");
    let kept = undo(&fake, false, Decision::Keep);
    assert_eq!(
        (state(&kept, CORE), state(&kept, RMEM)),
        (RevertOutcome::Left, RevertOutcome::Restored)
    );
    let forced = undo(&fake, false, Decision::Overwrite);
    assert_eq!(
        (state(&forced, CORE), state(&forced, RMEM)),
        (RevertOutcome::Overwritten, RevertOutcome::AsBefore)
    );
    assert_eq!((fake.snapshot(), fake.left()), (before, vec![]));
}

#[test]
fn plans_stack_and_are_reverted_in_reverse_order() {
    let fake = Fake::new();
    let before = fake.snapshot();
    let gigabit =
        Goal::Target { rate: "1gbit".parse().unwrap(), rtt: "100ms".parse().unwrap(), streams: 1 };
    apply(&fake, &gigabit, true);
    let first = fake.snapshot();
    apply(&fake, &Goal::Profile(Profile::DataTransferNode10g), true);
    // The first plan's values do not count as changed by someone else.
    let status = fake.tuner().status().unwrap();
    let all = status.applied.iter().flat_map(|one| &one.settings);
    assert!(all.clone().all(|one| one.status == SettingStatus::AsSet), "{status:?}");
    assert!(
        status.applied.iter().all(|one| one.file.as_ref().unwrap().status == SettingStatus::AsSet)
    );
    // The boot file has the settings of both plans.
    let text = std::fs::read_to_string(&fake.conf).unwrap();
    for line in ["net.ipv4.tcp_rmem = 4096 131072 268435456", "net.ipv4.tcp_mtu_probing = 1"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(undo(&fake, false, Decision::Keep).remain, 1);
    assert_eq!(fake.snapshot(), first);
    assert_eq!(undo(&fake, false, Decision::Keep).remain, 0);
    assert_eq!((fake.snapshot(), fake.left()), (before.clone(), vec![]));
    // Both at once.
    apply(&fake, &gigabit, false);
    apply(&fake, &GOAL, true);
    assert_eq!(undo(&fake, true, Decision::Keep).undone, 2);
    assert_eq!((fake.snapshot(), fake.left()), (before, vec![]));
    assert_eq!(undo(&fake, true, Decision::Keep).undone, 0);
}

#[test]
fn an_apply_without_changes_writes_only_the_boot_file() {
    let fake = Fake::new();
    apply(&fake, &GOAL, false);
    let applied = apply(&fake, &GOAL, false);
    assert!(applied.journal.is_none() && applied.settings.is_empty());
    // The values of an earlier plan are kept for the next boot, too.
    let applied = apply(&fake, &GOAL, true);
    assert_eq!(applied.persisted.as_deref(), fake.conf.to_str());
    let text = std::fs::read_to_string(&fake.conf).unwrap();
    assert!(text.contains("net.core.rmem_max = 268435456"), "{text}");
    undo(&fake, true, Decision::Keep);
    assert!(!fake.conf.exists());
}

#[test]
fn an_edited_boot_file_needs_a_decision() {
    let fake = Fake::new();
    apply(&fake, &GOAL, true);
    std::fs::write(&fake.conf, "# mine\n").unwrap();
    let kept = undo(&fake, false, Decision::Keep);
    assert_eq!((kept.remain, state(&kept, fake.conf.to_str().unwrap())), (1, RevertOutcome::Left));
    assert_eq!(std::fs::read_to_string(&fake.conf).unwrap(), "# mine\n");
    undo(&fake, false, Decision::Overwrite);
    assert!(!fake.conf.exists());
}

#[test]
fn without_the_boot_directory_values_last_until_reboot() {
    let fake = Fake::new();
    std::fs::remove_dir(fake.conf.parent().unwrap()).unwrap();
    let applied = apply(&fake, &GOAL, true);
    assert_eq!(applied.persisted, None);
    let last = applied.settings.last().unwrap();
    assert!(last.outcome == Outcome::Skipped && last.note.contains("next boot"), "{last:?}");
    assert_eq!(undo(&fake, false, Decision::Keep).remain, 0);
}

fn after_a_boot(fake: &Fake) -> Tuner<'_> {
    Tuner { here: Identity { boot: "second".into(), network: 7, ..identity() }, ..fake.tuner() }
}

#[test]
fn a_reboot_resets_the_values_and_keeps_the_file() {
    let fake = Fake::new();
    let before = fake.snapshot();
    apply(&fake, &GOAL, false);
    fake.put(RMEM, "4096 131072 6291456");
    fake.put(CORE, "555");
    // Of a plan without a boot file nothing is left to revert.
    let others: Vec<String> = fake.snapshot().0;
    let undone = after_a_boot(&fake).undo(&fake.lock(), false, &mut |_| panic!()).unwrap();
    assert_eq!((undone.remain, state(&undone, CORE)), (0, RevertOutcome::Gone));
    assert!(undone.notes[0].contains("before the last boot"), "{:?}", undone.notes);
    assert_eq!(fake.snapshot().0, others);

    let fake = Fake::new();
    apply(&fake, &GOAL, true);
    // At boot the file set them again; then another program changed one.
    fake.put(CORE, "555");
    let status = after_a_boot(&fake).status().unwrap();
    assert!(status.applied[0].earlier_boot);
    let undone = after_a_boot(&fake).undo(&fake.lock(), false, &mut |_| panic!()).unwrap();
    assert_eq!(
        (state(&undone, RMEM), state(&undone, CORE)),
        (RevertOutcome::Restored, RevertOutcome::Gone)
    );
    assert!(!fake.conf.exists());
    fake.put(CORE, "212992");
    assert_eq!(fake.snapshot(), before);
}

#[test]
fn journals_of_other_network_namespaces_do_not_matter() {
    let fake = Fake::new();
    let lab = || Identity { network: 7, network_cookie: Some(42), ..identity() };
    let in_lab = Tuner { here: lab(), ..fake.tuner() };
    in_lab.apply(&fake.lock(), &fake.plan(&GOAL), false).unwrap();
    // Neither the host nor a later namespace with the same number has anything to do with it.
    for here in [identity(), Identity { network_cookie: Some(43), ..lab() }] {
        let elsewhere = Tuner { here, ..fake.tuner() };
        let status = elsewhere.status().unwrap();
        assert!(status.applied.is_empty(), "{status:?}");
        assert_eq!(status.other_networks[0].network, 7);
        let undone = elsewhere.undo(&fake.lock(), true, &mut |_| panic!()).unwrap();
        assert_eq!((undone.undone, undone.remain), (0, 0));
        // Another namespace has a value of its own.
        fake.put(CORE, "212992");
        elsewhere.apply(&fake.lock(), &fake.plan(&GOAL), false).unwrap();
        assert_eq!(elsewhere.undo(&fake.lock(), false, &mut |_| panic!()).unwrap().undone, 1);
    }
    let aside = |exists| fake.tuner().set_aside_gone(&fake.lock(), |_| exists).unwrap();
    assert!(aside(Some(true)).is_empty() && aside(None).is_empty());
    assert_eq!(in_lab.status().unwrap().applied.len(), 1);
    let gone = aside(Some(false));
    assert_eq!(gone, [fake.state.join("000001.journal.gone")]);
    assert!(gone[0].exists() && fake.tuner().status().unwrap().other_networks.is_empty());
}

#[test]
fn journals_of_others_are_refused() {
    let fake = Fake::new();
    apply(&fake, &GOAL, false);
    let tuned = fake.snapshot();
    let undo = |here: Identity| {
        let tuner = Tuner { here, ..fake.tuner() };
        tuner.undo(&fake.lock(), true, &mut |_| Decision::Overwrite).unwrap_err()
    };
    let error = undo(Identity { machine: "other".into(), ..identity() });
    assert!(matches!(error, TunerError::Journal(JournalError::OtherHost { .. })), "{error}");
    // Truncated by a disk error: unusable, and kept.
    let journal = fake.state.join("000001.journal");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, &text[..text.find('\n').unwrap() - 5]).unwrap();
    let error = undo(identity());
    assert!(matches!(error, TunerError::Journal(JournalError::Damaged { .. })), "{error}");
    assert!(error.to_string().contains("sysctl -w"), "{error}");
    assert_eq!(fake.snapshot(), tuned);
    assert!(journal.exists());
}
