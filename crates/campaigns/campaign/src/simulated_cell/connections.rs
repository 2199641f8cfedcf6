//! The TCP connections of a test.

use control::{Algorithm, NamedControl};
use std::time::Duration;
use study::{Buffers, Test, Traffic};
use tcp::{Application, BufferSize, WindowSize, WriteLimit};
use topology::PathSpec;
use twin::{ConnectionConfig, Ecn, HEADER_BYTES};
use units::{BitRate, ByteCount};

/// Connections that begin together do so one after the other, as those of a real client.
const STAGGER: Duration = Duration::from_micros(200);

/// Bytes per write of longhaul's client, as of iperf3's.
const BLOCK: ByteCount = ByteCount::from_bytes(131_072);

/// The kernel's `tcp_rmem` and `tcp_wmem` maxima by default (ip-sysctl.rst).
const KERNEL_RMEM: ByteCount = ByteCount::from_bytes(6_291_456);
const KERNEL_WMEM: ByteCount = ByteCount::from_bytes(4_194_304);

/// Buffers of a path without a rate, which has no bandwidth-delay product: they limit no flow.
const AMPLE: ByteCount = ByteCount::from_bytes(1 << 30);

/// A flow of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedFlow {
    /// As results have it.
    pub(super) name: String,
    /// Its index among the test's flows.
    pub(super) traffic: usize,
}

/// The connections of every flow of every client, in the order of the flows: as many for each as it
/// has streams; with PSockets each stream is several.
pub(super) fn of(test: &Test) -> (Vec<ConnectionConfig>, Vec<PlannedFlow>) {
    let (mut connections, mut planned) = (Vec::new(), Vec::new());
    for client in 0..test.hosts.clients {
        for (index, traffic) in test.flows.iter().enumerate() {
            let name = test.hosts.flow_name(&traffic.name, client);
            planned.push(PlannedFlow { name, traffic: index });
            for _ in 0..traffic.streams.saturating_mul(control(traffic).connections()) {
                let number = u32::try_from(connections.len()).unwrap_or(u32::MAX);
                connections.push(connection(test, traffic, STAGGER * number));
            }
        }
    }
    (connections, planned)
}

/// What a flow is sent with; a test without one is refused before.
pub(super) fn control(traffic: &Traffic) -> NamedControl {
    NamedControl::by_name(traffic.congestion())
        .unwrap_or_else(|| NamedControl::Single(Algorithm::default()))
}

fn connection(test: &Test, traffic: &Traffic, stagger: Duration) -> ConnectionConfig {
    let control = control(traffic);
    let each = u64::from(control.connections());
    let bitrate = traffic.bitrate.map(|rate| BitRate::from_bps(rate.bps() / each));
    let application = bitrate.map_or(Application::Bulk, |rate| Application::Rate {
        rate,
        block: traffic.block.unwrap_or(BLOCK),
    });
    let (received, sent) = buffers(test);
    let algorithm = control.algorithm();
    ConnectionConfig {
        start: traffic.start + stagger,
        limit: WriteLimit { after: Some(traffic.omit + traffic.duration), bytes: None },
        algorithm,
        ecn: Ecn::needed_by(algorithm),
        mss: test.spec.mtu().saturating_sub(HEADER_BYTES),
        application,
        buffer: BufferSize::Auto(sent),
        max_pacing_rate: traffic.pacing,
        window: test.window.map_or(WindowSize::Auto(received), WindowSize::Fixed),
        ..ConnectionConfig::default()
    }
}

/// The largest receive window and the payload that the send buffer holds, as the lab's hosts have
/// them.
fn buffers(test: &Test) -> (ByteCount, ByteCount) {
    let share = |buffer: ByteCount, share: f64| ByteCount::from_f64(buffer.as_f64() * share);
    let (rmem, wmem) = match test.buffers {
        Buffers::Kernel => (KERNEL_RMEM, KERNEL_WMEM),
        Buffers::Tuned => {
            let needed = tuned(&test.spec);
            (needed.max(KERNEL_RMEM), needed.max(KERNEL_WMEM))
        }
    };
    (share(rmem, model::INITIAL_WINDOW_SHARE), share(wmem, model::AUTOTUNED_SEND_SHARE))
}

/// Four times the bandwidth-delay product and the queue, as in the lab.
fn tuned(path: &PathSpec) -> ByteCount {
    path.rate().map_or(AMPLE, |rate| {
        let bdp = rate.bytes_in(path.rtt().duration());
        bdp.plus(path.queue_bytes()).times(4).rounded_up_to(1 << 20)
    })
}
