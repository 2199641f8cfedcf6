//! The layout that the pages share with the speed test.

use super::texts;
use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::{Response, StatusCode};
use report::html::{Attributes, Markup, policy_source};

/// A page.
pub(super) struct Page<'a> {
    /// The way to the root: empty, or `../` for each directory.
    pub(super) root: &'static str,
    /// The page's path below the root, which the navigation marks.
    pub(super) path: &'a str,
    /// The heading, and the document's title.
    pub(super) title: &'a str,
    /// A paragraph below it.
    pub(super) lead: &'a str,
    /// 200, or 422 where an input is wrong.
    pub(super) status: StatusCode,
}

impl Page<'_> {
    /// The page with its content.
    pub(super) fn response(&self, content: impl FnOnce(&mut Markup)) -> Response<Body> {
        let mut main = Markup::new();
        content(&mut main);
        let rules = main.rules();
        let mut m = Markup::new();
        m.raw("<!doctype html>\n");
        m.element("html", &[("lang", &"en")], |m| {
            m.element("head", &[], |m| self.head(m, &rules));
            m.raw("\n");
            m.element("body", &[("class", &"page")], |m| {
                m.leaf("a", &[("class", &"skip"), ("href", &"#content")], &texts::SKIP);
                self.header(m);
                m.element("main", &[("id", &"content")], |m| {
                    m.leaf("h1", &[], &self.title);
                    m.leaf("p", &[("class", &"lead")], &self.lead);
                    m.append(&main);
                });
                m.element("footer", &[], |m| {
                    m.leaf("p", &[], &texts::FOOTER);
                });
            });
        });
        let mut response = super::html(self.status, m.finish());
        if let Some(policy) = policy(&rules) {
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    fn head(&self, m: &mut Markup, rules: &str) {
        let link = |m: &mut Markup, rel: &str, file: &str| {
            m.shape("link", &[("rel", &rel), ("href", &format!("{}{file}", self.root))]);
            m.raw("\n");
        };
        m.raw("<meta charset=\"utf-8\">\n");
        m.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        m.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
        m.leaf("title", &[], &format!("{} – Longhaul", self.title));
        link(m, "icon", "favicon.svg");
        link(m, "stylesheet", "report.css");
        link(m, "stylesheet", "style.css");
        link(m, "stylesheet", "pages.css");
        if !rules.is_empty() {
            m.rules_of(rules);
        }
    }

    fn header(&self, m: &mut Markup) {
        let root = if self.root.is_empty() { "./" } else { self.root };
        m.element("header", &[], |m| {
            m.element("a", &[("class", &"brand"), ("href", &root)], |m| {
                let icon = format!("{}favicon.svg", self.root);
                let attributes: Attributes<'_> =
                    &[("src", &icon), ("alt", &""), ("width", &28), ("height", &28)];
                m.shape("img", attributes).text(&"Longhaul");
            });
            m.element("nav", &[("aria-label", &texts::NAVIGATION)], |m| {
                for (path, name) in texts::PAGES {
                    let href = if path.is_empty() {
                        root.to_owned()
                    } else {
                        format!("{}{path}", self.root)
                    };
                    if path == self.path {
                        m.leaf("a", &[("href", &href), ("aria-current", &"page")], &name);
                    } else {
                        m.leaf("a", &[("href", &href)], &name);
                    }
                }
            });
        });
    }
}

/// The policy of a page with rules of its own: that of all, and the hash of these.
fn policy(rules: &str) -> Option<HeaderValue> {
    if rules.is_empty() {
        return None;
    }
    let with = format!("style-src 'self' {}", policy_source(rules));
    let policy = crate::guard::CONTENT_SECURITY_POLICY.replace("style-src 'self'", &with);
    HeaderValue::from_str(&policy).ok()
}
