//! Everything there is to compute about one path, each with its equation.

mod lines;

pub use lines::{
    BdpLine, BuffersLine, LossLine, PayloadLine, RampLine, WindowLine, WindowRateLine, Worksheet,
};

use crate::{
    IpVersion, MAX_WINDOW, Payload, UNSCALED_WINDOW, WindowTooLarge, bdp, buffer_for, figures,
    loss_budget_cubic, loss_budget_mathis, per_stream, slow_start, window_for, window_rate,
    window_scale,
};
use units::{BitRate, ByteCount, Rtt};

/// The version of [`Worksheet`] in JSON.
pub const WORKSHEET_SCHEMA: &str = "longhaul.bdp/1";

/// Least MTU taken: every IPv4 host must accept packets of 576 bytes (RFC 791,
/// section 3.1). IP's own least, 68, leaves no room for TCP's options.
pub const MIN_MTU: u32 = 576;

/// Largest MTU taken: IPv4's total length field (RFC 791, section 3.1).
pub const MAX_MTU: u32 = 65_535;

/// Most parallel streams, as many as iperf3 takes.
pub const MAX_STREAMS: u32 = 128;

/// Least MTU of IPv6 (RFC 8200, section 5).
const MIN_MTU_IPV6: u32 = 1_280;

/// 1 GiB: what RFC 7323 calls the limit; the last 16 KiB of it cannot be
/// announced, and a window among them is taken as [`MAX_WINDOW`].
const LIMIT: ByteCount = ByteCount::from_bytes(1 << 30);

/// The path in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The bottleneck's rate.
    pub rate: BitRate,
    /// The round trip.
    pub rtt: Rtt,
    /// The window of each stream, where one is given.
    pub window: Option<ByteCount>,
    /// Parallel connections.
    pub streams: u32,
    /// Largest IP packet in bytes.
    pub mtu: u32,
}

/// Why a [`Question`] has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorksheetError {
    /// No rate.
    #[error("a rate of zero carries nothing: give the bottleneck's rate, as in 100mbit")]
    ZeroRate,
    /// No round trip.
    #[error(
        "a round trip of zero has no bandwidth-delay product: give the one 'ping' shows, as in 173ms"
    )]
    ZeroRtt,
    /// No window.
    #[error("a window of zero carries nothing: give a size up to 1 GiB, as in 64KiB")]
    ZeroWindow,
    /// More window than TCP has.
    #[error(transparent)]
    Window(#[from] WindowTooLarge),
    /// No streams or too many.
    #[error("{0} streams cannot be asked for: give a number from 1 to {MAX_STREAMS}")]
    Streams(u32),
    /// An MTU that no path has.
    #[error("an MTU of {0} bytes cannot be asked for: give one from {MIN_MTU} to {MAX_MTU}")]
    Mtu(u32),
}

/// Computes everything for one path.
///
/// # Errors
/// Where a figure is out of bounds; the error names it and what would be right.
pub fn worksheet(question: &Question) -> Result<Worksheet, WorksheetError> {
    let &Question { rate, rtt, window, streams, mtu } = question;
    check(question)?;
    let payload = Payload::of_ip(mtu);
    let mss = ByteCount::from_bytes(u64::from(payload.mss().ok_or(WorksheetError::Mtu(mtu))?));
    let needed = window_for(rate, rtt);
    let each = per_stream(needed, streams);
    let carries = |window, streams| window_rate_line(window, streams, rate, rtt);
    Ok(Worksheet {
        schema: WORKSHEET_SCHEMA,
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
        unscaled: carries(UNSCALED_WINDOW, streams)?,
        given: window.map(|window| carries(window, streams)).transpose()?,
        buffers: buffers_line(each),
        payload: payload_lines(rate, mtu),
        ramp: ramp_line(each, mss, rtt)?,
        loss: loss_line(rate, mss, rtt, streams)?,
    })
}

fn check(question: &Question) -> Result<(), WorksheetError> {
    if question.rate == BitRate::ZERO {
        return Err(WorksheetError::ZeroRate);
    }
    if question.rtt == Rtt::ZERO {
        return Err(WorksheetError::ZeroRtt);
    }
    match question.window {
        Some(ByteCount::ZERO) => return Err(WorksheetError::ZeroWindow),
        Some(window) if window > LIMIT => {
            window_scale(window)?;
        }
        _ => {}
    }
    if !(1..=MAX_STREAMS).contains(&question.streams) {
        return Err(WorksheetError::Streams(question.streams));
    }
    if !(MIN_MTU..=MAX_MTU).contains(&question.mtu) {
        return Err(WorksheetError::Mtu(question.mtu));
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
                "{what} = {size}, held by 65535 x 2^N with a window scale N = {scale}"
            ),
        },
        Err(WindowTooLarge { streams, .. }) => WindowLine {
            bytes: window,
            scale: None,
            equation: format!(
                "{what} = {size}, over the 1 GiB (65535 x 2^14) that RFC 7323 can announce: \
                 share it between {streams} streams or more"
            ),
        },
    }
}

fn window_rate_line(
    window: ByteCount,
    streams: u32,
    rate: BitRate,
    rtt: Rtt,
) -> Result<WindowRateLine, WorksheetError> {
    let window = window.min(MAX_WINDOW);
    let one = window_rate(window, rtt).ok_or(WorksheetError::ZeroRtt)?;
    let all = BitRate::from_bps(one.bps().saturating_mul(u64::from(streams)));
    let link_share = (all.as_f64() / rate.as_f64()).min(1.0);
    let (size, time) = (figures::bytes(window), figures::rtt(rtt));
    let mut equation = match streams {
        1 => format!("window / RTT = {size} / {time}"),
        _ => format!("streams x window / RTT = {streams} x {size} / {time}"),
    };
    equation += &format!(" = {}, ", figures::rate(all));
    equation += &if all < rate {
        format!("{:.3} % of {}", link_share * 100.0, figures::rate(rate))
    } else {
        format!("enough for {}", figures::rate(rate))
    };
    Ok(WindowRateLine { window_bytes: window, rate_bps: all, link_share, equation })
}

fn buffers_line(window: ByteCount) -> BuffersLine {
    let bytes = buffer_for(window, crate::INITIAL_WINDOW_SHARE).rounded_up_to(1 << 20);
    let settable = i32::try_from(bytes.bytes()).is_ok();
    let mut equation = format!(
        "buffer = window / share x head room = {} / {} x {} = {} in whole MiB",
        figures::bytes(window),
        crate::INITIAL_WINDOW_SHARE,
        crate::HEAD_ROOM,
        figures::bytes(bytes)
    );
    if !settable {
        equation += "; the kernel takes less than 2 GiB: use more streams";
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

fn ramp_line(window: ByteCount, mss: ByteCount, rtt: Rtt) -> Result<RampLine, WorksheetError> {
    let ramp = slow_start(window, mss, rtt).ok_or(WorksheetError::ZeroRtt)?;
    let seconds = ramp.time.as_secs_f64();
    let equation = format!(
        "10 segments of {} B double each RTT: {} x {} = {} to {}",
        mss.bytes(),
        ramp.rounds,
        figures::rtt(rtt),
        figures::seconds(seconds),
        figures::bytes(window)
    );
    Ok(RampLine { rounds: ramp.rounds, seconds, equation })
}

fn loss_line(
    rate: BitRate,
    mss: ByteCount,
    rtt: Rtt,
    streams: u32,
) -> Result<LossLine, WorksheetError> {
    let each = BitRate::from_bps(rate.bps().div_ceil(u64::from(streams)));
    let budgets = (loss_budget_mathis(each, mss, rtt), loss_budget_cubic(each, mss, rtt));
    let (Some(reno), Some(cubic)) = budgets else {
        return Err(WorksheetError::ZeroRtt);
    };
    let equation = format!(
        "loss that {} bears: Reno (sqrt(3/2) MSS / (rate RTT))^2 = {}, \
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
        let sheet = worksheet(&question("100mbit", "173ms")).unwrap();
        assert_eq!(
            sheet.bdp.equation,
            "BDP = rate x RTT = 100 Mbit/s x 173 ms = 17.3 Mbit = 2.1625 MB"
        );
        assert!((sheet.bdp.mebibytes - 2.0623).abs() < 1e-4);
        assert_eq!(sheet.window.scale, Some(6));
        assert_eq!(
            sheet.unscaled.equation,
            "window / RTT = 64 KiB / 173 ms = 3.0306 Mbit/s, 3.031 % of 100 Mbit/s"
        );
        assert_eq!(sheet.given, None);
        assert_eq!(sheet.buffers.bytes.to_string(), "9 MiB");
        assert_eq!(sheet.ramp.rounds, 8);
        assert_eq!(sheet.payload[0].rate_bps.to_string(), "96.5 Mbit/s");
    }

    #[test]
    fn ten_streams_of_128_kib() {
        let window = Some(ByteCount::from_bytes(128 << 10));
        let sheet =
            worksheet(&Question { window, streams: 10, ..question("100mbit", "173ms") }).unwrap();
        let given = sheet.given.unwrap();
        assert_eq!(given.rate_bps.to_string(), "60.6 Mbit/s");
        assert!((given.link_share - 0.606).abs() < 1e-3);
        assert!(given.equation.starts_with("streams x window / RTT = 10 x 128 KiB / 173 ms"));
        assert_eq!(sheet.window_per_stream.bytes, ByteCount::from_bytes(216_250));
    }

    #[test]
    fn a_window_that_suffices_says_so() {
        let window = Some(ByteCount::from_bytes(4 << 20));
        let sheet = worksheet(&Question { window, ..question("100mbit", "173ms") }).unwrap();
        let given = sheet.given.unwrap();
        assert!((given.link_share - 1.0).abs() < 1e-12);
        assert!(given.equation.ends_with("enough for 100 Mbit/s"), "{}", given.equation);
    }

    #[test]
    fn home_fibre_has_three_ways_of_counting() {
        let sheet = worksheet(&question("2.5gbit", "163.6ms")).unwrap();
        assert_eq!(sheet.bdp.bytes, ByteCount::from_bytes(51_125_000));
        let rates: Vec<_> =
            sheet.payload.iter().map(|line| line.rate_bps.bps() / 1_000_000).collect();
        assert_eq!(rates, [2413, 2353, 2321]);
    }

    #[test]
    fn windows_up_to_one_gib_and_no_further() {
        let with = |bytes| {
            let window = Some(ByteCount::from_bytes(bytes));
            worksheet(&Question { window, ..question("100gbit", "100ms") })
        };
        assert_eq!(with(1 << 30).unwrap().given.unwrap().window_bytes, MAX_WINDOW);
        let error = with((1 << 30) + 1).unwrap_err();
        assert!(error.to_string().contains("RFC 7323"), "{error}");
        assert_eq!(with(0), Err(WorksheetError::ZeroWindow));
    }

    #[test]
    fn a_path_past_one_window_asks_for_streams() {
        let sheet = worksheet(&question("100gbit", "200ms")).unwrap();
        assert_eq!(sheet.window.scale, None);
        assert!(sheet.window.equation.contains("3 streams"), "{}", sheet.window.equation);
        assert!(!sheet.buffers.settable);
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_remedy() {
        let good = question("100mbit", "173ms");
        for (question, text) in [
            (Question { rate: BitRate::ZERO, ..good }, "100mbit"),
            (Question { rtt: Rtt::ZERO, ..good }, "173ms"),
            (Question { streams: 0, ..good }, "1 to 128"),
            (Question { streams: 129, ..good }, "1 to 128"),
            (Question { mtu: 575, ..good }, "576 to 65535"),
            (Question { mtu: 65_536, ..good }, "576 to 65535"),
        ] {
            let error = worksheet(&question).unwrap_err().to_string();
            assert!(error.contains(text) && error.lines().count() == 1, "{error}");
        }
        for question in [
            Question { streams: 128, ..good },
            Question { mtu: 576, ..good },
            Question { mtu: 65_535, ..good },
        ] {
            assert!(worksheet(&question).is_ok());
        }
    }

    #[test]
    fn ipv6_needs_its_least_mtu() {
        let with = |mtu| worksheet(&Question { mtu, ..question("1gbit", "10ms") }).unwrap();
        assert_eq!(with(1_279).payload.len(), 2);
        assert_eq!(with(1_280).payload.len(), 3);
    }

    #[test]
    fn keys_carry_their_unit() {
        let sheet = worksheet(&question("100mbit", "173ms")).unwrap();
        let json = serde_json::to_value(&sheet).unwrap();
        assert_eq!(json["schema"], "longhaul.bdp/1");
        assert_eq!(json["bdp"]["bytes"], 2_162_500);
        assert_eq!(json["unscaled"]["rate_bps"], 3_030_566);
    }

    proptest::proptest! {
        #[test]
        fn any_question_is_answered(rate: u64, rtt: u64, window: Option<u64>, streams in 0u32..200,
                                    mtu in 0u32..70_000) {
            let _ = worksheet(&Question {
                rate: BitRate::from_bps(rate),
                rtt: Rtt::from_nanos(rtt),
                window: window.map(ByteCount::from_bytes),
                streams,
                mtu,
            });
        }
    }
}
