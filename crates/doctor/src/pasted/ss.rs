//! `ss -tin`: two lines for each connection, addresses and `TCP_INFO` (iproute2,
//! `misc/ss.c`, `tcp_stats_print`). With `-O` both are one line.

use record::{PastedConnection, PastedCounter, PastedReport};
use units::{BitRate, ByteCount, LossRatio, Rtt, percent};

/// Connections reported; further ones are only counted.
const MAX_CONNECTIONS: usize = 4_096;

/// Limits below this share of the time say nothing (NDT's threshold).
const LIMITED: f64 = 0.015;

/// From this multiple of the least RTT on a queue stands on the path.
const QUEUED: f64 = 2.0;

/// Words of the details that are no congestion control.
const FLAGS: [&str; 10] = [
    "ts",
    "sack",
    "ecn",
    "ecnseen",
    "fastopen",
    "usec_ts",
    "app_limited",
    "reord_seen",
    "send",
    "delivery_rate",
];

/// Whether a line has the details of a connection.
pub(super) fn is_details(line: &str) -> bool {
    let has = |key: &str| line.split_whitespace().any(|word| word.starts_with(key));
    has("cwnd:") && has("rto:")
}

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
        report.notes.push(format!("{more} further connections are not shown"));
    }
}

/// The first two words that are an address with a port.
fn addresses(line: &str) -> Option<[String; 2]> {
    let is_address = |word: &&str| {
        let Some((host, port)) = word.rsplit_once(':') else { return false };
        let is_port = port == "*" || port.parse::<u16>().is_ok();
        is_port && (host == "*" || host.contains(['.', ':', '%']))
    };
    let mut found = line.split_whitespace().filter(is_address);
    Some([found.next()?.to_owned(), found.next()?.to_owned()])
}

/// The details of a connection, `key:value` and `key value`.
struct Details<'a>(Vec<&'a str>);

impl<'a> Details<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
    }

    /// The number before `/`, `(` or a unit.
    fn number(&self, key: &str) -> Option<f64> {
        number(self.text(key)?)
    }

    fn count(&self, key: &str) -> Option<u64> {
        let number = self.number(key)?;
        (number >= 0.0).then(|| ByteCount::from_f64(number).bytes())
    }

    /// A rate that follows its key: `delivery_rate 12.5Mbps`.
    fn rate(&self, key: &str) -> Option<BitRate> {
        let at = self.0.iter().position(|word| *word == key)?;
        let text = self.0.get(at + 1)?;
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let factor = match unit {
            "bps" => 1.0,
            "Kbps" => 1e3,
            "Mbps" => 1e6,
            "Gbps" => 1e9,
            "Tbps" => 1e12,
            _ => return None,
        };
        Some(BitRate::from_bps_f64(number(text)? * factor))
    }
}

fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text.get(..end)?.parse().ok()?;
    number.is_finite().then_some(number)
}

fn connection([local, peer]: [String; 2], line: &str) -> PastedConnection {
    let details = Details(line.split_whitespace().collect());
    let name = details.0.iter().find(|word| {
        let is_word =
            word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        is_word && word.starts_with(|c: char| c.is_ascii_lowercase()) && !FLAGS.contains(word)
    });
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
        congestion: name.map(|name| (*name).to_owned()),
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
        is_app_limited: details.0.contains(&"app_limited"),
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
            "the RTT is {:.1} times its minimum: a queue of about {:.0} ms stands on the path",
            rtt / least,
            rtt - least
        ));
    }
    all
}

/// What the retransmitted share allows the congestion control.
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
