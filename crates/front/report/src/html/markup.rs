//! HTML writer whose interface escapes all text and closes every element.

use crate::untrusted;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Attributes of an element. Declarations of `style` become a rule and a class, since a page's
/// Content-Security-Policy permits no style attributes.
pub type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

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

/// A writer of HTML: text and attributes are escaped, elements closed.
#[derive(Debug)]
pub struct Markup {
    text: String,
    /// Declarations of single elements, by class.
    rules: BTreeMap<String, String>,
}

impl Default for Markup {
    fn default() -> Self {
        Markup::new()
    }
}

impl Markup {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Markup { text: String::with_capacity(1 << 16), rules: BTreeMap::new() }
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// The style sheet of the classes that replaced style attributes. Like these, its rules have
    /// precedence over others: a class counts as often as a selector has it.
    #[must_use]
    pub fn rules(&self) -> String {
        let rule = |(class, style)| format!(".{class}.{class}.{class}{{{style}}}\n");
        self.rules.iter().map(rule).collect()
    }

    /// A literal of ours, unescaped.
    pub fn raw(&mut self, literal: &'static str) -> &mut Self {
        self.text.push_str(literal);
        self
    }

    /// A style element of [`Markup::rules`], for which a policy has the hash.
    pub fn rules_of(&mut self, rules: &str) -> &mut Self {
        self.source("style", rules)
    }

    /// What another writer wrote, escaped already.
    pub fn append(&mut self, other: &Markup) -> &mut Self {
        self.text.push_str(&other.text);
        self.rules.extend(other.rules.iter().map(|(class, style)| (class.clone(), style.clone())));
        self
    }

    /// Text, escaped.
    pub fn text(&mut self, text: &dyn Display) -> &mut Self {
        escape(&text.to_string(), &mut self.text);
        self
    }

    /// Text of several lines for elements that keep them, escaped; tabs become spaces.
    pub fn lines(&mut self, text: &str) -> &mut Self {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.text.push('\n');
            }
            escape(line.strip_suffix('\r').unwrap_or(line), &mut self.text);
        }
        self
    }

    /// An element with the content that `inside` writes.
    pub fn element(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Markup),
    ) -> &mut Self {
        self.open(tag, attributes);
        self.text.push('>');
        inside(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
        if is_block(tag) {
            self.text.push('\n');
        }
        self
    }

    /// An element with text.
    pub fn leaf(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        text: &dyn Display,
    ) -> &mut Self {
        self.element(tag, attributes, |m| {
            m.text(text);
        })
    }

    /// The row of a table that names its columns.
    pub(super) fn heads<T: Display>(&mut self, heads: impl IntoIterator<Item = T>) -> &mut Self {
        self.element("tr", &[], |m| {
            for head in heads {
                m.leaf("th", &[("scope", &"col")], &head);
            }
        })
    }

    /// The head of a table, with the names of its columns.
    pub fn thead<T: Display>(&mut self, heads: impl IntoIterator<Item = T>) -> &mut Self {
        self.element("thead", &[], |m| {
            m.heads(heads);
        })
    }

    /// A row of a table that begins with its name.
    pub fn row<T: Display>(
        &mut self,
        name: &dyn Display,
        cells: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        self.element("tr", &[], |m| {
            m.leaf("th", &[("scope", &"row")], name);
            for cell in cells {
                m.leaf("td", &[], &cell);
            }
        })
    }

    /// A table of figures: the first text of each row names it.
    pub(super) fn figures(&mut self, heads: &[String], rows: &[Vec<String>]) -> &mut Self {
        self.element("table", &[("class", &"figures")], |m| {
            m.heads(heads);
            for (name, cells) in rows.iter().filter_map(|row| row.split_first()) {
                m.row(name, cells);
            }
        })
    }

    /// What a drawing shows as a folded table, for readers and for machines that do not see it.
    pub(super) fn values(&mut self, heads: &[String], rows: &[Vec<String>]) -> &mut Self {
        self.element("details", &[], |m| {
            m.leaf("summary", &[], &"Values");
            m.element("div", &[("class", &"scroll")], |m| {
                m.figures(heads, rows);
            });
        })
    }

    /// A table that scrolls where it is wider than the page, so that the page does not.
    pub fn table(&mut self, class: &'static str, inside: impl FnOnce(&mut Markup)) -> &mut Self {
        self.element("div", &[("class", &"wide-table")], |m| {
            m.element("table", &[("class", &class)], inside);
        })
    }

    /// A block of JSON for a script.
    pub(super) fn data(&mut self, id: &'static str, value: &serde_json::Value) -> &mut Self {
        self.text.push_str("<script type=\"application/json\" id=\"");
        self.text.push_str(id);
        self.text.push_str("\">");
        // `<` occurs in strings only; escaped, no text can end the element.
        self.text.push_str(&untrusted::json(&value.to_string()).replace('<', "\\u003c"));
        self.text.push_str("</script>\n");
        self
    }

    /// A page's Content-Security-Policy, of keywords and hashes.
    pub(super) fn policy(&mut self, policy: &str) -> &mut Self {
        self.text.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"");
        self.text.push_str(policy);
        self.text.push_str("\">\n");
        self
    }

    /// A style sheet or a script of ours, which must not contain its end tag.
    pub(super) fn source(&mut self, tag: &'static str, text: &str) -> &mut Self {
        self.open(tag, &[]);
        self.text.push('>');
        self.text.push_str(text);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push_str(">\n");
        self
    }

    /// An empty element of SVG, or a void one of HTML.
    pub fn shape(&mut self, tag: &'static str, attributes: Attributes<'_>) -> &mut Self {
        self.open(tag, attributes);
        self.text.push_str("/>");
        self
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(tag);
        let style = attributes.iter().find(|(name, _)| *name == "style");
        let placed = style.map(|(_, value)| self.rule(&value.to_string()));
        if let Some(placed) = &placed
            && attributes.iter().all(|(name, _)| *name != "class")
        {
            self.attribute("class", placed);
        }
        for (name, value) in attributes {
            match (*name, &placed) {
                ("style", _) => {}
                ("class", Some(placed)) => self.attribute(name, &format!("{value} {placed}")),
                _ => self.attribute(name, &value.to_string()),
            }
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        escape(value, &mut self.text);
        self.text.push('"');
    }

    /// The class of these declarations, which are numbers and keywords.
    fn rule(&mut self, style: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || " -.:;%".contains(c);
        let style: String = style.chars().filter(|c| plain(*c)).collect();
        let name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let class = format!("s_{}", style.chars().map(name).collect::<String>());
        self.rules.insert(class.clone(), style);
        class
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
    fn a_style_attribute_becomes_a_class() {
        let mut m = Markup::new();
        m.leaf("i", &[("class", &"run"), ("style", &"left:12.50%")], &"");
        m.leaf("i", &[("style", &"}</style>\"")], &"");
        let rule = |class: &str, style: &str| format!(".{class}.{class}.{class}{{{style}}}\n");
        let rules = rule("s_left_12_50_", "left:12.50%") + &rule("s_style", "style");
        assert_eq!(m.rules(), rules);
        let mut page = Markup::new();
        page.append(&m);
        assert_eq!(page.rules(), m.rules());
        assert_eq!(page.finish(), "<i class=\"run s_left_12_50_\"></i><i class=\"s_style\"></i>");
    }

    #[test]
    fn lines_are_kept() {
        let mut m = Markup::new();
        m.lines("a\tb\r\n</pre>\n");
        assert_eq!(m.finish(), "a b\n&lt;/pre&gt;\n");
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
