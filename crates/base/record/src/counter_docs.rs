//! What the kernel's network counters mean, and what to do if they grow.
//!
//! Names are those of `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6`;
//! meanings after Linux `Documentation/networking/snmp_counter.rst` and the source.

/// The documentation of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterDoc {
    /// Section and name, as in the files.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// What to do, if growth is a problem.
    pub remedy: Option<&'static str>,
}

/// The documentation of a counter by its name with the section, as `Tcp.RetransSegs`.
#[must_use]
pub fn counter_doc(name: &str) -> Option<CounterDoc> {
    COUNTERS.iter().find(|doc| doc.name == name).copied()
}

const fn problem(name: &'static str, meaning: &'static str, remedy: &'static str) -> CounterDoc {
    CounterDoc { name, meaning, remedy: Some(remedy) }
}

const fn neutral(name: &'static str, meaning: &'static str) -> CounterDoc {
    CounterDoc { name, meaning, remedy: None }
}

const PATH: &str = "find the lossy hop: longhaul trace HOST";
const ACCEPT: &str =
    "the application accepts too slowly, or raise net.core.somaxconn and its listen backlog";
const RECEIVE_MEMORY: &str =
    "slow receiving application, or raise the third value of net.ipv4.tcp_rmem";
const TCP_MEMORY: &str = "raise net.ipv4.tcp_mem, or use fewer connections with full buffers";
const UDP_RECEIVE: &str = "slow receiving application: raise its SO_RCVBUF and net.core.rmem_max";

/// All documented counters, in the order of the report: most harmful first.
pub const COUNTERS: [CounterDoc; 52] = [
    problem("TcpExt.ListenOverflows", "connections dropped: the accept queue was full", ACCEPT),
    problem("TcpExt.ListenDrops", "SYNs and connections dropped at a listener", ACCEPT),
    problem(
        "TcpExt.TCPReqQFullDrop",
        "SYNs dropped: too many half-open connections",
        "raise net.ipv4.tcp_max_syn_backlog; leave net.ipv4.tcp_syncookies on",
    ),
    problem(
        "TcpExt.TCPReqQFullDoCookies",
        "SYN cookies sent: too many half-open connections",
        "a SYN flood, or raise net.ipv4.tcp_max_syn_backlog",
    ),
    problem(
        "TcpExt.TCPBacklogDrop",
        "segments dropped: the socket backlog was full",
        "slow receiving application: use larger reads, or a larger receive buffer",
    ),
    problem("TcpExt.TCPRcvQDrop", "segments dropped: the receive buffer was full", RECEIVE_MEMORY),
    problem(
        "TcpExt.TCPZeroWindowDrop",
        "segments dropped: they arrived at a zero window",
        RECEIVE_MEMORY,
    ),
    problem(
        "TcpExt.PruneCalled",
        "receive buffer overruns: queues pruned to free memory",
        RECEIVE_MEMORY,
    ),
    problem("TcpExt.RcvPruned", "received data discarded for lack of memory", RECEIVE_MEMORY),
    problem("TcpExt.OfoPruned", "out-of-order data discarded for lack of memory", RECEIVE_MEMORY),
    problem("TcpExt.TCPRcvCollapsed", "segments collapsed to save receive memory", RECEIVE_MEMORY),
    problem("TcpExt.TCPMemoryPressures", "times TCP came under memory pressure", TCP_MEMORY),
    problem("TcpExt.TCPAbortOnMemory", "connections aborted for lack of memory", TCP_MEMORY),
    problem(
        "TcpExt.TCPAbortOnTimeout",
        "connections aborted: retransmissions went unanswered",
        "the peer or the path is down: longhaul ping HOST",
    ),
    problem(
        "TcpExt.TCPWqueueTooBig",
        "retransmissions refused: the send queue exceeded its limit",
        "raise the third value of net.ipv4.tcp_wmem",
    ),
    problem("TcpExt.TCPTimeouts", "retransmission timeouts: no ACK for a whole RTO", PATH),
    problem("TcpExt.TCPLostRetransmit", "retransmitted segments that were lost again", PATH),
    problem("TcpExt.TCPSlowStartRetrans", "segments retransmitted after a timeout", PATH),
    problem("Tcp.RetransSegs", "segments retransmitted, for any reason", PATH),
    problem("TcpExt.TCPFastRetrans", "fast retransmissions, on duplicate or selective ACKs", PATH),
    problem("TcpExt.TCPSackRecovery", "loss recoveries with SACK", PATH),
    problem(
        "TcpExt.TCPRenoRecovery",
        "loss recoveries without SACK, one segment per RTT",
        "set net.ipv4.tcp_sack=1 at both ends; a middlebox may strip SACK",
    ),
    problem("TcpExt.TCPSackFailures", "retransmission timeouts during loss recovery", PATH),
    problem("TcpExt.TCPSynRetrans", "SYNs retransmitted: a host answers late or not at all", PATH),
    problem(
        "TcpExt.TCPRetransFail",
        "retransmissions that failed: a local queue was full",
        "check the qdisc: tc -s qdisc",
    ),
    neutral("TcpExt.TCPLossProbes", "tail loss probes (TLP)"),
    neutral("TcpExt.TCPLossProbeRecovery", "tail losses found by such a probe"),
    neutral("TcpExt.TCPSpuriousRTOs", "spurious retransmission timeouts: ACKs were only delayed"),
    neutral("TcpExt.TCPDSACKRecv", "DSACKs received: segments were retransmitted needlessly"),
    neutral("TcpExt.TCPDSACKOldSent", "DSACKs sent: duplicates of acknowledged data arrived"),
    neutral("TcpExt.TCPDSACKOfoSent", "DSACKs sent: duplicates of out-of-order data arrived"),
    neutral("TcpExt.TCPSACKReorder", "reordering detected by SACK"),
    neutral("TcpExt.TCPTSReorder", "reordering detected by timestamps"),
    neutral("TcpExt.TCPOFOQueue", "segments received out of order: loss or reordering"),
    problem(
        "TcpExt.TCPOFODrop",
        "out-of-order segments dropped: no receive memory",
        RECEIVE_MEMORY,
    ),
    problem(
        "TcpExt.TCPToZeroWindowAdv",
        "zero windows sent: an application here did not read",
        "slow receiving application, or a small receive buffer: longhaul watch names the limit",
    ),
    neutral("TcpExt.TCPFromZeroWindowAdv", "zero windows that ended"),
    problem(
        "TcpExt.TCPWinProbe",
        "zero-window probes: the peer keeps its window closed",
        "slow receiving application at the peer",
    ),
    neutral("TcpExt.TCPKeepAlive", "keepalive probes on idle connections"),
    neutral("TcpExt.TCPChallengeACK", "challenge ACKs: a RST or SYN was forged or late"),
    neutral("TcpExt.TCPSYNChallenge", "challenge ACKs to SYNs on open connections"),
    neutral("TcpExt.PAWSEstab", "old segments dropped by their timestamps (PAWS)"),
    neutral(
        "TcpExt.TCPAbortOnData",
        "connections reset: data arrived after the application closed",
    ),
    neutral("TcpExt.TCPAbortOnClose", "connections reset: the application closed with unread data"),
    neutral("Tcp.EstabResets", "established connections that were reset"),
    neutral("Tcp.AttemptFails", "connection attempts that failed"),
    problem(
        "Tcp.InErrs",
        "segments with a wrong checksum or length",
        "faulty cable, NIC or middlebox: ethtool -S DEVICE",
    ),
    problem("Udp.RcvbufErrors", "datagrams dropped: the receive buffer was full", UDP_RECEIVE),
    problem(
        "Udp6.RcvbufErrors",
        "IPv6 datagrams dropped: the receive buffer was full",
        UDP_RECEIVE,
    ),
    problem(
        "Udp.SndbufErrors",
        "datagrams not sent: no send memory",
        "lower the send rate, or raise SO_SNDBUF and net.core.wmem_max",
    ),
    neutral("Udp.NoPorts", "datagrams to a port without a listener"),
    neutral("IpExt.InCEPkts", "packets with ECN CE marks: a queue on the path is congested"),
];
