//! A longhaul client's additional parameters, under one key that iperf3 ignores.

use crate::lenient;
use serde::{Deserialize, Serialize};

/// Maximum characters kept of a version.
const VERSION: usize = 32;

/// Maximum characters kept of a congestion control's name (`TCP_CA_NAME_MAX`).
const CONTROL: usize = 16;

/// A longhaul client's additional parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    /// The client's version.
    #[serde(deserialize_with = "lenient::short_text::<VERSION, _>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether UDP segmentation offload may be used; absent means yes.
    #[serde(deserialize_with = "lenient::maybe_bool", skip_serializing_if = "Option::is_none")]
    pub segment: Option<bool>,
    /// Whether UDP receive offload may be used; absent means yes.
    #[serde(deserialize_with = "lenient::maybe_bool", skip_serializing_if = "Option::is_none")]
    pub coalesce: Option<bool>,
    /// Whether zero-copy sending may be used with TCP; absent means yes.
    #[serde(deserialize_with = "lenient::maybe_bool", skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<bool>,
    /// Congestion control of a UDT test; absent means no UDT test.
    #[serde(deserialize_with = "lenient::short_text::<CONTROL, _>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udt: Option<String>,
    /// Whether a UDT test is in native mode; absent means no.
    #[serde(deserialize_with = "lenient::maybe_bool", skip_serializing_if = "Option::is_none")]
    pub native: Option<bool>,
    /// Whether an end that sends limits its unsent data on a short path; absent means no.
    #[serde(deserialize_with = "lenient::maybe_bool", skip_serializing_if = "Option::is_none")]
    pub limit_unsent: Option<bool>,
    /// The first rate of a train in bit/s: the rate of a single UDP stream rises from it to
    /// `bandwidth` with the bytes sent. The receiver records when each datagram arrived, and asks
    /// the sender to stop after enough losses. Absent means no train.
    #[serde(deserialize_with = "lenient::maybe_count", skip_serializing_if = "Option::is_none")]
    pub train: Option<u64>,
    /// Whether there is a token proof of a version before 2, which no server accepts.
    #[serde(rename = "token", deserialize_with = "lenient::is_object", skip_serializing)]
    pub outdated_token_proof: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_another_type_counts_as_missing() {
        let extension: Extension = serde_json::from_value(json!({
            "version": [1], "segment": 1, "coalesce": false, "zerocopy": {}, "token": [7], "train": true, "new": 1
        }))
        .unwrap();
        assert_eq!(extension, Extension { coalesce: Some(false), ..Extension::default() });
        let extension: Extension = serde_json::from_value(json!({
            "version": "x".repeat(100), "token": {"time": "soon", "mac": "0".repeat(100)}
        }))
        .unwrap();
        assert_eq!(extension.version.unwrap().len(), VERSION);
        assert!(extension.outdated_token_proof);
    }
}
