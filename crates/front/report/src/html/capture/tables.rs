//! The tables of packets and conversations, which the script fills, and the keys.

use super::CapturePage;
use crate::html::markup::{Attributes, Markup};

pub(super) fn packets(m: &mut Markup, page: &CapturePage<'_>) {
    if page.streams.is_empty() {
        return;
    }
    m.element("section", &[("class", &"packets")], |m| {
        m.leaf("h2", &[], &"Packets in the time span");
        m.leaf("p", &[("id", &"packet-count"), ("class", &"note")], &"");
        table(
            m,
            "packet-rows",
            "Packets",
            &["No.", "Time (s)", "From", "Flags", "Seq", "Len", "Ack", "Window", "Notes"],
            &[2, 3, 8],
        );
    });
}

pub(super) fn conversations(m: &mut Markup) {
    m.element("section", &[("class", &"conversations")], |m| {
        m.leaf("h2", &[], &"Conversations");
        m.element("label", &[("class", &"search")], |m| {
            m.text(&"Search");
            m.shape(
                "input",
                &[
                    ("type", &"search"),
                    ("id", &"search"),
                    ("placeholder", &"address, port, tcp, udp, stream"),
                    ("autocomplete", &"off"),
                ],
            );
            m.leaf("span", &[("id", &"conversation-count"), ("role", &"status")], &"");
        });
        m.leaf(
            "p",
            &[("class", &"note")],
            &"Side A sent the first packet. A button shows the stream's graphs; for those of \
              another stream: longhaul pcap FILE --html PAGE --stream NUMBER.",
        );
        table(
            m,
            "conversation-rows",
            "Conversations",
            &[
                "Stream",
                "A",
                "B",
                "Start (s)",
                "Duration (s)",
                "Frames A → B",
                "Bytes A → B",
                "Rate A → B",
                "Frames B → A",
                "Bytes B → A",
                "Rate B → A",
                "Retrans.",
            ],
            &[0, 1, 2],
        );
    });
}

fn table(
    m: &mut Markup,
    id: &'static str,
    label: &'static str,
    columns: &[&'static str],
    left: &[usize],
) {
    let attributes: Attributes<'_> = &[
        ("class", &"table scroll"),
        ("tabindex", &0),
        ("role", &"region"),
        ("aria-label", &label),
    ];
    m.element("div", attributes, |m| {
        m.element("table", &[], |m| {
            m.element("thead", &[], |m| {
                m.element("tr", &[], |m| {
                    for (place, column) in columns.iter().enumerate() {
                        let class = if left.contains(&place) { "left" } else { "" };
                        m.leaf("th", &[("scope", &"col"), ("class", &class)], column);
                    }
                });
            });
            m.leaf("tbody", &[("id", &id)], &"");
        });
    });
}

pub(super) fn shortcuts(m: &mut Markup) {
    const KEYS: [(&str, &str); 9] = [
        ("← →", "pan"),
        ("+ −", "zoom, around the cursor if it is visible"),
        ("0", "show the whole stream"),
        ("Home End", "go to its start, its end"),
        ("Shift ← →", "move the cursor by 10 pixels; , and . by one"),
        ("n p", "next, previous event: retransmission, loss, zero window"),
        ("d", "switch the direction"),
        ("s", "time–sequence graph: Stevens or tcptrace"),
        ("wheel, drag", "zoom; with Shift: pan. Double-click zooms in"),
    ];
    m.element("section", &[("class", &"keyboard")], |m| {
        m.leaf("h2", &[], &"Keys");
        m.element("dl", &[("class", &"shortcuts")], |m| {
            for (keys, what) in KEYS {
                m.element("dt", &[], |m| {
                    m.leaf("kbd", &[], &keys);
                });
                m.leaf("dd", &[], &what);
            }
        });
    });
}
