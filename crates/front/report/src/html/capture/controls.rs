//! Controls and the canvases of the graphs; the script finds them by their ids.

use super::CapturePage;
use crate::html::markup::Markup;

pub(super) fn graphs(m: &mut Markup, page: &CapturePage<'_>) {
    m.element("section", &[("id", &"graphs"), ("aria-label", &"TCP stream graphs")], |m| {
        if page.streams.is_empty() {
            m.leaf("p", &[("class", &"empty")], &"No TCP stream with data to draw.");
            return;
        }
        tools(m, page);
        m.leaf("p", &[("id", &"message"), ("class", &"note"), ("role", &"status")], &"");
        m.leaf("p", &[("id", &"said"), ("aria-live", &"polite")], &"");
        figure(m, "sequence", "Time–sequence", |m| {
            key(m, "k-data", false, "segments");
            key(m, "k-ack", false, "ACK");
            key(m, "k-window", true, "right edge of the window");
            key(m, "k-sack", false, "SACK");
        });
        m.leaf("ul", &[("id", &"marks"), ("class", &"keys"), ("aria-label", &"Marks")], &"");
        figure(m, "throughput", "Throughput and goodput", |m| {
            key(m, "k-data", false, "throughput: payload sent, retransmissions included");
            key(m, "k-ack", false, "goodput: payload when first acknowledged, by ACK or SACK");
        });
        figure(m, "rtt", "RTT", |m| {
            key(m, "k-data", false, "from a segment at the capture point to its ACK");
        });
        figure(m, "windows", "Windows and bytes in flight", |m| {
            key(m, "k-data", false, "in flight: sent and not yet acknowledged");
            key(m, "k-window", true, "receive window");
        });
    });
}

fn button(m: &mut Markup, id: &'static str, label: &'static str, text: &'static str) {
    m.leaf(
        "button",
        &[("type", &"button"), ("id", &id), ("aria-label", &label), ("title", &label)],
        &text,
    );
}

fn tools(m: &mut Markup, page: &CapturePage<'_>) {
    m.element("div", &[("class", &"tools"), ("role", &"toolbar"), ("aria-label", &"View")], |m| {
        m.element("label", &[("class", &"group")], |m| {
            m.text(&"Stream");
            m.element("select", &[("id", &"stream")], |m| {
                for stream in &page.streams {
                    let [a, b] = &stream.ends;
                    let name = format!("{}: {a} – {b}", stream.stream);
                    m.leaf("option", &[("value", &stream.stream)], &name);
                }
            });
        });
        m.element("span", &[("class", &"group")], |m| {
            m.text(&"Data");
            button(m, "direction", "Switch the direction", "");
        });
        m.element("span", &[("class", &"group")], |m| {
            button(m, "earlier", "Pan back", "←");
            button(m, "later", "Pan forward", "→");
            button(m, "zoom-in", "Zoom in", "+");
            button(m, "zoom-out", "Zoom out", "−");
            button(m, "reset", "Show the whole stream", "Reset");
        });
        m.element("span", &[("class", &"group")], |m| {
            button(m, "previous", "Previous event", "‹ Event");
            button(m, "next", "Next event", "Event ›");
        });
        m.element("span", &[("class", &"group")], |m| {
            toggle(m, "stevens", "Stevens", "Time–sequence graph (Stevens): data segments only");
            toggle(m, "drag", "Drag pans", "Drag to pan instead of zooming to a time span");
        });
        m.element("label", &[("class", &"group")], |m| {
            m.text(&"Average over");
            m.shape(
                "input",
                &[
                    ("type", &"range"),
                    ("id", &"average"),
                    ("min", &0),
                    ("max", &30),
                    ("value", &6),
                    ("title", &"Moving average of throughput and goodput"),
                ],
            );
            m.leaf("output", &[("id", &"average-text"), ("for", &"average")], &"");
        });
        m.leaf("output", &[("id", &"span"), ("aria-label", &"Time span")], &"");
    });
}

fn toggle(m: &mut Markup, id: &'static str, text: &'static str, title: &'static str) {
    m.leaf(
        "button",
        &[("type", &"button"), ("id", &id), ("aria-pressed", &"false"), ("title", &title)],
        &text,
    );
}

fn figure(m: &mut Markup, kind: &'static str, title: &'static str, keys: impl FnOnce(&mut Markup)) {
    let class = format!("graph {kind}");
    m.element("figure", &[("class", &class), ("data-graph", &kind)], |m| {
        m.leaf("h3", &[], &title);
        m.element("ul", &[("class", &"keys")], keys);
        m.element("div", &[("class", &"frame")], |m| {
            let label = format!(
                "{title} over time. Arrows pan, + and − zoom, 0 resets, Shift and arrows move \
                 the cursor, n and p go to the next and previous event."
            );
            m.leaf("canvas", &[("tabindex", &0), ("role", &"img"), ("aria-label", &label)], &"");
            for class in ["hair-line", "selection", "tip"] {
                m.leaf("div", &[("class", &class), ("hidden", &"")], &"");
            }
        });
    });
}

fn key(m: &mut Markup, class: &'static str, dashed: bool, text: &'static str) {
    m.element("li", &[], |m| {
        let class = format!("{class}{}", if dashed { " dashed" } else { "" });
        m.leaf("i", &[("class", &class)], &"").text(&text);
    });
}
