//! A path as text: `rate=100mbit,rtt=173ms,loss=0.1%,queue=1bdp`.
//!
//! A path is a comma-separated list of `KEY=VALUE`, or a name followed by
//! changes: `geo,loss=1%`, `paths.toml:office,up.rate=2mbit`. [`KEYS`] lists
//! every key.
//!
//! `up.` (client to server) or `down.` before a key applies to that direction
//! alone and overrides the key without it; `@5s.` before that applies 5 s after
//! the start, and `repeat=30s` starts over after 30 s. `none` turns an effect off.

mod bottleneck;
mod direction;
mod discipline;
mod error;
mod files;
mod key;
mod key_position;
mod key_table;
mod layer;
mod loss;
mod named;
mod names;
mod quantity;
mod queues;
mod setting;
mod size;
#[cfg(test)]
mod tests;
mod user;
mod words;

pub use direction::PathDirection;
pub use error::PathError;
pub use files::Reader;
pub use key_table::{KEYS, PathKey, key_help};
pub use layer::{MAX_MTU, MIN_MTU};
pub use named::{NamedPath, PATHS};
pub use user::{UserPath, UserPaths};

use direction::{DirectionSettings, PathContext};
use files::{Files, no_files};
use key::Key;
use layer::Layer;
use link::{LinkConfig, Schedule};
use setting::{Entry, RateSetting, Setting};
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount, Nanos, Rtt};

/// Default MTU of the hosts' devices: that of Ethernet.
const DEFAULT_MTU: u32 = 1500;

/// A checked path: two directions, each with settings that may change over time.
///
/// ```
/// use topology::PathSpec;
/// let path: PathSpec = "geo,loss=1%,@30s.down.rate=10mbit".parse().unwrap();
/// assert_eq!(path.rtt().to_string(), "600 ms");
/// let [up, down] = path.schedules(7);
/// assert_eq!((up.changes.len(), down.changes.len()), (0, 1));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    layer: Layer,
    /// The first from the start, the others from their times; never empty.
    states: Vec<State>,
}

/// Both directions from one moment on.
#[derive(Debug, Clone, PartialEq)]
struct State {
    at: u64,
    directions: [PathDirection; 2],
}

impl PathSpec {
    /// A path of that rate and round-trip time, with defaults for everything else.
    #[must_use]
    pub fn new(rate: BitRate, rtt: Rtt) -> Self {
        let text = format!("{}bit", rate.bps());
        let rate = Setting::Rate(RateSetting::Constant(rate));
        let rate = Entry { setting: rate, text };
        let mut layer = Layer::default();
        let delays = Entry::of_rtt(rtt, &quantity::exact_time(rtt.nanos()));
        let settings =
            [(Key::Rate, [Some(rate.clone()), Some(rate)]), (Key::Delay, delays.map(Some))];
        layer.settings.insert(0, settings.into());
        PathSpec::build(layer)
    }

    /// Parses a path; `read` provides the files that it names.
    ///
    /// # Errors
    /// [`PathError`], one line with a remedy.
    pub fn parse(text: &str, read: &mut Reader) -> Result<Self, PathError> {
        PathSpec::parse_among(text, &UserPaths::default(), read)
    }

    /// Parses a path that may be one of the user's own.
    ///
    /// # Errors
    /// As [`PathSpec::parse`].
    pub fn parse_among(text: &str, user: &UserPaths, read: &mut Reader) -> Result<Self, PathError> {
        let mut files = Files { read, folder: String::new() };
        PathSpec::checked(names::read(text, user, &mut files)?)
    }

    /// This path with changes, as if they were written last: a key without a time
    /// replaces that key at all times.
    ///
    /// # Errors
    /// As [`PathSpec::parse`].
    pub fn with(&self, changes: &str, read: &mut Reader) -> Result<Self, PathError> {
        let mut files = Files { read, folder: String::new() };
        let changes = names::read_changes(changes, &mut files)?;
        PathSpec::checked(changes.over(self.layer.clone()))
    }

    fn checked(layer: Layer) -> Result<Self, PathError> {
        layer.check()?;
        let spec = PathSpec::build(layer);
        for state in &spec.states {
            let [up, down] = &state.directions;
            // If only one direction is wrong, name it.
            let (error, direction) = match (up.check(), down.check()) {
                (Ok(()), Ok(())) => continue,
                (Err(error), Err(_)) => (error, ""),
                (Err(error), Ok(())) => (error, "up"),
                (Ok(()), Err(error)) => (error, "down"),
            };
            let when = match state.at {
                0 => String::new(),
                at => format!("from {}", quantity::exact_time(at)),
            };
            let position = [direction, &when].into_iter().filter(|words| !words.is_empty());
            let position: Vec<&str> = position.collect();
            return Err(match position.is_empty() {
                true => error,
                false => PathError::Shape(format!("{error} ({})", position.join(" "))),
            });
        }
        Ok(spec)
    }

    /// A path without a limit of rate and without delay.
    #[must_use]
    pub fn unlimited(mtu: u32) -> Self {
        PathSpec::build(Layer { mtu: Some(mtu), ..Layer::default() })
    }

    fn build(layer: Layer) -> Self {
        let mut settings = [DirectionSettings::default(), DirectionSettings::default()];
        let mut states = Vec::new();
        for at in layer.moments() {
            for (key, slot) in layer.settings.get(&at).into_iter().flatten() {
                for (settings, entry) in settings.iter_mut().zip(slot) {
                    if let Some(entry) = entry {
                        settings.set(*key, &entry.setting);
                    }
                }
            }
            let context = PathContext {
                rtt: settings.iter().map(|direction| direction.delay.nanos()).sum(),
                mtu: layer.mtu.unwrap_or(DEFAULT_MTU),
                overhead: layer.overhead.unwrap_or(0),
            };
            states.push(State {
                at,
                directions: settings.clone().map(|settings| PathDirection::new(settings, context)),
            });
        }
        PathSpec { layer, states }
    }

    /// The directions client to server and server to client, at the start.
    #[must_use]
    pub fn directions(&self) -> [&PathDirection; 2] {
        // Never empty: `build` adds the state at the start.
        let [up, down] = &self.states[0].directions;
        [up, down]
    }

    /// Both directions from each change on, the first at zero.
    pub fn states(&self) -> impl Iterator<Item = (Duration, [&PathDirection; 2])> {
        self.states.iter().map(|state| {
            let [up, down] = &state.directions;
            (Duration::from_nanos(state.at), [up, down])
        })
    }

    /// Rate from client to server (mean rate of a trace); `None` if unlimited.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        self.directions()[0].rate()
    }

    /// Rate from server to client.
    #[must_use]
    pub fn down_rate(&self) -> Option<BitRate> {
        self.directions()[1].rate()
    }

    /// Round-trip time without serialisation and queueing, at the start.
    #[must_use]
    pub fn rtt(&self) -> Rtt {
        Rtt::from_nanos(self.directions().iter().map(|direction| direction.delay().nanos()).sum())
    }

    /// Mean of the RTTs that a slow ping measures at the start: [`PathSpec::rtt`] with jitter
    /// and reordering.
    #[must_use]
    pub fn mean_rtt(&self) -> Duration {
        self.directions().iter().map(|direction| direction.config().mean_delay()).sum()
    }

    /// MTU of the hosts' devices, bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.layer.mtu.unwrap_or(DEFAULT_MTU)
    }

    /// Framing bytes counted on each packet: 0 counts IP bytes.
    #[must_use]
    pub fn overhead(&self) -> u32 {
        self.layer.overhead.unwrap_or(0)
    }

    /// Seed of the random draws; `None`: a new one for each run.
    #[must_use]
    pub const fn seed(&self) -> Option<u64> {
        self.layer.seed
    }

    /// Bandwidth-delay product of the faster direction; zero if both are unlimited.
    #[must_use]
    pub fn bdp(&self) -> ByteCount {
        let [up, down] = self.directions().map(PathDirection::bdp);
        up.max(down)
    }

    /// The most bytes the larger of the two queues can hold.
    #[must_use]
    pub fn queue_bytes(&self) -> ByteCount {
        let [up, down] = self.directions().map(PathDirection::queue_bytes);
        up.max(down)
    }

    /// Upper bound of the memory for packets in flight and in the queues, both
    /// directions, over all changes. A trace counts with its mean rate, jitter
    /// without one draw in a million, an unlimited rate as 20 Gbit/s.
    #[must_use]
    pub fn memory(&self) -> ByteCount {
        let most = |direction: usize, of: &dyn Fn(&PathDirection) -> ByteCount| {
            self.states
                .iter()
                .map(|state| of(&state.directions[direction]))
                .max()
                .unwrap_or_default()
        };
        // Packets in flight from one state overlap with the queue of the next.
        [0, 1].iter().fold(ByteCount::ZERO, |sum, direction| {
            sum.plus(most(*direction, &PathDirection::in_flight))
                .plus(most(*direction, &PathDirection::queue_bytes))
        })
    }

    /// Whether any setting changes over time.
    #[must_use]
    pub fn has_schedule(&self) -> bool {
        self.states.len() > 1
    }

    /// The link from client to server, and the one back.
    #[must_use]
    pub fn schedules(&self, seed: u64) -> [Schedule; 2] {
        // Different seeds, or both directions would lose the same packets.
        [(0, seed), (1, !seed)].map(|(direction, seed)| {
            let config =
                |state: &State| LinkConfig { seed, ..state.directions[direction].config().clone() };
            let mut changes: Vec<(Nanos, LinkConfig)> = Vec::new();
            let start = config(&self.states[0]);
            for state in &self.states[1..] {
                let config = config(state);
                // A change of the other direction only.
                if config != *changes.last().map_or(&start, |(_, last)| last) {
                    changes.push((Nanos(state.at), config));
                }
            }
            let repeat = self.layer.repeat.flatten().filter(|_| !changes.is_empty());
            Schedule { start, changes, repeat: repeat.map(Duration::from_nanos) }
        })
    }

    /// The canonical text: parses as this same path.
    #[must_use]
    pub fn to_spec(&self) -> String {
        self.layer.canonical()
    }

    fn layer(&self) -> &Layer {
        &self.layer
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    /// Parses a path that names no files.
    fn from_str(text: &str) -> Result<Self, PathError> {
        PathSpec::parse(text, &mut no_files)
    }
}
