//! What this server agrees to, and for how long.

use super::Limits;
use crate::{ProbeError, extra};
use iperf3::{Params, Refusal};
use std::{net::SocketAddr, time::Duration};

/// Added to a test's length before its watchdog bites; iperf3's own value.
const GRACE: Duration = Duration::from_secs(40);
/// Refuses what this server does not offer, and what is out of bounds.
pub(super) fn judge(
    params: &Params,
    limits: &Limits,
    address: SocketAddr,
) -> Result<(), (Refusal, ProbeError)> {
    let not_offered =
        |refusal, what: String| Err((refusal, ProbeError::NotOffered { address, what }));
    if params.udp || params.sctp || params.mptcp {
        let kind = if params.udp {
            "UDP"
        } else if params.sctp {
            "SCTP"
        } else {
            "MPTCP"
        };
        return not_offered(
            Refusal::NOT_OFFERED,
            format!("a {kind} test; this server carries TCP only"),
        );
    }
    if params.bidirectional {
        return not_offered(
            Refusal::NOT_OFFERED,
            "both directions at once; this server runs one at a time".to_owned(),
        );
    }
    if params.authtoken.is_some() {
        return not_offered(
            Refusal::AUTHENTICATION,
            "a login; this server has no users, leave the user name out".to_owned(),
        );
    }
    if let Err(source) = params.check() {
        let refusal = match source.name {
            "parallel" => Refusal::STREAMS,
            "time" | "omit" => Refusal::DURATION,
            _ => Refusal::PARAMETERS,
        };
        return Err((refusal, ProbeError::Parameter { address, source }));
    }
    if params.streams() > limits.streams {
        return not_offered(
            Refusal::STREAMS,
            format!("{} streams; the limit is {}", params.streams(), limits.streams),
        );
    }
    let length = seconds(params.omit) + seconds(params.time);
    if length > limits.duration {
        return not_offered(
            duration_refusal(params),
            format!(
                "a test of {} s; the limit is {} s",
                length.as_secs(),
                limits.duration.as_secs()
            ),
        );
    }
    Ok(())
}

/// Clients before 3.20 do not know the code for a server's own limit.
fn duration_refusal(params: &Params) -> Refusal {
    let version = params.client_version.as_deref().unwrap_or_default();
    let minor = version
        .strip_prefix("3.")
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
    if params.longhaul.is_some() || minor.is_some_and(|minor| minor >= 20) {
        Refusal::OVER_SERVER_DURATION
    } else {
        Refusal::DURATION
    }
}

/// How long a test may take in all. One that bytes end has the longest time there is.
pub(super) fn watchdog(params: &Params, limits: &Limits) -> Duration {
    let length = match params.time {
        1.. => seconds(params.omit) + seconds(params.time),
        _ => limits.duration,
    };
    length + GRACE
}

pub(super) fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

pub(super) fn client_name(params: &Params) -> String {
    if let Some(version) = params.longhaul.as_ref().and_then(extra::announced_version) {
        return format!("longhaul {version}");
    }
    let version = params.client_version.as_deref().unwrap_or("of unknown version");
    let version: String = version.chars().filter(|c| !c.is_control()).take(32).collect();
    format!("iperf {version}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(value: serde_json::Value) -> Result<(), i32> {
        let params: Params = serde_json::from_value(value).unwrap();
        let address = "192.0.2.1:5".parse().unwrap();
        judge(&params, &Limits::default(), address).map_err(|(refusal, error)| {
            assert!(!error.to_string().contains('\n'), "{error}");
            refusal.code
        })
    }

    #[test]
    fn limits_hold_on_both_sides() {
        assert_eq!(judged(json!({"tcp": true, "time": 3600})), Ok(()));
        assert_eq!(judged(json!({"tcp": true, "time": 3600, "omit": 1})), Err(5));
        assert_eq!(judged(json!({"time": 3601, "client_version": "3.20"})), Err(37));
        assert_eq!(judged(json!({"time": 3601, "client_version": "3.19.1"})), Err(5));
        assert_eq!(judged(json!({"parallel": 128})), Ok(()));
        assert_eq!(judged(json!({"parallel": 129})), Err(6));
        assert_eq!(judged(json!({"num": -1})), Err(114));
    }

    #[test]
    fn what_is_not_offered_is_refused_by_name() {
        for key in ["udp", "sctp", "mptcp", "bidirectional"] {
            assert_eq!(judged(json!({ key: true })), Err(13), "{key}");
        }
        assert_eq!(judged(json!({"authtoken": "x"})), Err(142));
    }

    #[test]
    fn the_watchdog_is_bounded_even_without_a_time() {
        let limits = Limits::default();
        let with = |value| watchdog(&serde_json::from_value(value).unwrap(), &limits).as_secs();
        assert_eq!(with(json!({"time": 10, "omit": 2})), 52);
        assert_eq!(with(json!({"time": 0, "num": 5})), 3640);
    }
}
