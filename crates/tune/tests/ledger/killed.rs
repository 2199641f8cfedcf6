//! Killed anywhere, everything is put back.

use crate::fake::{Fake, Last};
use tune::{Decision, Foreign, Goal, LedgerError, Profile};

const LAST: [Last; 3] = [Last::Not, Last::Half, Last::Whole];

const WMEM: &str = "net.ipv4.tcp_wmem";

/// Its second number is brought down too, so that half of a write is neither
/// the value before nor the one planned.
const ODD: &str = "4096 2000000000 4194304";

/// Nobody else changes anything in these tests.
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

/// Applies until it comes to its end; tells whether it was killed before.
fn apply(fake: &Fake, goal: &Goal, persist: bool, death: Option<(u32, Last)>) -> bool {
    let plan = fake.plan(goal);
    let lock = fake.lock();
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let applied = fake.ledger().apply(&lock, &plan, persist);
    let killed = fake.revive();
    assert!(killed || applied.is_ok(), "{applied:?}");
    killed
}

fn undo_all(fake: &Fake, death: Option<(u32, Last)>) -> bool {
    let lock = fake.lock();
    if let Some((operation, last)) = death {
        fake.die_at(operation, last);
    }
    let undone = fake.ledger().undo(&lock, true, &mut nobody);
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
fn an_apply_killed_at_each_operation_is_undone() {
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
        // The journal (folder, file, name), 8 values with a line each, the file
        // for each boot (line, file, name), the last line.
        assert!(operation > 20, "{operation}");
    }
}

#[test]
fn a_rollback_killed_at_each_operation_goes_on_where_it_was() {
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

/// Knuth's generator of 64 bits: its high half.
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
fn killed_five_hundred_times_the_values_before_are_always_restored() {
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
        // Several plans on top of each other; the last is killed.
        let whole = draws.next(3);
        for _ in 0..whole {
            apply(&fake, &goal(draws.next(80)), draws.next(2) == 0, None);
        }
        let death = draws.death(24);
        let killed = apply(&fake, &goal(draws.next(80)), draws.next(2) == 0, death);
        deaths += u32::from(killed);
        // And the rollback, too, again and again.
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
fn nothing_goes_on_top_of_an_apply_that_was_broken_off() {
    let fake = Fake::new();
    let goal = Goal::Profile(Profile::Server);
    assert!(apply(&fake, &goal, false, Some((6, Last::Whole))));
    let refused = fake.ledger().apply(&fake.lock(), &fake.plan(&goal), false).unwrap_err();
    assert!(matches!(refused, LedgerError::BrokenOff(_)), "{refused}");
    let status = fake.ledger().status().unwrap();
    assert!(status.applied[0].broken_off);
    undo_all(&fake, None);
    assert!(fake.ledger().apply(&fake.lock(), &fake.plan(&goal), false).is_ok());
}
