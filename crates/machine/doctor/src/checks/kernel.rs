//! The features of this kernel version.

use super::{check, pass_or, unread};
use crate::facts::{Fact, Facts};
use record::{Area, Check, Verdict};

const SOURCE: &str = "Linux, by version";

/// The first two numbers of `uname -r`.
pub(super) fn version(facts: &Facts) -> Option<(u32, u32)> {
    let text = facts.kernel.seen()?;
    let mut numbers = text.split(['.', '-', '+', ' ']).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The share of a receive buffer that becomes window. From Linux 6.6 on each
/// socket finds its own, beginning with half (`tcp_scaling_ratio`); before, it
/// was `tcp_adv_win_scale`'s (`tcp_win_from_space` in include/net/tcp.h).
pub(super) fn window_share(facts: &Facts) -> f64 {
    if version(facts).is_none_or(|version| version >= (6, 6)) {
        return model::INITIAL_WINDOW_SHARE;
    }
    let scale = facts.settings.get("net.ipv4.tcp_adv_win_scale").and_then(Fact::seen);
    match scale.and_then(|text| text.parse::<i32>().ok()) {
        Some(scale @ 1..=31) => 1.0 - 0.5f64.powi(scale),
        Some(scale @ -31..=0) => 0.5f64.powi(-scale),
        _ => model::INITIAL_WINDOW_SHARE,
    }
}

pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    let (Some(version), Some(release)) = (version(facts), facts.kernel.seen()) else {
        let fact = match &facts.kernel {
            Fact::Seen(text) => Fact::<()>::unread(format!("'{text}' is not a version")),
            Fact::Unread { not_readable } => Fact::unread(not_readable),
        };
        return vec![unread(Area::Kernel, "kernel.version", &fact, "4.13 or newer", SOURCE)];
    };
    let upgrade = "use a newer kernel";
    let share = window_share(facts);
    let how = if version >= (6, 6) {
        "each socket derives the share from the packets it receives, starting at one half; \
         tcp_adv_win_scale is ignored"
    } else {
        "tcp_adv_win_scale sets the share of a receive buffer that becomes window; buffers must \
         be larger accordingly"
    };
    vec![
        check(Area::Kernel, "kernel.pacing", pass_or(version >= (4, 13), Verdict::Warn))
            .seen(release)
            .needs("4.13 or newer, or the queue discipline fq")
            .why(
                "since 4.13 TCP paces internally where a connection requests it; before that, only \
                 the fq qdisc did",
            )
            .remedy(upgrade)
            .source("Linux 218af599fa63 (tcp: internal implementation for pacing)"),
        check(Area::Kernel, "kernel.window-share", pass_or(share >= 0.5, Verdict::Warn))
            .seen(format!("{} of tcp_rmem", units::percent(share)))
            .needs("50 % or more")
            .why(how)
            .remedy("restore the kernel's default")
            .command("sudo sysctl -w net.ipv4.tcp_adv_win_scale=1")
            .source("Linux dfa2f0483360 (tcp: get rid of sysctl_tcp_adv_win_scale), 6.6"),
        tcp_info(version, release),
    ]
}

/// Which parts of a finding this kernel's `TCP_INFO` cannot support.
fn tcp_info(version: (u32, u32), release: &str) -> Check {
    let missing = [
        ((4, 10), "the rwnd-limited and sndbuf-limited times"),
        ((5, 4), "the window that the far end advertises"),
        ((6, 2), "the window that this end advertises"),
    ];
    let missing: Vec<&str> =
        missing.iter().filter(|(since, _)| version < *since).map(|(_, what)| *what).collect();
    let why = if missing.is_empty() {
        "TCP_INFO has every field that findings use".to_owned()
    } else {
        format!("TCP_INFO lacks {}; findings omit it", missing.join(", "))
    };
    check(Area::Kernel, "kernel.tcp-info", pass_or(version >= (4, 10), Verdict::Warn))
        .seen(release)
        .needs("4.10 or newer for findings, 6.2 for all of them")
        .why(why)
        .remedy("use a newer kernel")
        .source("Linux include/uapi/linux/tcp.h")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(release: &str, scale: Option<&str>) -> Facts {
        let mut facts = Facts::unread("none");
        facts.kernel = Fact::Seen(release.to_owned());
        let scale = scale.map_or_else(|| Fact::unread("none"), |s| Fact::Seen(s.to_owned()));
        facts.settings.insert("net.ipv4.tcp_adv_win_scale".to_owned(), scale);
        facts
    }

    #[test]
    fn shares_of_kernels() {
        for (release, scale, share) in [
            ("6.6.0", Some("-2"), 0.5),
            ("6.5.13-generic", Some("-2"), 0.25),
            ("5.15.0", Some("1"), 0.5),
            ("4.9.0", Some("2"), 0.75),
            ("4.9.0", Some("0"), 1.0),
            ("4.9.0", None, 0.5),
            ("4.9.0", Some("999"), 0.5),
            ("odd", Some("-2"), 0.5),
        ] {
            assert!((window_share(&facts(release, scale)) - share).abs() < 1e-9, "{release}");
        }
    }

    #[test]
    fn versions_are_read_from_releases() {
        for (release, expected) in [
            ("6.18.44-fc-v595", Some((6, 18))),
            ("4.9+", Some((4, 9))),
            ("5.10-rc1", Some((5, 10))),
            ("linux", None),
            ("6", None),
            ("", None),
        ] {
            assert_eq!(version(&facts(release, None)), expected, "{release}");
        }
    }
}
