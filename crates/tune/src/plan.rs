//! Which buffers a target needs, and what has to change for it.
//!
//! The window that keeps a bottleneck full is the path's BDP plus one queue:
//! until the queue overflows and the congestion control backs off, both are in
//! flight. The kernel turns only a share of a receive buffer into window, so
//! the buffer is `window / share`, twice over, because that share falls where
//! packets are smaller than the memory that holds them, and never less than
//! four windows. A send buffer holds what is in flight and what waits behind
//! it, with the kernel's own overhead on top: four windows likewise.

use record::PlanItem;
use units::{BitRate, ByteCount, Rtt};

/// The host that receives, in [`PlanItem::host`].
const RECEIVER: &str = "server";
/// The host that sends, in [`PlanItem::host`].
const SENDER: &str = "client";

const MIB: u64 = 1 << 20;

/// Largest buffer the kernel takes, in whole MiB: `tcp_rmem` and `tcp_wmem`
/// are `int` there, so 2 GiB is one byte too many.
pub const MAX_BUFFER: ByteCount = ByteCount::from_bytes((1 << 31) - MIB);

/// Share of a send buffer that holds payload in flight; the rest waits behind
/// it or is the kernel's overhead. A cautious figure: autotuning aims at two
/// congestion windows (`tcp_sndbuf_expand` in Linux' `tcp_input.c`).
pub const SEND_SHARE: f64 = 0.5;

/// What the hosts shall carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The bottleneck's rate.
    pub rate: BitRate,
    /// The round trip without queueing.
    pub rtt: Rtt,
    /// The bottleneck's queue.
    pub queue: ByteCount,
    /// Parallel connections that share the rate; 0 counts as 1.
    pub streams: u32,
}

impl Target {
    /// What is in flight when the path and its queue are full.
    #[must_use]
    pub fn window(&self) -> ByteCount {
        model::window_for(self.rate, self.rtt).plus(self.queue)
    }
}

/// One host's TCP settings, as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// `net.ipv4.tcp_rmem`: least, initial and most bytes.
    pub tcp_rmem: [u64; 3],
    /// `net.ipv4.tcp_wmem`: least, initial and most bytes.
    pub tcp_wmem: [u64; 3],
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: bool,
}

/// A target that no setting reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The buffer is larger than the kernel takes.
    #[error(
        "{rate} over {rtt} needs a buffer of {needed} a stream, and the kernel takes less than \
         2 GiB (2147483647 bytes): use at least {streams} streams"
    )]
    BeyondOneStream {
        /// The rate asked.
        rate: BitRate,
        /// The round trip asked.
        rtt: Rtt,
        /// The buffer each stream would need.
        needed: ByteCount,
        /// The least number of streams that reach the target.
        streams: u64,
    },
}

/// The changes that let `sender` and `receiver` reach `target`, and no others:
/// nothing is lowered, and what suffices is left alone.
///
/// `share` is the part of a receive buffer that the kernel turns into window,
/// measured where it can be; [`model::INITIAL_WINDOW_SHARE`] where it cannot.
///
/// # Errors
/// Where the target is beyond what one stream's buffer can hold.
pub fn plan(
    sender: &Buffers,
    receiver: &Buffers,
    target: &Target,
    share: f64,
) -> Result<Vec<PlanItem>, PlanError> {
    let receive = buffer(target, share)?;
    let send = buffer(target, SEND_SHARE)?;
    let items = [
        raise(RECEIVER, "net.ipv4.tcp_rmem", receiver.tcp_rmem, receive, || {
            why(target, share, receive, "becomes window")
        }),
        raise(SENDER, "net.ipv4.tcp_wmem", sender.tcp_wmem, send, || {
            why(target, SEND_SHARE, send, "holds payload in flight")
        }),
        scale(RECEIVER, receiver, target),
        scale(SENDER, sender, target),
    ];
    Ok(items.into_iter().flatten().collect())
}

/// The rate that the present buffers allow one stream over `rtt`: the lesser
/// of the receiver's window and the sender's payload in flight, a round trip.
/// `None` for a round trip of zero.
#[must_use]
pub fn allowed_rate(sender: &Buffers, receiver: &Buffers, share: f64, rtt: Rtt) -> Option<BitRate> {
    let scaled = sender.window_scaling && receiver.window_scaling;
    let announced = if scaled { model::MAX_WINDOW } else { model::UNSCALED_WINDOW };
    let window = part(receiver.tcp_rmem[2], sane(share)).min(announced);
    model::window_rate(window.min(part(sender.tcp_wmem[2], SEND_SHARE)), rtt)
}

fn part(bytes: u64, share: f64) -> ByteCount {
    ByteCount::from_f64(ByteCount::from_bytes(bytes).as_f64() * share)
}

fn sane(share: f64) -> f64 {
    if share > 0.0 && share <= 1.0 { share } else { model::INITIAL_WINDOW_SHARE }
}

/// What one stream's buffer must hold, in whole MiB.
pub(crate) fn buffer(target: &Target, share: f64) -> Result<ByteCount, PlanError> {
    let needed = model::buffer_for(model::per_stream(target.window(), target.streams), share)
        .rounded_up_to(MIB);
    if needed <= MAX_BUFFER {
        return Ok(needed);
    }
    let all = model::buffer_for(target.window(), share);
    let streams = all.bytes().div_ceil(MAX_BUFFER.bytes());
    Err(PlanError::BeyondOneStream { rate: target.rate, rtt: target.rtt, needed, streams })
}

fn raise(
    host: &str,
    key: &str,
    now: [u64; 3],
    most: ByteCount,
    why: impl FnOnce() -> String,
) -> Option<PlanItem> {
    let [least, initial, present] = now;
    let most = most.bytes();
    (present < most).then(|| PlanItem {
        host: host.to_owned(),
        key: key.to_owned(),
        from: format!("{least} {initial} {present}"),
        to: format!("{} {} {most}", least.min(most), initial.min(most)),
        why: why(),
    })
}

fn scale(host: &str, buffers: &Buffers, target: &Target) -> Option<PlanItem> {
    let window = model::per_stream(target.window(), target.streams);
    let needed = window > model::UNSCALED_WINDOW;
    (!buffers.window_scaling && needed).then(|| PlanItem {
        host: host.to_owned(),
        key: "net.ipv4.tcp_window_scaling".to_owned(),
        from: "0".to_owned(),
        to: "1".to_owned(),
        why: format!("without it no window is over 64 KiB, and {window} are needed"),
    })
}

pub(crate) fn why(target: &Target, share: f64, buffer: ByteCount, what: &str) -> String {
    let Target { rate, rtt, queue, streams } = *target;
    let mut text = format!("{rate} x {rtt} = {} in flight", model::bdp(rate, rtt));
    if queue.bytes() > 0 {
        text += &format!(", and {queue} of queue: a window of {}", target.window());
    }
    if streams > 1 {
        let each = model::per_stream(target.window(), streams);
        text += &format!(", {each} for each of {streams} streams");
    }
    text += &format!(
        "; about {:.0} % of a buffer {what}, so with head room it is {buffer}",
        sane(share) * 100.0
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults of Ubuntu and of the published downloads.
    const DEFAULT: Buffers = Buffers {
        tcp_rmem: [4096, 131_072, 6_291_456],
        tcp_wmem: [4096, 16_384, 4_194_304],
        window_scaling: true,
    };

    fn target(rate: &str, rtt: &str, queue: u64, streams: u32) -> Target {
        let queue = ByteCount::from_bytes(queue);
        Target { rate: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), queue, streams }
    }

    fn most(item: &PlanItem) -> u64 {
        item.to.split(' ').next_back().unwrap().parse().unwrap()
    }

    #[test]
    fn frankfurt_to_las_vegas_with_one_bdp_of_queue() {
        let target = target("100mbit", "173ms", 2_162_500, 1);
        let plan = plan(&DEFAULT, &DEFAULT, &target, 0.5).unwrap();
        assert_eq!(plan.len(), 2);
        assert_eq!((plan[0].host.as_str(), plan[0].key.as_str()), ("server", "net.ipv4.tcp_rmem"));
        assert_eq!(plan[0].from, "4096 131072 6291456");
        // 4 x 4.325 MB = 17.3 MB, in whole MiB 17.
        assert_eq!(plan[0].to, format!("4096 131072 {}", 17 << 20));
        assert_eq!((plan[1].host.as_str(), plan[1].key.as_str()), ("client", "net.ipv4.tcp_wmem"));
        assert_eq!(plan[1].to, format!("4096 16384 {}", 17 << 20));
        for number in ["100 Mbit/s x 173 ms = 2.16 MB", "4.33 MB", "50 %", "17 MiB"] {
            assert!(plan[0].why.contains(number), "{}", plan[0].why);
        }
    }

    #[test]
    fn germany_to_hong_kong_is_held_by_the_defaults() {
        let rtt = "200ms".parse().unwrap();
        let allowed = allowed_rate(&DEFAULT, &DEFAULT, 0.5, rtt).unwrap().as_f64() / 8e6;
        // Measured: 3 to 4 MB/s with the defaults, of 125 MB/s that the link has.
        assert!((3.0..12.0).contains(&allowed), "{allowed}");
        let target = target("1gbit", "200ms", 0, 1);
        let plan = plan(&DEFAULT, &DEFAULT, &target, 0.5).unwrap();
        // 25 MB in flight; the source advises 64 to 128 MB a stream.
        for item in &plan {
            assert!((64_000_000..=128_000_000).contains(&most(item)), "{}", item.to);
        }
        let tuned = Buffers {
            tcp_rmem: [4096, 131_072, most(&plan[0])],
            tcp_wmem: [4096, 16_384, most(&plan[1])],
            window_scaling: true,
        };
        assert!(allowed_rate(&tuned, &tuned, 0.5, rtt).unwrap() >= target.rate);
        assert_eq!(super::plan(&tuned, &tuned, &target, 0.5), Ok(vec![]));
    }

    #[test]
    fn what_suffices_is_left_alone_and_one_byte_less_is_not() {
        let target = target("100mbit", "173ms", 0, 1);
        let with = |most| Buffers {
            tcp_rmem: [4096, 131_072, most],
            tcp_wmem: [4096, 16_384, most],
            window_scaling: true,
        };
        let enough = with(9 << 20);
        let short = with((9 << 20) - 1);
        assert_eq!(plan(&enough, &enough, &target, 0.5), Ok(vec![]));
        assert_eq!(plan(&short, &short, &target, 0.5).unwrap().len(), 2);
        assert_eq!(plan(&enough, &short, &target, 0.5).unwrap()[0].host, "server");
    }

    #[test]
    fn a_smaller_share_asks_for_more_and_never_less_than_four_windows() {
        let target = target("100mbit", "173ms", 0, 1);
        let rmem = |share| most(&plan(&DEFAULT, &DEFAULT, &target, share).unwrap()[0]);
        assert_eq!(rmem(0.25), 17 << 20);
        assert_eq!(rmem(0.5), 9 << 20);
        assert_eq!(rmem(1.0), 9 << 20);
        assert_eq!(rmem(f64::NAN), 9 << 20);
        assert_eq!(rmem(-1.0), 9 << 20);
    }

    #[test]
    fn streams_share_the_window() {
        let plan = plan(&DEFAULT, &DEFAULT, &target("1gbit", "200ms", 0, 8), 0.5).unwrap();
        assert_eq!(most(&plan[0]), 12 << 20);
        assert!(plan[0].why.contains("8 streams"), "{}", plan[0].why);
    }

    #[test]
    fn window_scaling_is_switched_on_where_it_is_off() {
        let off = Buffers { window_scaling: false, ..DEFAULT };
        let target = target("100mbit", "173ms", 0, 1);
        let keys: Vec<_> = plan(&off, &off, &target, 0.5).unwrap();
        let scaling: Vec<_> = keys.iter().filter(|i| i.key.ends_with("window_scaling")).collect();
        assert_eq!(scaling.len(), 2);
        assert_eq!((scaling[0].from.as_str(), scaling[0].to.as_str()), ("0", "1"));
        let allowed = allowed_rate(&off, &DEFAULT, 0.5, target.rtt).unwrap();
        assert_eq!(allowed.to_string(), "3.03 Mbit/s");
    }

    #[test]
    fn past_two_gib_more_streams_are_asked_for() {
        let far = target("100gbit", "100ms", 0, 1);
        let error = plan(&DEFAULT, &DEFAULT, &far, 0.5).unwrap_err();
        let PlanError::BeyondOneStream { streams, .. } = error;
        assert_eq!(streams, 3);
        assert!(error.to_string().contains("2147483647"), "{error}");
        assert!(plan(&DEFAULT, &DEFAULT, &Target { streams: 3, ..far }, 0.5).is_ok());
        assert!(plan(&DEFAULT, &DEFAULT, &Target { streams: 2, ..far }, 0.5).is_err());
    }

    #[test]
    fn an_initial_value_over_the_most_is_brought_down_to_it() {
        let odd = Buffers { tcp_rmem: [4096, 99 << 20, 1 << 20], ..DEFAULT };
        let item = &plan(&DEFAULT, &odd, &target("100mbit", "173ms", 0, 1), 0.5).unwrap()[0];
        assert_eq!(item.to, format!("4096 {0} {0}", 9 << 20));
    }

    #[test]
    fn a_path_of_no_length_asks_for_nothing() {
        assert_eq!(plan(&DEFAULT, &DEFAULT, &target("1gbit", "0ms", 0, 1), 0.5), Ok(vec![]));
        assert_eq!(allowed_rate(&DEFAULT, &DEFAULT, 0.5, Rtt::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lowered(bps: u64, nanos: u64, queue: u64, streams: u32, share: f64,
                              rmem: [u64; 3], wmem: [u64; 3], window_scaling: bool) {
            let now = Buffers { tcp_rmem: rmem, tcp_wmem: wmem, window_scaling };
            let target = Target {
                rate: BitRate::from_bps(bps),
                rtt: Rtt::from_nanos(nanos),
                queue: ByteCount::from_bytes(queue),
                streams,
            };
            let _ = allowed_rate(&now, &now, share, target.rtt);
            for item in plan(&now, &now, &target, share).unwrap_or_default() {
                if item.key.ends_with("mem") {
                    let before: u64 = item.from.split(' ').next_back().unwrap().parse().unwrap();
                    proptest::prop_assert!(most(&item) > before);
                    proptest::prop_assert!(most(&item) <= i32::MAX as u64);
                }
            }
        }
    }
}
