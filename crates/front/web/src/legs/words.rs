//! A verdict on two legs in words.

use super::verdict::{
    CONFIDENCE, Direction, EQUAL, Limiting, MIN_ROUNDS, has_one_queue, is_straddling,
};
use record::Limit;
use units::BitRate;

fn rate(bps: f64) -> String {
    BitRate::from_bps(bps as u64).to_string()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The ratio and its interval, beside what it is compared with.
pub(super) fn equation(found: &Direction) -> String {
    let rates = format!("far / near = {} / {}", rate(found.far_rate), rate(found.near_rate));
    let Some(ratio) = found.ratio else {
        return format!("{rates}: {} of {MIN_ROUNDS} rounds, no interval", found.rounds);
    };
    let compared = if ratio.high < EQUAL {
        format!(" < {EQUAL}")
    } else if ratio.low >= EQUAL {
        format!(" ≥ {EQUAL}")
    } else {
        format!(", which includes {EQUAL}")
    };
    format!(
        "{rates} = {:.2}, {} interval {:.2} to {:.2}{compared}",
        ratio.mean,
        percent(CONFIDENCE),
        ratio.low,
        ratio.high
    )
}

/// The verdict, with its evidence.
pub(super) fn sentence(found: &Direction) -> String {
    let (near, far) = (rate(found.near_rate), rate(found.far_rate));
    let share = found.ratio.map_or(0.0, |ratio| ratio.mean);
    let interval = found.ratio.map_or(String::new(), |ratio| {
        format!(" ({} to {})", percent(ratio.low), percent(ratio.high))
    });
    let known = found.far_limit.filter(|limit| *limit != Limit::Unknown);
    let limited =
        known.map_or(String::new(), |limit| format!(", whose own limit is {}", limit.name()));
    let scaling = found.far_scaling.map_or(String::new(), |scaling| {
        format!("; six connections carry {scaling:.1} times as much as one")
    });
    let limited = limited + &scaling;
    let queue = match (found.near_increase, found.far_increase) {
        (Some(near), Some(far)) => {
            format!(
                "; under load the RTT rises by {far:.0} ms to the far server, {near:.0} ms to the near one"
            )
        }
        _ => String::new(),
    };
    let slower =
        format!("the far leg carries {far}, {}{interval} of the near leg's {near}", percent(share));
    match found.limiting {
        Limiting::Near => near_limits(found, &slower),
        Limiting::Line => {
            format!("Your line limits, not your Wi-Fi: {slower}{limited}{queue}.")
        }
        Limiting::Far => format!(
            "It is far away, neither your Wi-Fi nor the rate of your line: {slower}{limited}{queue}."
        ),
        Limiting::Beyond => format!(
            "Not your Wi-Fi: {slower}. Cannot identify whether it is the line or far away: the \
             evidence is missing or conflicts{limited}{queue}."
        ),
        Limiting::Host => format!(
            "No leg limits: both carry about {near}, and the transfer to the near server was limited \
             by a computer, the one with the browser or the near server{}.",
            found.near_limit.map_or(String::new(), |limit| format!(" ({})", limit.name()))
        ),
        Limiting::Unknown => unknown(found, &slower),
    }
}

fn near_limits(found: &Direction, slower: &str) -> String {
    let evidence = if is_straddling(found.ratio) && has_one_queue(found) {
        format!(
            "and although the interval includes {}, the same queue fills in both transfers: the RTT \
             rises by {:.0} and {:.0} ms",
            percent(EQUAL),
            found.near_increase.unwrap_or(0.0),
            found.far_increase.unwrap_or(0.0)
        )
    } else {
        "so the line and what is beyond it carry at least as much".to_owned()
    };
    format!("Your Wi-Fi or home network limits: {slower}, {evidence}.")
}

fn unknown(found: &Direction, slower: &str) -> String {
    match found.ratio {
        None => format!(
            "Cannot tell: {} rounds without a disturbance, of at least {MIN_ROUNDS}.",
            found.rounds
        ),
        Some(ratio) if ratio.low >= EQUAL => format!(
            "Cannot tell: the far leg carries more than the near one ({} to {} of it), so the near \
             server limits itself or is not on the way to the far one.",
            percent(ratio.low),
            percent(ratio.high)
        ),
        Some(_) => format!("Cannot tell: {slower}, and the interval includes {}.", percent(EQUAL)),
    }
}

/// What two servers do not show.
pub(super) const fn unseen(limiting: Limiting) -> &'static str {
    match limiting {
        Limiting::Near => {
            "Not seen: which part of the network up to the near server it is, the Wi-Fi or a cable. \
             Repeat the test over a cable."
        }
        Limiting::Line => {
            "Not seen: whether the saturated link is your line or one farther away. A server at your \
             provider would tell."
        }
        Limiting::Far => {
            "Not seen: where beyond the near server it is. A line that loses packets looks the same; \
             a server at your provider would tell."
        }
        Limiting::Beyond | Limiting::Host | Limiting::Unknown => {
            "Not seen: anything between the near and the far server. A server at your provider would \
             tell the line from what is beyond it."
        }
    }
}
