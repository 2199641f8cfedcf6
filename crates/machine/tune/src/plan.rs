//! The changes that two hosts need for a target.

use model::{BufferTarget, BufferTooLarge, SEND_SHARE, raised_triple, share_of_buffer};
use record::PlanItem;
use units::{BitRate, ByteCount, Rtt};

/// The host that receives, in [`PlanItem::host`].
const RECEIVER: &str = "server";
/// The host that sends, in [`PlanItem::host`].
const SENDER: &str = "client";

/// One host's TCP settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// `net.ipv4.tcp_rmem`: least, initial and most bytes.
    pub tcp_rmem: [u64; 3],
    /// `net.ipv4.tcp_wmem`: least, initial and most bytes.
    pub tcp_wmem: [u64; 3],
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: bool,
}

/// The changes that `sender` and `receiver` need to reach `target`: nothing is lowered,
/// and sufficient values are kept.
///
/// `share` is the part of a receive buffer that becomes window: measured if possible,
/// otherwise [`model::INITIAL_WINDOW_SHARE`].
///
/// # Errors
/// If the target needs more than the largest possible buffer of one stream.
pub fn plan(
    sender: &Buffers,
    receiver: &Buffers,
    target: &BufferTarget,
    share: f64,
) -> Result<Vec<PlanItem>, BufferTooLarge> {
    let receive = target.buffer(share)?;
    let send = target.buffer(SEND_SHARE)?;
    let items = [
        raise(RECEIVER, "net.ipv4.tcp_rmem", receiver.tcp_rmem, receive, || {
            target.explain(share, receive, "becomes window")
        }),
        raise(SENDER, "net.ipv4.tcp_wmem", sender.tcp_wmem, send, || {
            target.explain(SEND_SHARE, send, "holds payload in flight")
        }),
        scale(RECEIVER, receiver, target),
        scale(SENDER, sender, target),
    ];
    Ok(items.into_iter().flatten().collect())
}

/// The rate that these buffers allow one stream: the smaller of the receiver's
/// window and the sender's payload in flight, per RTT.
/// `None` for a round trip of zero.
#[must_use]
pub fn allowed_rate(sender: &Buffers, receiver: &Buffers, share: f64, rtt: Rtt) -> Option<BitRate> {
    rate_by_shares(sender, receiver, [SEND_SHARE, share], rtt)
}

/// The rates that autotuning reaches with these buffers at their maximum, from the least to the
/// most: the share of a buffer that holds payload depends on the kernel, the size of packets,
/// and how many the device passes on at once ([`model::AUTOTUNED_SHARES`]).
/// `None` for a round trip of zero.
#[must_use]
pub fn autotuned_rates(sender: &Buffers, receiver: &Buffers, rtt: Rtt) -> Option<[BitRate; 2]> {
    let [least, most] =
        model::AUTOTUNED_SHARES.map(|share| rate_by_shares(sender, receiver, [share; 2], rtt));
    Some([least?, most?])
}

/// The rate with these shares of the send and the receive buffer.
fn rate_by_shares(
    sender: &Buffers,
    receiver: &Buffers,
    [send, receive]: [f64; 2],
    rtt: Rtt,
) -> Option<BitRate> {
    let scaled = sender.window_scaling && receiver.window_scaling;
    let announced = if scaled { model::MAX_WINDOW } else { model::UNSCALED_WINDOW };
    let most = |triple: [u64; 3]| ByteCount::from_bytes(triple[2]);
    let window = share_of_buffer(most(receiver.tcp_rmem), receive).min(announced);
    model::window_rate(window.min(share_of_buffer(most(sender.tcp_wmem), send)), rtt)
}

fn raise(
    host: &str,
    key: &str,
    now: [u64; 3],
    most: ByteCount,
    why: impl FnOnce() -> String,
) -> Option<PlanItem> {
    let to = raised_triple(now, most)?;
    let text = |[least, initial, most]: [u64; 3]| format!("{least} {initial} {most}");
    let (host, key) = (host.to_owned(), key.to_owned());
    Some(PlanItem { host, key, from: text(now), to: text(to), why: why() })
}

fn scale(host: &str, buffers: &Buffers, target: &BufferTarget) -> Option<PlanItem> {
    let window = target.stream_window();
    let needed = window > model::UNSCALED_WINDOW;
    (!buffers.window_scaling && needed).then(|| PlanItem {
        host: host.to_owned(),
        key: "net.ipv4.tcp_window_scaling".to_owned(),
        from: "0".to_owned(),
        to: "1".to_owned(),
        why: format!("without it windows stay below 64 KiB, and {window} is needed"),
    })
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

    fn target(rate: &str, rtt: &str, queue: u64, streams: u32) -> BufferTarget {
        let queue = ByteCount::from_bytes(queue);
        BufferTarget { rate: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), queue, streams }
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
    fn autotuning_reaches_what_was_measured() {
        let reached = |rmem, wmem, rtt: &str| {
            let buffers = Buffers {
                tcp_rmem: [4096, 131_072, rmem],
                tcp_wmem: [4096, 16_384, wmem],
                ..DEFAULT
            };
            autotuned_rates(&buffers, &buffers, rtt.parse().unwrap()).unwrap()
        };
        // Goodput in labs of 1 Gbit/s with Linux 6.18, Mbit/s. The initial values of the buffers
        // do not limit; the maximum does.
        for (rmem, wmem, rtt, measured) in [
            (32 << 20, 4 << 20, "173ms", 160),
            (6 << 20, 64 << 20, "100ms", 383),
            (1 << 20, 64 << 20, "100ms", 64),
            (64 << 20, 1 << 20, "100ms", 65),
            (64 << 20, 512 << 10, "100ms", 34),
        ] {
            let [least, most] = reached(rmem, wmem, rtt);
            let measured = BitRate::from_bps(measured * 1_000_000);
            assert!(least < measured && measured < most, "{least} to {most}, not {measured}");
        }
        assert_eq!(autotuned_rates(&DEFAULT, &DEFAULT, Rtt::ZERO), None);
    }

    #[test]
    fn the_defaults_limit_germany_to_hong_kong() {
        let rtt = "200ms".parse().unwrap();
        let allowed = allowed_rate(&DEFAULT, &DEFAULT, 0.5, rtt).unwrap().as_f64() / 8e6;
        // Measured: 3 to 4 MB/s with the defaults, on a link of 125 MB/s.
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
    fn sufficient_values_are_kept_to_the_byte() {
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
    fn a_smaller_window_share_needs_larger_buffers() {
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
    fn window_scaling_is_enabled() {
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
    fn an_initial_value_above_the_maximum_is_lowered() {
        let odd = Buffers { tcp_rmem: [4096, 99 << 20, 1 << 20], ..DEFAULT };
        let item = &plan(&DEFAULT, &odd, &target("100mbit", "173ms", 0, 1), 0.5).unwrap()[0];
        assert_eq!(item.to, format!("4096 {0} {0}", 9 << 20));
    }

    #[test]
    fn an_rtt_of_zero_needs_no_changes() {
        assert_eq!(plan(&DEFAULT, &DEFAULT, &target("1gbit", "0ms", 0, 1), 0.5), Ok(vec![]));
        assert_eq!(allowed_rate(&DEFAULT, &DEFAULT, 0.5, Rtt::ZERO), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lowered(bps: u64, nanos: u64, queue: u64, streams: u32, share: f64,
                              rmem: [u64; 3], wmem: [u64; 3], window_scaling: bool) {
            let now = Buffers { tcp_rmem: rmem, tcp_wmem: wmem, window_scaling };
            let target = BufferTarget {
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
