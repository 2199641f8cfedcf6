//! The limits of doubling a window and of adding streams, as tables.

use super::result::{Column, Row, Table, Value};
use crate::{INITIAL_WINDOW_SHARE, MAX_WINDOW, SEND_SHARE, figures, share_of_buffer, window_rate};
use units::{ByteCount, Rtt};

const MIB: u64 = 1 << 20;

/// Streams of the table: every doubling up to the most that iperf3 accepts.
const STREAMS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The bounds of a window that is doubled again and again, the smallest first: the default
/// maximum of each system's autotuning, and the protocol's own.
fn bounds() -> [(&'static str, ByteCount); 6] {
    let linux = |buffer, share| share_of_buffer(ByteCount::from_bytes(buffer * MIB), share);
    [
        // Linux 6.x, net/ipv4/tcp.c: tcp_init; half of each buffer counts.
        ("Linux sender, tcp_wmem 4 MiB", linux(4, SEND_SHARE)),
        ("Linux receiver, tcp_rmem 6 MiB", linux(6, INITIAL_WINDOW_SHARE)),
        // XNU 11417, tcp_init.
        ("macOS, autorcvbufmax", ByteCount::from_bytes(4 * MIB)),
        // netsh, autotuninglevel=normal: a scale of 8.
        ("Windows, autotuning normal", ByteCount::from_bytes(65_535 << 8)),
        ("Linux 6.16 receiver, 32 MiB", linux(32, INITIAL_WINDOW_SHARE)),
        ("TCP itself (RFC 7323)", MAX_WINDOW),
    ]
}

/// Where doubling the window ends, at an RTT.
pub(super) fn doubling(rtt: Rtt) -> Table {
    let rows = bounds().map(|(name, window)| Row {
        cells: vec![
            Some(Value::Text(name.to_owned())),
            Some(Value::Size(window)),
            window_rate(window, rtt).map(Value::Rate),
        ],
        marked: false,
    });
    Table {
        title: format!(
            "limits of doubling the window at {}: defaults of systems, and TCP's own",
            figures::rtt(rtt)
        ),
        columns: vec![
            Column { key: "limit", title: "limit" },
            Column { key: "window_bytes", title: "window" },
            Column { key: "rate_bps", title: "rate per stream" },
        ],
        rows: rows.into(),
    }
}

/// The gain and the cost of more streams of this window.
pub(super) fn adding_streams(window: ByteCount, rtt: Rtt, asked: u32) -> Table {
    let rows = STREAMS.map(|streams| {
        let count = f64::from(streams);
        Row {
            cells: vec![
                Some(Value::Count(streams.into())),
                window_rate(window.times(streams.into()), rtt).map(Value::Rate),
                Some(Value::Size(window.times(streams.into()))),
                Some(Value::Share(count / (count + 1.0))),
            ],
            marked: streams == asked,
        }
    });
    Table {
        title: format!(
            "streams of {} at {}: up to the link rate, which they share equally with other flows",
            figures::bytes(window),
            figures::rtt(rtt)
        ),
        columns: vec![
            Column { key: "streams", title: "streams" },
            Column { key: "rate_bps", title: "all streams" },
            Column { key: "in_flight_bytes", title: "in flight" },
            Column { key: "share_beside_one_flow", title: "share beside one flow" },
        ],
        rows: rows.into(),
    }
}

/// The limits in words.
pub(super) fn sentences() -> [String; 2] {
    [
        "Doubling the window doubles the rate until the first of: the BDP of the path (the excess \
         waits in the bottleneck's queue and adds delay), the system's limit (then raise it: \
         longhaul tune, or longhaul doctor for another system), and loss (longhaul calc cubic)."
            .to_owned(),
        "Adding streams multiplies the rate until the link is full; after that, they only divide \
         it. N streams take N of N+1 equal shares beside one other flow (RFC 5166, section 2.3), \
         fill the queue together, and the receiver's CPU and memory must serve each of them."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_ascending_order_with_their_rates() {
        let rtt: Rtt = "173ms".parse().unwrap();
        let table = doubling(rtt);
        let rates: Vec<f64> = table
            .rows
            .iter()
            .map(|row| match &row.cells[2] {
                Some(Value::Rate(rate)) => rate.as_f64() / 1e6,
                other => panic!("{other:?}"),
            })
            .collect();
        // Bytes x 8 / 0.173 s.
        for (rate, mib) in rates.iter().zip([2.0, 3.0, 4.0, 15.999_755_86, 16.0]) {
            let computed = mib * 1_048_576.0 * 8.0 / 0.173 / 1e6;
            assert!((rate / computed - 1.0).abs() < 1e-6, "{rate} {computed}");
        }
        assert!(rates.is_sorted());
    }

    #[test]
    fn ten_streams_take_ten_elevenths() {
        let table = adding_streams(ByteCount::from_bytes(65_536), "173ms".parse().unwrap(), 4);
        let marked: Vec<_> = table.rows.iter().filter(|row| row.marked).collect();
        assert_eq!(marked.len(), 1);
        assert_eq!(marked[0].cells[0], Some(Value::Count(4)));
        assert_eq!(marked[0].cells[3], Some(Value::Share(0.8)));
        // 4 x 3.0306 Mbit/s.
        let Some(Value::Rate(rate)) = &marked[0].cells[1] else { panic!() };
        assert!((rate.as_f64() / 1e6 - 4.0 * 3.030_566).abs() < 1e-3);
    }
}
