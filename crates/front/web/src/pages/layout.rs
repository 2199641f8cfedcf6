//! The layout that the pages share with the speed test.

use super::texts;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use report::html::{Attributes, Markup, policy_source};
use std::convert::Infallible;

/// The longest token that is passed on (`WebRequest::check`).
const MAX_TOKEN: usize = 256;

/// What a page's own address says of its visitor: the token, with which the speed test is opened.
/// It is in links to this server's pages only, and no page tells another site its address.
#[derive(Debug, Clone, Default)]
pub(super) struct Visit {
    token: Option<String>,
}

impl Visit {
    /// The visit of a query, whose token is passed on if it may be one.
    pub(super) fn of(query: &str) -> Self {
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let token = token.filter(|token| (1..=MAX_TOKEN).contains(&token.len()));
        Visit { token: token.filter(|token| token.bytes().all(is_plain)).map(str::to_owned) }
    }

    /// An address without a query, with the token.
    pub(super) fn link(&self, address: &str) -> String {
        match &self.token {
            Some(token) => format!("{address}?token={token}"),
            None => address.to_owned(),
        }
    }

    /// The token in a form that is sent as a query.
    pub(super) fn hidden(&self, m: &mut Markup) {
        if let Some(token) = &self.token {
            m.shape("input", &[("type", &"hidden"), ("name", &"token"), ("value", token)]);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Visit::of(parts.uri.query().unwrap_or_default()))
    }
}

/// A page.
pub(super) struct Page<'a> {
    /// The visit, whose token its links pass on.
    pub(super) visit: &'a Visit,
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
        let root = self.visit.link(if self.root.is_empty() { "./" } else { self.root });
        m.element("header", &[], |m| {
            m.element("a", &[("class", &"brand"), ("href", &root)], |m| {
                let icon = format!("{}favicon.svg", self.root);
                let attributes: Attributes<'_> =
                    &[("src", &icon), ("alt", &""), ("width", &28), ("height", &28)];
                m.shape("img", attributes).text(&"Longhaul");
            });
            m.element("nav", &[("aria-label", &texts::NAVIGATION)], |m| {
                for (path, name) in texts::PAGES {
                    let href = match path {
                        "" => root.clone(),
                        path => self.visit.link(&format!("{}{path}", self.root)),
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
