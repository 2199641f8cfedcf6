//! What holds for every request: the host it is for, the page it comes from, the token, and the
//! headers of the answer.

use crate::WebRequest;
use crate::peer::Origin;
use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use longhaul::http_host::{HostError, OwnNames};
use serde::Serialize;

/// The answer to a request for another host.
pub(crate) const FOREIGN_HOST: &str =
    "this host name is not allowed; use the server's IP address, or start it with this name";

/// Paths that only pages of this server may use.
const OWN_PATHS: &str = "/api/";
/// Of these, those of a run: pages of other origins that are allowed may use them as well.
const RUN_PATH: &str = "/api/run";
/// The time in which browsers need not ask again whether they may, in seconds.
const PREFLIGHT_AGE: &str = "600";

/// Nothing from elsewhere, and nothing inline. `'self'` covers WebSockets of the same host.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Headers of every answer. Cross-origin isolation gives the page's clock 5 µs instead of 100 µs.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Checks requests before they are routed.
#[derive(Debug)]
pub(crate) struct Guard {
    names: OwnNames,
    /// The names of one family each, and all of this server's, if it has such.
    families: Vec<String>,
    siblings: Vec<String>,
    token: Option<String>,
    /// What `connect-src` of the policy has for a peer.
    peer: Option<String>,
    /// Origins of other servers' pages, which may have this one measure.
    allowed: Vec<String>,
}

impl Guard {
    pub(crate) fn new(request: &WebRequest) -> Self {
        let own = request.own_names();
        let of_families = [&request.ipv4_name, &request.ipv6_name].into_iter().flatten();
        let families: Vec<String> = of_families.cloned().collect();
        Guard {
            names: OwnNames::new(&own),
            siblings: if families.is_empty() { Vec::new() } else { own },
            families,
            token: request.token.clone(),
            peer: request.peer.as_ref().map(|peer| peer.origin.connect_sources()),
            allowed: request.allow_origins.iter().map(Origin::to_string).collect(),
        }
    }

    /// The answer to a request that is not to be served, or only asks whether it would be.
    pub(crate) fn refusal<B>(
        &self,
        request: &Request<B>,
        is_encrypted: bool,
    ) -> Option<Response<Body>> {
        if let Err((status, why)) = self.check(request, is_encrypted) {
            return Some(refused(status, why));
        }
        let is_preflight =
            request.method() == Method::OPTIONS && self.allowed(request, is_encrypted).is_some();
        is_preflight.then(preflight)
    }

    /// The origin of another page that may make this request (Fetch, section 3.2): of a server that
    /// is allowed, or of this one under another of its names.
    pub(crate) fn allowed<B>(
        &self,
        request: &Request<B>,
        is_encrypted: bool,
    ) -> Option<HeaderValue> {
        let path = request.uri().path();
        let is_run = path
            .strip_prefix(RUN_PATH)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        let (origin, None) = (origins.next()?, origins.next()) else { return None };
        let is_allowed = self.allowed.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
        let is_page = is_allowed || self.is_sibling(origin, request, is_encrypted);
        (is_run && is_page).then(|| origin.clone())
    }

    /// Whether an origin is this server's by another name: the scheme and the port are the same.
    fn is_sibling<B>(
        &self,
        origin: &HeaderValue,
        request: &Request<B>,
        is_encrypted: bool,
    ) -> bool {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let (Some(host), Some((scheme, rest))) = (host, origin) else { return false };
        let Some(default) = default_port(scheme, is_encrypted) else { return false };
        let (its, its_port) = with_port(rest, default);
        let (_, port) = with_port(host, default);
        its_port == port && self.siblings.iter().any(|name| name.eq_ignore_ascii_case(its))
    }

    /// The policy of the answer to a request, if it is not that of every server: a peer, and this
    /// server's names of one family, are added to where a page may connect to.
    pub(crate) fn policy<B>(
        &self,
        request: &Request<B>,
        is_encrypted: bool,
    ) -> Option<HeaderValue> {
        let mut sources: Vec<String> = self.peer.iter().cloned().collect();
        if !self.families.is_empty() {
            let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
            // A policy that names a scheme without encryption has the encrypted one as well (CSP
            // Level 3, section 6.7.2.8), as a proxy that is not trusted may encrypt.
            let (http, ws) = if is_encrypted { ("https", "wss") } else { ("http", "ws") };
            let default = default_port(http, is_encrypted).unwrap_or_default();
            let (_, port) = with_port(host.unwrap_or_default(), default);
            let port = if port == default { String::new() } else { format!(":{port}") };
            let of = |name: &String| format!("{http}://{name}{port} {ws}://{name}{port}");
            sources.extend(self.families.iter().map(of));
        }
        if sources.is_empty() {
            return None;
        }
        let connect = format!("connect-src 'self' {};", sources.join(" "));
        let policy = CONTENT_SECURITY_POLICY.replace("connect-src 'self';", &connect);
        HeaderValue::from_str(&policy).ok()
    }

    /// Adds the headers that every answer has, and lets the page of an allowed origin read it.
    pub(crate) fn complete(
        &self,
        mut response: Response<Body>,
        policy: Option<HeaderValue>,
        allowed: Option<HeaderValue>,
    ) -> Response<Body> {
        let fields = response.headers_mut();
        if let Some(policy) = policy {
            fields.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
        }
        if let Some(origin) = allowed {
            fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static("Retry-After");
            fields.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            fields.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        complete(response)
    }

    fn check<B>(
        &self,
        request: &Request<B>,
        is_encrypted: bool,
    ) -> Result<(), (StatusCode, &'static str)> {
        let headers = request.headers();
        self.names.check(request).map_err(|error| match error {
            HostError::Malformed => {
                (StatusCode::BAD_REQUEST, "the Host is missing, malformed, or there twice")
            }
            HostError::Foreign => (StatusCode::MISDIRECTED_REQUEST, FOREIGN_HOST),
        })?;
        let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
        // HTTP/1.0 may have neither.
        let host = single(headers, &header::HOST)?.or(authority).unwrap_or("localhost");
        let path = request.uri().path();
        if path.starts_with(OWN_PATHS)
            && !is_same_origin(headers, host, is_encrypted)?
            && self.allowed(request, is_encrypted).is_none()
        {
            return Err((StatusCode::FORBIDDEN, "this is for pages of this server"));
        }
        match &self.token {
            Some(token) if needs_token(path) && !has_token(request.uri().query(), token) => {
                Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong; give ?token="))
            }
            _ => Ok(()),
        }
    }
}

/// The port that URLs of a scheme leave out; `None` for a page without encryption where there is
/// some.
fn default_port(scheme: &str, is_encrypted: bool) -> Option<u16> {
    match scheme {
        "http" if !is_encrypted => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// A host, and its port or that of its scheme; 0 for a port that is none.
fn with_port(text: &str, default: u16) -> (&str, u16) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(0)),
        _ => (text, default),
    }
}

/// The answer to a browser that asks whether a page may make a request.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let fields = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST");
    fields.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    fields.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE));
    response
}

/// Assets and pages are no secret; below a run its ID is one, and of a kept result its link.
fn needs_token(path: &str) -> bool {
    let is_public = crate::assets::is_asset(path)
        || crate::pages::is_page(path)
        || crate::history::is_result(path);
    !path.starts_with("/api/run/") && !is_public
}

fn has_token(query: Option<&str>, token: &str) -> bool {
    let given = query.unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix("token="));
    // In a time that does not tell how much of it is right.
    given.filter(|given| given.len() == token.len()).any(|given| {
        given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    })
}

/// The value of a header that may be there once.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, (StatusCode, &'static str)> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| (StatusCode::BAD_REQUEST, "a header is not text"))
        }
        _ => Err((StatusCode::BAD_REQUEST, "a header is there twice")),
    }
}

/// Whether a request comes from a page of this host, or from no page: browsers send `Origin` with
/// every WebSocket (RFC 6455, section 10.2). A page without encryption is none of a server with it;
/// where a proxy that is not trusted encrypts, its pages are.
fn is_same_origin(
    headers: &HeaderMap,
    host: &str,
    is_encrypted: bool,
) -> Result<bool, (StatusCode, &'static str)> {
    let Some(origin) = single(headers, &header::ORIGIN)? else { return Ok(true) };
    let (scheme, rest) = origin.split_once("://").unwrap_or_default();
    let Some(default) = default_port(scheme, is_encrypted) else { return Ok(false) };
    let ((its, its_port), (own, port)) = (with_port(rest, default), with_port(host, default));
    Ok(its_port == port && its.eq_ignore_ascii_case(own))
}

/// Adds the headers that every answer has.
pub(crate) fn complete(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A refusal in plain text, with the headers of every answer.
pub(crate) fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    complete(response)
}

/// A document as JSON.
pub(crate) fn json(document: &impl Serialize) -> Response<Body> {
    let Ok(text) = serde_json::to_string(document) else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "cannot serialise");
    };
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A refusal of a client with too much, which may try again.
pub(crate) fn too_many(why: &str, seconds: u32) -> Response<Body> {
    let mut response = refused(StatusCode::TOO_MANY_REQUESTS, why);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(path: &str, headers: &[(&str, &str)], token: Option<&str>) -> u16 {
        let guard = Guard::new(&WebRequest {
            names: vec!["speed.example".to_owned()],
            token: token.map(str::to_owned),
            allow_origins: vec!["http://near.example:8080".parse().unwrap()],
            ..WebRequest::default()
        });
        let refusal = guard.refusal(&request(path, headers), false);
        refusal.map_or(200, |response| response.status().as_u16())
    }

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn hosts_and_origins() {
        let own = ("host", "speed.example:8080");
        for (path, headers, expected) in [
            ("/", vec![own], 200),
            ("/", vec![("host", "192.0.2.1")], 200),
            ("/", vec![("host", "evil.example")], 421),
            ("/", vec![("host", "a"), ("host", "b")], 400),
            ("/", vec![], 400),
            ("/", vec![own, ("origin", "http://evil.example")], 200),
            ("/api/run", vec![own], 200),
            ("/api/run", vec![own, ("origin", "http://speed.example:8080")], 200),
            ("/api/run", vec![own, ("origin", "http://Speed.example:8080")], 200),
            (
                "/api/run",
                vec![("host", "speed.example"), ("origin", "https://speed.example:443")],
                200,
            ),
            ("/api/run", vec![own, ("origin", "http://speed.example")], 403),
            ("/api/run", vec![own, ("origin", "http://evil.example")], 403),
            ("/api/run", vec![own, ("origin", "http://speed.example:8080.evil.example")], 403),
            ("/api/run", vec![own, ("origin", "null")], 403),
        ] {
            assert_eq!(status(path, &headers, None), expected, "{path} {headers:?}");
        }
    }

    #[test]
    fn a_page_without_encryption_is_none_of_a_server_with_it() {
        let guard = Guard::new(&WebRequest {
            names: vec!["speed.example".to_owned()],
            ..WebRequest::default()
        });
        let status = |origin: &str, is_encrypted| {
            let headers = [("host", "speed.example"), ("origin", origin)];
            let refusal = guard.refusal(&request("/api/run", &headers), is_encrypted);
            refusal.map_or(200, |response| response.status().as_u16())
        };
        assert_eq!(status("http://speed.example", true), 403);
        assert_eq!(status("https://speed.example", true), 200);
        // A proxy that is not trusted may encrypt.
        assert_eq!(status("https://speed.example", false), 200);
    }

    #[test]
    fn an_allowed_origin_may_measure_and_nothing_else() {
        let own = ("host", "speed.example:8080");
        let near = ("origin", "http://near.example:8080");
        for (path, headers, expected) in [
            ("/api/run", vec![own, near], 200),
            ("/api/run/0123/flow/1/0", vec![own, near], 200),
            ("/api/run/0123/probe", vec![own, near], 200),
            ("/api/runs", vec![own, near], 403),
            ("/api/peer", vec![own, near], 403),
            ("/api/legs", vec![own, near], 403),
            ("/api/run", vec![("host", "evil.example"), near], 421),
            ("/api/run", vec![own, near, near], 400),
            ("/api/run", vec![own, ("origin", "https://near.example:8080")], 403),
            ("/api/run", vec![own, ("origin", "http://near.example")], 403),
            ("/api/run", vec![own, ("origin", "http://near.example:8080.evil.example")], 403),
            ("/api/run", vec![own, ("origin", "http://x.near.example:8080")], 403),
            ("/api/run", vec![own, ("origin", "null")], 403),
        ] {
            assert_eq!(status(path, &headers, None), expected, "{path} {headers:?}");
        }
        assert_eq!(status("/api/run", &[own, near], Some("secret")), 401);
        assert_eq!(status("/api/run?token=secret", &[own, near], Some("secret")), 200);
    }

    #[test]
    fn the_policy_has_the_peer_and_nothing_else() {
        let policy = |peer: Option<&str>| {
            let peer = peer.and_then(|peer| peer.parse().ok());
            let guard = Guard::new(&WebRequest { peer, ..WebRequest::default() });
            let policy = guard.policy(&request("/", &[("host", "localhost")]), false);
            let response = guard.complete(Response::new(Body::empty()), policy, None);
            response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned()
        };
        assert_eq!(policy(None), CONTENT_SECURITY_POLICY);
        let with = policy(Some("https://far.example:8443/?token=t"));
        let added = " https://far.example:8443 wss://far.example:8443";
        assert_eq!(with.replacen(added, "", 1), CONTENT_SECURITY_POLICY);
        assert!(with.contains(&format!("connect-src 'self'{added};")));
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let own = [("host", "localhost")];
        for (path, expected) in [
            ("/api/run", 401),
            ("/api/run?token=", 401),
            ("/api/run?token=secret1", 401),
            ("/api/run?token=secre", 401),
            ("/api/run?x=1&token=secret", 200),
            ("/api/run/0123/probe", 200),
            ("/calc", 200),
            ("/calc/bdp?rate=1gbit", 200),
            ("/explain", 200),
            ("/calculus", 401),
            ("/result/0123.json", 200),
            ("/compare?a=1&b=2", 200),
            ("/results", 401),
            ("/ndt/v7/download", 401),
        ] {
            assert_eq!(status(path, &own, Some("secret")), expected, "{path}");
        }
    }
}
