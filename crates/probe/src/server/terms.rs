//! What this server agrees to, and for how long.

use super::{Limits, ServerConfig};
use crate::ProbeError;
use host::clock;
use iperf3::{Cookie, Params, Refusal};
use std::{net::SocketAddr, thread, time::Duration};
use units::{BitRate, ByteCount};

/// Added to a test's length before its watchdog bites; iperf3's own value.
const GRACE: Duration = Duration::from_secs(40);
/// When a login is answered, right or wrong: well over what opening one takes.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// Who asks, and whom.
pub(super) struct Terms<'a> {
    pub(super) config: &'a ServerConfig,
    /// Whether UDP streams can be opened.
    pub(super) has_udp: bool,
    pub(super) cookie: &'a Cookie,
    pub(super) address: SocketAddr,
}

/// Refuses what this server does not offer, and what is out of bounds.
pub(super) fn judge(params: &Params, terms: &Terms<'_>) -> Result<(), (Refusal, ProbeError)> {
    let (address, limits) = (terms.address, &terms.config.limits);
    let not_offered =
        |refusal, what: String| Err((refusal, ProbeError::NotOffered { address, what }));
    if let Err(why) = admit(params, terms) {
        return not_offered(Refusal::AUTHENTICATION, why);
    }
    if params.sctp {
        let what = "an SCTP test; this server carries TCP and UDP";
        return not_offered(Refusal::NOT_OFFERED, what.to_owned());
    }
    if params.udp && !terms.has_udp {
        let what = "a UDP test; another program has this server's UDP port";
        return not_offered(Refusal::NOT_OFFERED, what.to_owned());
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
    if let Some(limit) = limits.rate {
        let asked = params.bandwidth.saturating_mul(params.streams().into());
        // What this end sends is held to the limit whatever was asked.
        if !params.reverse && u64::try_from(asked).is_ok_and(|asked| asked > limit.bps()) {
            let what = format!("{} in all; the limit is {limit}", rate(asked));
            return not_offered(Refusal::TOTAL_RATE, what);
        }
    }
    if let Some(limit) = limits.bytes {
        let asked = params.bytes_limit().map_or(ByteCount::ZERO, ByteCount::from_bytes);
        if asked > limit {
            return not_offered(Refusal::TOTAL_RATE, format!("{asked}; the limit is {limit}"));
        }
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

/// Whether the client may run tests here at all. The reason is for our own log.
fn admit(params: &Params, terms: &Terms<'_>) -> Result<(), String> {
    let now = clock::unix_seconds();
    if let Some(tokens) = &terms.config.tokens {
        let signed = params.longhaul.as_ref().and_then(|extra| extra.get("token"));
        if !tokens.admits(signed, terms.cookie, now) {
            return Err("a test without one of this server's tokens".to_owned());
        }
    }
    match (&terms.config.users, &params.authtoken) {
        (Some(users), Some(token)) => {
            let began = clock::now();
            let admitted = users.admit(token, now);
            // Opening takes longer or shorter with what was sent, and an answer's
            // time must not tell (Bleichenbacher's attack on PKCS #1 v1.5 lives on it).
            thread::sleep(ANSWER_TIME.saturating_sub(clock::now() - began));
            admitted.map(drop).map_err(|why| format!("a login that is refused: {why}"))
        }
        (Some(_), None) => Err("a test without a login".to_owned()),
        (None, Some(_)) => {
            Err("a login; this server has no users, leave the user name out".to_owned())
        }
        (None, None) => Ok(()),
    }
}

fn rate(bps: i64) -> BitRate {
    BitRate::from_bps(u64::try_from(bps).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(value: serde_json::Value) -> Result<(), i32> {
        let params: Params = serde_json::from_value(value).unwrap();
        judge_under(&params, &ServerConfig::default())
    }

    fn judge_under(params: &Params, config: &ServerConfig) -> Result<(), i32> {
        let address = "192.0.2.1:5".parse().unwrap();
        let cookie = &Cookie::from_wire([1; 37]);
        let terms = Terms { config, has_udp: true, cookie, address };
        judge(params, &terms).map_err(|(refusal, error)| {
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
        assert_eq!(judged(json!({"sctp": true})), Err(13));
        for key in ["udp", "mptcp", "bidirectional", "reverse"] {
            assert_eq!(judged(json!({ key: true })), Ok(()), "{key}");
        }
        assert_eq!(judged(json!({"authtoken": "x"})), Err(142));
    }

    #[test]
    fn the_servers_own_limits_hold() {
        let mut config = ServerConfig::default();
        config.limits.rate = Some(BitRate::from_bps(1_000_000));
        config.limits.bytes = Some(ByteCount::from_bytes(5_000));
        let with = |value| judge_under(&serde_json::from_value(value).unwrap(), &config);
        assert_eq!(with(json!({"bandwidth": 500_000, "parallel": 2})), Ok(()));
        assert_eq!(with(json!({"bandwidth": 500_001, "parallel": 2})), Err(27));
        assert_eq!(with(json!({"bandwidth": 5e6, "reverse": true})), Ok(()), "held to it");
        assert_eq!((with(json!({"num": 5000})), with(json!({"num": 5001}))), (Ok(()), Err(27)));
    }

    #[test]
    fn a_server_with_tokens_admits_no_one_else() {
        let tokens = Some(std::sync::Arc::new(crate::auth::Tokens::read("word")));
        let config = ServerConfig { tokens, ..ServerConfig::default() };
        for value in [json!({}), json!({"longhaul": {"version": "1", "token": {"time": 1}}})] {
            assert_eq!(judge_under(&serde_json::from_value(value).unwrap(), &config), Err(142));
        }
    }

    #[test]
    fn the_watchdog_is_bounded_even_without_a_time() {
        let limits = Limits::default();
        let with = |value| watchdog(&serde_json::from_value(value).unwrap(), &limits).as_secs();
        assert_eq!(with(json!({"time": 10, "omit": 2})), 52);
        assert_eq!(with(json!({"time": 0, "num": 5})), 3640);
    }
}
