//! HTML writer whose interface escapes all text and closes every element.

use crate::untrusted;
use std::fmt::Display;

/// Attributes of an element.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// A length in an SVG, rounded to 0.1 pixel.
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values are clamped by the caller; NaN must not break the SVG.
        let value = if self.0.is_finite() { self.0 } else { 0.0 };
        let text = format!("{value:.1}");
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

pub(super) struct Markup(String);

impl Markup {
    pub(super) fn new() -> Self {
        Markup(String::with_capacity(1 << 16))
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// A literal of ours, unescaped.
    pub(super) fn raw(&mut self, literal: &'static str) -> &mut Self {
        self.0.push_str(literal);
        self
    }

    /// What another writer wrote, escaped already.
    pub(super) fn append(&mut self, other: &Markup) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Text, escaped.
    pub(super) fn text(&mut self, text: &dyn Display) -> &mut Self {
        escape(&text.to_string(), &mut self.0);
        self
    }

    /// An element with the content that `inside` writes.
    pub(super) fn element(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Markup),
    ) -> &mut Self {
        self.open(tag, attributes);
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push('>');
        if is_block(tag) {
            self.0.push('\n');
        }
        self
    }

    /// An element with text.
    pub(super) fn leaf(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        text: &dyn Display,
    ) -> &mut Self {
        self.element(tag, attributes, |m| {
            m.text(text);
        })
    }

    /// A block of JSON for a script.
    pub(super) fn data(&mut self, id: &'static str, value: &serde_json::Value) -> &mut Self {
        self.0.push_str("<script type=\"application/json\" id=\"");
        self.0.push_str(id);
        self.0.push_str("\">");
        // `<` occurs in strings only; escaped, no text can end the element.
        self.0.push_str(&untrusted::json(&value.to_string()).replace('<', "\\u003c"));
        self.0.push_str("</script>\n");
        self
    }

    /// An empty element of SVG, or a void one of HTML.
    pub(super) fn shape(&mut self, tag: &'static str, attributes: Attributes<'_>) -> &mut Self {
        self.open(tag, attributes);
        self.0.push_str("/>");
        self
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            escape(&value.to_string(), &mut self.0);
            self.0.push('"');
        }
    }
}

fn is_block(tag: &str) -> bool {
    matches!(
        tag,
        "section" | "div" | "p" | "tr" | "figure" | "svg" | "header" | "article" | "table"
    )
}

fn escape(text: &str, out: &mut String) {
    for c in untrusted::clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // No characters of XML.
            '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_element() {
        let mut m = Markup::new();
        m.data("it", &serde_json::json!("</script><script>\u{202e}"));
        let expected = r#"<script type="application/json" id="it">"\u003c/script>\u003cscript>\u202e"</script>"#;
        assert_eq!(m.finish().trim_end(), expected);
    }

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut m = Markup::new();
        m.leaf("b", &[("title", &"\"><script>")], &"<script>alert('&')</script>");
        assert_eq!(
            m.finish(),
            "<b title=\"&quot;&gt;&lt;script&gt;\">\
             &lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</b>"
        );
    }
}
