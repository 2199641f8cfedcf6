//! Checks a client's parameters against what this server offers and its limits.

use super::{Limits, ServerConfig};
use crate::PerfError;
use crate::auth::SignedParams;
use crate::plan::{self, udt_algorithm};
use host::clock;
use iperf3_proto::{Cookie, Params, Refusal};
use std::{net::SocketAddr, time::Duration};
use units::{BitRate, ByteCount};

/// Added to a test's duration for its watchdog; iperf3's value.
const WATCHDOG_GRACE_PERIOD: Duration = Duration::from_secs(40);

/// The server and the client of a check.
pub(super) struct CheckContext<'a> {
    pub(super) config: &'a ServerConfig,
    /// True if UDP streams can be opened.
    pub(super) has_udp: bool,
    pub(super) cookie: &'a Cookie,
    /// The client's address.
    pub(super) address: SocketAddr,
    /// The address at which the client reached the server.
    pub(super) local: SocketAddr,
    /// The parameters as they were received.
    pub(super) text: &'a [u8],
}

/// Refuses what this server does not offer, and what is out of range.
pub(super) fn check(
    params: &Params,
    context: &CheckContext<'_>,
) -> Result<(), (Refusal, PerfError)> {
    let (address, limits) = (context.address, &context.config.limits);
    let not_offered =
        |refusal, what: String| Err((refusal, PerfError::NotOffered { address, what }));
    if let Err((refusal, why)) = admit(params, context) {
        return not_offered(refusal, why);
    }
    if params.sctp {
        let what = "an SCTP test, but this server supports only TCP and UDP";
        return not_offered(Refusal::NOT_OFFERED, what.to_owned());
    }
    let udt = udt_algorithm(params);
    if (params.udp || udt.is_some()) && !context.has_udp {
        let what = "a UDP test, but another program uses this server's UDP port";
        return not_offered(Refusal::NOT_OFFERED, what.to_owned());
    }
    if let Some(Err(name)) = udt {
        let what = format!("UDT with the congestion control {name}");
        return not_offered(Refusal::NOT_OFFERED, what);
    }
    if let Err(source) = params.check() {
        let refusal = match source.name {
            "parallel" => Refusal::STREAMS,
            "time" | "omit" => Refusal::DURATION,
            _ => Refusal::PARAMETERS,
        };
        return Err((refusal, PerfError::Parameter { address, source }));
    }
    if params.streams() > limits.streams {
        return not_offered(
            Refusal::STREAMS,
            format!("{} streams; the limit is {}", params.streams(), limits.streams),
        );
    }
    if let Some(limit) = limits.rate {
        let requested = params.bandwidth.saturating_mul(params.streams().into());
        // Data that this end sends is limited to it regardless of the request.
        if !params.reverse && u64::try_from(requested).is_ok_and(|bps| bps > limit.bps()) {
            let what = format!("{} in total; the limit is {limit}", rate(requested));
            return not_offered(Refusal::TOTAL_RATE, what);
        }
    }
    if let Some(limit) = limits.bytes {
        let directions = if params.bidirectional { 2 } else { 1 };
        let requested = plan::limit(params).unwrap_or(0).saturating_mul(directions);
        let requested = ByteCount::from_bytes(requested);
        if requested > limit {
            return not_offered(Refusal::TOTAL_RATE, format!("{requested}; the limit is {limit}"));
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

/// Authenticates the client. The error is for the server's log only.
fn admit(params: &Params, context: &CheckContext<'_>) -> Result<(), (Refusal, String)> {
    let now = clock::unix_seconds();
    if let Some(tokens) = &context.config.tokens {
        let extension = params.longhaul.as_ref();
        let signed = SignedParams {
            text: context.text,
            outdated_proof: extension.is_some_and(|extension| extension.outdated_token_proof),
            cookie: context.cookie,
            local: context.local,
        };
        let refused = |why| (Refusal::TOKEN, format!("a test {why}"));
        tokens.admit(&signed, now).map_err(refused)?;
    }
    let login = match (&context.config.users, &params.authtoken) {
        (Some(users), Some(token)) => {
            let result = users.authenticate(token, context.address.ip(), now);
            result.map(drop).map_err(|why| format!("a test with an invalid login: {why}"))
        }
        (Some(_), None) => Err("a test without a login".to_owned()),
        (None, Some(_)) => {
            Err("a login, but this server has no users; omit the user name".to_owned())
        }
        (None, None) => Ok(()),
    };
    login.map_err(|why| (Refusal::AUTHENTICATION, why))
}

fn rate(bps: i64) -> BitRate {
    BitRate::from_bps(u64::try_from(bps).unwrap_or(0))
}

/// Clients before 3.20 do not know the code for the server's limit.
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

/// Maximum time of a whole test. One that bytes end gets the server's maximum duration.
pub(super) fn watchdog(params: &Params, limits: &Limits) -> Duration {
    let length = match params.time {
        1.. => seconds(params.omit) + seconds(params.time),
        _ => limits.duration,
    };
    length + WATCHDOG_GRACE_PERIOD
}

pub(super) fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(value: serde_json::Value) -> Result<(), i32> {
        let params: Params = serde_json::from_value(value).unwrap();
        check_with(&params, &ServerConfig::default())
    }

    fn check_with(params: &Params, config: &ServerConfig) -> Result<(), i32> {
        let address = "192.0.2.1:5".parse().unwrap();
        let cookie = &Cookie::from_wire([1; 37]);
        let text = &serde_json::to_vec(params).unwrap();
        let local = "192.0.2.2:5201".parse().unwrap();
        let context = CheckContext { config, has_udp: true, cookie, address, local, text };
        check(params, &context).map_err(|(refusal, error)| {
            assert!(!error.to_string().contains('\n'), "{error}");
            refusal.code
        })
    }

    #[test]
    fn limits_hold_on_both_sides() {
        assert_eq!(checked(json!({"tcp": true, "time": 3600})), Ok(()));
        assert_eq!(checked(json!({"tcp": true, "time": 3600, "omit": 1})), Err(5));
        assert_eq!(checked(json!({"time": 3601, "client_version": "3.20"})), Err(37));
        assert_eq!(checked(json!({"time": 3601, "client_version": "3.19.1"})), Err(5));
        assert_eq!(checked(json!({"parallel": 128})), Ok(()));
        assert_eq!(checked(json!({"parallel": 129})), Err(6));
        assert_eq!(checked(json!({"num": -1})), Err(114));
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        assert_eq!(checked(json!({"sctp": true})), Err(13));
        for key in ["udp", "mptcp", "bidirectional", "reverse"] {
            assert_eq!(checked(json!({ key: true })), Ok(()), "{key}");
        }
        assert_eq!(checked(json!({"authtoken": "x"})), Err(142));
    }

    #[test]
    fn the_servers_own_limits_hold() {
        let mut config = ServerConfig::default();
        config.limits.rate = Some(BitRate::from_bps(1_000_000));
        config.limits.bytes = Some(ByteCount::from_bytes(6_000));
        let with = |value| check_with(&serde_json::from_value(value).unwrap(), &config);
        assert_eq!(with(json!({"bandwidth": 500_000, "parallel": 2})), Ok(()));
        assert_eq!(with(json!({"bandwidth": 500_001, "parallel": 2})), Err(27));
        assert_eq!(with(json!({"bandwidth": 5e6, "reverse": true})), Ok(()), "held to it");
        // Whole blocks, and those of both directions.
        let bytes = |num| with(json!({"len": 2000, "num": num}));
        assert_eq!((bytes(5_999), bytes(6_001)), (Ok(()), Err(27)));
        let both = |num| with(json!({"len": 1000, "num": num, "bidirectional": true}));
        assert_eq!((both(3_000), both(3_001)), (Ok(()), Err(27)));
    }

    #[test]
    fn a_server_with_tokens_admits_only_token_holders() {
        let tokens = Some(std::sync::Arc::new(crate::auth::Tokens::read("word")));
        let config = ServerConfig { tokens, ..ServerConfig::default() };
        for value in [json!({}), json!({"longhaul": {"version": "1", "token": {"time": 1}}})] {
            assert_eq!(check_with(&serde_json::from_value(value).unwrap(), &config), Err(142));
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
