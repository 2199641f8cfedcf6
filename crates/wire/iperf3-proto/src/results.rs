//! Results of one end: the JSON after `EXCHANGE_RESULTS`.

use crate::{
    json_text::{self, JsonText},
    lenient,
};
use serde::{Deserialize, Serialize};

/// Maximum streams read from results: both directions of a test.
pub const MAX_RESULT_STREAMS: usize = 256;

/// One end's results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// CPU of the whole process over the test, in percent of one core.
    #[serde(deserialize_with = "lenient::real")]
    pub cpu_util_total: f64,
    /// Of that, in user mode.
    #[serde(deserialize_with = "lenient::real")]
    pub cpu_util_user: f64,
    /// Of that, in kernel mode.
    #[serde(deserialize_with = "lenient::real")]
    pub cpu_util_system: f64,
    /// Whether `retransmits` counts: 1, 0, or -1 from an end that only receives.
    #[serde(deserialize_with = "lenient::int")]
    pub sender_has_retransmits: i64,
    /// The congestion control of its sockets.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    /// Its streams, at most [`MAX_RESULT_STREAMS`].
    #[serde(deserialize_with = "lenient::bounded::<_, MAX_RESULT_STREAMS, _>")]
    pub streams: Vec<StreamResult>,
    /// The server's output as JSON, if the client requested it.
    #[serde(deserialize_with = "json_text::maybe", skip_serializing_if = "Option::is_none")]
    pub server_output_json: Option<JsonText>,
    /// The same as text.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
}

/// One stream in an end's report; all of it is required by iperf3.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamResult {
    /// iperf3's stream id (1, 3, 4, …).
    #[serde(deserialize_with = "lenient::int")]
    pub id: i64,
    /// Bytes sent or received by this end, without the omitted time.
    #[serde(deserialize_with = "lenient::int")]
    pub bytes: i64,
    /// Retransmitted segments; -1 if unknown.
    #[serde(deserialize_with = "lenient::int")]
    pub retransmits: i64,
    /// Jitter in seconds; UDP only.
    #[serde(deserialize_with = "lenient::real")]
    pub jitter: f64,
    /// Datagrams lost, the omitted part included; UDP only.
    #[serde(deserialize_with = "lenient::int")]
    pub errors: i64,
    /// Of them, in the omitted part; with [`StreamResult::omitted_packets`] or not at all.
    #[serde(deserialize_with = "lenient::maybe", skip_serializing_if = "Option::is_none")]
    pub omitted_errors: Option<i64>,
    /// Datagrams, the omitted part included: the highest number where this end
    /// receives; UDP only.
    #[serde(deserialize_with = "lenient::int")]
    pub packets: i64,
    /// Of them, in the omitted part; absent before version 3.14.
    #[serde(deserialize_with = "lenient::maybe", skip_serializing_if = "Option::is_none")]
    pub omitted_packets: Option<i64>,
    /// Always zero.
    #[serde(deserialize_with = "lenient::real")]
    pub start_time: f64,
    /// Seconds this end counted for `bytes`; absent before version 3.2.
    #[serde(deserialize_with = "lenient::maybe_real", skip_serializing_if = "Option::is_none")]
    pub end_time: Option<f64>,
}

impl Results {
    /// The report on one stream.
    #[must_use]
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == i64::from(id))
    }
}

impl StreamResult {
    /// Bytes, never negative.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(0)
    }

    /// Duration in seconds; `None` if missing or invalid.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.end_time.map(|end| end - self.start_time).filter(|s| s.is_finite() && *s > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reads_what_iperf3_sends() {
        let results: Results = serde_json::from_value(json!({
            "cpu_util_total": 30.5, "cpu_util_user": null, "cpu_util_system": 29,
            "sender_has_retransmits": -1, "congestion_used": "cubic",
            "streams": [{"id": 1, "bytes": 1.5e9, "retransmits": -1, "jitter": 0, "errors": 0,
                         "omitted_errors": 0, "packets": 0, "omitted_packets": 0,
                         "start_time": 0, "end_time": 10.000191}]
        }))
        .unwrap();
        let stream = results.stream(1).unwrap();
        assert_eq!((stream.byte_count(), stream.retransmits), (1_500_000_000, -1));
        assert!((stream.seconds().unwrap() - 10.000_191).abs() < 1e-9);
        assert_eq!(results.stream(2), None);
    }

    #[test]
    fn every_key_iperf3_requires_is_there() {
        let results = Results { streams: vec![StreamResult::default()], ..Results::default() };
        let sent = serde_json::to_value(results).unwrap();
        for key in ["cpu_util_total", "cpu_util_user", "cpu_util_system", "sender_has_retransmits"]
        {
            assert!(sent.get(key).is_some(), "{key}");
        }
        for key in ["id", "bytes", "retransmits", "jitter", "errors", "packets"] {
            assert!(sent["streams"][0].get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn streams_over_the_limit_are_not_read() {
        let results = |count: usize| -> Results {
            serde_json::from_value(json!({ "streams": vec![json!({"id": 1}); count] })).unwrap()
        };
        assert_eq!(results(256).streams.len(), 256);
        assert_eq!(results(257).streams.len(), 256);
    }

    #[test]
    fn the_largest_report_of_a_client_fits_what_a_server_takes() {
        // A day of 128 streams each way at 1 Tbit/s, in datagrams of 1460 bytes.
        let stream = StreamResult {
            id: 130,
            bytes: 10_800_000_000_000_000,
            retransmits: 7_397_260_273_972,
            jitter: 0.000_012_345_678_901_234,
            errors: 7_397_260_273_972,
            omitted_errors: Some(51_369_863_013),
            packets: 7_397_260_273_972,
            omitted_packets: Some(51_369_863_013),
            start_time: 0.0,
            end_time: Some(86_400.000_191_234),
        };
        let results = Results {
            cpu_util_total: 12_345.678_901_234_56,
            cpu_util_user: 12_345.678_901_234_56,
            cpu_util_system: 12_345.678_901_234_56,
            congestion_used: Some("x".repeat(16)),
            streams: vec![stream; MAX_RESULT_STREAMS],
            ..Results::default()
        };
        let wire = crate::framing::encode(&results).unwrap();
        assert!(wire.len() < crate::framing::CLIENT_RESULTS_LIMIT as usize, "{}", wire.len());
    }

    proptest! {
        #[test]
        fn round_trip(bytes in any::<i64>(), id in 1i64..200, cpu in 0.0f64..1e4) {
            let results = Results {
                cpu_util_total: cpu,
                streams: vec![StreamResult { id, bytes, end_time: Some(1.5), ..Default::default() }],
                ..Results::default()
            };
            let text = serde_json::to_vec(&results).unwrap();
            let back: Results = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(&back.streams, &results.streams);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = serde_json::from_slice::<Results>(&bytes);
        }
    }
}
