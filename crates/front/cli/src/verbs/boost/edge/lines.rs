//! The log of an edge: a line for each event.

use longhaul::boost::edge::{EdgeDocument, EdgeEvent, EdgeFigures, EdgeLine, EdgeStatuses};
use report::untrusted;
use units::ByteCount;

/// Longest message of nginx.
const MOST: usize = 400;

/// The line of an event, as text or as JSON.
pub(super) fn line(event: &EdgeEvent, is_json: bool) -> String {
    let mut event = event.clone();
    if let EdgeEvent::Message { text } = &mut event {
        *text = untrusted::excerpt(text, MOST);
    }
    if is_json {
        let document = serde_json::to_value(EdgeLine::now(&event)).unwrap_or_default();
        return untrusted::json(&document.to_string());
    }
    match event {
        EdgeEvent::Listening { address, origin } => {
            format!("Listening on http://{address}; origin: {origin}; stop with Ctrl-C")
        }
        EdgeEvent::Warning { text } => format!("warning: {text}"),
        EdgeEvent::Report { figures, .. } => figures_text(&figures),
        EdgeEvent::Message { text } => format!("nginx: {text}"),
        EdgeEvent::HeldBack { count } => {
            format!("log rate limit: suppressed {count} messages of nginx")
        }
    }
}

/// What an edge has served in all.
pub(super) fn summary(document: &EdgeDocument) -> String {
    format!("{:.0} s: {}\n", document.seconds, figures_text(&document.figures))
}

fn figures_text(figures: &EdgeFigures) -> String {
    let [sent, cached, fetched] =
        [figures.sent_bytes, figures.cached_bytes, figures.origin_bytes].map(ByteCount::from_bytes);
    let EdgeStatuses { hit, revalidated, updating, stale, miss, expired, bypass, refused } =
        figures.by_status;
    let reasons = [
        (hit, "hit"),
        (revalidated, "revalidated"),
        (updating, "being updated"),
        (stale, "stale"),
        (miss, "missed"),
        (expired, "expired and changed"),
        (bypass, "with credentials or cookies"),
        (refused, "refused"),
        (figures.failed, "failed"),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(count, what)| format!("{count} {what}")).collect();
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    format!(
        "{} of {} {} from the cache{reasons}; sent {sent}, {cached} of it from the cache; received \
         {fetched} from the origin",
        figures.from_cache,
        figures.requests,
        if figures.requests == 1 { "request" } else { "requests" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_a_line_and_messages_are_printable() {
        let by_status = EdgeStatuses { hit: 8, miss: 1, bypass: 1, ..EdgeStatuses::default() };
        let figures = EdgeFigures {
            requests: 10,
            from_cache: 8,
            by_status,
            sent_bytes: 10_000_000,
            origin_bytes: 2_000_000,
            cached_bytes: 8_000_000,
            ..EdgeFigures::default()
        };
        let event = EdgeEvent::Report { seconds: 1.0, figures };
        assert_eq!(
            line(&event, false),
            "8 of 10 requests from the cache (8 hit, 1 missed, 1 with credentials or cookies); sent \
             10 MB, 8 MB of it from the cache; received 2 MB from the origin"
        );
        let document: serde_json::Value = serde_json::from_str(&line(&event, true)).unwrap();
        assert_eq!(document["schema"], "longhaul.edge-event/1");
        assert_eq!(
            (&document["event"], &document["by_status"]["hit"]),
            (&"report".into(), &8.into())
        );
        let event = EdgeEvent::Message { text: "\u{1b}[2J gone".to_owned() };
        assert_eq!(line(&event, false), "nginx: [2J gone");
    }
}
