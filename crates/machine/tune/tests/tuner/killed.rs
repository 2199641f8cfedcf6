//! Killed at any point, every value is restored.

use crate::fake::{Fake, Last};
use tune::{Decision, Foreign, Goal, Profile, TunerError};

const LAST: [Last; 3] = [Last::Not, Last::Half, Last::Whole];

const WMEM: &str = "net.ipv4.tcp_wmem";

/// The plan lowers its second number too, so that a partial write is neither the previous
/// nor the planned value.
const ODD: &str = "4096 2000000000 4194304";

/// No other program changes anything in these tests.
fn nobody(foreign: &Foreign<'_>) -> Decision {
    panic!("taken for someone else's: {foreign:?}")
}

fn goal(choice: u64) -> Goal {
    match choice % 4 {
        0 => Goal::Profile(Profile::ALL[usize::try_from(choice / 4 % 5).unwrap()]),
        other => Goal::Target {
            rate: format!("{}gbit", 1 + choice / 4 % 20).parse().unwrap(),
            rtt: format!("{}ms", 30 * other).parse().unwrap(),
            streams: 1,
        },
    }
}

/// Applies a plan; returns whether it was killed.
fn apply(fake: &Fake, goal: &Goal, persist: bool, death: Option<(u32, Last)>) -> bool {
    let plan = fake.plan(goal);
    let lock = fake.lock();
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let applied = fake.tuner().apply(&lock, &plan, persist);
    let killed = fake.revive();
    assert!(killed || applied.is_ok(), "{applied:?}");
    killed
}

fn undo_all(fake: &Fake, death: Option<(u32, Last)>) -> bool {
    let lock = fake.lock();
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let undone = fake.tuner().undo(&lock, true, &mut nobody);
    let killed = fake.revive();
    if !killed {
        assert_eq!(undone.unwrap().remain, 0);
    }
    killed
}

fn as_before(fake: &Fake, before: &(Vec<String>, Option<String>), what: &str) {
    assert_eq!(&fake.snapshot(), before, "{what}");
    assert_eq!(fake.left(), [""; 0], "{what}");
}

#[test]
fn an_apply_killed_at_each_operation_is_reverted() {
    let goal = Goal::Profile(Profile::DataTransferNode100g);
    for last in LAST {
        let mut operation = 0;
        loop {
            operation += 1;
            let fake = Fake::new();
            fake.put(WMEM, ODD);
            let before = fake.snapshot();
            let killed = apply(&fake, &goal, true, Some((operation, last)));
            undo_all(&fake, None);
            as_before(&fake, &before, &format!("operation {operation}, {last:?}"));
            if !killed {
                break;
            }
        }
        // The journal (directory, file, name), 8 values with a line each, the boot file
        // (line, file, name), the last line.
        assert!(operation > 20, "{operation}");
    }
}

#[test]
fn a_rollback_killed_at_each_operation_can_be_resumed() {
    let goal = Goal::Profile(Profile::DataTransferNode100g);
    for last in LAST {
        let mut operation = 0;
        loop {
            operation += 1;
            let fake = Fake::new();
            fake.put(WMEM, ODD);
            std::fs::write(&fake.conf, "net.ipv4.tcp_sack = 1\n").unwrap();
            let before = fake.snapshot();
            apply(&fake, &goal, true, None);
            assert_ne!(fake.snapshot(), before);
            let killed = undo_all(&fake, Some((operation, last)));
            undo_all(&fake, None);
            as_before(&fake, &before, &format!("operation {operation}, {last:?}"));
            if !killed {
                break;
            }
        }
        assert!(operation > 10, "{operation}");
    }
}

/// Knuth's 64-bit generator: its high half.
struct Draws(u64);

impl Draws {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % below
    }

    fn death(&mut self, operations: u64) -> Option<(u32, Last)> {
        let last = LAST[usize::try_from(self.next(3)).unwrap()];
        Some((u32::try_from(1 + self.next(operations)).unwrap(), last))
    }
}

#[test]
fn five_hundred_kills_always_restore_the_values() {
    let mut draws = Draws(20_261_121);
    let (mut deaths, mut rounds) = (0, 0);
    while deaths < 500 {
        rounds += 1;
        let fake = Fake::new();
        fake.put("net.ipv4.tcp_sack", &draws.next(2).to_string());
        fake.put("net.ipv4.tcp_mtu_probing", &draws.next(3).to_string());
        if draws.next(2) == 0 {
            fake.put(WMEM, ODD);
        }
        if draws.next(2) == 0 {
            std::fs::write(&fake.conf, "net.core.rmem_max = 4194304\n").unwrap();
        }
        let before = fake.snapshot();
        // Several plans on top of each other; the last one is killed.
        let whole = draws.next(3);
        for _ in 0..whole {
            apply(&fake, &goal(draws.next(80)), draws.next(2) == 0, None);
        }
        let death = draws.death(24);
        let killed = apply(&fake, &goal(draws.next(80)), draws.next(2) == 0, death);
        deaths += u32::from(killed);
        // And the rollback repeatedly, too.
        while draws.next(3) > 0 {
            let death = draws.death(16);
            if !undo_all(&fake, death) {
                break;
            }
            deaths += 1;
        }
        undo_all(&fake, None);
        as_before(&fake, &before, &format!("round {rounds}, {death:?}"));
    }
}

#[test]
fn an_interrupted_apply_must_be_reverted_first() {
    let fake = Fake::new();
    let goal = Goal::Profile(Profile::Server);
    assert!(apply(&fake, &goal, false, Some((6, Last::Whole))));
    let refused = fake.tuner().apply(&fake.lock(), &fake.plan(&goal), false).unwrap_err();
    assert!(matches!(refused, TunerError::Interrupted(_)), "{refused}");
    let status = fake.tuner().status().unwrap();
    assert!(status.applied[0].interrupted);
    undo_all(&fake, None);
    assert!(fake.tuner().apply(&fake.lock(), &fake.plan(&goal), false).is_ok());
}
