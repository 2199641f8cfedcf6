//! The details that `ss -i` prints of a connection: `key:value` and `key value` words of
//! `TCP_INFO` (iproute2, `misc/ss.c`, `tcp_stats_print`).

use units::{BitRate, ByteCount};

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
#[must_use]
pub fn is_details(line: &str) -> bool {
    let has = |key: &str| line.split_whitespace().any(|word| word.starts_with(key));
    has("cwnd:") && has("rto:")
}

/// The first two words that are an address with a port.
#[must_use]
pub fn addresses(line: &str) -> Option<[String; 2]> {
    let is_address = |word: &&str| {
        let Some((host, port)) = word.rsplit_once(':') else { return false };
        let is_port = port == "*" || port.parse::<u16>().is_ok();
        is_port && (host == "*" || host.contains(['.', ':', '%']))
    };
    let mut found = line.split_whitespace().filter(is_address);
    Some([found.next()?.to_owned(), found.next()?.to_owned()])
}

/// The details of a connection, `key:value` and `key value`.
#[derive(Debug)]
pub struct Details<'a>(Vec<&'a str>);

impl<'a> Details<'a> {
    /// The words of a line.
    #[must_use]
    pub fn of(line: &'a str) -> Self {
        Details(line.split_whitespace().collect())
    }

    /// Whether a word is among them.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    /// The congestion control: a word without a value that is no flag.
    #[must_use]
    pub fn congestion(&self) -> Option<&'a str> {
        let name = self.0.iter().find(|word| {
            let is_word =
                word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
            is_word && word.starts_with(|c: char| c.is_ascii_lowercase()) && !FLAGS.contains(word)
        });
        name.copied()
    }

    /// What follows `key:`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
    }

    /// The number before `/`, `(` or a unit.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        number(self.text(key)?)
    }

    /// The number after the `/`: `rttvar` of `rtt`, all retransmissions of `retrans`.
    #[must_use]
    pub fn second(&self, key: &str) -> Option<f64> {
        number(self.text(key)?.split_once('/')?.1)
    }

    /// The same as a count.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<u64> {
        let number = self.number(key)?;
        (number >= 0.0).then(|| ByteCount::from_f64(number).bytes())
    }

    /// A rate that follows its key: `delivery_rate 12.5Mbps`.
    #[must_use]
    pub fn rate(&self, key: &str) -> Option<BitRate> {
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
