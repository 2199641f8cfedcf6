//! A path in words.

use super::PathSpec;
use super::queues::Size;
use super::setting::RateAsked;
use super::way::{Asked, Way};
use link::{Distribution, GilbertElliott, Limit, Loss, WindowScale};
use std::fmt;
use std::time::Duration;
use units::{ByteCount, LossRatio, Rtt};

/// A time in the largest unit that holds it whole: `5s`, `1500ms`.
pub(super) fn exact_time(nanos: u64) -> String {
    match nanos {
        0 => "0s".to_owned(),
        _ if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}

/// A size as it was asked, and what that is in bytes.
pub(super) fn size_in_words(size: Option<Size>, limit: Limit, bytes: ByteCount) -> String {
    match size {
        Some(Size::Bdp(1000)) => format!("1 BDP ({bytes})"),
        Some(Size::Bdp(thousandths)) => {
            format!("{}.{:03} BDP ({bytes})", thousandths / 1000, thousandths % 1000)
        }
        Some(Size::Time(time)) => format!("{time} ({bytes})"),
        _ => match limit {
            Limit::Packets(packets) => format!("{packets} packets"),
            Limit::Bytes(bytes) => bytes.to_string(),
        },
    }
}

/// The rate of one way.
fn rate(way: &Way) -> String {
    match (&way.asked.rate, way.rate()) {
        (RateAsked::Trace(_, file), Some(mean)) => {
            format!("{mean} on average by the trace {}", printable(file))
        }
        (_, Some(rate)) => match way.asked.burst {
            Some(burst) => format!("{rate} with bursts of {burst}"),
            None => rate.to_string(),
        },
        (_, None) => "unlimited rate".to_owned(),
    }
}

/// A name that came from a file may hold anything.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn loss(asked: &Asked) -> String {
    match &asked.loss.model {
        Loss::None => LossRatio::NONE.to_string(),
        Loss::Bernoulli(ratio) => ratio.to_string(),
        Loss::GilbertElliott(model) => gilbert_elliott(model, asked),
        Loss::List(list) => match &asked.loss.log {
            Some(log) => format!("of {} packets by the log {}", list.len(), printable(log)),
            None => format!("of {} listed packets", list.len()),
        },
    }
}

fn gilbert_elliott(model: &GilbertElliott, asked: &Asked) -> String {
    let GilbertElliott { p, r, bad, good } = model;
    // Three decimals of a percent are enough for people.
    let mean = format!("{:.3}", super::loss::mean(&asked.loss.model).fraction() * 100.0);
    let mean = mean.trim_end_matches('0').trim_end_matches('.');
    format!("{mean} % in bursts (Gilbert-Elliott p {p}, r {r}, bad {bad}, good {good})")
}

/// What a direction does beside its rate, delay and queue.
pub(super) fn effects(asked: &Asked) -> Vec<String> {
    let mut words = Vec::new();
    if asked.loss.model != Loss::None {
        words.push(format!("loss {}", loss(asked)));
    }
    words.extend(other_effects(asked));
    words
}

fn other_effects(asked: &Asked) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((distribution, scale)) = asked.jitter {
        let kind = match distribution {
            Distribution::Normal => "normal",
            Distribution::Uniform => "uniform",
            Distribution::Exponential => "exponential",
            Distribution::Pareto => "Pareto",
        };
        let order = if asked.overtake { " with overtaking" } else { "" };
        words.push(format!("jitter {kind} {scale}{order}"));
    }
    if let Some(bursts) = asked.bursts {
        let every = time(bursts.every);
        words.push(format!("{} packets lost every {every}", bursts.packets));
    }
    if let Some(hole) = asked.blackhole {
        words.push(format!("dark for the last {} of every {}", time(hole.dark), time(hole.every)));
    }
    if let Some(reorder) = asked.reorder {
        words.push(format!("{} held back by {}", reorder.share, time(reorder.by)));
    }
    for (share, what) in [(asked.duplicate, "duplicated"), (asked.corrupt, "corrupted")] {
        if share != LossRatio::NONE {
            words.push(format!("{share} {what}"));
        }
    }
    match asked.window_scale {
        None => {}
        Some(WindowScale::Strip) => words.push("window scale stripped".to_owned()),
        Some(WindowScale::Set(shift)) => words.push(format!("window scale set to {shift}")),
    }
    if let Some(mtu) = asked.mtu {
        words.push(format!("packets over {mtu} bytes dropped"));
    }
    if let Some(bucket) = asked.police {
        words.push(format!("policed at {} with bursts of {}", bucket.rate, bucket.burst));
    }
    words
}

fn time(time: Duration) -> Rtt {
    Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// `X each way`, or what differs.
fn of_ways(words: [String; 2]) -> String {
    let [up, down] = words;
    if up == down { format!("{up} each way") } else { format!("{up} up and {down} down") }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = self.ways();
        write!(f, "{} counting IP bytes", of_ways(ways.map(rate)))?;
        if self.overhead() > 0 {
            write!(f, " and {} of framing a packet", self.overhead())?;
        }
        write!(f, ", RTT {}", self.rtt())?;
        let [up, down] = ways.map(Way::delay);
        // Halves of an odd number of nanoseconds are not worth a word.
        if up.nanos().abs_diff(down.nanos()) > 1 {
            write!(f, " ({up} up and {down} down)")?;
        }
        let losses = of_ways(ways.map(|way| loss(&way.asked)));
        write!(f, " without serialisation, loss {losses}, queue {}", self.queue_in_words())?;
        for words in both_or_either(ways.map(|way| other_effects(&way.asked))) {
            write!(f, ", {words}")?;
        }
        for change in self.changes_in_words() {
            write!(f, ", {change}")?;
        }
        Ok(())
    }
}

/// Effects of both ways once, then those of one of them.
fn both_or_either([up, down]: [Vec<String>; 2]) -> Vec<String> {
    let both =
        up.iter().filter(|words| down.contains(words)).map(|words| format!("{words} each way"));
    let only = |mine: &[String], others: &[String], way: &str| {
        let mine = mine.iter().filter(|words| !others.contains(words));
        mine.map(|words| format!("{words} {way}")).collect::<Vec<_>>()
    };
    both.chain(only(&up, &down, "up")).chain(only(&down, &up, "down")).collect()
}

impl PathSpec {
    /// The queues of both ways in words: `1 BDP (2.16 MB)`.
    #[must_use]
    pub fn queue_in_words(&self) -> String {
        let [up, down] = self.ways().map(Way::queue_in_words);
        if up == down { up } else { format!("{up} up and {down} down") }
    }

    /// What changes over time, one line a moment: `from 5s on rate=2mbit`.
    #[must_use]
    pub fn changes_in_words(&self) -> Vec<String> {
        let layer = self.layer();
        let mut words: Vec<String> = layer
            .moments()
            .into_iter()
            .skip(1)
            .map(|at| {
                let written = layer.written(at).join(" ");
                format!("from {} on {}", exact_time(at), printable(&written))
            })
            .collect();
        if let Some(Some(repeat)) = layer.repeat {
            words.push(format!("again every {}", exact_time(repeat)));
        }
        words
    }
}
