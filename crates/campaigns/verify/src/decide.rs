//! A second test that tells two causes apart: which one, with which options, and what it
//! showed. Running it is the caller's part.
//!
//! The pairs, the rules and their reasons are in [`diagnose::deciding`]. A policer and a shallow
//! queue take a test of their own: [`TrainTest`].

mod train;

pub use train::TrainTest;

use diagnose::deciding::{Change, Decision, Observation, decision};
use perf::client::{ClientConfig, EndAfter, Transport, UdpOptions};
use record::{Confidence, Decided, Finding, Limit, Measurement};

/// Whether a second test would decide, and which.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// There is nothing to decide, or no test that would.
    Nothing(Decided),
    /// The test to run.
    Test(SecondTest),
    /// Trains of datagrams, one after the other until one decides.
    Train(TrainTest),
}

/// A test to run after the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondTest {
    first: Limit,
    second: Limit,
    decision: Decision,
    change: Change,
}

/// Why a second test has no answer.
const INTERRUPTED: &str = "The second test was interrupted.";
const FAILED: &str = "The second test failed.";

/// Prints an announcement and runs a test; `None` if it was interrupted.
pub type Transfer<'a, E> = dyn FnMut(&str, &ClientConfig) -> Result<Option<Measurement>, E> + 'a;

/// Runs the test that decides between the likely limits of `first`, if there is one; `config` is the
/// request of `first`.
///
/// # Errors
/// That of `transfer`, with the answer without it.
pub fn decide<E>(
    first: &Measurement,
    config: &ClientConfig,
    transfer: &mut Transfer<'_, E>,
) -> Result<Decided, (Decided, E)> {
    let finding = diagnose::explain(first);
    let test = match propose(first, &finding) {
        Proposal::Nothing(decided) => return Ok(decided),
        Proposal::Train(test) => return test.run(config, transfer),
        Proposal::Test(test) => test,
    };
    let mut second = test.config(config);
    if let Some(tcp) = second.transport.any_tcp() {
        tcp.limits_unsent = first.spec.limits_unsent;
    }
    let failed = |error| (test.undecided(FAILED.to_owned()), error);
    let Some(m) = transfer(&test.announcement(&second), &second).map_err(failed)? else {
        return Ok(test.undecided(INTERRUPTED.to_owned()));
    };
    let answer = test.answer(first, &m);
    let Some(train) = train::after(first, &finding, &answer) else { return Ok(answer) };
    let told = train.run(config, transfer).map_err(|(_, error)| (answer.clone(), error))?;
    Ok(if told.limit.is_some() { told } else { answer })
}

/// The second test for a finding, between its limit and the most probable other limit.
#[must_use]
pub fn propose(measurement: &Measurement, finding: &Finding) -> Proposal {
    let other = usual(measurement, finding);
    match train::propose(measurement, finding, matches!(other, Proposal::Test(_))) {
        Some(Ok(test)) => Proposal::Train(test),
        Some(Err(none)) => nothing(diagnose::deciding::DROPPING_ALIKE.to_vec(), none.to_string()),
        None => other,
    }
}

fn nothing(between: Vec<Limit>, sentence: String) -> Proposal {
    let (options, throughput_bps, limit) = (None, None, None);
    Proposal::Nothing(Decided { between, options, throughput_bps, limit, sentence })
}

/// The usual second test: the first one with another option.
fn usual(measurement: &Measurement, finding: &Finding) -> Proposal {
    let first = match (finding.limit, finding.confidence) {
        (None | Some(Limit::Unknown), _) => {
            let text = "No second test decides: the limit is not identified.";
            return nothing(Vec::new(), text.to_owned());
        }
        (Some(limit), Some(Confidence::Sure)) => {
            let text = format!("No second test is needed: {} is sure.", limit.name());
            return nothing(Vec::new(), text);
        }
        (Some(limit), _) => limit,
    };
    let others = finding.posterior.iter().filter(|p| p.limit != first && p.limit != Limit::Unknown);
    let Some(second) = others.max_by(|a, b| a.probability.total_cmp(&b.probability)) else {
        let text = format!("No second test decides: {} has no likely alternative.", first.name());
        return nothing(vec![first], text);
    };
    let second = second.limit;
    let proposed = decision(first, second).and_then(|decision| {
        Some((decision, decision.test.change(measurement, finding.throughput_bps)?))
    });
    match proposed {
        Some((decision, change)) => Proposal::Test(SecondTest { first, second, decision, change }),
        None => {
            let (one, other) = (first.name(), second.name());
            let text = format!("No second test from this host tells {one} and {other} apart.");
            nothing(vec![first, second], text)
        }
    }
}

impl SecondTest {
    /// The request of the second test, given that of the first.
    #[must_use]
    pub fn config(&self, first: &ClientConfig) -> ClientConfig {
        let Change { congestion, streams, udp_rate, seconds, window, pacing } = self.change.clone();
        let mut config = first.clone();
        config.congestion = congestion.or(config.congestion);
        config.streams = streams.unwrap_or(config.streams);
        config.window = window.or(config.window);
        config.fq_rate = pacing.or(config.fq_rate);
        if let Some(seconds) = seconds {
            config.end = EndAfter::Seconds(seconds);
        }
        if let Some(rate) = udp_rate {
            let udp = UdpOptions { wide_counters: true, ..UdpOptions::default() };
            (config.transport, config.rate) = (Transport::Udp(udp), Some(rate));
            // Those of TCP: block sizes are not those of datagrams.
            (config.congestion, config.block, config.window) = (None, None, None);
        }
        config
    }

    /// What it is for, in one line: `to decide between aqm and loss: -C bbr, 10 s`.
    #[must_use]
    pub fn announcement(&self, config: &ClientConfig) -> String {
        let (one, other) = (self.first.name(), self.second.name());
        let mut text = format!("Second test, to decide between {one} and {other}: {}", self.change);
        if let (None, EndAfter::Seconds(seconds)) = (self.change.seconds, config.end) {
            text += &format!(", {seconds} s");
        }
        text
    }

    /// What the second test showed.
    #[must_use]
    pub fn answer(&self, first: &Measurement, second: &Measurement) -> Decided {
        let (before, after) = (Observation::of(first), Observation::of(second));
        let (limit, why) = self.decision.read(&before, &after);
        let sentence = match limit {
            Some(limit) => format!("It is {}: with {}, {why}.", limit.name(), self.change),
            None => format!(
                "The second test does not decide between {} and {}: with {}, {why}.",
                self.first.name(),
                self.second.name(),
                self.change
            ),
        };
        Decided { throughput_bps: Some(after.goodput), limit, ..self.undecided(sentence) }
    }

    /// The result if the second test did not run to its end.
    #[must_use]
    pub fn undecided(&self, sentence: String) -> Decided {
        Decided {
            between: vec![self.first, self.second],
            options: Some(self.change.to_string()),
            throughput_bps: None,
            limit: None,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests;
