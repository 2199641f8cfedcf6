//! Each of `fuzz_targets::TARGETS` as a test that bolero runs under libFuzzer;
//! `scripts/fuzz` runs them all.

/// A test for each name.
#[cfg(test)]
macro_rules! targets {
    ($($name:ident,)*) => {$(
        #[test]
        fn $name() {
            bolero::check!().for_each(|input: &[u8]| {
                assert!(fuzz_targets::run(stringify!($name), input));
            });
        }
    )*};
}

#[cfg(test)]
targets! {
    iperf3_framing,
    iperf3_params,
    iperf3_results,
    iperf3_states,
    iperf3_datagram,
    iperf2_header,
    iperf2_datagram,
    iperf2_flows,
    udt_datagrams,
    udt_native_datagrams,
    websocket_frames,
    websocket_upgrade,
    webtransport_head,
    proxy_handshake,
    boost_lane,
    boost_session,
    copy_messages,
    copy_receiver,
    agent_requests,
    agent_replies,
    netlink_socket_diagnosis,
    netlink_route,
    netlink_packet_queue,
    netlink_wifi,
    icmp_error,
    journal,
    boot_file,
    lab_path,
    lab_plan,
    pasted_counters,
    recording,
    measurement,
    tool_result,
    ndt7_messages,
    baseline,
    server_list,
    study_database,
    capture_file,
    capture_packet,
    capture_fragments,
    display_filter,
    tcp_segments,
    capture_merge,
}
