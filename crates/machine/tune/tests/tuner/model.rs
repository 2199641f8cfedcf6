//! The tuner beside a model of a host: plans, rollbacks and changes by others in any order, killed
//! at any operation. After each, the model says which values, files and journals there are.

use crate::fake::{Fake, Last, half_of};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use record::{PlannedSetting, TunePlan};
use std::collections::BTreeMap;
use std::fs;
use tune::{Decision, Goal, Profile, TunerError};

const KEYS: [&str; 3] = ["net.ipv4.tcp_rmem", "net.core.rmem_max", "net.ipv4.tcp_sack"];

/// The values that plans and others give each setting; the first is that of an untuned host.
const VALUES: [[&str; 3]; 3] = [
    ["4096 131072 6291456", "4096 87380 16777216", "8192 131072 33554432"],
    ["212992", "16777216", "33554432"],
    ["1", "0", "2"],
];

/// The kill of a process: at which of its operations, and how far that got.
type Death = Option<(u32, Last)>;

/// The boot file: whether Longhaul wrote it, and its values.
type BootFile = Option<(bool, BTreeMap<String, String>)>;

#[derive(Debug, Clone)]
enum Event {
    Apply { plan: [Option<usize>; 3], persist: bool, death: Death },
    Undo { all: bool, decision: Decision, death: Death },
    OthersSet { key: usize, value: usize },
    OthersWriteBootFile(Option<usize>),
}

#[derive(Debug, Clone)]
struct Entry {
    key: usize,
    before: String,
    planned: String,
}

#[derive(Debug, Clone)]
struct Journal {
    number: u64,
    entries: Vec<Entry>,
    set: BTreeMap<usize, String>,
    file: Option<(BootFile, BootFile)>,
    ended: bool,
}

/// What is on the host, and how the last command ended.
#[derive(Debug, Clone)]
struct Host {
    values: [String; 3],
    boot_file: BootFile,
    journals: Vec<Journal>,
    /// The files of a journal, and of a boot file, that did not get their names.
    unfinished: bool,
    temporary: bool,
    killed: bool,
    refused: bool,
}

/// The operations of a process that may be killed.
struct Operations {
    death: Death,
    killed: bool,
}

impl Operations {
    /// How far the next one gets.
    fn next(&mut self) -> Last {
        match &mut self.death {
            _ if self.killed => Last::Not,
            None => Last::Whole,
            Some((more, _)) if *more > 1 => {
                *more -= 1;
                Last::Whole
            }
            Some((_, last)) => {
                self.killed = true;
                *last
            }
        }
    }

    /// Does all of the next one or, unless all is done, nothing. Whether the process goes on.
    fn whole(&mut self, work: impl FnOnce()) -> bool {
        if self.next() == Last::Whole {
            work();
        }
        !self.killed
    }

    /// A file is there as soon as some of it is.
    fn create(&mut self, is_there: &mut bool) -> bool {
        *is_there |= self.next() != Last::Not;
        !self.killed
    }

    /// Of several numbers, a write may reach some.
    fn write(&mut self, value: &mut String, new: &str) -> bool {
        match self.next() {
            Last::Not => {}
            Last::Half => *value = half_of(new, value),
            Last::Whole => new.clone_into(value),
        }
        !self.killed
    }
}

/// The value that Longhaul set, or a mix of it and the previous one.
fn is_ours(now: &str, before: &str, set: &str) -> bool {
    let numbers = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (now, before, set) = (numbers(now), numbers(before), numbers(set));
    (0..now.len()).all(|index| now[index] == before[index] || now[index] == set[index])
}

impl Host {
    /// `None` where the process was killed, as in all that follows.
    fn apply(
        &mut self,
        plan: &[Option<usize>; 3],
        persist: bool,
        operations: &mut Operations,
    ) -> Option<()> {
        self.refused = self.journals.last().is_some_and(|last| !last.ended);
        let planned = (0..3).filter_map(|key| Some((key, VALUES[key][plan[key]?])));
        let entries: Vec<Entry> = planned
            .filter(|(key, planned)| self.values[*key] != **planned)
            .map(|(key, planned)| Entry {
                key,
                before: self.values[key].clone(),
                planned: planned.to_owned(),
            })
            .collect();
        if self.refused || (entries.is_empty() && !persist) {
            return Some(());
        }
        let earlier: Vec<_> =
            self.journals.iter().flat_map(|journal| journal.set.clone()).collect();
        let number = self.journals.last().map_or(1, |last| last.number + 1);
        operations.whole(|| ()).then_some(())?;
        operations.create(&mut self.unfinished).then_some(())?;
        let (set, file) = (BTreeMap::new(), None);
        let journal = Journal { number, entries: entries.clone(), set, file, ended: false };
        let begun = operations.whole(|| {
            self.unfinished = false;
            self.journals.push(journal);
        });
        begun.then_some(())?;
        let journal = self.journals.last_mut()?;
        for Entry { key, planned, .. } in entries {
            operations.write(&mut self.values[key], &planned).then_some(())?;
            operations.whole(|| drop(journal.set.insert(key, planned))).then_some(())?;
        }
        let values = earlier.into_iter().chain(journal.set.clone());
        let values: BTreeMap<String, String> =
            values.map(|(key, value)| (KEYS[key].to_owned(), value)).collect();
        let mut all = self.boot_file.clone().unwrap_or_default().1;
        all.extend(values.clone());
        let planned = Some((true, all));
        if persist && !values.is_empty() && self.boot_file != planned {
            let change = (self.boot_file.clone(), planned.clone());
            operations.whole(|| journal.file = Some(change)).then_some(())?;
            operations.create(&mut self.temporary).then_some(())?;
            let renamed = operations.whole(|| {
                self.temporary = false;
                self.boot_file = planned;
            });
            renamed.then_some(())?;
        }
        if journal.set.is_empty() && journal.file.is_none() {
            operations.whole(|| drop(self.journals.pop()));
        } else {
            operations.whole(|| journal.ended = true);
        }
        Some(())
    }

    fn undo(&mut self, all: bool, decision: Decision, operations: &mut Operations) -> Option<()> {
        operations.whole(|| self.unfinished = false).then_some(())?;
        let most = if all { self.journals.len() } else { 1 };
        for index in (0..self.journals.len()).rev().take(most) {
            let journal = self.journals[index].clone();
            let mut is_kept = false;
            let mut may_write = |is_ours: bool| {
                is_kept |= !is_ours && decision == Decision::Keep;
                is_ours || decision == Decision::Overwrite
            };
            if let Some((before, planned)) = journal.file {
                operations.whole(|| self.temporary = false).then_some(())?;
                if self.boot_file != before && may_write(self.boot_file == planned) {
                    if before.is_some() {
                        operations.create(&mut self.temporary).then_some(())?;
                    }
                    let written = operations.whole(|| {
                        self.temporary = false;
                        self.boot_file = before;
                    });
                    written.then_some(())?;
                }
            }
            for Entry { key, before, planned } in journal.entries.iter().rev() {
                let now = &mut self.values[*key];
                let set = journal.set.get(key).unwrap_or(planned);
                if now != before && may_write(is_ours(now, before, set)) {
                    operations.write(now, before).then_some(())?;
                }
            }
            if !is_kept {
                operations.whole(|| drop(self.journals.remove(index))).then_some(())?;
            }
        }
        Some(())
    }
}

struct Model;

fn death() -> impl Strategy<Value = Death> {
    let last = prop_oneof![Just(Last::Not), Just(Last::Half), Just(Last::Whole)];
    prop_oneof![Just(None), (1..16u32, last).prop_map(Some)]
}

impl ReferenceStateMachine for Model {
    type State = Host;
    type Transition = Event;

    fn init_state() -> BoxedStrategy<Host> {
        Just(Host {
            values: VALUES.map(|values| values[0].to_owned()),
            boot_file: None,
            journals: Vec::new(),
            unfinished: false,
            temporary: false,
            killed: false,
            refused: false,
        })
        .boxed()
    }

    fn transitions(_: &Host) -> BoxedStrategy<Event> {
        let decision =
            prop_oneof![Just(Decision::Overwrite), Just(Decision::Accept), Just(Decision::Keep)];
        let plan = prop::array::uniform3(prop::option::of(0..3usize));
        prop_oneof![
            4 => (plan, any::<bool>(), death())
                .prop_map(|(plan, persist, death)| Event::Apply { plan, persist, death }),
            3 => (any::<bool>(), decision, death())
                .prop_map(|(all, decision, death)| Event::Undo { all, decision, death }),
            2 => (0..3usize, 0..3usize).prop_map(|(key, value)| Event::OthersSet { key, value }),
            1 => prop::option::of(0..3usize).prop_map(Event::OthersWriteBootFile),
        ]
        .boxed()
    }

    fn apply(mut host: Host, event: &Event) -> Host {
        (host.killed, host.refused) = (false, false);
        match event {
            Event::Apply { plan, persist, death } => {
                let mut operations = Operations { death: *death, killed: false };
                host.apply(plan, *persist, &mut operations);
                host.killed = operations.killed;
            }
            Event::Undo { all, decision, death } => {
                let mut operations = Operations { death: *death, killed: false };
                host.undo(*all, *decision, &mut operations);
                host.killed = operations.killed;
            }
            Event::OthersSet { key, value } => host.values[*key] = VALUES[*key][*value].to_owned(),
            Event::OthersWriteBootFile(sack) => {
                let values = |sack: &usize| [(KEYS[2].to_owned(), VALUES[2][*sack].to_owned())];
                host.boot_file = sack.as_ref().map(|sack| (false, values(sack).into()));
            }
        }
        host
    }
}

fn plan(fake: &Fake, choices: &[Option<usize>; 3]) -> TunePlan {
    let planned = (0..3).filter_map(|key| Some((KEYS[key], VALUES[key][choices[key]?])));
    let settings = planned.map(|(key, planned)| PlannedSetting {
        key: key.to_owned(),
        now: fake.get(key),
        planned: planned.to_owned(),
        why: String::new(),
        risk: String::new(),
    });
    TunePlan { settings: settings.collect(), ..fake.plan(&Goal::Profile(Profile::Server)) }
}

fn boot_file(fake: &Fake) -> BootFile {
    let text = fs::read_to_string(&fake.conf).ok()?;
    let values = text.lines().filter_map(|line| line.split_once(" = "));
    let values = values.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Some((text.starts_with("# Written by"), values))
}

struct Tuning;

impl StateMachineTest for Tuning {
    type SystemUnderTest = Fake;
    type Reference = Model;

    fn init_test(_: &Host) -> Fake {
        Fake::new()
    }

    fn apply(fake: Fake, host: &Host, event: Event) -> Fake {
        let begin = |death: Death| {
            if let Some((operation, last)) = death {
                fake.die_at(operation, last);
            }
        };
        match event {
            Event::Apply { plan: choices, persist, death } => {
                let (plan, lock) = (plan(&fake, &choices), fake.lock());
                begin(death);
                let applied = fake.tuner().apply(&lock, &plan, persist);
                assert_eq!(fake.revive(), host.killed, "{applied:?}");
                let is_refused = matches!(applied, Err(TunerError::Interrupted(_)));
                assert_eq!(is_refused, host.refused, "{applied:?}");
                assert_eq!(applied.is_ok(), !host.killed && !host.refused, "{applied:?}");
            }
            Event::Undo { all, decision, death } => {
                let lock = fake.lock();
                begin(death);
                let undone = fake.tuner().undo(&lock, all, &mut |_| decision);
                assert_eq!(fake.revive(), host.killed, "{undone:?}");
                if !host.killed {
                    assert_eq!(undone.unwrap().remain, host.journals.len());
                }
            }
            Event::OthersSet { key, value } => fake.put(KEYS[key], VALUES[key][value]),
            Event::OthersWriteBootFile(None) => drop(fs::remove_file(&fake.conf)),
            Event::OthersWriteBootFile(Some(sack)) => {
                fs::write(&fake.conf, format!("{} = {}\n", KEYS[2], VALUES[2][sack])).unwrap();
            }
        }
        fake
    }

    fn check_invariants(fake: &Fake, host: &Host) {
        assert_eq!(KEYS.map(|key| fake.get(key)), host.values);
        assert_eq!(boot_file(fake), host.boot_file);
        let mut expected: Vec<String> =
            host.journals.iter().map(|journal| format!("{:06}.journal", journal.number)).collect();
        expected.extend(host.unfinished.then(|| "unfinished".to_owned()));
        expected.extend(host.temporary.then(|| "90-longhaul.conf.new".to_owned()));
        let mut left = fake.left();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        let status = fake.tuner().status().unwrap();
        let interrupted: Vec<bool> = status.applied.iter().map(|plan| plan.interrupted).collect();
        let expected: Vec<bool> = host.journals.iter().map(|journal| !journal.ended).collect();
        assert_eq!(interrupted, expected);
    }

    /// However it went, one rollback that others do not disturb restores the oldest values.
    fn teardown(fake: Fake, mut host: Host) {
        let undone = fake.tuner().undo(&fake.lock(), true, &mut |_| Decision::Overwrite).unwrap();
        host.undo(true, Decision::Overwrite, &mut Operations { death: None, killed: false });
        assert_eq!(undone.remain, 0);
        assert!(host.journals.is_empty());
        Tuning::check_invariants(&fake, &host);
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_host_is_as_the_model_says(sequential 1..24 => Tuning);
}
