//! Paths as people write them: `rate=100mbit,rtt=173ms,loss=0.1%,queue=1bdp`.
//!
//! A path is a list of `KEY=VALUE` parted by commas, or a name and then what
//! differs: `geo,loss=1%`, `paths.toml:office,up.rate=2mbit`.
//!
//! | key | value | |
//! |---|---|---|
//! | `rate` | `100mbit`, `unlimited`, `trace:FILE` | of the bottleneck; a trace is mahimahi's |
//! | `burst` | `64KiB` | token bucket: at once after a pause |
//! | `rtt` | `173ms` | half each way |
//! | `delay` | `86ms` | of one way |
//! | `jitter` | `5ms`, `uniform:5ms`, `exponential:5ms`, `pareto:5ms` | normal where not said |
//! | `overtake` | `yes`, `no` | whether jitter reorders; no |
//! | `loss` | `1%`, `ge:P:R[:BAD[:GOOD]]`, `list:3+7+10-20`, `replay:FILE[:LINK]` | |
//! | `bursts` | `10p@5s` | so many packets, so often |
//! | `blackhole` | `2s@7s` | dark for the last 2 s of every 7 s |
//! | `reorder` | `1%:5ms` | held back by so much |
//! | `duplicate`, `corrupt` | `0.1%` | |
//! | `window-scale` | `strip`, 0 to 14 | what a middlebox does to a SYN |
//! | `mtu` | `1500` | of the hosts' devices |
//! | `up.mtu`, `down.mtu` | `1400` | longer packets vanish |
//! | `police` | `10mbit:64KiB` | drops beyond it |
//! | `queue` | `1bdp`, `1000p`, `2MiB`, `250ms` | drop-tail, of that size |
//! | | `drop-head`, `codel`, `fq_codel`, `red`, `pie` | with `limit=` and the options of the discipline |
//! | `overhead` | `38` | framing bytes counted on each packet |
//! | `seed` | `7` | of the draws |
//!
//! The options of queues: `mark` (drop-tail and drop-head), `target`,
//! `interval`, `ecn` (CoDel and FQ-CoDel), `flows`, `quantum` (FQ-CoDel),
//! `min`, `max`, `probability`, `weight`, `ecn` (RED), `target`, `update`,
//! `max-burst`, `ecn` (PIE).
//!
//! `up.` (client to server) or `down.` before a key is for that direction
//! alone and wins over the key without it; `@5s.` before that sets it from 5 s
//! on, and `repeat=30s` begins again after 30 s. `none` takes an effect away.

mod error;
mod files;
mod key;
mod layer;
mod loss;
mod named;
mod names;
mod queues;
mod setting;
#[cfg(test)]
mod tests;
mod user;
mod way;
mod words;

pub use error::PathError;
pub use files::Reader;
pub use layer::{MAX_MTU, MIN_MTU};
pub use named::{NamedPath, PATHS};
pub use user::{UserPath, UserPaths};
pub use way::Way;

use files::{Files, no_files};
use key::Key;
use layer::Layer;
use link::{LinkConfig, Nanos, Schedule};
use setting::{Entry, RateAsked, Setting};
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};
use way::{Around, Asked};

/// MTU of the hosts' devices where none is asked: Ethernet's.
const DEFAULT_MTU: u32 = 1500;

/// A path that was checked: two directions, each with settings that may
/// change over time.
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
    /// The first from the beginning on, the others from their times; never empty.
    states: Vec<State>,
}

/// Both directions from some moment on.
#[derive(Debug, Clone, PartialEq)]
struct State {
    at: u64,
    ways: [Way; 2],
}

impl PathSpec {
    /// A path of that rate and round trip, everything else as it is by default.
    #[must_use]
    pub fn new(rate: BitRate, rtt: Rtt) -> Self {
        let text = format!("{}bit", rate.bps());
        let rate = Setting::Rate(RateAsked::Constant(rate));
        let rate = Entry { setting: rate, text };
        let mut layer = Layer::default();
        layer.settings.insert((0, Key::Rate), [Some(rate.clone()), Some(rate)]);
        let delays = Entry::of_rtt(rtt, &words::exact_time(rtt.nanos()));
        layer.settings.insert((0, Key::Delay), delays.map(Some));
        PathSpec::build(layer)
    }

    /// Reads a path; `read` is asked for the files it names.
    ///
    /// # Errors
    /// [`PathError`], one line that says what would be right.
    pub fn parse(text: &str, read: &mut Reader) -> Result<Self, PathError> {
        PathSpec::parse_among(text, &UserPaths::default(), read)
    }

    /// Reads a path that may also be one of the user's own.
    ///
    /// # Errors
    /// As [`PathSpec::parse`].
    pub fn parse_among(text: &str, user: &UserPaths, read: &mut Reader) -> Result<Self, PathError> {
        let mut files = Files { read, folder: String::new() };
        PathSpec::checked(names::read(text, user, &mut files)?)
    }

    /// This path with other settings, as if they were written last: what is
    /// given without a time replaces the key at all times.
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
            let [up, down] = &state.ways;
            // Where one way alone is wrong, say which.
            let (error, way) = match (up.check(), down.check()) {
                (Ok(()), Ok(())) => continue,
                (Err(error), Err(_)) => (error, ""),
                (Err(error), Ok(())) => (error, "up"),
                (Ok(()), Err(error)) => (error, "down"),
            };
            let when = match state.at {
                0 => String::new(),
                at => format!("from {} on", words::exact_time(at)),
            };
            let place = [way, &when].into_iter().filter(|words| !words.is_empty());
            let place: Vec<&str> = place.collect();
            return Err(match place.is_empty() {
                true => error,
                false => PathError::Shape(format!("{error} ({})", place.join(" "))),
            });
        }
        Ok(spec)
    }

    fn build(layer: Layer) -> Self {
        let mut asked = [Asked::default(), Asked::default()];
        let mut states = Vec::new();
        for at in layer.moments() {
            for ((_, key), slot) in layer.settings.range((at, Key::Rate)..=(at, Key::MaxBurst)) {
                for (asked, entry) in asked.iter_mut().zip(slot) {
                    if let Some(entry) = entry {
                        asked.set(*key, &entry.setting);
                    }
                }
            }
            let around = Around {
                rtt: asked.iter().map(|way| way.delay.nanos()).sum(),
                mtu: layer.mtu.unwrap_or(DEFAULT_MTU),
                overhead: layer.overhead.unwrap_or(0),
            };
            states.push(State { at, ways: asked.clone().map(|asked| Way::new(asked, around)) });
        }
        PathSpec { layer, states }
    }

    /// The ways from client to server and back, as they begin.
    #[must_use]
    pub fn ways(&self) -> [&Way; 2] {
        // There is always a beginning: `build` asks for it.
        let [up, down] = &self.states[0].ways;
        [up, down]
    }

    /// Both ways as they are from each moment on, the first at zero.
    pub fn states(&self) -> impl Iterator<Item = (Duration, [&Way; 2])> {
        self.states.iter().map(|state| {
            let [up, down] = &state.ways;
            (Duration::from_nanos(state.at), [up, down])
        })
    }

    /// Rate from client to server, a trace's mean; `None` where it is unlimited.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        self.ways()[0].rate()
    }

    /// Rate from server to client.
    #[must_use]
    pub fn down_rate(&self) -> Option<BitRate> {
        self.ways()[1].rate()
    }

    /// Round trip without serialisation and queueing, at the beginning.
    #[must_use]
    pub fn rtt(&self) -> Rtt {
        Rtt::from_nanos(self.ways().iter().map(|way| way.delay().nanos()).sum())
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

    /// Seed of the draws; `None` draws a new one for every run.
    #[must_use]
    pub const fn seed(&self) -> Option<u64> {
        self.layer.seed
    }

    /// Bandwidth-delay product of the faster way; zero where both are unlimited.
    #[must_use]
    pub fn bdp(&self) -> ByteCount {
        let [up, down] = self.ways().map(Way::bdp);
        up.max(down)
    }

    /// The most bytes the larger of the two queues can hold.
    #[must_use]
    pub fn queue_bytes(&self) -> ByteCount {
        let [up, down] = self.ways().map(Way::queue_bytes);
        up.max(down)
    }

    /// Memory that packets on the wire and in the queues can take, both ways,
    /// whatever the settings are at the time. A trace counts by its mean rate,
    /// jitter to all but one draw in a million, an unlimited rate as 20 Gbit/s.
    #[must_use]
    pub fn memory(&self) -> ByteCount {
        let most = |way: usize, of: &dyn Fn(&Way) -> ByteCount| {
            self.states.iter().map(|state| of(&state.ways[way])).max().unwrap_or_default()
        };
        // What one state left on the wire is there while the next one's queue fills.
        [0, 1].iter().fold(ByteCount::ZERO, |sum, way| {
            sum.plus(most(*way, &Way::in_flight)).plus(most(*way, &Way::queue_bytes))
        })
    }

    /// Whether something changes over time.
    #[must_use]
    pub fn has_schedule(&self) -> bool {
        self.states.len() > 1
    }

    /// The link from client to server, and the one back.
    #[must_use]
    pub fn schedules(&self, seed: u64) -> [Schedule; 2] {
        // The seeds of the two ways differ, or both would lose the same packets.
        [(0, seed), (1, !seed)].map(|(way, seed)| {
            let config = |state: &State| LinkConfig { seed, ..state.ways[way].config().clone() };
            let mut changes: Vec<(Nanos, LinkConfig)> = Vec::new();
            let start = config(&self.states[0]);
            for state in &self.states[1..] {
                let config = config(state);
                // The other way's changes are none of this one.
                if config != *changes.last().map_or(&start, |(_, last)| last) {
                    changes.push((Nanos(state.at), config));
                }
            }
            let repeat = self.layer.repeat.flatten().filter(|_| !changes.is_empty());
            Schedule { start, changes, repeat: repeat.map(Duration::from_nanos) }
        })
    }

    /// The path as it would be written: reads as this same path.
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

    /// Reads a path that names no files.
    fn from_str(text: &str) -> Result<Self, PathError> {
        PathSpec::parse(text, &mut no_files)
    }
}
