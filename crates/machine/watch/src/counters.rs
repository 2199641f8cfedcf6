//! Network counters of the host: their growth between polls.

use record::{COUNTERS, CounterChange};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of `/proc/net` that are read at each poll.
const FILES: [&str; 3] = ["snmp", "netstat", "snmp6"];

/// Values in the order of [`COUNTERS`].
type Values = [Option<u64>; COUNTERS.len()];

/// The counters of one network namespace.
#[derive(Debug)]
pub(crate) struct Counters {
    net: PathBuf,
    before: Values,
}

impl Counters {
    /// `root` is `/proc/thread-self`, except in tests.
    pub(crate) fn new(root: &Path) -> Self {
        let net = root.join("net");
        let before = read(&net);
        Counters { net, before }
    }

    /// Whether this system has any of them.
    pub(crate) fn are_available(&self) -> bool {
        self.before.iter().any(Option::is_some)
    }

    /// The counters that grew since the last call, `seconds` ago.
    pub(crate) fn changes(&mut self, seconds: f64) -> Vec<CounterChange> {
        let now = read(&self.net);
        let pairs = COUNTERS.iter().zip(now.iter().zip(&self.before));
        let changes = pairs.filter_map(|(what, (now, before))| {
            // A smaller value is from another namespace.
            let delta = now.zip(*before).and_then(|(now, before)| now.checked_sub(before))?;
            (delta > 0).then(|| CounterChange {
                name: what.name.to_owned(),
                delta,
                per_s: if seconds > 0.0 { delta as f64 / seconds } else { 0.0 },
                meaning: what.meaning.to_owned(),
                remedy: what.remedy.map(str::to_owned),
            })
        });
        let changes = changes.collect();
        self.before = now;
        changes
    }
}

fn read(net: &Path) -> Values {
    let mut values = [None; COUNTERS.len()];
    for file in FILES {
        let text = fs::read_to_string(net.join(file)).unwrap_or_default();
        parse(&text, &mut values);
    }
    values
}

/// Parses pairs of lines, `Tcp: A B` and `Tcp: 1 2`, or, in `snmp6`, lines of `Udp6A 1`.
fn parse(text: &str, values: &mut Values) {
    let mut put = |section: &str, name: &str, value: &str| {
        let is_it = |whole: &str| {
            whole.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')) == Some(name)
        };
        let slot = COUNTERS.iter().position(|what| is_it(what.name));
        if let Some(slot) = slot.and_then(|at| values.get_mut(at)) {
            *slot = value.parse().ok();
        }
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((section, names)) = line.split_once(": ") {
            let Some(numbers) = lines.next().and_then(|next| next.strip_prefix(section)) else {
                continue;
            };
            let numbers = numbers.trim_start_matches(':').split_whitespace();
            for (name, value) in names.split_whitespace().zip(numbers) {
                put(section, name, value);
            }
        } else if let Some((name, value)) = line.split_once(char::is_whitespace) {
            let (section, name) = name.split_at_checked(4).unwrap_or((name, ""));
            put(section, name, value.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoAlgorithm MaxConn RetransSegs InErrs\nTcp: 1 -1 100 7\n\
        Udp: NoPorts RcvbufErrors\nUdp: 3 0\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows TCPTimeouts Unheard\nTcpExt: 5 6 7\n";

    fn changed(counters: &mut Counters) -> Vec<(String, u64, f64)> {
        counters.changes(2.0).into_iter().map(|c| (c.name, c.delta, c.per_s)).collect()
    }

    #[test]
    fn counters_that_grew_are_reported_with_their_meaning() {
        let root = tempfile::tempdir().unwrap();
        let net = root.path().join("net");
        fs::create_dir(&net).unwrap();
        fs::write(net.join("snmp"), SNMP).unwrap();
        fs::write(net.join("netstat"), NETSTAT).unwrap();
        fs::write(net.join("snmp6"), "Udp6RcvbufErrors    \t1\nIp6InReceives 9\n").unwrap();
        let mut counters = Counters::new(root.path());
        assert!(counters.are_available());
        assert_eq!(changed(&mut counters), []);
        fs::write(net.join("snmp"), SNMP.replace("100 7", "104 7").replace("3 0", "2 0")).unwrap();
        fs::write(net.join("netstat"), NETSTAT.replace("5 6 7", "6 6 9")).unwrap();
        fs::write(net.join("snmp6"), "Udp6RcvbufErrors 4\n").unwrap();
        let changes = changed(&mut counters);
        let expected = [
            ("TcpExt.ListenOverflows", 1, 0.5),
            ("Tcp.RetransSegs", 4, 2.0),
            ("Udp6.RcvbufErrors", 3, 1.5),
        ];
        assert_eq!(changes, expected.map(|(name, by, each)| (name.to_owned(), by, each)));
        // Missing, then present again: nothing to compare with.
        fs::remove_file(net.join("netstat")).unwrap();
        assert_eq!(changed(&mut counters), []);
        fs::write(net.join("netstat"), NETSTAT).unwrap();
        assert_eq!(changed(&mut counters), []);
    }

    #[test]
    fn a_system_without_them_has_none() {
        let mut counters = Counters::new(Path::new("/nonexistent"));
        assert!(!counters.are_available() && counters.changes(1.0).is_empty());
    }

    #[test]
    fn each_counter_is_listed_once_and_fits_on_a_line() {
        for (at, what) in COUNTERS.iter().enumerate() {
            assert!(
                COUNTERS[at + 1..].iter().all(|other| other.name != what.name),
                "{}",
                what.name
            );
            assert!(what.meaning.len() < 72 && what.name.contains('.'), "{}", what.name);
        }
    }

    #[test]
    fn this_kernel_has_most_of_them() {
        let values = read(Path::new("/proc/thread-self/net"));
        let absent = COUNTERS.iter().zip(&values).filter(|(_, value)| value.is_none());
        let absent: Vec<&str> = absent.map(|(what, _)| what.name).collect();
        assert!(absent.len() < COUNTERS.len() / 4, "{absent:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_text(text in "[A-Za-z0-9: \n\t.-]{0,200}|.{0,100}") {
            parse(&text, &mut [None; COUNTERS.len()]);
            parse(&format!("TcpExt: {text}"), &mut [None; COUNTERS.len()]);
        }
    }
}
