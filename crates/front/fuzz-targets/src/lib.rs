//! The functions that fuzzing drives: one for each kind of untrusted input, from
//! bytes to no result. A target fails by panicking, by not returning, or by
//! allocating without bound.
//!
//! `make test` replays the seeds in `fuzz/seeds` through them (`tests/replay.rs`);
//! `scripts/fuzz` runs them under libFuzzer, guided by coverage (`fuzz/`). Nothing
//! of the program uses this crate.
//!
//! | module | input |
//! |---|---|
//! | `iperf2` | datagrams of any sources at an iperf 2 server, in virtual time |
//! | `wire` | what a peer of a test sends: iperf3's and iperf 2's messages |
//! | `boost` | what a box sends over a lane, or in a session |
//! | `agent` | what an agent and whoever started it send |
//! | `copy`, `copy_receiver` | what a peer of a copy sends |
//! | `udt` | datagrams of a UDT peer, and of anyone |
//! | `websocket_peer` | what a WebSocket or WebTransport client or server sends |
//! | `proxy_client` | what a client of a SOCKS5 or HTTP CONNECT proxy sends |
//! | `kernel` | what the kernel answers: netlink, ICMP errors |
//! | `captures` | capture files, packets in them, two captures aligned |
//! | `analysis` | display filters; TCP segments and fragments of packets |
//! | `files` | journals, plans, paths, recordings, measurements, baselines, lists of servers, results of other tools, messages of ndt7 servers |
//! | `study_database` | databases of studies |

mod agent;
mod analysis;
mod boost;
mod captures;
mod copy;
mod copy_receiver;
mod files;
mod iperf2;
mod kernel;
mod proxy_client;
pub mod seeds;
mod study_database;
mod udt;
mod websocket_peer;
mod wire;

/// A target: its name, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. `fuzz/seeds` has a directory for each, and `fuzz/src/lib.rs`
/// a test.
pub const TARGETS: [Target; 43] = [
    ("iperf3_framing", wire::iperf3_framing),
    ("iperf3_params", wire::iperf3_params),
    ("iperf3_results", wire::iperf3_results),
    ("iperf3_states", wire::iperf3_states),
    ("iperf3_datagram", wire::iperf3_datagram),
    ("iperf2_header", wire::iperf2_header),
    ("iperf2_datagram", wire::iperf2_datagram),
    ("iperf2_flows", iperf2::flows),
    ("udt_datagrams", udt::datagrams),
    ("udt_native_datagrams", udt::native_datagrams),
    ("websocket_frames", websocket_peer::frames),
    ("websocket_upgrade", websocket_peer::upgrade),
    ("webtransport_head", websocket_peer::session_head),
    ("proxy_handshake", proxy_client::handshake),
    ("boost_lane", boost::lane),
    ("boost_session", boost::session),
    ("copy_messages", copy::messages),
    ("copy_receiver", copy_receiver::copies),
    ("agent_requests", agent::requests),
    ("agent_replies", agent::replies),
    ("netlink_socket_diagnosis", kernel::netlink_socket_diagnosis),
    ("netlink_route", kernel::netlink_route),
    ("netlink_packet_queue", kernel::netlink_packet_queue),
    ("netlink_wifi", kernel::netlink_wifi),
    ("icmp_error", kernel::icmp_error),
    ("journal", files::journal),
    ("boot_file", files::boot_file),
    ("lab_path", files::lab_path),
    ("lab_plan", files::lab_plan),
    ("pasted_counters", files::pasted_counters),
    ("recording", files::recording),
    ("measurement", files::measurement),
    ("tool_result", files::tool_result),
    ("ndt7_messages", files::ndt7_messages),
    ("baseline", files::baseline),
    ("server_list", files::server_list),
    ("study_database", study_database::study_database),
    ("capture_file", captures::file),
    ("capture_packet", captures::packet),
    ("capture_fragments", analysis::fragments),
    ("display_filter", analysis::display_filter),
    ("tcp_segments", analysis::tcp_segments),
    ("capture_merge", captures::merge),
];

/// Runs the target of that name; `false` where there is none.
pub fn run(name: &str, input: &[u8]) -> bool {
    let target = TARGETS.iter().find(|(its, _)| *its == name);
    if let Some((_, target)) = target {
        target(input);
    }
    target.is_some()
}
