//! The elements of a page, as far as its checks need them.

use std::collections::BTreeMap;

/// An element, in the order of the document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Element {
    pub(crate) tag: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// Its text and that of what is in it.
    pub(crate) text: String,
    /// The elements that it is in, the outermost first, as positions in the document.
    pub(crate) within: Vec<usize>,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|all| all.split_whitespace().any(|it| it == class))
    }
}

/// All elements of a document in which every element is closed.
pub(crate) fn of(html: &str) -> Vec<Element> {
    const VOID: [&str; 4] = ["meta", "br", "link", "hr"];
    let mut all: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut rest = html;
    while let Some((text, after)) = rest.split_once('<') {
        open.iter().for_each(|at| all[*at].text.push_str(text));
        let (tag, after) = after.split_once('>').unwrap_or_else(|| panic!("{after:.40}"));
        rest = after;
        if tag.starts_with('!') {
            continue;
        }
        if tag.starts_with('/') {
            open.pop();
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag.trim_end_matches('/'), ""));
        all.push(Element {
            tag: name.to_owned(),
            attributes: read(attributes.trim_end_matches('/')),
            text: String::new(),
            within: open.clone(),
        });
        if name == "script" || name == "style" {
            rest = rest.split_once(&format!("</{name}>")).map_or("", |found| found.1);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(all.len() - 1);
        }
    }
    all
}

fn read(attributes: &str) -> BTreeMap<String, String> {
    let mut parts = attributes.split('"');
    let mut all = BTreeMap::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        all.insert(name.trim().trim_end_matches('=').to_owned(), value.to_owned());
    }
    all
}
