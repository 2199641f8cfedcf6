//! What holds for every request: the host it is for, the page it comes from, the token, and the
//! headers of the answer.

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Request, Response, StatusCode, Version};
use longhaul::http_host::{HostError, OwnNames};

/// Paths that only pages of this server may use.
const OWN_PATHS: &str = "/api/";

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
    token: Option<String>,
}

impl Guard {
    pub(crate) fn new(names: &[String], token: Option<String>) -> Self {
        Guard { names: OwnNames::new(names), token }
    }

    /// The answer to a request that is not to be served.
    pub(crate) fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let (status, why) = self.check(request).err()?;
        Some(refused(status, why))
    }

    fn check<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
        let headers = request.headers();
        // HTTP/2 has the host in the request's target (RFC 9113, section 8.3.1).
        let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
        let host = match (single(headers, &header::HOST)?, authority) {
            (Some(host), _) | (None, Some(host)) => host,
            (None, None) if request.version() == Version::HTTP_10 => "localhost",
            (None, None) => return Err((StatusCode::BAD_REQUEST, "the request has no Host")),
        };
        self.names.check_host(host).map_err(|error| match error {
            HostError::Malformed => (StatusCode::BAD_REQUEST, "the Host is malformed"),
            HostError::Foreign => (
                StatusCode::MISDIRECTED_REQUEST,
                "this host name is not allowed; use the server's IP address, or start it with \
                 this name",
            ),
        })?;
        let path = request.uri().path();
        if path.starts_with(OWN_PATHS) && !is_same_origin(headers, host)? {
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

/// Assets and pages are no secret, and below a run its ID is.
fn needs_token(path: &str) -> bool {
    let is_public = crate::assets::is_asset(path) || crate::pages::is_page(path);
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
/// every WebSocket (RFC 6455, section 10.2).
fn is_same_origin(headers: &HeaderMap, host: &str) -> Result<bool, (StatusCode, &'static str)> {
    let Some(origin) = single(headers, &header::ORIGIN)? else { return Ok(true) };
    let (scheme, rest) = origin.split_once("://").unwrap_or_default();
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return Ok(false),
    };
    let bare = |text: &str| text.strip_suffix(default_port).unwrap_or(text).to_ascii_lowercase();
    Ok(bare(rest) == bare(host))
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
        let guard = Guard::new(&["speed.example".to_owned()], token.map(str::to_owned));
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let refusal = guard.refusal(&request.body(()).unwrap());
        refusal.map_or(200, |response| response.status().as_u16())
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
            ("/ndt/v7/download", 401),
        ] {
            assert_eq!(status(path, &own, Some("secret")), expected, "{path}");
        }
    }
}
