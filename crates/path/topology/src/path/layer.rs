//! Settings by moment and direction, and how one set overrides another.

use super::error::{PathError, short};
use super::files::Files;
use super::key::{Key, Target};
use super::key_position::{KeyPosition, time_prefix};
use super::quantity::{exact_time, integer, quantity};
use super::setting::{Delay, Entry, Setting};
use std::collections::BTreeMap;
use units::Rtt;

/// Smallest MTU of a path: that which IPv6 requires of every link (RFC 8200,
/// section 5).
pub const MIN_MTU: u32 = 1280;

/// Largest MTU: the longest IPv4 packet there is.
pub const MAX_MTU: u32 = 65_535;

const DIRECTIONS: [&str; 2] = ["up", "down"];

/// By key, in the order in which they apply: up, down.
pub(super) type Settings = BTreeMap<Key, [Option<Entry>; 2]>;

/// What was requested, key by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layer {
    /// By the time from which they apply (ns, 0 the start).
    pub(super) settings: BTreeMap<u64, Settings>,
    pub(super) mtu: Option<u32>,
    pub(super) overhead: Option<u32>,
    pub(super) seed: Option<u64>,
    /// Period after which the changes start over, ns; `Some(None)`: never.
    pub(super) repeat: Option<Option<u64>>,
}

/// `KEY=VALUE`, the key with its prefixes.
pub(super) type Part = (String, String);

impl Layer {
    /// Parses settings. One with a direction overrides one without, in any order.
    pub(super) fn read(parts: &[Part], files: &mut Files) -> Result<Self, PathError> {
        let mut positions: Vec<(KeyPosition, &str, &str)> = Vec::with_capacity(parts.len());
        for (name, value) in parts {
            let position = KeyPosition::read(name)?;
            if positions.iter().any(|(other, ..)| *other == position) {
                let wrong = format!("{} is given twice; give it once", short(name));
                return Err(PathError::Shape(wrong));
            }
            let same = |other: &(KeyPosition, &str, &str)| {
                let both = [other.0.target, position.target];
                other.0.at == position.at
                    && both.contains(&Target::Rtt)
                    && both.contains(&Target::Direction(Key::Delay))
                    && other.0.direction.or(position.direction).is_none()
            };
            if positions.iter().any(same) {
                let wrong = "it conflicts with rtt; give one of them, or up.delay= or down.delay= for one direction";
                return Err(PathError::at("delay", wrong));
            }
            positions.push((position, name.as_str(), value.as_str()));
        }
        // A stable sort: both directions first, then those that override them.
        positions.sort_by_key(|(position, ..)| position.direction.is_some());
        let mut layer = Layer::default();
        for (position, name, value) in positions {
            // Settings are printed separated by commas.
            if value.contains(',') {
                let wrong = format!("'{}' contains a comma", short(value));
                return Err(PathError::at(name, wrong));
            }
            layer.take(position, name, value, files)?;
        }
        layer.split_partial_rtts();
        Ok(layer)
    }

    fn take(
        &mut self,
        position: KeyPosition,
        name: &str,
        value: &str,
        files: &mut Files,
    ) -> Result<(), PathError> {
        match position.target {
            Target::Direction(key) => {
                let entries = Entry::read(key, name, value, files)?;
                self.put(position, key, entries);
            }
            Target::Rtt => {
                let entries = Entry::of_rtt(quantity(name, value)?, value);
                self.put(position, Key::Delay, entries);
            }
            Target::DeviceMtu => {
                self.mtu = Some(integer(name, value, MIN_MTU, MAX_MTU, "mtu=1500, in bytes")?);
            }
            Target::Overhead => {
                let example = "overhead=38 for Ethernet, in bytes";
                self.overhead = Some(integer(name, value, 0, 1000, example)?);
            }
            Target::Seed => {
                let seed = value.parse().map_err(|_| {
                    PathError::at(name, format!("'{}' is not a whole number", short(value)))
                })?;
                self.seed = Some(seed);
            }
            Target::Repeat => {
                self.repeat = Some(match value {
                    "none" => None,
                    _ => Some(quantity::<Rtt>(name, value)?.nanos()),
                });
            }
        }
        Ok(())
    }

    fn put(&mut self, position: KeyPosition, key: Key, entries: [Entry; 2]) {
        let slot = self.settings.entry(position.at).or_default().entry(key).or_default();
        for (direction, entry) in entries.into_iter().enumerate() {
            if position.direction.is_none_or(|only| only == direction) {
                slot[direction] = Some(entry);
            }
        }
    }

    /// These settings over those of another layer. A setting from the start
    /// replaces those of any time; a queue replaces its options as well.
    pub(super) fn over(self, mut lower: Layer) -> Layer {
        for (at, key, slot) in self.entries() {
            for direction in (0..2).filter(|direction| slot[*direction].is_some()) {
                let from = lower.settings.iter_mut().filter(|(from, _)| at == 0 || **from == at);
                for (lower_key, lower_slot) in from.flat_map(|(_, settings)| settings) {
                    if *lower_key == key || key == Key::Queue && lower_key.is_queue_option() {
                        lower_slot[direction] = None;
                    }
                }
            }
        }
        for (at, settings) in self.settings {
            for (key, slot) in settings {
                let lower_slot = lower.settings.entry(at).or_default().entry(key).or_default();
                for (entry, lower_entry) in slot.into_iter().zip(lower_slot) {
                    *lower_entry = entry.or(lower_entry.take());
                }
            }
        }
        lower.mtu = self.mtu.or(lower.mtu);
        lower.overhead = self.overhead.or(lower.overhead);
        lower.seed = self.seed.or(lower.seed);
        lower.settings.retain(|_, settings| {
            settings.retain(|_, slot| slot.iter().any(Option::is_some));
            !settings.is_empty()
        });
        // Without changes, there is nothing to repeat.
        let changes = lower.settings.keys().any(|at| *at > 0);
        lower.repeat = self.repeat.or(lower.repeat.filter(|_| changes));
        lower.split_partial_rtts();
        lower
    }

    /// If one half of an rtt was replaced, the other half becomes a delay.
    fn split_partial_rtts(&mut self) {
        for (key, slot) in self.settings.values_mut().flatten() {
            let [up, down] = &*slot;
            let integer = up
                .as_ref()
                .zip(down.as_ref())
                .is_some_and(|(up, down)| up.text == down.text && of_rtt(up) && of_rtt(down));
            if *key != Key::Delay || integer {
                continue;
            }
            for entry in slot.iter_mut().flatten() {
                if let Setting::Delay(Delay { time, of_rtt: of_rtt @ true }) = &mut entry.setting {
                    *of_rtt = false;
                    entry.text = exact_time(time.nanos());
                }
            }
        }
    }

    /// The start, and the times of the changes.
    pub(super) fn moments(&self) -> Vec<u64> {
        let changes = self.settings.keys().copied().filter(|at| *at > 0);
        std::iter::once(0).chain(changes).collect()
    }

    /// Every setting with the time from which it applies, in ns.
    fn entries(&self) -> impl Iterator<Item = (u64, Key, &[Option<Entry>; 2])> {
        self.settings
            .iter()
            .flat_map(|(at, settings)| settings.iter().map(|(key, slot)| (*at, *key, slot)))
    }

    /// The settings given for a moment, in canonical form.
    pub(super) fn written(&self, at: u64) -> Vec<String> {
        let mut parts = Vec::new();
        for (key, slot) in self.settings.get(&at).into_iter().flatten() {
            match slot {
                [Some(up), Some(down)] if up.text == down.text && *key != Key::Mtu => {
                    let name = if of_rtt(up) { "rtt" } else { key.name() };
                    parts.push(format!("{name}={}", up.text));
                }
                _ => {
                    for (direction, entry) in DIRECTIONS.iter().zip(slot) {
                        let entry = entry.as_ref().map(|entry| &entry.text);
                        parts
                            .extend(entry.map(|text| format!("{direction}.{}={text}", key.name())));
                    }
                }
            }
        }
        parts
    }

    /// The canonical text of all settings.
    pub(super) fn canonical(&self) -> String {
        let mut parts = self.written(0);
        parts.extend(self.mtu.map(|mtu| format!("mtu={mtu}")));
        parts.extend(self.overhead.map(|overhead| format!("overhead={overhead}")));
        parts.extend(self.seed.map(|seed| format!("seed={seed}")));
        for at in self.moments().into_iter().skip(1) {
            let prefix = time_prefix(at);
            parts.extend(self.written(at).into_iter().map(|part| format!("{prefix}{part}")));
        }
        parts.extend(
            self.repeat
                .map(|repeat| format!("repeat={}", repeat.map_or("none".to_owned(), exact_time))),
        );
        parts.join(",")
    }

    /// Reports missing and contradictory settings.
    pub(super) fn check(&self) -> Result<(), PathError> {
        for (key, name) in [(Key::Rate, "rate"), (Key::Delay, "rtt")] {
            let slot = self.settings.get(&0).and_then(|settings| settings.get(&key));
            let lacks = |direction: usize| slot.is_none_or(|slot| slot[direction].is_none());
            let missing = match (lacks(0), lacks(1)) {
                (false, false) => continue,
                (true, true) => name.to_owned(),
                (up, _) => format!("{}.{}", DIRECTIONS[usize::from(!up)], key.name()),
            };
            let wrong = format!("{missing} is missing; write rate=100mbit,rtt=173ms");
            return Err(PathError::Shape(wrong));
        }
        for (direction, prefix) in DIRECTIONS.iter().enumerate() {
            let has = |wanted: Key| {
                self.entries().any(|(_, key, slot)| key == wanted && slot[direction].is_some())
            };
            if has(Key::Overtake) && !has(Key::Jitter) {
                let wrong = format!("it needs {prefix}.jitter; write jitter=5ms,overtake=yes");
                return Err(PathError::at("overtake", wrong));
            }
        }
        if let Some(Some(repeat)) = self.repeat {
            let last = self.moments().last().copied().unwrap_or(0);
            if last == 0 {
                let wrong = "nothing changes over time; add a change such as @5s.rate=2mbit";
                return Err(PathError::at("repeat", wrong));
            }
            if repeat <= last {
                let wrong = format!(
                    "{} is not after the last change, at {}; write a longer time",
                    exact_time(repeat),
                    exact_time(last)
                );
                return Err(PathError::at("repeat", wrong));
            }
        }
        Ok(())
    }
}

fn of_rtt(entry: &Entry) -> bool {
    matches!(entry.setting, Setting::Delay(Delay { of_rtt: true, .. }))
}
