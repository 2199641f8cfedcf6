//! The help of the full-screen view of `watch`.

use super::{
    Style,
    line::{Line, block, labelled, wrap},
    style,
};

const KEYS: [(&str, &str); 9] = [
    ("s", "sort by rate, RTT, retransmits or limit"),
    ("/", "filter by program, address, port; Esc clears it"),
    ("b", "toggle between busy and all connections"),
    ("up, down", "select a connection; also Page Up, Page Down"),
    ("Enter", "follow the selected connection"),
    ("Esc", "back to the table"),
    ("p", "pause or resume"),
    ("?", "open or close this help"),
    ("q", "quit"),
];

const COLUMNS: [(&str, &str); 4] = [
    ("bit/s", "payload acknowledged (arrow right) or received (arrow left)"),
    ("RTT, min", "smoothed and minimum RTT, ms"),
    ("cwnd, flight", "congestion window and bytes in flight"),
    ("retr", "segments retransmitted in the interval"),
];

const BAR: &str = "The bar divides the interval by limit: receive window, send buffer, network, \
                   nothing to send. The text beside it explains the last 30 samples. The counters \
                   below cover this host.";

/// Column of the explanations.
const TEXT: usize = 15;

/// Keys, columns and the bar.
#[must_use]
pub fn watch_help(style: &Style) -> String {
    let rows = |rows: &[(&str, &str)]| -> Vec<Line> {
        let row = |(name, text): &(&str, &str)| {
            labelled(style, 2, (style::STRONG, name), TEXT, (style::PLAIN, text))
        };
        rows.iter().flat_map(row).collect()
    };
    let mut lines = vec![Line::new(style).put(style::STRONG, "Keys")];
    lines.extend(rows(&KEYS));
    lines.push(Line::new(style));
    lines.extend(rows(&COLUMNS));
    lines.push(Line::new(style));
    for part in wrap(style, BAR, style.text_width().saturating_sub(2).max(1)) {
        lines.push(Line::new(style).to(2).put(style::PLAIN, &part));
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;

    #[test]
    fn every_word_is_whole_where_it_fits() {
        for style in styles() {
            let text = watch_help(&style);
            assert_fits(&text, &style);
            let words = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            if style.width >= 20 {
                let all: String =
                    KEYS.iter().chain(&COLUMNS).map(|(a, b)| format!("{a} {b} ")).collect();
                assert_eq!(words(&text), words(&format!("Keys {all} {BAR}")), "{text}");
            }
        }
        let narrow = watch_help(&Style { colour: false, width: 60, unicode: true });
        assert!(narrow.lines().count() < 24, "{narrow}");
    }
}
