//! What a measurement says of the host that measures.

use crate::{cpu, sysctl};
use record::HostFacts;

/// The facts of this host, its buffers those of the calling thread's network namespace;
/// `busy_before` is its CPU utilisation before the test.
#[must_use]
pub fn read(busy_before: Option<f64>) -> HostFacts {
    let kernel = sysctl::read("kernel.osrelease");
    HostFacts {
        kernel: kernel.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned()),
        cores: cpu::cores(),
        tcp_rmem: sysctl::read_triple("net.ipv4.tcp_rmem"),
        tcp_wmem: sysctl::read_triple("net.ipv4.tcp_wmem"),
        busy_before,
    }
}
