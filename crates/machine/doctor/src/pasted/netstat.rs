//! `netstat -s`: sentences with a number each, in sections.

use super::{PastedCounter, PastedReport};

/// A sentence of netstat; `#` stands for a number, and a word's final `s` is ignored.
struct Sentence {
    /// The section's heading, without the colon.
    section: &'static str,
    text: &'static str,
    /// Its name: the kernel's, where it has one.
    name: &'static str,
    /// The names of totals that it is a part of; the first that the text has counts.
    of: &'static [&'static str],
    /// The meaning of the counter; empty where `record` documents the name.
    meaning: &'static str,
    remedy: &'static str,
}

/// A total.
const fn total(
    section: &'static str,
    text: &'static str,
    name: &'static str,
    meaning: &'static str,
) -> Sentence {
    Sentence { section, text, name, of: &[], meaning, remedy: "" }
}

/// A counter that `watch` documents.
const fn known(
    section: &'static str,
    text: &'static str,
    name: &'static str,
    of: &'static [&'static str],
) -> Sentence {
    Sentence { section, text, name, of, meaning: "", remedy: "" }
}

/// A counter of macOS.
const fn mac(
    text: &'static str,
    of: &'static [&'static str],
    meaning: &'static str,
    remedy: &'static str,
) -> Sentence {
    Sentence { section: "tcp", text, name: text, of, meaning, remedy }
}

/// One system's sentences.
pub(super) struct Dialect {
    sentences: &'static [Sentence],
    /// Sections whose `Name: value` lines carry the kernel's names.
    named: &'static [&'static str],
}

impl Dialect {
    /// The kernel's name of each sentence, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.sentences.iter().map(|sentence| sentence.name)
    }
}

const SENT: &[&str] = &["TcpExt.TCPOrigDataSent", "Tcp.OutSegs"];
const RETRANSMITTED: &[&str] = &["Tcp.RetransSegs"];
const RECEIVED: &[&str] = &["Tcp.InSegs"];
const ACCEPTED: &[&str] = &["Tcp.PassiveOpens"];

/// net-tools 1.60 to 2.10, `statistics.c`.
pub(super) const LINUX: Dialect = Dialect {
    named: &["TcpExt", "IpExt", "Tcp", "Udp"],
    sentences: &[
        total("Tcp", "# active connection opening", "Tcp.ActiveOpens", "connections opened"),
        total("Tcp", "# passive connection opening", "Tcp.PassiveOpens", "connections accepted"),
        total("Tcp", "# segments received", "Tcp.InSegs", "segments received"),
        total("Tcp", "# segments sent out", "Tcp.OutSegs", "segments sent, ACKs included"),
        total("Tcp", "# segments send out", "Tcp.OutSegs", "segments sent, ACKs included"),
        total(
            "TcpExt",
            "TCPOrigDataSent: #",
            "TcpExt.TCPOrigDataSent",
            "segments with data, sent for the first time",
        ),
        known("Tcp", "# segments retransmitted", "Tcp.RetransSegs", SENT),
        known("Tcp", "# segments retransmited", "Tcp.RetransSegs", SENT),
        known("TcpExt", "# other TCP timeouts", "TcpExt.TCPTimeouts", RETRANSMITTED),
        known("TcpExt", "TCPTimeouts: #", "TcpExt.TCPTimeouts", RETRANSMITTED),
        known("TcpExt", "TCPLostRetransmit: #", "TcpExt.TCPLostRetransmit", RETRANSMITTED),
        known("TcpExt", "# fast retransmits", "TcpExt.TCPFastRetrans", RETRANSMITTED),
        known("TcpExt", "# retransmits in slow start", "TcpExt.TCPSlowStartRetrans", RETRANSMITTED),
        known(
            "TcpExt",
            "# times recovered from packet loss by selective acknowledgements",
            "TcpExt.TCPSackRecovery",
            &[],
        ),
        known(
            "TcpExt",
            "# times recovered from packet loss due to fast retransmit",
            "TcpExt.TCPRenoRecovery",
            &[],
        ),
        known("TcpExt", "# timeouts after SACK recovery", "TcpExt.TCPSackFailures", &[]),
        known("TcpExt", "# DSACKs received", "TcpExt.TCPDSACKRecv", RETRANSMITTED),
        known("TcpExt", "TCPDSACKRecv: #", "TcpExt.TCPDSACKRecv", RETRANSMITTED),
        known("TcpExt", "# DSACKs sent for old packets", "TcpExt.TCPDSACKOldSent", RECEIVED),
        known("TcpExt", "TCPDSACKOldSent: #", "TcpExt.TCPDSACKOldSent", RECEIVED),
        known("TcpExt", "TCPOFOQueue: #", "TcpExt.TCPOFOQueue", RECEIVED),
        known("Tcp", "# bad segments received", "Tcp.InErrs", RECEIVED),
        known("TcpExt", "Detected reordering # times using SACK", "TcpExt.TCPSACKReorder", &[]),
        known("TcpExt", "Detected reordering # times using time stamp", "TcpExt.TCPTSReorder", &[]),
        known(
            "TcpExt",
            "# packets pruned from receive queue because of socket buffer overrun",
            "TcpExt.PruneCalled",
            RECEIVED,
        ),
        known("TcpExt", "# packets pruned from receive queue", "TcpExt.RcvPruned", RECEIVED),
        known(
            "TcpExt",
            "# packets dropped from out-of-order queue because of socket buffer overrun",
            "TcpExt.OfoPruned",
            RECEIVED,
        ),
        known(
            "TcpExt",
            "# packets collapsed in receive queue due to low socket buffer",
            "TcpExt.TCPRcvCollapsed",
            RECEIVED,
        ),
        known("TcpExt", "TCP ran low on memory # times", "TcpExt.TCPMemoryPressures", &[]),
        known(
            "TcpExt",
            "# times the listen queue of a socket overflowed",
            "TcpExt.ListenOverflows",
            ACCEPTED,
        ),
        known("TcpExt", "# SYNs to LISTEN sockets dropped", "TcpExt.ListenDrops", ACCEPTED),
        known(
            "TcpExt",
            "# packets rejected in established connections because of timestamp",
            "TcpExt.PAWSEstab",
            RECEIVED,
        ),
        known("Tcp", "# failed connection attempts", "Tcp.AttemptFails", &["Tcp.ActiveOpens"]),
        known("Tcp", "# connection resets received", "Tcp.EstabResets", &[]),
        known("TcpExt", "# connections reset due to unexpected data", "TcpExt.TCPAbortOnData", &[]),
        known(
            "TcpExt",
            "# connections reset due to early user close",
            "TcpExt.TCPAbortOnClose",
            &[],
        ),
        known(
            "TcpExt",
            "# connections aborted due to memory pressure",
            "TcpExt.TCPAbortOnMemory",
            &[],
        ),
        known("TcpExt", "# connections aborted due to timeout", "TcpExt.TCPAbortOnTimeout", &[]),
        total("Udp", "# packets received", "Udp.InDatagrams", "datagrams received"),
        total("Udp", "# packets sent", "Udp.OutDatagrams", "datagrams sent"),
        known("Udp", "# receive buffer errors", "Udp.RcvbufErrors", &["Udp.InDatagrams"]),
        known("Udp", "# send buffer errors", "Udp.SndbufErrors", &["Udp.OutDatagrams"]),
        known("Udp", "# packets to unknown port received", "Udp.NoPorts", &["Udp.InDatagrams"]),
    ],
};

const MAC_SENT: &[&str] = &["# data packets (# bytes)", "# packets sent"];
const MAC_RECEIVED: &[&str] = &["# packets (# bytes) received in-sequence", "# packets received"];
const MAC_PATH: &str = "find the lossy hop: longhaul trace HOST";

/// network_cmds 741, `netstat.tproj/inet.c`; names of the counters in its source.
pub(super) const MACOS: Dialect = Dialect {
    named: &[],
    sentences: &[
        mac("# packets sent", &[], "segments sent, ACKs included", ""),
        mac("# data packets (# bytes)", &[], "segments with data sent", ""),
        mac("# packets received", &[], "segments received, ACKs included", ""),
        mac("# packets (# bytes) received in-sequence", &[], "segments received in order", ""),
        mac("# data packets (# bytes) retransmitted", MAC_SENT, "segments retransmitted", MAC_PATH),
        mac(
            "# retransmit timeouts",
            &["# data packets (# bytes) retransmitted"],
            "no ACK for a whole retransmission timeout",
            MAC_PATH,
        ),
        mac(
            "# unnecessary packet retransmissions",
            &["# data packets (# bytes) retransmitted"],
            "retransmitted although only the ACK was late",
            "",
        ),
        mac(
            "# packets recovered after loss",
            MAC_SENT,
            "segments lost and recovered by SACK or a retransmission",
            MAC_PATH,
        ),
        mac("# SACK recovery episodes", &[], "loss recoveries with SACK", MAC_PATH),
        mac(
            "# out-of-order packets (# bytes)",
            MAC_RECEIVED,
            "segments received before earlier ones: loss or reordering on the way here",
            "compare with the sender's retransmissions: without them it is reordering",
        ),
        mac(
            "# completely duplicate packets (# bytes)",
            MAC_RECEIVED,
            "data received twice: needless retransmissions, or lost ACKs",
            "",
        ),
        mac(
            "# packets with some dup. data (# bytes duped)",
            MAC_RECEIVED,
            "segments that repeat some data",
            "",
        ),
        mac(
            "# old duplicate packets",
            MAC_RECEIVED,
            "old segments dropped by their timestamps (PAWS)",
            "",
        ),
        mac(
            "# received packets dropped due to low memory",
            MAC_RECEIVED,
            "segments dropped for lack of mbufs",
            "close programs with many connections; see kern.ipc.nmbclusters",
        ),
        mac(
            "# packets (# bytes) of data after window",
            MAC_RECEIVED,
            "data beyond the window offered",
            "slow receiving application, or raise net.inet.tcp.autorcvbufmax",
        ),
        mac(
            "# data packets sent after flow control",
            MAC_SENT,
            "segments held back because the interface's own queue was full, then sent",
            "this host sends faster than its link: no loss, and no harm",
        ),
        mac(
            "# challenge ACKs sent due to unexpected SYN",
            &[],
            "SYNs on open connections: late duplicates, or forged (RFC 5961)",
            "",
        ),
        mac(
            "# challenge ACKs sent due to unexpected RST",
            &[],
            "resets outside the window: late, or forged (RFC 5961)",
            "",
        ),
        mac("# packets received after close", MAC_RECEIVED, "segments for closed connections", ""),
        mac("# bad resets", &[], "resets with a wrong sequence number, ignored", ""),
        mac(
            "# discarded for bad checksums",
            MAC_RECEIVED,
            "segments damaged on the way",
            "faulty cable, adapter or middlebox",
        ),
        mac("# window probe packets", MAC_SENT, "probes of a closed window", "slow receiver"),
        mac(
            "# listen queue overflows",
            &["# connection accepts"],
            "connections dropped: the accept queue was full",
            "the application accepts too slowly; raise kern.ipc.somaxconn",
        ),
        mac("# connection requests", &[], "connections opened", ""),
        mac("# connection accepts", &[], "connections accepted", ""),
        mac(
            "# connections dropped by rexmit timeout",
            &[],
            "connections abandoned: retransmissions went unanswered",
            "the peer or the path was down",
        ),
        mac(
            "# times packet reordering was detected on a connection",
            &[],
            "reordering detected",
            "",
        ),
        mac(
            "# times received congestion experienced (CE) notification",
            MAC_RECEIVED,
            "packets with ECN CE marks: a queue on the path is congested",
            "",
        ),
    ],
};

/// Reads the sentences of a dialect into the report, in its order.
pub(super) fn read(lines: &[&str], dialect: &Dialect, report: &mut PastedReport) {
    let wanted: Vec<String> = dialect.sentences.iter().map(|one| normal(one.text).0).collect();
    let mut values: Vec<Option<u64>> = vec![None; dialect.sentences.len()];
    let mut named: Vec<(String, u64)> = Vec::new();
    let mut section = "";
    for line in lines {
        if let Some(heading) = heading(line) {
            section = heading;
            continue;
        }
        let (text, Some(number)) = normal(line) else { continue };
        let is = |at: &usize| dialect.sentences[*at].section == section && wanted[*at] == text;
        match (0..wanted.len()).find(is) {
            // Only the first of each is kept: a text may hold several outputs.
            Some(at) => _ = values[at].get_or_insert(number),
            None => match documented(line, section, dialect) {
                Some(name) if named.iter().all(|(known, _)| *known != name) => {
                    named.push((name, number));
                }
                _ => report.unread_lines += 1,
            },
        }
    }
    write(dialect, &values, named, report);
    report.notes.push(
        "counters cover all connections since boot: only their growth during a transfer matters; \
         print them before and after"
            .to_owned(),
    );
}

/// Writes the values of a dialect's sentences, and those of other counters by the kernel's names.
pub(super) fn write(
    dialect: &Dialect,
    values: &[Option<u64>],
    named: Vec<(String, u64)>,
    report: &mut PastedReport,
) {
    let value = |name: &str| {
        let of = dialect.sentences.iter().zip(values).filter(|(one, _)| one.name == name);
        of.filter_map(|(_, value)| *value).next()
    };
    for (sentence, number) in dialect.sentences.iter().zip(values) {
        let Some(number) = *number else { continue };
        let whole = sentence.of.iter().find_map(|name| Some((*name, value(name)?)));
        report.counters.push(counter(sentence, number, whole));
    }
    for (name, number) in named {
        if let Some(doc) = record::counter_doc(&name) {
            report.counters.push(PastedCounter {
                name,
                value: number,
                of: None,
                share: None,
                meaning: doc.meaning.to_owned(),
                remedy: doc.remedy.map(str::to_owned),
            });
        }
    }
    if report.counters.iter().any(|one| one.share.is_none() && one.remedy.is_some()) {
        report.notes.push(
            "counters without a share have no total in the text: paste the whole output".to_owned(),
        );
    }
}

fn counter(sentence: &Sentence, value: u64, whole: Option<(&str, u64)>) -> PastedCounter {
    let doc = record::counter_doc(sentence.name);
    let text = |own: &str, documented: Option<&'static str>| match own {
        "" => documented.map(str::to_owned),
        own => Some(own.to_owned()),
    };
    PastedCounter {
        name: label(sentence.name),
        value,
        of: whole.map(|(name, _)| label(name)),
        share: whole.filter(|(_, all)| *all > 0).map(|(_, all)| units::share(value, all)),
        meaning: text(sentence.meaning, doc.map(|doc| doc.meaning)).unwrap_or_default(),
        remedy: text(sentence.remedy, doc.and_then(|doc| doc.remedy)),
    }
}

/// A name without the places of numbers.
fn label(name: &str) -> String {
    name.trim_start_matches("# ").replace(" (# bytes duped)", "").replace(" (# bytes)", "")
}

/// `TcpExt:` alone on a line that is not indented.
fn heading(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_suffix(':')?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric())).then_some(name)
}

/// The kernel's name of a `Name: value` line that `watch` documents.
fn documented(line: &str, section: &str, dialect: &Dialect) -> Option<String> {
    let (name, _) = line.trim().split_once(':')?;
    let name = format!("{section}.{name}");
    (dialect.named.contains(&section) && record::counter_doc(&name).is_some()).then_some(name)
}

/// A sentence with `#` for each number and without the plural's `s`, and its first number.
fn normal(line: &str) -> (String, Option<u64>) {
    let (mut text, mut first) = (String::with_capacity(line.len()), None);
    for word in line.split_whitespace() {
        let mut digits = String::new();
        let mut out = String::with_capacity(word.len() + 1);
        for c in word.chars().chain(Some(' ')) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            if !digits.is_empty() {
                first = first.or_else(|| digits.parse().ok());
                digits.clear();
                out.push('#');
            }
            out.push(c);
        }
        let out = out.trim_end().trim_end_matches('s').replace("s)", ")");
        text.push_str(&out);
        text.push(' ');
    }
    (text.trim_end().to_owned(), first)
}
