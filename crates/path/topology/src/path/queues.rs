//! Queue settings: discipline, size, options, and defaults.

use super::bottleneck::Bottleneck;
use super::discipline::{Discipline, Options};
use super::error::PathError;
use super::key::Key;
use super::setting::Setting;
use super::size::{Size, size_in_words};
use link::{CoDel, Queue};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Probability, Rtt};

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueSetting {
    pub(super) discipline: Discipline,
    size: Option<Size>,
    options: BTreeMap<Key, Setting>,
}

impl Default for QueueSetting {
    fn default() -> Self {
        QueueSetting::new(Discipline::DropTail, None)
    }
}

impl QueueSetting {
    pub(super) const fn new(discipline: Discipline, size: Option<Size>) -> Self {
        QueueSetting { discipline, size, options: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, key: Key, option: Setting) {
        self.options.insert(key, option);
    }

    /// The size, given by `queue=` or `limit=`.
    pub(super) fn size(&self) -> Option<Size> {
        self.size.or_else(|| self.size_of(Key::Limit))
    }

    /// The settings for the link.
    pub(super) fn queue(&self, at: &Bottleneck) -> Queue {
        let limit = match self.size() {
            Some(size) => at.limit(size),
            None => self.discipline.default_limit(at),
        };
        self.discipline.queue(self, at, limit)
    }

    /// The key that gave the size, for messages.
    fn size_key(&self) -> &'static str {
        if self.options.contains_key(&Key::Limit) { "limit" } else { "queue" }
    }

    /// Checks the settings for that bottleneck.
    pub(super) fn check(&self, at: Option<&Bottleneck>) -> Result<(), PathError> {
        let entry = self.discipline.entry();
        if let Some(strange) = self.options.keys().find(|key| entry.default_of(**key).is_none()) {
            let has: Vec<&str> = entry.options.iter().map(|(key, _)| key.name()).collect();
            let wrong = format!(
                "not an option of a {} queue; its options are {}",
                entry.name,
                has.join(", ")
            );
            return Err(PathError::at(strange.name(), wrong));
        }
        if self.size.is_some() && self.options.contains_key(&Key::Limit) {
            let wrong = "the size is given in queue= already; give it once";
            return Err(PathError::at("limit", wrong));
        }
        at.map_or(Ok(()), |at| self.check_at(at))
    }

    fn check_at(&self, at: &Bottleneck) -> Result<(), PathError> {
        let queue = self.queue(at);
        let limit = at.bytes(queue.limit());
        if limit.bytes() < at.packet {
            let (key, least) = (self.size_key(), at.packet);
            let wrong = format!(
                "{limit} cannot hold a packet of {least} bytes; the minimum is {key}={least}, or {key}=1p"
            );
            return Err(PathError::at(key, wrong));
        }
        match queue {
            Queue::CoDel(codel) => check_codel(&codel, at),
            Queue::FqCoDel(fq) => check_codel(&fq.codel, at),
            Queue::Red(red) if red.min >= red.max => {
                let wrong = format!("{} is not less than max, {}", red.min, red.max);
                Err(PathError::at("min", wrong))
            }
            Queue::Red(red) if red.max > limit => {
                let wrong = format!("{} is above the limit, {limit}; raise limit=", red.max);
                Err(PathError::at("max", wrong))
            }
            _ => Ok(()),
        }
    }

    /// In words: `1 BDP (2.16 MB)`, `fq_codel, target 5 ms, …`.
    pub(super) fn in_words(&self, at: &Bottleneck) -> String {
        let queue = self.queue(at);
        let limit = queue.limit();
        let size = match self.size() {
            None if at.bytes(limit) == at.bdp() => Some(Size::Bdp(1000)),
            size => size,
        };
        let limit = size_in_words(size, limit, at.bytes(limit));
        self.discipline.in_words(&queue, self, at, limit)
    }
}

impl Options for QueueSetting {
    fn size_of(&self, key: Key) -> Option<Size> {
        match self.options.get(&key) {
            Some(Setting::Size(size)) => Some(*size),
            _ => None,
        }
    }

    fn time(&self, key: Key) -> Option<Duration> {
        match self.options.get(&key) {
            Some(Setting::Time(time)) => Some(time.duration()),
            _ => None,
        }
    }

    fn flag(&self, key: Key) -> Option<bool> {
        match self.options.get(&key) {
            Some(Setting::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    fn number(&self, key: Key) -> Option<u32> {
        match self.options.get(&key) {
            Some(Setting::Number(number)) => Some(*number),
            _ => None,
        }
    }

    fn share(&self, key: Key) -> Option<Probability> {
        match self.options.get(&key) {
            Some(Setting::Share(share)) => Some(*share),
            _ => None,
        }
    }
}

fn check_codel(codel: &CoDel, at: &Bottleneck) -> Result<(), PathError> {
    let packet = at.packet_time();
    let words =
        |time: Duration| Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    if codel.target < packet {
        let wrong = format!(
            "{} is less than the {} that a packet takes at {}; omit it, or write a longer time",
            words(codel.target),
            words(packet),
            at.rate
        );
        return Err(PathError::at("target", wrong));
    }
    if codel.interval <= codel.target {
        let wrong = format!(
            "{} is not longer than the target, {}; RFC 8289 recommends ten to twenty times the target",
            words(codel.interval),
            words(codel.target)
        );
        return Err(PathError::at("interval", wrong));
    }
    Ok(())
}
