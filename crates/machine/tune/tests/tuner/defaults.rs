//! The settings of a host that nobody has tuned.

/// The settings of a common kernel.
pub(crate) const DEFAULTS: [(&str, &str); 17] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_mem", "286533 382045 573066"),
    ("net.core.rmem_max", "212992"),
    ("net.core.wmem_max", "212992"),
    ("net.core.optmem_max", "131072"),
    ("net.core.default_qdisc", "pfifo_fast"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_ecn", "2"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_moderate_rcvbuf", "1"),
    ("net.ipv4.tcp_no_metrics_save", "0"),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", "1"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_available_congestion_control", "reno cubic bbr"),
];
