//! The test of longhaul's that would reveal what a file does not say, as a command to paste.

use record::{Direction, EndCondition, Protocol, TestSpec};

/// iperf3's port, and longhaul's.
const DEFAULT_PORT: u16 = 5201;

/// Seconds of a test that shows its limit; a shorter one is repeated at this length.
const ENOUGH_S: f64 = 10.0;

/// Longest test that is proposed, in seconds.
const MOST_S: f64 = 60.0;

/// The command: the same test, with the second test that decides between likely causes.
pub(crate) fn of(spec: &TestSpec) -> String {
    let target = if spec.target.is_empty() { "HOST".to_owned() } else { quoted(&spec.target) };
    let mut words = vec!["longhaul test".to_owned()];
    if target.starts_with('-') || target.starts_with("'-") {
        // A name that looks like a flag.
        words.push("--".to_owned());
        words.push(target);
        return words.join(" ");
    }
    words.push(target);
    if spec.port != 0 && spec.port != DEFAULT_PORT && spec.protocol != Protocol::Udt {
        words.push(format!("-p {}", spec.port));
    }
    match spec.direction {
        Direction::Forward => {}
        Direction::Reverse => words.push("-R".to_owned()),
        Direction::Both => words.push("--bidir".to_owned()),
    }
    if spec.streams > 1 {
        words.push(format!("-P {}", spec.streams.min(128)));
    }
    if let Some(window) = spec.window_bytes {
        words.push(match window.bytes() {
            bytes if bytes.is_multiple_of(1024) => format!("-w {}K", bytes / 1024),
            bytes => format!("-w {bytes}"),
        });
    }
    let is_udp = spec.protocol == Protocol::Udp;
    if let Some(rate) = spec.rate_bps.filter(|rate| rate.bps() > 0) {
        words.push(format!("-b {}kbit", rate.bps().div_ceil(1000)));
    }
    if let Some(congestion) = &spec.congestion
        && spec.direction != Direction::Reverse
    {
        words.push(format!("-C {}", quoted(congestion)));
    }
    if is_udp {
        words.push("-u".to_owned());
    }
    let seconds = if spec.end == EndCondition::Time { spec.seconds.round() } else { 0.0 };
    if seconds > ENOUGH_S {
        words.push(format!("-t {:.0}", seconds.min(MOST_S)));
    }
    // The second test that decides needs one direction, and losses that a sender sees.
    words.push(
        if is_udp || spec.direction == Direction::Both { "--latency" } else { "--decide" }
            .to_owned(),
    );
    words.join(" ")
}

/// A word for a POSIX shell: between single quotes unless every character is harmless.
/// Control characters, which no host name has, are left out.
fn quoted(word: &str) -> String {
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BitRate, ByteCount};

    fn spec(target: &str) -> TestSpec {
        TestSpec { target: target.to_owned(), port: 5201, streams: 1, ..TestSpec::default() }
    }

    #[test]
    fn what_was_asked_for_is_asked_for_again() {
        let all = TestSpec {
            port: 5202,
            direction: Direction::Reverse,
            streams: 4,
            seconds: 30.0,
            window_bytes: Some(ByteCount::from_bytes(65_536)),
            rate_bps: Some(BitRate::from_bps(20_000_000)),
            ..spec("server")
        };
        assert_eq!(
            of(&all),
            "longhaul test server -p 5202 -R -P 4 -w 64K -b 20000kbit -t 30 --decide"
        );
        assert_eq!(of(&spec("")), "longhaul test HOST --decide");
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        for (name, word) in [
            ("a.example", "a.example"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("x; rm -rf ~", "'x; rm -rf ~'"),
            ("$(id)", "'$(id)'"),
            ("it's", r"'it'\''s'"),
            ("a\u{1b}[31m\nb", "'a[31mb'"),
        ] {
            assert_eq!(of(&spec(name)), format!("longhaul test {word} --decide"));
        }
        assert_eq!(of(&spec("--json")), "longhaul test -- --json", "no flag of ours");
    }
}
