//! The figures of one path, each with its equation.

mod lines;

pub use lines::{
    BdpLine, BdpReport, BuffersLine, LossLine, PayloadLine, RampLine, WindowLine, WindowRateLine,
};

use crate::{
    IpVersion, MAX_WINDOW, Payload, UNSCALED_WINDOW, WindowTooLarge, bdp, buffer_for, figures,
    loss_budget_cubic, loss_budget_mathis, per_stream, slow_start, window_for, window_rate,
    window_scale,
};
use problem::Field;
use units::{BitRate, ByteCount, Rtt, percent_with};

/// The schema id of [`BdpReport`] in JSON.
pub const BDP_SCHEMA: &str = "longhaul.bdp/1";

/// Minimum MTU: every IPv4 host must accept packets of 576 bytes (RFC 791, section
/// 3.1). IPv4's own minimum, 68, leaves no room for TCP options.
pub const MIN_MTU: u32 = 576;

/// Maximum MTU: IPv4's total length field (RFC 791, section 3.1).
pub const MAX_MTU: u32 = 65_535;

/// Maximum number of parallel streams, as in iperf3.
pub const MAX_STREAMS: u32 = 128;

/// Minimum MTU of IPv6 (RFC 8200, section 5).
const MIN_MTU_IPV6: u32 = 1_280;

/// 1 GiB, RFC 7323's limit. Its last 16 KiB cannot be advertised: such a window counts
/// as [`MAX_WINDOW`].
const LIMIT: ByteCount = ByteCount::from_bytes(1 << 30);

/// The path to compute.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The bottleneck rate.
    pub rate: BitRate,
    /// The RTT.
    pub rtt: Rtt,
    /// The window of each stream, if given.
    pub window: Option<ByteCount>,
    /// Parallel connections.
    pub streams: u32,
    /// Largest IP packet in bytes.
    pub mtu: u32,
}

/// Why a [`Question`] is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BdpError {
    /// The rate is zero.
    #[error("the rate must be above zero: give the bottleneck rate, as in 100mbit")]
    ZeroRate,
    /// The RTT is zero.
    #[error("the round trip time must be above zero: give the RTT that ping shows, as in 173ms")]
    ZeroRtt,
    /// The window is zero.
    #[error("a window of zero is invalid: give a size up to 1 GiB, as in 64KiB")]
    ZeroWindow,
    /// The window exceeds TCP's maximum.
    #[error(transparent)]
    Window(#[from] WindowTooLarge),
    /// The number of streams is out of range.
    #[error("{0} streams is out of range: give 1 to {MAX_STREAMS}")]
    Streams(u32),
    /// The MTU is out of range.
    #[error("an MTU of {0} bytes is out of range: give {MIN_MTU} to {MAX_MTU}")]
    Mtu(u32),
}

impl BdpError {
    /// The field whose value removes the error.
    #[must_use]
    pub fn field(&self) -> Field {
        match self {
            BdpError::ZeroRate => Field::Rate,
            BdpError::ZeroRtt => Field::Rtt,
            BdpError::ZeroWindow | BdpError::Window(_) => Field::Window,
            BdpError::Streams(_) => Field::Streams,
            BdpError::Mtu(_) => Field::Mtu,
        }
    }
}

/// Computes all figures of one path.
///
/// # Errors
/// If a value is out of range; the error names it and the valid range.
pub fn bdp_report(question: &Question) -> Result<BdpReport, BdpError> {
    let &Question { rate, rtt, window, streams, mtu } = question;
    check(question)?;
    let payload = Payload::of_ip(mtu);
    let mss = ByteCount::from_bytes(u64::from(payload.mss().ok_or(BdpError::Mtu(mtu))?));
    let needed = window_for(rate, rtt);
    let each = per_stream(needed, streams);
    let rate_of = |window, streams| window_rate_line(window, streams, rate, rtt);
    Ok(BdpReport {
        schema: BDP_SCHEMA,
        rate_bps: rate,
        rtt_ms: rtt.millis_f64(),
        streams,
        mtu_bytes: mtu,
        bdp: bdp_line(rate, rtt),
        window: window_line(needed, "window = BDP"),
        window_per_stream: window_line(
            each,
            &format!("window = BDP / streams = {} / {streams}", figures::bytes(needed)),
        ),
        unscaled: rate_of(UNSCALED_WINDOW, streams)?,
        given: window.map(|window| rate_of(window, streams)).transpose()?,
        buffers: buffers_line(each),
        payload: payload_lines(rate, mtu),
        ramp: ramp_line(each, mss, rtt)?,
        loss: loss_line(rate, mss, rtt, streams)?,
    })
}

fn check(question: &Question) -> Result<(), BdpError> {
    if question.rate == BitRate::ZERO {
        return Err(BdpError::ZeroRate);
    }
    if question.rtt == Rtt::ZERO {
        return Err(BdpError::ZeroRtt);
    }
    match question.window {
        Some(ByteCount::ZERO) => return Err(BdpError::ZeroWindow),
        Some(window) if window > LIMIT => {
            window_scale(window)?;
        }
        _ => {}
    }
    if !(1..=MAX_STREAMS).contains(&question.streams) {
        return Err(BdpError::Streams(question.streams));
    }
    if !(MIN_MTU..=MAX_MTU).contains(&question.mtu) {
        return Err(BdpError::Mtu(question.mtu));
    }
    Ok(())
}

fn bdp_line(rate: BitRate, rtt: Rtt) -> BdpLine {
    let bytes = bdp(rate, rtt);
    let bits = rate.as_f64() * rtt.secs_f64();
    BdpLine {
        bits,
        bytes,
        megabytes: bytes.as_f64() / 1e6,
        mebibytes: bytes.as_f64() / f64::from(1 << 20),
        equation: format!(
            "BDP = rate x RTT = {} x {} = {} = {}",
            figures::rate(rate),
            figures::rtt(rtt),
            figures::bits(bits),
            figures::bytes(bytes)
        ),
    }
}

fn window_line(window: ByteCount, what: &str) -> WindowLine {
    let size = figures::bytes(window);
    match window_scale(window) {
        Ok(scale) => WindowLine {
            bytes: window,
            scale: Some(scale),
            equation: format!(
                "{what} = {size}, which needs a window scale of N = {scale} (65535 x 2^N)"
            ),
        },
        Err(WindowTooLarge { streams, .. }) => WindowLine {
            bytes: window,
            scale: None,
            equation: format!(
                "{what} = {size}, above the maximum of RFC 7323 of 1 GiB (65535 x 2^14): use at \
                 least {streams} streams"
            ),
        },
    }
}

fn window_rate_line(
    window: ByteCount,
    streams: u32,
    rate: BitRate,
    rtt: Rtt,
) -> Result<WindowRateLine, BdpError> {
    let window = window.min(MAX_WINDOW);
    let one = window_rate(window, rtt).ok_or(BdpError::ZeroRtt)?;
    let all = BitRate::from_bps(one.bps().saturating_mul(u64::from(streams)));
    let link_share = (all.as_f64() / rate.as_f64()).min(1.0);
    let (size, time) = (figures::bytes(window), figures::rtt(rtt));
    let mut equation = match streams {
        1 => format!("window / RTT = {size} / {time}"),
        _ => format!("streams x window / RTT = {streams} x {size} / {time}"),
    };
    equation += &format!(" = {}, ", figures::rate(all));
    equation += &if all < rate {
        format!("{} of {}", percent_with(link_share, 4), figures::rate(rate))
    } else {
        format!("enough for {}", figures::rate(rate))
    };
    Ok(WindowRateLine { window_bytes: window, rate_bps: all, link_share, equation })
}

fn buffers_line(window: ByteCount) -> BuffersLine {
    let bytes = buffer_for(window, crate::INITIAL_WINDOW_SHARE).rounded_up_to(1 << 20);
    let settable = i32::try_from(bytes.bytes()).is_ok();
    let mut equation = format!(
        "buffer = window / share x headroom = {} / {} x {} = {}, rounded up to MiB",
        figures::bytes(window),
        crate::INITIAL_WINDOW_SHARE,
        crate::HEAD_ROOM,
        figures::bytes(bytes)
    );
    if !settable {
        equation += "; the kernel's maximum is below 2 GiB: use more streams";
    }
    BuffersLine { bytes, settable, equation }
}

fn payload_lines(rate: BitRate, mtu: u32) -> Vec<PayloadLine> {
    let cases = [
        ("IP bytes only, IPv4 with timestamps", Payload::of_ip(mtu), 0),
        ("Ethernet, IPv4 with timestamps", Payload::on_ethernet(mtu, IpVersion::Ipv4), 0),
        (
            "Ethernet, IPv6 with timestamps",
            Payload::on_ethernet(mtu, IpVersion::Ipv6),
            MIN_MTU_IPV6,
        ),
    ];
    cases
        .into_iter()
        .filter(|&(.., least)| mtu >= least)
        .filter_map(|(case, payload, _)| {
            let (mss_bytes, share) = (payload.mss()?, payload.payload_share()?);
            let (wire_bytes, rate_bps) = (payload.wire_bytes(), rate.scaled(share));
            let equation = format!(
                "rate x payload / packet = {} x {mss_bytes} / {wire_bytes} = {}",
                figures::rate(rate),
                figures::rate(rate_bps)
            );
            Some(PayloadLine { case, mss_bytes, wire_bytes, share, rate_bps, equation })
        })
        .collect()
}

fn ramp_line(window: ByteCount, mss: ByteCount, rtt: Rtt) -> Result<RampLine, BdpError> {
    let ramp = slow_start(window, mss, rtt).ok_or(BdpError::ZeroRtt)?;
    let seconds = ramp.time.as_secs_f64();
    let equation = format!(
        "10 segments of {} B, doubled each RTT: {} x {} = {} to reach {}",
        mss.bytes(),
        ramp.rounds,
        figures::rtt(rtt),
        figures::seconds(seconds),
        figures::bytes(window)
    );
    Ok(RampLine { rounds: ramp.rounds, seconds, equation })
}

fn loss_line(rate: BitRate, mss: ByteCount, rtt: Rtt, streams: u32) -> Result<LossLine, BdpError> {
    let each = BitRate::from_bps(rate.bps().div_ceil(u64::from(streams)));
    let budgets = (loss_budget_mathis(each, mss, rtt), loss_budget_cubic(each, mss, rtt));
    let (Some(reno), Some(cubic)) = budgets else {
        return Err(BdpError::ZeroRtt);
    };
    let equation = format!(
        "maximum loss for {}: Reno (sqrt(3/2) MSS / (rate RTT))^2 = {}, \
         CUBIC RTT / (rate RTT / (1.054 MSS))^(4/3) = {}",
        figures::rate(each),
        figures::percent(reno.fraction()),
        figures::percent(cubic.fraction())
    );
    Ok(LossLine { reno, cubic, equation })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(rate: &str, rtt: &str) -> Question {
        let (rate, rtt) = (rate.parse().unwrap(), rtt.parse().unwrap());
        Question { rate, rtt, window: None, streams: 1, mtu: 1500 }
    }

    #[test]
    fn frankfurt_to_las_vegas() {
        let result = bdp_report(&question("100mbit", "173ms")).unwrap();
        assert_eq!(
            result.bdp.equation,
            "BDP = rate x RTT = 100 Mbit/s x 173 ms = 17.3 Mbit = 2.1625 MB"
        );
        assert!((result.bdp.mebibytes - 2.0623).abs() < 1e-4);
        assert_eq!(result.window.scale, Some(6));
        assert_eq!(
            result.unscaled.equation,
            "window / RTT = 64 KiB / 173 ms = 3.0306 Mbit/s, 3.031 % of 100 Mbit/s"
        );
        assert_eq!(result.given, None);
        assert_eq!(result.buffers.bytes.to_string(), "9 MiB");
        assert_eq!(result.ramp.rounds, 8);
        assert_eq!(result.payload[0].rate_bps.to_string(), "96.5 Mbit/s");
    }

    #[test]
    fn ten_streams_of_128_kib() {
        let window = Some(ByteCount::from_bytes(128 << 10));
        let result =
            bdp_report(&Question { window, streams: 10, ..question("100mbit", "173ms") }).unwrap();
        let given = result.given.unwrap();
        assert_eq!(given.rate_bps.to_string(), "60.6 Mbit/s");
        assert!((given.link_share - 0.606).abs() < 1e-3);
        assert!(given.equation.starts_with("streams x window / RTT = 10 x 128 KiB / 173 ms"));
        assert_eq!(result.window_per_stream.bytes, ByteCount::from_bytes(216_250));
    }

    #[test]
    fn a_sufficient_window_is_reported() {
        let window = Some(ByteCount::from_bytes(4 << 20));
        let result = bdp_report(&Question { window, ..question("100mbit", "173ms") }).unwrap();
        let given = result.given.unwrap();
        assert!((given.link_share - 1.0).abs() < 1e-12);
        assert!(given.equation.ends_with("enough for 100 Mbit/s"), "{}", given.equation);
    }

    #[test]
    fn home_fibre_has_three_payload_rates() {
        let result = bdp_report(&question("2.5gbit", "163.6ms")).unwrap();
        assert_eq!(result.bdp.bytes, ByteCount::from_bytes(51_125_000));
        let rates: Vec<_> =
            result.payload.iter().map(|line| line.rate_bps.bps() / 1_000_000).collect();
        assert_eq!(rates, [2413, 2353, 2321]);
    }

    #[test]
    fn windows_are_at_most_one_gib() {
        let with = |bytes| {
            let window = Some(ByteCount::from_bytes(bytes));
            bdp_report(&Question { window, ..question("100gbit", "100ms") })
        };
        assert_eq!(with(1 << 30).unwrap().given.unwrap().window_bytes, MAX_WINDOW);
        let error = with((1 << 30) + 1).unwrap_err();
        assert!(error.to_string().contains("RFC 7323"), "{error}");
        assert_eq!(with(0), Err(BdpError::ZeroWindow));
    }

    #[test]
    fn a_bdp_beyond_one_window_needs_streams() {
        let result = bdp_report(&question("100gbit", "200ms")).unwrap();
        assert_eq!(result.window.scale, None);
        assert!(result.window.equation.contains("3 streams"), "{}", result.window.equation);
        assert!(!result.buffers.settable);
    }

    #[test]
    fn errors_name_the_valid_range() {
        let good = question("100mbit", "173ms");
        for (question, text) in [
            (Question { rate: BitRate::ZERO, ..good }, "100mbit"),
            (Question { rtt: Rtt::ZERO, ..good }, "173ms"),
            (Question { streams: 0, ..good }, "1 to 128"),
            (Question { streams: 129, ..good }, "1 to 128"),
            (Question { mtu: 575, ..good }, "576 to 65535"),
            (Question { mtu: 65_536, ..good }, "576 to 65535"),
        ] {
            let error = bdp_report(&question).unwrap_err().to_string();
            assert!(error.contains(text) && error.lines().count() == 1, "{error}");
        }
        for question in [
            Question { streams: 128, ..good },
            Question { mtu: 576, ..good },
            Question { mtu: 65_535, ..good },
        ] {
            assert!(bdp_report(&question).is_ok());
        }
    }

    #[test]
    fn ipv6_needs_its_minimum_mtu() {
        let with = |mtu| bdp_report(&Question { mtu, ..question("1gbit", "10ms") }).unwrap();
        assert_eq!(with(1_279).payload.len(), 2);
        assert_eq!(with(1_280).payload.len(), 3);
    }

    #[test]
    fn keys_carry_their_unit() {
        let result = bdp_report(&question("100mbit", "173ms")).unwrap();
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["schema"], "longhaul.bdp/1");
        assert_eq!(json["bdp"]["bytes"], 2_162_500);
        assert_eq!(json["unscaled"]["rate_bps"], 3_030_566);
    }

    proptest::proptest! {
        #[test]
        fn any_question_returns(rate: u64, rtt: u64, window: Option<u64>, streams in 0u32..200,
                                    mtu in 0u32..70_000) {
            let _ = bdp_report(&Question {
                rate: BitRate::from_bps(rate),
                rtt: Rtt::from_nanos(rtt),
                window: window.map(ByteCount::from_bytes),
                streams,
                mtu,
            });
        }
    }
}
