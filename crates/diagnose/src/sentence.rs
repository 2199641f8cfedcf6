//! The verdict in one plain sentence: what, how much, and what would help.

use crate::{
    evidence::Evidence,
    judge::{CPU_FULL, asked},
    network,
    predict::{self, PathPayload, Prediction},
};
use record::{Limit, Measurement, Shares};
use units::{BitRate, ByteCount, Rtt};

/// Says it.
pub(crate) fn of(
    limit: Option<Limit>,
    shares: Option<Shares>,
    prediction: Option<&Prediction>,
    m: &Measurement,
    e: &Evidence,
) -> String {
    let Some(limit) = limit else {
        return without_clocks(m, e);
    };
    match limit {
        Limit::ReceiveWindow => receive_window(shares, m, e),
        Limit::SendBuffer => send_buffer(&shares.unwrap_or_default(), m, e),
        Limit::Application => application(&shares.unwrap_or_default(), m, e),
        Limit::Cpu => cpu(m, e),
        Limit::PathRate => path_rate(m, e),
        Limit::Loss => loss(prediction, m, e),
        Limit::Policer => format!(
            "Something on the path drops what is over {}: segments were lost in bursts ({:.0} at a \
             time) with no queue before them, as a policer does; pace below that rate.",
            e.goodput, e.burst
        ),
        Limit::Pacing => format!(
            "The sender paces itself at {}: {} arrived and its congestion window was not filled; \
             a higher pacing rate would carry more.",
            e.pacing.unwrap_or(e.goodput),
            e.goodput
        ),
        Limit::Ramp => ramp(m, e),
        Limit::Congestion => congestion(m, e),
        Limit::Unknown => format!(
            "The evidence does not tell what held it at {}: no window, buffer, program, core, \
             queue or loss stands out; see how busy both machines are, and repeat with a longer \
             test.",
            e.goodput
        ),
    }
}

/// `97 %`: whole percent, as the clocks are no finer than a jiffy.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the path needs each stream to hold, where the path is known.
fn needed(m: &Measurement, e: &Evidence) -> Option<(BitRate, ByteCount)> {
    let path = m.path.as_ref()?;
    let rtt = if path.rtt > Rtt::ZERO { path.rtt } else { e.min_rtt? };
    let streams = u32::try_from(e.streams).unwrap_or(u32::MAX);
    let rate = path.rate_bps?;
    Some((rate, model::per_stream(model::bdp(rate, rtt), streams)))
}

fn each(e: &Evidence) -> String {
    if e.streams > 1 { format!(" for each of {} streams", e.streams) } else { String::new() }
}

fn receive_window(shares: Option<Shares>, m: &Measurement, e: &Evidence) -> String {
    let mut text = match shares {
        Some(shares) => format!("Receiver limited {} of the time", percent(shares.receive_window)),
        None => format!("Receiver limited, by its own account: {} arrived", e.goodput),
    };
    let sum = e
        .windows
        .as_ref()
        .map(|windows| windows.iter().fold(ByteCount::ZERO, |sum, window| sum.plus(*window)));
    if let (Some(sum), Some(rtt)) = (sum, e.min_rtt)
        && let Some(most) = model::window_rate(sum, rtt)
    {
        text += &if e.streams > 1 {
            format!(": {} windows of {sum} in all over {rtt} carry at most {most}", e.streams)
        } else {
            format!(": a window of {sum} over {rtt} carries at most {most}")
        };
    }
    text += &match needed(m, e) {
        Some((rate, window)) => {
            format!("; the path's {rate} needs a window of {window}{}.", each(e))
        }
        None => "; a larger receive buffer (tcp_rmem on the receiver, or -w) would carry more."
            .to_owned(),
    };
    text
}

fn send_buffer(shares: &Shares, m: &Measurement, e: &Evidence) -> String {
    let mut text = if shares.send_buffer >= 0.4 {
        format!("Send buffer limited {} of the time", percent(shares.send_buffer))
    } else {
        // The kernel's clock missed it.
        "Send buffer limited: all that was written was sent, and the congestion window had room"
            .to_owned()
    };
    if let (Some(held), Some(rtt)) = (e.held, e.min_rtt)
        && let Some(most) = model::window_rate(held, rtt)
    {
        text += &format!(": the {held} it held over {rtt} carry at most {most}");
    }
    text += &match needed(m, e) {
        Some((rate, window)) => format!(
            "; the path's {rate} needs {window} in flight{}: raise tcp_wmem on the sender.",
            each(e)
        ),
        None => {
            "; a larger send buffer (tcp_wmem on the sender, or -w) would carry more.".to_owned()
        }
    };
    text
}

fn application(shares: &Shares, m: &Measurement, e: &Evidence) -> String {
    match asked(m) {
        Some(asked) if e.goodput.as_f64() >= 0.95 * asked.as_f64() => format!(
            "The program was asked for {asked} and {} arrived: ask for more with -b, or leave it out.",
            e.goodput
        ),
        _ if shares.application >= 0.4 => format!(
            "The sending program had nothing to send {} of the time: {} is all it wrote; a faster \
             source would help, and no tuning of the network.",
            percent(shares.application),
            e.goodput
        ),
        _ => format!(
            "The sending program wrote less than the path carries: {} with nothing waiting to be \
             sent and the congestion window not filled; a faster source would help, and no tuning \
             of the network.",
            e.goodput
        ),
    }
}

/// A thread that waits so much for a core has others to blame.
const WAITS: f64 = 0.15;

fn cpu(m: &Measurement, e: &Evidence) -> String {
    let full = |share: Option<f64>| share.filter(|share| *share >= CPU_FULL);
    let sends = match (full(m.sender_core()), full(m.receiver_core())) {
        (Some(sender), Some(receiver)) => sender >= receiver,
        (sender, _) => sender.is_some(),
    };
    let (who, used, waited) = if sends {
        ("sending", m.sender_cpu, m.sender_core_wait)
    } else {
        ("receiving", m.receiver_cpu, m.receiver_core_wait)
    };
    let used = percent(used.unwrap_or(1.0));
    match waited.filter(|waited| *waited >= WAITS) {
        Some(waited) => format!(
            "The {who} thread used {used} of a core to move {} and waited {} of the time for one: \
             less other work on that host would help, and no larger buffer.",
            e.goodput,
            percent(waited)
        ),
        None => format!(
            "The {who} thread used {used} of a core to move {}: a faster core or more streams \
             would help, and no larger buffer.",
            e.goodput
        ),
    }
}

fn path_rate(m: &Measurement, e: &Evidence) -> String {
    let mut text = match predict::path_payload(m, e) {
        Some(PathPayload { goodput, .. }) => {
            format!("The path is full: {}", of_at_most(e.goodput, goodput))
        }
        None => format!("The path is full: it carries {} of TCP payload", e.goodput),
    };
    if let Some(queueing) = e.queueing().filter(|_| e.has_standing_queue()) {
        text += &format!(", with {queueing} of standing queue");
    }
    text + "; only a faster link would help."
}

/// `96.4 of at most 96.5 Mbit/s of TCP payload`: one unit for both where they share it.
fn of_at_most(got: BitRate, most: BitRate) -> String {
    let (got, most) = (got.to_string(), most.to_string());
    let unit = most.split_once(' ').map_or("", |(_, unit)| unit);
    let got = got.strip_suffix(unit).map_or(got.as_str(), str::trim_end);
    format!("{got} of at most {most} of TCP payload")
}

fn loss(prediction: Option<&Prediction>, m: &Measurement, e: &Evidence) -> String {
    let share = predict::loss_ratio(m, e).map(predict::percent);
    let rtt = e.loaded_rtt.unwrap_or_default();
    let mut text = format!("Random loss of {} keeps", share.as_deref().unwrap_or("unknown size"));
    text += &format!(" the congestion window small: {} arrived", e.goodput);
    if let Some(prediction) = prediction {
        text += &format!(", {} are to be expected over {rtt}", prediction.rate);
    }
    let rate = m.path.as_ref().and_then(|path| path.rate_bps);
    let budget = rate.zip(e.mss).and_then(|(rate, mss)| {
        let each = rate.scaled(1.0 / e.streams.max(1) as f64);
        Some((rate, model::loss_budget_cubic(each, mss, rtt)?))
    });
    text + &match budget {
        Some((rate, budget)) => format!(
            "; {rate} would bear a loss of {}: repair the path, or try more streams or BBR.",
            predict::percent(budget)
        ),
        None => "; repair the path, or try more streams or BBR.".to_owned(),
    }
}

fn ramp(m: &Measurement, e: &Evidence) -> String {
    let needed = m.path.as_ref().zip(e.mss).and_then(|(path, mss)| {
        model::slow_start_time(model::bdp(path.rate_bps?, path.rtt), mss, path.rtt)
    });
    let remedy = match needed {
        Some(time) => format!(
            "slow start alone takes {} on this path, so test for much longer",
            Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        ),
        None => "a longer test would tell what the path carries".to_owned(),
    };
    format!(
        "The test ended before the transfer was at speed: the congestion window was still growing \
         after {:.1} s, without loss, and {} was reached; {remedy}.",
        e.steady.to_s, e.goodput
    )
}

fn congestion(m: &Measurement, e: &Evidence) -> String {
    let name = predict::congestion(m).unwrap_or("the congestion control");
    let mut text = format!("The congestion window of {name} held it at {}", e.goodput);
    if let (Some(cwnd), Some(rtt)) = (e.cwnd, e.loaded_rtt) {
        text += &format!(": {cwnd} in flight over {rtt}");
    }
    if e.retransmits > 0 {
        text += &format!(", after {} segments were sent again", e.retransmits);
    }
    let other = if network::is_bbr(m) { "" } else { " (-C bbr)" };
    text += &format!(
        "; another congestion control{other}, a deeper queue at the bottleneck or less \
            traffic beside it would help."
    );
    text
}

fn without_clocks(m: &Measurement, e: &Evidence) -> String {
    let mut text = format!(
        "What limited it cannot be told: the sender's clocks cannot be had; {} arrived",
        e.goodput
    );
    let rtt = e.min_rtt.or(m.path.as_ref().map(|path| path.rtt)).filter(|rtt| *rtt > Rtt::ZERO);
    if let Some(window) = e.window_sum() {
        let (what, verb) =
            if e.streams > 1 { ("windows", "carry") } else { ("a window", "carries") };
        text += &format!(" through {what} of {window}");
        if let Some((rtt, most)) = rtt.and_then(|rtt| Some((rtt, model::window_rate(window, rtt)?)))
        {
            text += &format!(", which over {rtt} {verb} at most {most}");
        }
    }
    text + "; test with longhaul on the sending side to know."
}
