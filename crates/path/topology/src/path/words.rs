//! Description of a path for people.

use super::PathSpec;
use super::direction::{DirectionSettings, PathDirection};
use super::quantity::exact_time;
use super::setting::RateSetting;
use link::{Distribution, GilbertElliott, Loss, TokenBucket, WindowScale};
use std::fmt;
use std::time::Duration;
use units::{LossRatio, Rtt};

/// The rate of one direction.
fn rate(direction: &PathDirection) -> String {
    match (&direction.settings.rate, direction.rate()) {
        (RateSetting::Trace(_, file), Some(mean)) => {
            format!("{mean} on average (trace {})", printable(file))
        }
        (_, Some(rate)) => match direction.settings.burst {
            Some(burst) => format!("{rate} with a burst of {burst}"),
            None => rate.to_string(),
        },
        (_, None) => "unlimited rate".to_owned(),
    }
}

/// Without control characters: file names may contain any.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn loss(settings: &DirectionSettings) -> String {
    match &settings.loss.model {
        Loss::None => LossRatio::NONE.to_string(),
        Loss::Bernoulli(ratio) => ratio.to_string(),
        Loss::GilbertElliott(model) => gilbert_elliott(model, settings),
        Loss::List(list) => match &settings.loss.log {
            Some(log) => format!("{} packets (log {})", list.len(), printable(log)),
            None => format!("{} listed packets", list.len()),
        },
        Loss::DataList(list) => format!("{} listed data packets", list.len()),
    }
}

fn gilbert_elliott(model: &GilbertElliott, settings: &DirectionSettings) -> String {
    let GilbertElliott { p, r, bad, good } = model;
    let mean = super::loss::mean(&settings.loss.model);
    format!("{mean} in bursts (Gilbert-Elliott p {p}, r {r}, bad {bad}, good {good})")
}

impl PathDirection {
    /// Its effects beside rate, delay and queue, in words: `loss 1 %`,
    /// `jitter normal 5 ms`.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        let settings = &self.settings;
        let loss = (settings.loss.model != Loss::None).then(|| format!("loss {}", loss(settings)));
        loss.into_iter().chain(other_effects(settings)).collect()
    }
}

fn other_effects(settings: &DirectionSettings) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((distribution, scale)) = settings.jitter {
        let kind = match distribution {
            Distribution::Normal => "normal",
            Distribution::Uniform => "uniform",
            Distribution::Exponential => "exponential",
            Distribution::Pareto => "Pareto",
        };
        let order = if settings.overtake { " with reordering" } else { "" };
        words.push(format!("jitter {kind} {scale}{order}"));
    }
    if let Some(bursts) = settings.bursts {
        let every = time(bursts.every);
        words.push(format!("bursts of {} lost packets every {every}", bursts.packets));
    }
    if let Some(hole) = settings.blackhole {
        words.push(format!(
            "blackhole for the last {} of every {}",
            time(hole.length),
            time(hole.every)
        ));
    }
    if let Some(reorder) = settings.reorder {
        words.push(format!("{} delayed by {} (reordering)", reorder.share, time(reorder.by)));
    }
    for (share, what) in [(settings.duplicate, "duplicated"), (settings.corrupt, "corrupted")] {
        if share != LossRatio::NONE {
            words.push(format!("{share} {what}"));
        }
    }
    match settings.window_scale {
        None => {}
        Some(WindowScale::Strip) => words.push("window scale stripped".to_owned()),
        Some(WindowScale::Set(shift)) => words.push(format!("window scale set to {shift}")),
    }
    if let Some(mtu) = settings.mtu {
        words.push(format!("packets over {mtu} bytes dropped"));
    }
    if let Some(bucket) = settings.police {
        words.push(format!("policed at {} with a burst of {}", bucket.rate, bucket.burst));
    }
    for (name, filter) in ["UDP", "TCP"].into_iter().zip(settings.filters) {
        if filter.blackhole {
            words.push(format!("{name} dropped"));
        }
        if let Some(TokenBucket { rate, burst }) = filter.policer {
            words.push(format!("{name} policed at {rate} with a burst of {burst}"));
        }
    }
    words
}

fn time(time: Duration) -> Rtt {
    Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// `X in each direction`, or both if they differ.
fn both_directions(words: [String; 2]) -> String {
    let [up, down] = words;
    if up == down { format!("{up} in each direction") } else { format!("{up} up and {down} down") }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directions = self.directions();
        write!(f, "{} counting IP bytes", both_directions(directions.map(rate)))?;
        if self.overhead() > 0 {
            write!(f, " and {} bytes of framing per packet", self.overhead())?;
        }
        write!(f, ", RTT {}", self.rtt())?;
        let [up, down] = directions.map(PathDirection::delay);
        // The halves of an odd number of nanoseconds count as equal.
        if up.nanos().abs_diff(down.nanos()) > 1 {
            write!(f, " ({up} up and {down} down)")?;
        }
        let losses = both_directions(directions.map(|direction| loss(&direction.settings)));
        write!(f, " without serialisation, loss {losses}, queue {}", self.queue_in_words())?;
        for words in both_or_either(directions.map(|direction| other_effects(&direction.settings)))
        {
            write!(f, ", {words}")?;
        }
        for change in self.changes_in_words() {
            write!(f, ", {change}")?;
        }
        Ok(())
    }
}

/// Effects of both directions once, then those of only one.
fn both_or_either([up, down]: [Vec<String>; 2]) -> Vec<String> {
    let both = up
        .iter()
        .filter(|words| down.contains(words))
        .map(|words| format!("{words} in each direction"));
    let only = |mine: &[String], others: &[String], direction: &str| {
        let mine = mine.iter().filter(|words| !others.contains(words));
        mine.map(|words| format!("{words} {direction}")).collect::<Vec<_>>()
    };
    both.chain(only(&up, &down, "up")).chain(only(&down, &up, "down")).collect()
}

impl PathSpec {
    /// The queues of both directions in words: `1 BDP (2.16 MB)`.
    #[must_use]
    pub fn queue_in_words(&self) -> String {
        let [up, down] = self.directions().map(PathDirection::queue_in_words);
        if up == down { up } else { format!("{up} up and {down} down") }
    }

    /// The changes over time, one text per moment: `from 5s: rate=2mbit`.
    #[must_use]
    pub fn changes_in_words(&self) -> Vec<String> {
        let layer = self.layer();
        let mut words: Vec<String> = layer
            .moments()
            .into_iter()
            .skip(1)
            .map(|at| {
                let written = layer.written(at).join(" ");
                format!("from {}: {}", exact_time(at), printable(&written))
            })
            .collect();
        if let Some(Some(repeat)) = layer.repeat {
            words.push(format!("repeated every {}", exact_time(repeat)));
        }
        words
    }
}
