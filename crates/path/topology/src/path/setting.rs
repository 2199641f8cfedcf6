//! Values: from the text after `=` to a checked setting.

use super::discipline::Discipline;
use super::error::{PathError, short};
use super::files::Files;
use super::key::Key;
use super::loss::{self, LossSetting};
use super::quantity::{integer, quantity};
use super::size::Size;
use link::{Blackhole, Bursts, Distribution, Protocol, Reorder, TokenBucket, Trace, WindowScale};
use std::sync::Arc;
use units::{BitRate, ByteCount, LossRatio, ParseError, Probability, Rtt};

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setting {
    Rate(RateSetting),
    Burst(Option<ByteCount>),
    Delay(Delay),
    Jitter(Option<(Distribution, Rtt)>),
    Overtake(bool),
    Loss(LossSetting),
    Bursts(Option<Bursts>),
    Blackhole(Option<Blackhole>),
    Reorder(Option<Reorder>),
    Duplicate(LossRatio),
    Corrupt(LossRatio),
    WindowScale(Option<WindowScale>),
    Mtu(Option<u32>),
    Police(Option<TokenBucket>),
    ProtocolPolice(Protocol, Option<TokenBucket>),
    ProtocolBlackhole(Protocol, bool),
    /// The discipline, and the size of a drop-tail queue.
    Queue(Discipline, Option<Size>),
    /// Options of a queue, by type.
    Size(Size),
    Time(Rtt),
    Flag(bool),
    Number(u32),
    Share(Probability),
}

/// A rate setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RateSetting {
    Unlimited,
    Constant(BitRate),
    /// A trace, with the name of its file.
    Trace(Arc<Trace>, String),
}

/// The delay of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) time: Rtt,
    /// Whether it is one half of an rtt.
    pub(super) of_rtt: bool,
}

/// A value with its canonical text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) setting: Setting,
    pub(super) text: String,
}

impl Entry {
    /// Parses the value of `key` for both directions; `name` is the key with its
    /// prefixes, for messages.
    pub(super) fn read(
        key: Key,
        name: &str,
        text: &str,
        files: &mut Files,
    ) -> Result<[Self; 2], PathError> {
        let (settings, text) = match key {
            Key::Rate => {
                let (rate, text) = rate(name, text, files)?;
                (twice(Setting::Rate(rate)), text)
            }
            Key::Loss => {
                let (loss, text) = loss::read(name, text, files)?;
                (loss.map(Setting::Loss), text)
            }
            _ => (twice(plain(key, name, text)?), text.to_owned()),
        };
        Ok(settings.map(|setting| Entry { setting, text: text.clone() }))
    }

    /// The two halves of an rtt; an odd nanosecond goes to the down direction.
    pub(super) fn of_rtt(rtt: Rtt, text: &str) -> [Self; 2] {
        let up = rtt.nanos() / 2;
        [up, rtt.nanos() - up].map(|nanos| {
            let delay = Delay { time: Rtt::from_nanos(nanos), of_rtt: true };
            Entry { setting: Setting::Delay(delay), text: text.to_owned() }
        })
    }
}

fn twice(setting: Setting) -> [Setting; 2] {
    [setting.clone(), setting]
}

/// Values that need no file and are the same in both directions.
fn plain(key: Key, name: &str, text: &str) -> Result<Setting, PathError> {
    let none = text == "none";
    let unless_none = |read: &dyn Fn() -> Result<Setting, PathError>, otherwise: Setting| {
        if none { Ok(otherwise) } else { read() }
    };
    match key {
        Key::Burst => unless_none(&|| burst(name, text), Setting::Burst(None)),
        Key::Delay => {
            let delay = Delay { time: quantity(name, text)?, of_rtt: false };
            Ok(Setting::Delay(delay))
        }
        Key::Jitter => unless_none(&|| jitter(name, text), Setting::Jitter(None)),
        Key::Overtake => flag(name, text).map(Setting::Overtake),
        Key::Bursts => unless_none(&|| bursts(name, text), Setting::Bursts(None)),
        Key::Blackhole => unless_none(&|| blackhole(name, text), Setting::Blackhole(None)),
        Key::Reorder => unless_none(&|| reorder(name, text), Setting::Reorder(None)),
        Key::Duplicate => share(name, text).map(Setting::Duplicate),
        Key::Corrupt => share(name, text).map(Setting::Corrupt),
        Key::WindowScale => unless_none(&|| window_scale(name, text), Setting::WindowScale(None)),
        // 68: every IPv4 module must forward that without fragmentation (RFC 791).
        Key::Mtu => unless_none(
            &|| Ok(Setting::Mtu(Some(integer(name, text, 68, 65_535, "1400, in bytes")?))),
            Setting::Mtu(None),
        ),
        Key::Police => policer(name, text).map(Setting::Police),
        Key::UdpPolice => {
            policer(name, text).map(|bucket| Setting::ProtocolPolice(Protocol::Udp, bucket))
        }
        Key::TcpPolice => {
            policer(name, text).map(|bucket| Setting::ProtocolPolice(Protocol::Tcp, bucket))
        }
        Key::UdpBlackhole => {
            flag(name, text).map(|drop| Setting::ProtocolBlackhole(Protocol::Udp, drop))
        }
        Key::TcpBlackhole => {
            flag(name, text).map(|drop| Setting::ProtocolBlackhole(Protocol::Tcp, drop))
        }
        Key::Queue => Discipline::read(name, text).map(|(queue, size)| Setting::Queue(queue, size)),
        Key::Limit | Key::Mark | Key::Min | Key::Max => Size::read(name, text).map(Setting::Size),
        Key::Target | Key::Interval | Key::Update | Key::Step => {
            time(name, text).map(Setting::Time)
        }
        Key::MaxBurst => quantity(name, text).map(Setting::Time),
        Key::Ecn => flag(name, text).map(Setting::Flag),
        // The maximum of Linux's FQ-CoDel.
        Key::Flows => integer(name, text, 1, 65_536, "1024").map(Setting::Number),
        Key::Quantum => integer(name, text, 256, 1 << 20, "1514, in bytes").map(Setting::Number),
        Key::Probability | Key::ClassicShare => quantity(name, text).map(Setting::Share),
        // RFC 9332, appendix C: 2 for equal rates at equal RTTs; more than a handful starves L4S.
        Key::Coupling => integer(name, text, 1, 16, "2").map(Setting::Number),
        Key::Weight => {
            integer(name, text, 1, 31, "9 for an average over 512 packets").map(Setting::Number)
        }
        Key::Rate | Key::Loss => Err(PathError::at(name, "internal error: it needs a file reader")),
    }
}

fn rate(name: &str, text: &str, files: &mut Files) -> Result<(RateSetting, String), PathError> {
    if text == "unlimited" {
        return Ok((RateSetting::Unlimited, text.to_owned()));
    }
    if let Some(file) = text.strip_prefix("trace:") {
        let (file, contents) = files.read(name, file.trim())?;
        let trace = Trace::parse(&contents)
            .map_err(|error| PathError::at(name, format!("trace '{}': {error}", short(&file))))?;
        if trace.mean_rate() == BitRate::ZERO {
            let wrong = format!("trace '{}' has a mean rate below 1 bit/s", short(&file));
            return Err(PathError::at(name, wrong));
        }
        let text = format!("trace:{file}");
        return Ok((RateSetting::Trace(Arc::new(trace), file), text));
    }
    Ok((RateSetting::Constant(quantity(name, text)?), text.to_owned()))
}

fn burst(name: &str, text: &str) -> Result<Setting, PathError> {
    let burst: ByteCount = quantity(name, text)?;
    match burst.bytes() {
        0 => Err(PathError::at(name, "a token bucket needs at least one byte; write burst=64KiB")),
        _ => Ok(Setting::Burst(Some(burst))),
    }
}

fn jitter(name: &str, text: &str) -> Result<Setting, PathError> {
    let (distribution, scale) = match text.split_once(':') {
        None => (Distribution::Normal, text),
        Some((word, scale)) => {
            let distribution = match word.trim() {
                "normal" => Distribution::Normal,
                "uniform" => Distribution::Uniform,
                "exponential" => Distribution::Exponential,
                "pareto" => Distribution::Pareto,
                _ => {
                    let known = "normal, uniform, exponential, pareto";
                    let wrong = format!(
                        "'{}' is not a distribution ({known}); write 5ms or uniform:5ms",
                        short(word)
                    );
                    return Err(PathError::at(name, wrong));
                }
            };
            (distribution, scale)
        }
    };
    let scale: Rtt = quantity(name, scale)?;
    Ok(Setting::Jitter((scale > Rtt::ZERO).then_some((distribution, scale))))
}

/// `10p@5s`: 10 packets every 5 s.
fn bursts(name: &str, text: &str) -> Result<Setting, PathError> {
    let wrong = || {
        let wrong = format!("'{}' is not PACKETSp@TIME; write 10p@5s", short(text));
        PathError::at(name, wrong)
    };
    let (packets, every) = text.split_once('@').ok_or_else(wrong)?;
    let packets = packets.trim().strip_suffix(['p', 'P']).ok_or_else(wrong)?;
    let packets = packets.trim().parse().ok().filter(|packets| *packets > 0).ok_or_else(wrong)?;
    let every = time(name, every)?.duration();
    Ok(Setting::Bursts(Some(Bursts { packets, every })))
}

/// `2s@7s`: the last 2 s of every 7 s.
fn blackhole(name: &str, text: &str) -> Result<Setting, PathError> {
    let (length, every) = text.split_once('@').ok_or_else(|| {
        let wrong = format!("'{}' is not DARK@PERIOD; write 2s@7s", short(text));
        PathError::at(name, wrong)
    })?;
    let (length, every) = (time(name, length)?, time(name, every)?);
    if length >= every {
        let wrong = format!(
            "the outage of {length} must be shorter than its period of {every}; write 2s@7s"
        );
        return Err(PathError::at(name, wrong));
    }
    let (length, every) = (length.duration(), every.duration());
    Ok(Setting::Blackhole(Some(Blackhole { length, every })))
}

/// `1%:5ms`: a share, and its additional delay.
fn reorder(name: &str, text: &str) -> Result<Setting, PathError> {
    let (share_text, by) = text.split_once(':').ok_or_else(|| {
        let wrong = format!("'{}' is not SHARE:TIME; write 1%:5ms", short(text));
        PathError::at(name, wrong)
    })?;
    let (share, by) = (share(name, share_text)?, time(name, by)?.duration());
    Ok(Setting::Reorder((share > LossRatio::NONE).then_some(Reorder { share, by })))
}

fn window_scale(name: &str, text: &str) -> Result<Setting, PathError> {
    if text == "strip" {
        return Ok(Setting::WindowScale(Some(WindowScale::Strip)));
    }
    // RFC 7323, section 2.3: the shift count is at most 14.
    match text.parse() {
        Ok(shift @ 0..=14) => Ok(Setting::WindowScale(Some(WindowScale::Set(shift)))),
        _ => {
            let wrong = format!("'{}' is not strip or a shift count 0 to 14", short(text));
            Err(PathError::at(name, wrong))
        }
    }
}

/// `10mbit:64KiB`: a rate and the burst beside it; or `none`.
fn policer(name: &str, text: &str) -> Result<Option<TokenBucket>, PathError> {
    if text == "none" {
        return Ok(None);
    }
    let (rate, burst) = text.split_once(':').ok_or_else(|| {
        let wrong = format!("'{}' is not RATE:BURST; write 10mbit:64KiB", short(text));
        PathError::at(name, wrong)
    })?;
    let bucket = TokenBucket { rate: quantity(name, rate)?, burst: quantity(name, burst)? };
    Ok(Some(bucket))
}

/// Parses a share of packets; the parser's message is about loss.
fn share(name: &str, text: &str) -> Result<LossRatio, PathError> {
    text.parse().map_err(|mut source: ParseError| {
        source.quantity = "share of packets";
        PathError::Value { key: short(name), source }
    })
}

/// Parses a time above zero.
fn time(name: &str, text: &str) -> Result<Rtt, PathError> {
    match quantity(name, text)? {
        Rtt::ZERO => {
            Err(PathError::at(name, "the time must be above zero; write, for example, 5ms"))
        }
        time => Ok(time),
    }
}

fn flag(name: &str, text: &str) -> Result<bool, PathError> {
    match text {
        "yes" | "true" | "on" => Ok(true),
        "no" | "false" | "off" => Ok(false),
        _ => Err(PathError::at(name, format!("'{}' is not yes or no", short(text)))),
    }
}
