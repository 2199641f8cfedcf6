//! The route to a host as a table, one row per hop, with the columns of mtr.

use super::{
    Style,
    line::{Line, block, columns, shown, wrap},
    ping::named,
    style,
};
use record::{Hop, TraceReport};

/// Most columns of the table; more than running text, for names and networks.
const MAX_TABLE_WIDTH: usize = 160;
/// Column of the host, after the hop number.
const HOST: usize = 5;
/// The columns of figures and their widths.
const FIGURES: [(&str, usize); 6] =
    [("Loss", 9), ("Snt", 6), ("Best", 8), ("Avg", 8), ("Wrst", 8), ("StDev", 8)];

/// The hops with their loss and RTT in ms; names and networks next to the address if
/// there is room, else below it.
#[must_use]
pub fn route(report: &TraceReport, style: &Style) -> String {
    let figures: usize = FIGURES.iter().map(|(_, width)| width).sum();
    let most = style.width.min(MAX_TABLE_WIDTH).saturating_sub(HOST + figures).max(15);
    let hosts: Vec<Vec<String>> = report.hops.iter().map(|hop| host(hop, style, most)).collect();
    let widest = hosts.iter().filter_map(|rows| rows.first()).map(|text| columns(text)).max();
    let widest = widest.unwrap_or(0);
    let room = widest.clamp(15, most);
    let port = report.port.map_or(String::new(), |port| format!(" port {port}"));
    let title = format!(
        "{}, {}{port}, {}",
        named(&report.target, &report.address),
        report.method.to_uppercase(),
        if report.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", report.rounds) },
    );
    let mut head = Line::new(style).right(style::DIM, "Hop", 3).to(HOST).put(style::DIM, "Host");
    let mut end = HOST + room;
    for (name, width) in FIGURES {
        end += width;
        head = head.right(style::DIM, name, end);
    }
    let mut lines = vec![Line::new(style).put(style::STRONG, &title), head];
    for (hop, host) in report.hops.iter().zip(hosts) {
        lines.extend(rows(hop, &host, room, style));
    }
    for note in &report.notes {
        for text in wrap(style, note, style.text_width()) {
            lines.push(Line::new(style).put(style::WARN, &text));
        }
    }
    block(lines)
}

fn rows(hop: &Hop, host: &[String], room: usize, style: &Style) -> Vec<Line> {
    let mut texts = host.iter();
    let label = match (&hop.address, style.unicode) {
        (Some(_), _) => style::PLAIN,
        (None, _) => style::DIM,
    };
    let mut line = Line::new(style)
        .right(style::STRONG, &hop.ttl.to_string(), 3)
        .to(HOST)
        .put(label, texts.next().map_or("", String::as_str));
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), millis);
    let lossy = if hop.loss > 0.0 { style::BAD } else { style::PLAIN };
    let figures = [
        (lossy, units::percent_with(hop.loss, 3)),
        (style::PLAIN, hop.sent.to_string()),
        (style::PLAIN, ms(hop.best_ms)),
        (style::STRONG, ms(hop.avg_ms)),
        (style::PLAIN, ms(hop.worst_ms)),
        (style::PLAIN, ms(hop.stdev_ms)),
    ];
    let mut end = HOST + room;
    for ((text_style, text), (_, width)) in figures.into_iter().zip(FIGURES) {
        end += width;
        line = line.right(text_style, &text, end);
    }
    let more = texts.map(|text| Line::new(style).to(HOST + 2).put(style::DIM, text));
    std::iter::once(line).chain(more).collect()
}

/// Address, name and network of a hop: the first line goes into its row, the rest below.
fn host(hop: &Hop, style: &Style, room: usize) -> Vec<String> {
    let Some(address) = &hop.address else {
        return vec!["no reply".to_owned()];
    };
    let whole = hop.name.as_ref().map(|name| shown(style, &named(name, address)));
    let fits = whole.as_ref().is_some_and(|whole| columns(whole) <= room);
    let mut rows = match whole {
        Some(whole) if fits => vec![whole],
        _ => vec![address.clone()],
    };
    let network = match (hop.asn, &hop.as_name) {
        (Some(asn), Some(name)) => Some(format!("AS{asn} {name}")),
        (Some(asn), None) => Some(format!("AS{asn}")),
        (None, name) => name.clone(),
    };
    let name = hop.name.clone().filter(|_| !fits);
    let also = (!hop.others.is_empty()).then(|| format!("also {}", hop.others.join(", ")));
    let refusal = hop.refusal.clone();
    // Further lines are indented by two and have no figures.
    let below = style.width.min(MAX_TABLE_WIDTH).saturating_sub(HOST + 2);
    for piece in [name, network, hop.place.clone(), refusal, also].into_iter().flatten() {
        let piece = shown(style, &piece);
        let limit = if rows.len() == 1 { room } else { below };
        match rows.last_mut() {
            Some(last) if columns(last) + 2 + columns(&piece) <= limit => {
                last.push_str("  ");
                last.push_str(&piece);
            }
            _ => rows.extend(wrap(style, &piece, below)),
        }
    }
    rows
}

/// Four significant digits.
fn millis(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "-".to_owned(),
        ms if ms < 9.9995 => format!("{ms:.3}"),
        ms if ms < 99.995 => format!("{ms:.2}"),
        ms if ms < 999.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> TraceReport {
        let hop = |ttl, address: Option<&str>, ms: f64| Hop {
            ttl,
            address: address.map(str::to_owned),
            sent: 10,
            received: if address.is_some() { 9 } else { 0 },
            loss: if address.is_some() { 0.1 } else { 1.0 },
            best_ms: address.map(|_| ms),
            avg_ms: address.map(|_| ms * 2.0),
            worst_ms: address.map(|_| ms * 30.0),
            stdev_ms: address.map(|_| ms / 9.0),
            ..Hop::default()
        };
        let mut far = hop(3, Some("192.0.2.9"), 50.0);
        far.name = Some("far\u{1b}]0;x\u{7}.away.example.org".to_owned());
        far.asn = Some(64_500);
        far.as_name = Some("Example Network of a Name That Is Long".to_owned());
        far.place = Some("Zürich, CH".to_owned());
        far.others = vec!["192.0.2.10".to_owned()];
        TraceReport {
            schema: record::TRACE_SCHEMA,
            version: String::new(),
            started_unix_s: 0,
            target: "far.example".to_owned(),
            address: "192.0.2.9".to_owned(),
            method: "udp",
            port: Some(33_434),
            rounds: 10,
            interval_ms: 1000.0,
            timeout_ms: 1000.0,
            reached: true,
            hops: vec![hop(1, Some("10.0.0.1"), 0.5), hop(2, None, 0.0), far],
            map: None,
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn a_table_at_eighty_columns() {
        let style = Style { colour: false, width: 80, unicode: true };
        let expected = "\
far.example (192.0.2.9), UDP port 33434, 10 rounds
Hop  Host                Loss   Snt    Best     Avg    Wrst   StDev
  1  10.0.0.1            10 %    10   0.500   1.000   15.00   0.056
  2  no reply           100 %    10       -       -       -       -
  3  192.0.2.9           10 %    10   50.00   100.0    1500   5.556
       far]0;x.away.example.org  AS64500 Example Network of a Name That Is Long
       Zürich, CH  also 192.0.2.10
a note
";
        let text = route(&report(), &style);
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wide_table_has_one_line_per_hop_and_a_narrow_one_is_cut() {
        let wide = Style { colour: false, width: 200, unicode: false };
        let text = route(&report(), &wide);
        assert!(text.is_ascii(), "{text}");
        let row = text.lines().find(|line| line.starts_with("  3")).unwrap();
        assert!(row.contains("org (192.0.2.9)  AS64500 Example") && row.contains("CH"), "{text}");
        let narrow = route(&report(), &Style { width: 30, ..wide });
        assert!(narrow.lines().all(|line| line.len() <= 30), "{narrow}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    }

    #[test]
    fn a_route_without_hops_is_drawn() {
        let text = route(
            &TraceReport { hops: Vec::new(), rounds: 1, port: None, ..report() },
            &Style { colour: true, width: 1, unicode: true },
        );
        // Title, head, and a letter in each line of the note.
        assert_eq!(text.lines().count(), 7, "{text}");
    }
}
