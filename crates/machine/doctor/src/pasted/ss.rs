//! `ss -tin`: two lines for each connection, addresses and `TCP_INFO`. With `-O` both are one
//! line.

use super::{PastedConnection, PastedCounter, PastedReport};
use tool_results::ss_details::{Details, addresses, is_details};
use units::{ByteCount, LossRatio, Rtt, percent};

/// Connections reported; further ones are only counted.
const MAX_CONNECTIONS: usize = 4_096;

/// Limits below this share of the time say nothing (NDT's threshold).
const LIMITED: f64 = 0.015;

/// From this multiple of the least RTT on a queue stands on the path.
const QUEUED: f64 = 2.0;

pub(super) fn read(lines: &[&str], report: &mut PastedReport) {
    let mut before = "";
    let mut more = 0_usize;
    for line in lines {
        if !is_details(line) {
            before = line;
            continue;
        }
        let addresses = addresses(line).or_else(|| addresses(before)).unwrap_or_default();
        before = "";
        if report.connections.len() < MAX_CONNECTIONS {
            report.connections.push(connection(addresses, line));
        } else {
            more += 1;
        }
    }
    report.connections.sort_by_key(|one| std::cmp::Reverse(one.sent_bytes));
    report.counters = totals(&report.connections);
    if more > 0 {
        let plural = if more == 1 { "" } else { "s" };
        report.notes.push(format!("{more} further connection{plural} not shown"));
    }
}

fn connection([local, peer]: [String; 2], line: &str) -> PastedConnection {
    let details = Details::of(line);
    let bytes = |key| details.count(key).map(ByteCount::from_bytes);
    let busy = details.number("busy");
    let of_busy = |key| {
        let share = details.number(key)? / busy?;
        share.is_finite().then_some(share.clamp(0.0, 1.0))
    };
    let (sent, again) = (bytes("bytes_sent"), bytes("bytes_retrans"));
    let (cwnd, mss, rtt) = (details.count("cwnd"), details.count("mss"), details.number("rtt"));
    let window = cwnd.zip(mss).map(|(cwnd, mss)| ByteCount::from_bytes(cwnd.saturating_mul(mss)));
    let mut one = PastedConnection {
        local,
        peer,
        congestion: details.congestion().map(str::to_owned),
        rtt_ms: rtt,
        min_rtt_ms: details.number("minrtt"),
        cwnd_segments: cwnd,
        mss_bytes: mss,
        sent_bytes: sent,
        received_bytes: bytes("bytes_received"),
        retransmitted_bytes: again.or(sent.map(|_| ByteCount::ZERO)),
        retransmitted_share: sent
            .filter(|sent| *sent > ByteCount::ZERO)
            .map(|sent| units::share(again.unwrap_or(ByteCount::ZERO).bytes(), sent.bytes())),
        delivery_rate_bps: details.rate("delivery_rate"),
        cwnd_rate_bps: window
            .zip(rtt)
            .and_then(|(window, rtt)| model::window_rate(window, Rtt::from_secs(rtt / 1e3))),
        busy_ms: busy,
        rwnd_limited_share: of_busy("rwnd_limited").or(busy.map(|_| 0.0)),
        sndbuf_limited_share: of_busy("sndbuf_limited").or(busy.map(|_| 0.0)),
        is_app_limited: details.has("app_limited"),
        findings: Vec::new(),
    };
    one.findings = findings(&one, &details);
    one
}

fn findings(one: &PastedConnection, details: &Details<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let above = |share: Option<f64>| share.filter(|share| *share >= LIMITED);
    if let Some(share) = above(one.rwnd_limited_share) {
        all.push(format!(
            "rwnd-limited {} of the busy time: raise the receiver's buffer (tcp_rmem), or speed up \
             its application",
            percent(share)
        ));
    }
    if let Some(share) = above(one.sndbuf_limited_share) {
        all.push(format!(
            "sndbuf-limited {} of the busy time: raise the third value of net.ipv4.tcp_wmem here, \
             and set no SO_SNDBUF",
            percent(share)
        ));
    }
    if one.is_app_limited {
        all.push(
            "application-limited: the sender had no more data for the last rate sample".to_owned(),
        );
    }
    if details.text("wscale").is_none() {
        let most = one
            .rtt_ms
            .and_then(|rtt| model::window_rate(model::UNSCALED_WINDOW, Rtt::from_secs(rtt / 1e3)));
        let most = most.map(|most| format!(": at most {most}")).unwrap_or_default();
        all.push(format!("no window scaling: windows stay below 64 KiB{most}"));
    }
    if let Some(text) = losses(one) {
        all.push(text);
    }
    if let (Some(rtt), Some(least)) = (one.rtt_ms, one.min_rtt_ms)
        && least > 0.0
        && rtt >= QUEUED * least
    {
        all.push(format!(
            "the RTT is {:.1} times its minimum: a queue of about {:.0} ms has built up on the \
             path",
            rtt / least,
            rtt - least
        ));
    }
    all
}

/// The rate that the retransmitted share allows the congestion control.
fn losses(one: &PastedConnection) -> Option<String> {
    let share = one.retransmitted_share.filter(|share| *share > 0.0)?;
    let mut text = format!("retransmitted {} of the bytes", percent(share));
    let (rtt, mss) = (one.min_rtt_ms.or(one.rtt_ms)?, one.mss_bytes?);
    let loss: Option<LossRatio> = model::loss_from_fraction(share);
    let (mss, rtt) = (ByteCount::from_bytes(mss), Rtt::from_secs(rtt / 1e3));
    let most = match one.congestion.as_deref() {
        Some("cubic") => loss.and_then(|loss| model::cubic(mss, rtt, loss)).zip(Some("CUBIC")),
        Some("reno") => loss.and_then(|loss| model::mathis(mss, rtt, loss)).zip(Some("Reno")),
        _ => None,
    };
    if let Some((most, name)) = most {
        text += &format!("; random loss of that share allows {name} about {most} at this RTT");
    }
    Some(text)
}

/// Sums over all connections.
fn totals(connections: &[PastedConnection]) -> Vec<PastedCounter> {
    let sum = |of: fn(&PastedConnection) -> Option<ByteCount>| {
        connections.iter().filter_map(of).fold(0_u64, |sum, one| sum.saturating_add(one.bytes()))
    };
    let sent = sum(|one| one.sent_bytes);
    let again = sum(|one| one.retransmitted_bytes);
    let counter = |name: &str, value, share, meaning: &str| PastedCounter {
        name: name.to_owned(),
        value,
        of: None,
        share,
        meaning: meaning.to_owned(),
        remedy: None,
    };
    let mut counters = vec![
        counter("connections", connections.len() as u64, None, "connections in the text"),
        counter("bytes_sent", sent, None, "bytes sent, retransmissions included"),
        counter("bytes_received", sum(|one| one.received_bytes), None, "bytes received"),
    ];
    let share = (sent > 0).then(|| units::share(again, sent));
    let mut lost = counter("bytes_retrans", again, share, "bytes retransmitted");
    lost.of = share.map(|_| "bytes_sent".to_owned());
    lost.remedy = (again > 0).then(|| "find the lossy hop: longhaul trace HOST".to_owned());
    counters.push(lost);
    counters
}
