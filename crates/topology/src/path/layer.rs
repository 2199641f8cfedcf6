//! Settings by moment and direction, and how one set of them goes over
//! another.

use super::error::{PathError, short};
use super::files::Files;
use super::key::{Key, Place, Target, time_prefix};
use super::setting::{Delay, Entry, Setting, quantity, whole};
use super::words::exact_time;
use std::collections::BTreeMap;
use units::Rtt;

/// Smallest MTU of a path: what IPv6 asks of every link (RFC 8200, section 5).
pub const MIN_MTU: u32 = 1280;

/// Largest MTU: the longest IPv4 packet there is.
pub const MAX_MTU: u32 = 65_535;

const WAYS: [&str; 2] = ["up", "down"];

/// What was asked, key by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layer {
    /// By the time from which they hold (ns, 0 the beginning) and key: up, down.
    pub(super) settings: BTreeMap<(u64, Key), [Option<Entry>; 2]>,
    pub(super) mtu: Option<u32>,
    pub(super) overhead: Option<u32>,
    pub(super) seed: Option<u64>,
    /// After how many ns the settings begin again; `Some(None)`: never.
    pub(super) repeat: Option<Option<u64>>,
}

/// `KEY=VALUE`, the key with its prefixes.
pub(super) type Part = (String, String);

impl Layer {
    /// Reads settings. One with a direction before it wins over one without,
    /// in whatever order they stand.
    pub(super) fn read(parts: &[Part], files: &mut Files) -> Result<Self, PathError> {
        let mut places: Vec<(Place, &str, &str)> = Vec::with_capacity(parts.len());
        for (name, value) in parts {
            let place = Place::read(name)?;
            if places.iter().any(|(other, ..)| *other == place) {
                let wrong = format!("{} stands twice; give it once", short(name));
                return Err(PathError::Shape(wrong));
            }
            let same = |other: &(Place, &str, &str)| {
                let both = [other.0.target, place.target];
                other.0.at == place.at
                    && both.contains(&Target::Rtt)
                    && both.contains(&Target::Way(Key::Delay))
                    && other.0.way.or(place.way).is_none()
            };
            if places.iter().any(same) {
                let wrong = "it stands beside rtt; give one of them, or up.delay= or down.delay= to say otherwise for one way";
                return Err(PathError::at("delay", wrong));
            }
            places.push((place, name.as_str(), value.as_str()));
        }
        // A stable sort: both ways first, then what wins over it.
        places.sort_by_key(|(place, ..)| place.way.is_some());
        let mut layer = Layer::default();
        for (place, name, value) in places {
            // Printed, the settings are parted by commas.
            if value.contains(',') {
                let wrong = format!("'{}' has a comma in it; values have none", short(value));
                return Err(PathError::at(name, wrong));
            }
            layer.take(place, name, value, files)?;
        }
        layer.settle();
        Ok(layer)
    }

    fn take(
        &mut self,
        place: Place,
        name: &str,
        value: &str,
        files: &mut Files,
    ) -> Result<(), PathError> {
        match place.target {
            Target::Way(key) => {
                let entries = Entry::read(key, name, value, files)?;
                self.put(place, key, entries);
            }
            Target::Rtt => {
                let entries = Entry::of_rtt(quantity(name, value)?, value);
                self.put(place, Key::Delay, entries);
            }
            Target::DeviceMtu => {
                self.mtu = Some(whole(name, value, MIN_MTU, MAX_MTU, "mtu=1500, in bytes")?);
            }
            Target::Overhead => {
                let example = "overhead=38 for Ethernet, in bytes";
                self.overhead = Some(whole(name, value, 0, 1000, example)?);
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

    fn put(&mut self, place: Place, key: Key, entries: [Entry; 2]) {
        let slot = self.settings.entry((place.at, key)).or_default();
        for (way, entry) in entries.into_iter().enumerate() {
            if place.way.is_none_or(|only| only == way) {
                slot[way] = Some(entry);
            }
        }
    }

    /// These settings, and under them those of another. What is set from the
    /// beginning replaces what was set for any time; a queue takes its options
    /// with it.
    pub(super) fn over(self, mut lower: Layer) -> Layer {
        for ((at, key), slot) in &self.settings {
            for way in (0..2).filter(|way| slot[*way].is_some()) {
                for ((lower_at, lower_key), lower_slot) in &mut lower.settings {
                    let time = *at == 0 || lower_at == at;
                    let goes =
                        *lower_key == *key || *key == Key::Queue && lower_key.is_queue_option();
                    if time && goes {
                        lower_slot[way] = None;
                    }
                }
            }
        }
        for (place, slot) in self.settings {
            let lower_slot = lower.settings.entry(place).or_default();
            for (entry, lower_entry) in slot.into_iter().zip(lower_slot) {
                *lower_entry = entry.or(lower_entry.take());
            }
        }
        lower.mtu = self.mtu.or(lower.mtu);
        lower.overhead = self.overhead.or(lower.overhead);
        lower.seed = self.seed.or(lower.seed);
        lower.settings.retain(|_, slot| slot.iter().any(Option::is_some));
        // Where nothing changes any more, what was below has nothing to repeat.
        let changes = lower.settings.keys().any(|(at, _)| *at > 0);
        lower.repeat = self.repeat.or(lower.repeat.filter(|_| changes));
        lower.settle();
        lower
    }

    /// Half of a round trip whose other half was replaced becomes a delay of
    /// its own.
    fn settle(&mut self) {
        for ((_, key), slot) in &mut self.settings {
            let [up, down] = &*slot;
            let whole = up
                .as_ref()
                .zip(down.as_ref())
                .is_some_and(|(up, down)| up.text == down.text && of_rtt(up) && of_rtt(down));
            if *key != Key::Delay || whole {
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

    /// The moments at which something changes, and the beginning.
    pub(super) fn moments(&self) -> Vec<u64> {
        let mut moments: Vec<u64> = self.settings.keys().map(|(at, _)| *at).collect();
        moments.push(0);
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// The settings that hold from a moment on, each as it would be written.
    pub(super) fn written(&self, at: u64) -> Vec<String> {
        let mut parts = Vec::new();
        for ((_, key), slot) in self.settings.range((at, Key::Rate)..=(at, Key::MaxBurst)) {
            match slot {
                [Some(up), Some(down)] if up.text == down.text && *key != Key::Mtu => {
                    let name = if of_rtt(up) { "rtt" } else { key.name() };
                    parts.push(format!("{name}={}", up.text));
                }
                _ => {
                    for (way, entry) in WAYS.iter().zip(slot) {
                        let entry = entry.as_ref().map(|entry| &entry.text);
                        parts.extend(entry.map(|text| format!("{way}.{}={text}", key.name())));
                    }
                }
            }
        }
        parts
    }

    /// The whole, as it would be written.
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

    /// Says what must be there and is not, and what contradicts the rest.
    pub(super) fn check(&self) -> Result<(), PathError> {
        for (key, name) in [(Key::Rate, "rate"), (Key::Delay, "rtt")] {
            let slot = self.settings.get(&(0, key));
            let lacks = |way: usize| slot.is_none_or(|slot| slot[way].is_none());
            let missing = match (lacks(0), lacks(1)) {
                (false, false) => continue,
                (true, true) => name.to_owned(),
                (up, _) => format!("{}.{}", WAYS[usize::from(!up)], key.name()),
            };
            let wrong = format!("{missing} is missing; write rate=100mbit,rtt=173ms");
            return Err(PathError::Shape(wrong));
        }
        for (way, prefix) in WAYS.iter().enumerate() {
            let has = |wanted: Key| {
                let mut all = self.settings.iter();
                all.any(|((_, key), slot)| *key == wanted && slot[way].is_some())
            };
            if has(Key::Overtake) && !has(Key::Jitter) {
                let wrong = format!("there is no {prefix}.jitter; write jitter=5ms,overtake=yes");
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
                    "{} is not after the last change, at {}; write more",
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
