//! The card of each stream with graphs: its cause, rate, loss and RTT, and the rest folded. The
//! script shows the card of the stream that is selected; without it, the first one is shown.

use super::{CapturePage, MAX_NOTES, StreamGraphs, short};
use crate::html::findings::chip;
use crate::html::header::{capital, sentence, tile};
use crate::html::markup::Markup;
use crate::wording::{self, grouped};
use std::fmt::Display;

pub(super) fn write(m: &mut Markup, page: &CapturePage<'_>) {
    for (place, stream) in page.streams.iter().enumerate() {
        let mut attributes: Vec<(&'static str, &dyn Display)> =
            vec![("class", &"card stream-card"), ("data-stream", &stream.stream)];
        if place > 0 {
            attributes.push(("hidden", &""));
        }
        m.element("article", &attributes, |m| card(m, stream));
    }
}

fn card(m: &mut Markup, stream: &StreamGraphs) {
    let [sender, receiver] = &stream.row.ends;
    let limit = stream.finding.as_ref().and_then(|finding| finding.limit);
    m.element("p", &[("class", &"card-run")], |m| {
        let ends = format!("Stream {}: {sender} → {receiver}", stream.stream);
        m.leaf("span", &[], &short(&ends));
        match &stream.finding {
            Some(finding) => chip(m, limit, &wording::limit_with_confidence(finding)),
            None => chip(m, None, "not explained"),
        }
    });
    m.leaf("h2", &[], &capital(wording::verdict(limit)));
    if let Some(finding) = &stream.finding {
        m.leaf("p", &[("class", &"sentence")], &short(&sentence(&finding.sentence)));
    }
    m.element("dl", &[("class", &"numbers")], |m| figures(m, stream));
    if !stream.about.is_empty() {
        m.element("details", &[("class", &"about")], |m| {
            m.leaf("summary", &[], &"Details of this stream");
            m.element("ul", &[("class", &"notes")], |m| {
                for text in stream.about.iter().take(MAX_NOTES) {
                    m.leaf("li", &[], &short(text));
                }
            });
        });
    }
}

fn figures(m: &mut Markup, stream: &StreamGraphs) {
    let row = &stream.row;
    let rate = row.goodput.map_or_else(|| "unknown".to_owned(), |rate| rate.to_string());
    let payload = format!("{} in {}", row.payload.decimal(), wording::seconds(row.seconds));
    tile(m, "Rate", &rate, &payload);
    let (loss, of) = match stream.segments {
        Some((all, again)) => (
            units::percent(f64::from(again) / f64::from(all.max(1))),
            format!("{} of {} segments", grouped(again.into()), grouped(all.into())),
        ),
        None => ("unknown".to_owned(), "no data segment captured".to_owned()),
    };
    tile(m, "Loss (retransmitted)", &loss, &of);
    let (rtt, least) = match row.rtt {
        Some((least, smoothed)) => (smoothed.to_string(), format!("min {least}")),
        None => ("unknown".to_owned(), "not shown by the capture".to_owned()),
    };
    tile(m, "RTT", &rtt, &least);
    let (window, bound) = match row.window {
        Some((bytes, true)) => (bytes.to_string(), "at least"),
        Some((bytes, false)) => (bytes.to_string(), "largest"),
        None => ("unknown".to_owned(), "its scale is unknown"),
    };
    tile(m, "Receive window", &window, bound);
}
