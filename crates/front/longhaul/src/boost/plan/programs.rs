//! Programs that keep a window of their own in flight, which splitting TCP does not raise.

use model::boost::LongPath;
use record::BoostProgram;
use units::{BitRate, ByteCount};

/// OpenSSH's window of a channel, 64 packets of 32 KiB (`CHAN_SES_WINDOW_DEFAULT`), less the 3 packets
/// that the receiver keeps back before it raises the window (`channel_check_window`).
pub(super) const OPENSSH: ByteCount = ByteCount::from_bytes(61 * (32 << 10));

/// 64 requests of 32 KiB: the defaults of rclone and of other programs with Go's SFTP, and of
/// OpenSSH's sftp, whose channel is the smaller one.
const SFTP: ByteCount = ByteCount::from_bytes(64 * (32 << 10));

/// What smbclient has in flight of two reads of up to 8 MiB: docs/design/boost-plan.md.
const SMB: ByteCount = ByteCount::from_bytes(10 << 20);

const KNOWN: [(&str, ByteCount); 3] = [
    ("rsync, git, sftp, scp and restic over OpenSSH", OPENSSH),
    ("rclone over SFTP", SFTP),
    ("smbclient", SMB),
];

/// The most that one connection of each program carries over a path.
pub(super) fn programs(path: &LongPath) -> Vec<BoostProgram> {
    let of = |(name, window): (&str, ByteCount)| {
        let goodput = model::window_rate(window, path.rtt.expected)?;
        Some(BoostProgram {
            name: name.to_owned(),
            window_bytes: window,
            goodput_bps: goodput,
            limits: is_limit(goodput, path),
        })
    };
    KNOWN.into_iter().filter_map(of).collect()
}

/// Returns true if the window carries less than the path does without loss.
fn is_limit(goodput: BitRate, path: &LongPath) -> bool {
    goodput < path.rate.expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::boost::Estimate;
    use units::{LossRatio, Rtt};

    #[test]
    fn windows_limit_long_paths_alone() {
        let over = |mbit: u64, ms: u64| {
            let path = LongPath {
                rate: Estimate::exact(BitRate::from_bps(mbit * 1_000_000)),
                rtt: Estimate::exact(Rtt::from_micros(ms * 1_000)),
                loss: Estimate::exact(LossRatio::NONE),
                mss: ByteCount::from_bytes(1448),
            };
            programs(&path).iter().map(|one| one.limits).collect::<Vec<bool>>()
        };
        assert_eq!(over(1_000, 173), [true, true, true]);
        // 92.4, 97 and 485 Mbit/s.
        assert_eq!(over(96, 173), [true, false, false]);
        assert_eq!(over(100, 20), [false, false, false]);
    }
}
