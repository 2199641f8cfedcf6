//! The way to a host as a table, a row for each hop.

use super::{
    Style, ink,
    latency::named,
    line::{Line, block, columns, shown, wrap},
};
use crate::words;
use record::{Hop, TraceReport};

/// Names and networks in one line take more room than running text bears.
const WIDEST: usize = 160;
/// Where the host's column begins, behind the number.
const HOST: usize = 5;
/// Widths of the figures: loss, sent, best, avg, worst, stdev.
const FIGURES: [(&str, usize); 6] =
    [("loss", 9), ("sent", 6), ("best", 8), ("avg", 8), ("worst", 8), ("stdev", 8)];

/// The hops with their loss and round trips; names and networks beside the
/// address where there is room, else beneath it.
#[must_use]
pub fn route(report: &TraceReport, style: &Style) -> String {
    let figures: usize = FIGURES.iter().map(|(_, width)| width).sum();
    let most = style.width.min(WIDEST).saturating_sub(HOST + figures).max(15);
    let hosts: Vec<Vec<String>> = report.hops.iter().map(|hop| host(hop, style, most)).collect();
    let widest = hosts.iter().filter_map(|rows| rows.first()).map(|text| columns(text)).max();
    let widest = widest.unwrap_or(0);
    let room = widest.clamp(15, most);
    let port = report.port.map_or(String::new(), |port| format!(" to port {port}"));
    let title = format!(
        "{} by {}{port}, {}",
        named(&report.target, &report.address),
        report.method.to_uppercase(),
        if report.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", report.rounds) },
    );
    let mut head = Line::new(style).right(ink::DIM, "hop", 3).to(HOST).put(ink::DIM, "host");
    let mut end = HOST + room;
    for (name, width) in FIGURES {
        end += width;
        head = head.right(ink::DIM, name, end);
    }
    let mut lines = vec![Line::new(style).put(ink::STRONG, &title), head];
    for (hop, host) in report.hops.iter().zip(hosts) {
        lines.extend(rows(hop, &host, room, style));
    }
    for note in &report.notes {
        for text in wrap(style, note, style.text_width()) {
            lines.push(Line::new(style).put(ink::WARN, &text));
        }
    }
    block(lines)
}

fn rows(hop: &Hop, host: &[String], room: usize, style: &Style) -> Vec<Line> {
    let mut texts = host.iter();
    let label = match (&hop.address, style.unicode) {
        (Some(_), _) => ink::PLAIN,
        (None, _) => ink::DIM,
    };
    let mut line = Line::new(style)
        .right(ink::STRONG, &hop.ttl.to_string(), 3)
        .to(HOST)
        .put(label, texts.next().map_or("", String::as_str));
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), millis);
    let lossy = if hop.loss > 0.0 { ink::BAD } else { ink::PLAIN };
    let figures = [
        (lossy, words::lost(hop.loss)),
        (ink::PLAIN, hop.sent.to_string()),
        (ink::PLAIN, ms(hop.best_ms)),
        (ink::STRONG, ms(hop.avg_ms)),
        (ink::PLAIN, ms(hop.worst_ms)),
        (ink::PLAIN, ms(hop.stdev_ms)),
    ];
    let mut end = HOST + room;
    for ((ink, text), (_, width)) in figures.into_iter().zip(FIGURES) {
        end += width;
        line = line.right(ink, &text, end);
    }
    let more = texts.map(|text| Line::new(style).to(HOST + 2).put(ink::DIM, text));
    std::iter::once(line).chain(more).collect()
}

/// What is known of a hop: as much as fits in its row, and the rest in further ones.
fn host(hop: &Hop, style: &Style, room: usize) -> Vec<String> {
    let Some(address) = &hop.address else {
        return vec!["no answer".to_owned()];
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
    // What stands beneath is set in by two, and has no figures beside it.
    let beneath = style.width.min(WIDEST).saturating_sub(HOST + 2);
    for piece in [name, network, hop.place.clone(), refusal, also].into_iter().flatten() {
        let piece = shown(style, &piece);
        let limit = if rows.len() == 1 { room } else { beneath };
        match rows.last_mut() {
            Some(last) if columns(last) + 2 + columns(&piece) <= limit => {
                last.push_str("  ");
                last.push_str(&piece);
            }
            _ => rows.extend(wrap(style, &piece, beneath)),
        }
    }
    rows
}

/// Three or four digits, whatever the size.
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
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn a_table_at_eighty_columns() {
        let style = Style { colour: false, width: 80, unicode: true };
        let expected = "\
far.example (192.0.2.9) by UDP to port 33434, 10 rounds
hop  host                loss  sent    best     avg   worst   stdev
  1  10.0.0.1            10 %    10   0.500   1.000   15.00   0.056
  2  no answer          100 %    10       -       -       -       -
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
    fn a_wide_table_has_it_in_one_line_and_a_narrow_one_is_cut() {
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
    fn a_way_without_hops_is_drawn() {
        let text = route(
            &TraceReport { hops: Vec::new(), rounds: 1, port: None, ..report() },
            &Style { colour: true, width: 1, unicode: true },
        );
        // Title, head, and a letter in each line of the note.
        assert_eq!(text.lines().count(), 7, "{text}");
    }
}
