//! What the kernel's counters mean, and what to do where they grow.
//!
//! Names are those of `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6`;
//! meanings after Linux' `Documentation/networking/snmp_counter.rst` and the places
//! in its source where they are counted.

/// A counter that is worth a word.
pub(crate) struct Meaning {
    /// Section and name, as the files have them.
    pub(crate) name: &'static str,
    /// What it counts.
    pub(crate) meaning: &'static str,
    /// What to do, where it is harm.
    pub(crate) remedy: Option<&'static str>,
}

const fn harm(name: &'static str, meaning: &'static str, remedy: &'static str) -> Meaning {
    Meaning { name, meaning, remedy: Some(remedy) }
}

const fn fact(name: &'static str, meaning: &'static str) -> Meaning {
    Meaning { name, meaning, remedy: None }
}

const PATH: &str = "look for loss on the way: longhaul trace HOST";
const ACCEPT: &str =
    "the program accepts too slowly, or raise net.core.somaxconn and its listen backlog";
const RECEIVE_MEMORY: &str =
    "the program reads too slowly, or raise the third value of net.ipv4.tcp_rmem";
const TCP_MEMORY: &str = "raise net.ipv4.tcp_mem, or keep fewer connections with full buffers";
const UDP_RECEIVE: &str = "the program reads too slowly: raise its SO_RCVBUF and net.core.rmem_max";

/// In the order in which they are told: what hurts first.
pub(crate) const MEANINGS: [Meaning; 52] = [
    harm("TcpExt.ListenOverflows", "connections refused: a listener's queue was full", ACCEPT),
    harm("TcpExt.ListenDrops", "SYNs and connections dropped at a listener", ACCEPT),
    harm(
        "TcpExt.TCPReqQFullDrop",
        "SYNs dropped: too many connections half open",
        "raise net.ipv4.tcp_max_syn_backlog; leave net.ipv4.tcp_syncookies on",
    ),
    harm(
        "TcpExt.TCPReqQFullDoCookies",
        "SYNs answered with cookies: too many connections half open",
        "a flood of SYNs, or raise net.ipv4.tcp_max_syn_backlog",
    ),
    harm(
        "TcpExt.TCPBacklogDrop",
        "segments dropped: the socket was busy and its backlog full",
        "the program holds its socket for long: larger reads, or a larger receive buffer",
    ),
    harm("TcpExt.TCPRcvQDrop", "segments dropped: no memory in the receive buffer", RECEIVE_MEMORY),
    harm(
        "TcpExt.TCPZeroWindowDrop",
        "segments dropped that came beyond a closed window",
        RECEIVE_MEMORY,
    ),
    harm(
        "TcpExt.PruneCalled",
        "receive buffers overrun: memory was squeezed out of queues",
        RECEIVE_MEMORY,
    ),
    harm("TcpExt.RcvPruned", "received data thrown away for want of memory", RECEIVE_MEMORY),
    harm("TcpExt.OfoPruned", "data out of order thrown away for want of memory", RECEIVE_MEMORY),
    harm(
        "TcpExt.TCPRcvCollapsed",
        "segments copied together to save receive memory",
        RECEIVE_MEMORY,
    ),
    harm("TcpExt.TCPMemoryPressures", "times TCP's memory ran short on the host", TCP_MEMORY),
    harm("TcpExt.TCPAbortOnMemory", "connections ended for want of memory", TCP_MEMORY),
    harm(
        "TcpExt.TCPAbortOnTimeout",
        "connections ended: no answer however often it was sent again",
        "the other end or the path is gone: longhaul ping HOST",
    ),
    harm(
        "TcpExt.TCPWqueueTooBig",
        "retransmissions refused: the send queue was over its limit",
        "raise the third value of net.ipv4.tcp_wmem",
    ),
    harm("TcpExt.TCPTimeouts", "retransmission timeouts: nothing came back for a whole RTO", PATH),
    harm("TcpExt.TCPLostRetransmit", "segments sent again that were lost again", PATH),
    harm("TcpExt.TCPSlowStartRetrans", "segments sent again after a timeout", PATH),
    harm("Tcp.RetransSegs", "segments sent again, for whatever reason", PATH),
    harm("TcpExt.TCPFastRetrans", "segments sent again on duplicate or selective ACKs", PATH),
    harm("TcpExt.TCPSackRecovery", "losses recovered by selective ACKs", PATH),
    harm(
        "TcpExt.TCPRenoRecovery",
        "losses recovered without SACK, one a round trip",
        "one end has no SACK: net.ipv4.tcp_sack=1, and look for a middlebox that strips it",
    ),
    harm("TcpExt.TCPSackFailures", "timeouts amid a recovery", PATH),
    harm("TcpExt.TCPSynRetrans", "SYNs sent again: a host answers late or not", PATH),
    harm(
        "TcpExt.TCPRetransFail",
        "segments that could not be sent again: a local queue was full",
        "look at the device's queue: tc -s qdisc",
    ),
    fact("TcpExt.TCPLossProbes", "probes for a loss at a transfer's end (TLP)"),
    fact("TcpExt.TCPLossProbeRecovery", "losses at a transfer's end found by such a probe"),
    fact("TcpExt.TCPSpuriousRTOs", "timeouts that turned out needless: the path paused"),
    fact("TcpExt.TCPDSACKRecv", "duplicates the peer reported: segments sent again needlessly"),
    fact("TcpExt.TCPDSACKOldSent", "duplicates that came, of data already here"),
    fact("TcpExt.TCPDSACKOfoSent", "duplicates that came, of data out of order"),
    fact("TcpExt.TCPSACKReorder", "times packets were found to overtake each other (by SACK)"),
    fact("TcpExt.TCPTSReorder", "times packets were found to overtake each other (by timestamps)"),
    fact(
        "TcpExt.TCPOFOQueue",
        "segments that came out of order: lost or overtaken on the way here",
    ),
    harm("TcpExt.TCPOFODrop", "segments out of order dropped: no memory", RECEIVE_MEMORY),
    harm(
        "TcpExt.TCPToZeroWindowAdv",
        "times this host closed its window: a program did not read",
        "the program reads too slowly, or its buffer is small: longhaul watch --sort limit",
    ),
    fact("TcpExt.TCPFromZeroWindowAdv", "times it opened again"),
    harm(
        "TcpExt.TCPWinProbe",
        "probes of a window that the other end keeps closed",
        "the receiver's program reads too slowly",
    ),
    fact("TcpExt.TCPKeepAlive", "probes of quiet connections"),
    fact("TcpExt.TCPChallengeACK", "answers to resets and SYNs out of place, forged or late"),
    fact("TcpExt.TCPSYNChallenge", "answers to SYNs amid a connection"),
    fact("TcpExt.PAWSEstab", "old segments told by their timestamps and dropped"),
    fact("TcpExt.TCPAbortOnData", "connections reset: data came that the program closed upon"),
    fact("TcpExt.TCPAbortOnClose", "connections reset: the program closed with data unread"),
    fact("Tcp.EstabResets", "connections that ended by a reset"),
    fact("Tcp.AttemptFails", "connections that never came to be"),
    harm(
        "Tcp.InErrs",
        "segments with a wrong checksum or length",
        "a broken cable, card or middlebox: ethtool -S DEVICE",
    ),
    harm("Udp.RcvbufErrors", "datagrams dropped: the receive buffer was full", UDP_RECEIVE),
    harm(
        "Udp6.RcvbufErrors",
        "datagrams over IPv6 dropped: the receive buffer was full",
        UDP_RECEIVE,
    ),
    harm(
        "Udp.SndbufErrors",
        "datagrams not sent: no memory for them",
        "send more slowly, or raise SO_SNDBUF and net.core.wmem_max",
    ),
    fact("Udp.NoPorts", "datagrams to a port where nobody listens"),
    fact("IpExt.InCEPkts", "packets that came marked: a queue on the way is full (ECN)"),
];
