//! Settings that published tuning guides change and a plan leaves as they are, each with
//! the reason, and with the case in which to change it after all.
//!
//! The list is that of a guide to long-distance downloads which sets every buffer to 2 GiB.
//! Meanings: Linux `ip-sysctl.rst` and `admin-guide/sysctl/net.rst`, tcp(7), socket(7).

use record::{PlannedSetting, SkippedSetting};

/// The settings and the reasons. Those of `tcp_rmem` and `tcp_wmem` are about their first
/// two values: a plan raises the third.
const UNCHANGED: [(&str, &str); 8] = [
    (
        "net.core.rmem_default",
        "the receive buffer of sockets that set none and are not TCP, such as UDP: TCP begins with \
         the second value of tcp_rmem. Raise it only for a UDP program that sets no SO_RCVBUF and \
         loses datagrams (RcvbufErrors): every such socket may then queue as much",
    ),
    ("net.core.wmem_default", "the same for sending: TCP begins with the second value of tcp_wmem"),
    (
        "net.ipv4.tcp_rmem",
        "minimum and initial value: autotuning doubles the window each RTT, as slow start doubles \
         the arrival rate, so a larger initial value gains nothing; a larger minimum is kept even \
         under memory pressure",
    ),
    (
        "net.ipv4.tcp_wmem",
        "minimum and initial value: the send buffer grows with cwnd; a larger initial value only \
         lets programs queue more unsent data",
    ),
    (
        "net.ipv4.tcp_mem",
        "computed from memory at boot. Raise it where TCP came under memory pressure \
         (TCPMemoryPressures); three equal values remove the pressure stage, so that connections \
         fail instead of shrinking their buffers",
    ),
    (
        "net.core.optmem_max",
        "control messages and zero-copy notifications of a socket: needed at 100 Gbit/s with \
         MSG_ZEROCOPY, not part of a window",
    ),
    (
        "net.ipv4.route.flush",
        "flushed the route cache, which Linux 3.6 removed. State left by earlier connections is in \
         the TCP metrics, without ssthresh since Linux 5.6: 'sudo ip tcp_metrics flush' \
         deletes them before a test",
    ),
    (
        "net.core.default_qdisc",
        "fq is for hosts that pace, with BBR or SO_MAX_PACING_RATE; keep \
         fq_codel elsewhere: it limits the delay in this host's own queue (RFC 8290)",
    ),
];

/// The settings of the list that these changes leave as they are.
pub(crate) fn unchanged_by(changes: &[PlannedSetting]) -> Vec<SkippedSetting> {
    let triple = |key: &str| key.ends_with("tcp_rmem") || key.ends_with("tcp_wmem");
    let is_planned = |key: &str| !triple(key) && changes.iter().any(|change| change.key == key);
    UNCHANGED
        .iter()
        .filter(|(key, _)| !is_planned(key))
        .map(|(key, why)| SkippedSetting { key: (*key).to_owned(), why: (*why).to_owned() })
        .collect()
}
