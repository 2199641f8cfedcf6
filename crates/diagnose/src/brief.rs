//! The verdict on a connection that was only watched: one short line, and nothing
//! in it that only a test can be asked.

use crate::{evidence::Evidence, predict::Prediction};
use record::{Limit, Measurement, Shares};
use units::ByteCount;

/// Says it.
pub(crate) fn of(
    limit: Option<Limit>,
    shares: Option<Shares>,
    prediction: Option<&Prediction>,
    m: &Measurement,
    e: &Evidence,
) -> String {
    let most = prediction.map_or(String::new(), |most| format!(", at most {}", most.rate));
    let (limit, shares) = match (limit, shares) {
        (Some(limit), Some(shares)) => (limit, shares),
        (Some(Limit::ReceiveWindow), None) => {
            let window = over_rtt(e.window_sum(), e);
            return format!("receive window of this end{window}{most}: tcp_rmem here");
        }
        _ => return without_clocks(e),
    };
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    match limit {
        Limit::ReceiveWindow => format!(
            "receive window {} of the time{}{most}: the receiver's tcp_rmem, or its program reads slowly",
            share(shares.receive_window),
            over_rtt(e.window_sum(), e),
        ),
        Limit::SendBuffer => format!(
            "send buffer {} of the time{}{most}: tcp_wmem here, or the program's SO_SNDBUF",
            share(shares.send_buffer),
            over_rtt(e.held, e),
        ),
        Limit::Application if shares.application >= 0.4 => {
            format!("its program had nothing to send {} of the time", share(shares.application))
        }
        Limit::Application => "its program writes less than the path carries".to_owned(),
        Limit::PathRate => {
            let queue = e.queueing().filter(|_| e.has_standing_queue());
            let queue = queue.map_or(String::new(), |q| format!(", {q} of standing queue"));
            format!("the path is full at {}{queue}", e.goodput)
        }
        Limit::Loss => {
            let lost = e.loss.map_or(String::new(), |loss| format!(" of {:.2} %", loss * 100.0));
            format!("random loss{lost} keeps its congestion window small{most}")
        }
        Limit::Policer => format!(
            "something drops what is over {}, {:.0} at a time, with no queue: a policer",
            e.goodput, e.burst
        ),
        Limit::Pacing => {
            format!("its sender paces itself at {}", e.pacing.unwrap_or(e.goodput))
        }
        Limit::Ramp => "its congestion window is still growing, without loss".to_owned(),
        Limit::Congestion => {
            let name = m.streams.iter().find_map(|stream| stream.congestion.as_deref());
            let name = name.unwrap_or("its congestion control");
            let again = if e.retransmits > 0 {
                format!(", {} segments sent again", e.retransmits)
            } else {
                String::new()
            };
            format!("the congestion window of {name}{}{again}", over_rtt(e.cwnd, e))
        }
        Limit::Cpu => "a core is used up".to_owned(),
        Limit::Unknown => {
            "nothing stands out: no window, buffer, program, queue or loss".to_owned()
        }
    }
}

/// ` (64 KiB over 173 ms)`.
fn over_rtt(bytes: Option<ByteCount>, e: &Evidence) -> String {
    let both = bytes.zip(e.loaded_rtt.or(e.min_rtt));
    both.map_or(String::new(), |(bytes, rtt)| format!(" ({bytes} over {rtt})"))
}

/// The sender is at the other end, or its kernel tells no clocks.
fn without_clocks(e: &Evidence) -> String {
    match e.window_sum() {
        Some(window) => {
            format!("only its sender knows what limits it; this end's window is {window}")
        }
        None => "only its sender knows what limits it".to_owned(),
    }
}
