//! HTTP/1 (RFC 9112): the first line of a message and its header, as far as they are in the
//! segment.

use super::Emit;
use super::application::put_text;
use crate::field::Field;
use crate::value::Value;

/// Methods that begin a request (RFC 9110, section 9; WebDAV; UPnP).
const METHODS: [&[u8]; 18] = [
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"NOTIFY",
    b"SUBSCRIBE",
];

/// The first line of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstLine<'a> {
    /// Method, target, version.
    Request([&'a [u8]; 3]),
    /// Version, code, reason.
    Response([&'a [u8]; 3]),
}

/// The lines of a header, without their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
    whole.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The first line of a payload that begins a message, and that line as a whole.
pub(crate) fn first_line(bytes: &[u8]) -> Option<(FirstLine<'_>, &[u8])> {
    let line = lines(bytes).next()?;
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut word = || words.next().unwrap_or_default();
    let words = [word(), word(), word()];
    let found = match words {
        [version, ..] if version.starts_with(b"HTTP/") => FirstLine::Response(words),
        [method, _, version] if METHODS.contains(&method) && version.starts_with(b"HTTP/") => {
            FirstLine::Request(words)
        }
        _ => return None,
    };
    Some((found, line))
}

/// The name of the header field that a field shows.
fn header_name(field: Field) -> Option<&'static [u8]> {
    Some(match field {
        Field::HttpHost => b"host",
        Field::HttpUserAgent => b"user-agent",
        Field::HttpReferer => b"referer",
        Field::HttpCookie => b"cookie",
        Field::HttpSetCookie => b"set-cookie",
        Field::HttpServer => b"server",
        Field::HttpLocation => b"location",
        Field::HttpContentType => b"content-type",
        Field::HttpContentLength => b"content-length",
        Field::HttpContentEncoding => b"content-encoding",
        Field::HttpTransferEncoding => b"transfer-encoding",
        Field::HttpConnection => b"connection",
        Field::HttpAuthorization => b"authorization",
        Field::HttpAccept => b"accept",
        Field::HttpXForwardedFor => b"x-forwarded-for",
        _ => return None,
    })
}

/// The values of the header fields of that name.
fn header_values<'b>(bytes: &'b [u8], name: &'static [u8]) -> impl Iterator<Item = &'b [u8]> {
    lines(bytes).skip(1).take_while(|line| !line.is_empty()).filter_map(move |line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let (its, value) = line.split_at_checked(at)?;
        its.eq_ignore_ascii_case(name).then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}

pub(super) fn values(bytes: &[u8], field: Field, emit: Emit<'_>) {
    use FirstLine::{Request, Response};
    let Some((first, _)) = first_line(bytes) else { return };
    if let Some(name) = header_name(field) {
        for value in header_values(bytes, name) {
            if field == Field::HttpContentLength {
                let digits = core::str::from_utf8(value).ok();
                super::put(digits.and_then(|it| it.parse::<i64>().ok()), emit);
            } else {
                put_text(value, emit);
            }
        }
        return;
    }
    match (field, first) {
        (Field::HttpRequest, Request(_)) | (Field::HttpResponse, Response(_)) => {
            emit(Value::Integer(1));
        }
        (Field::HttpRequestMethod, Request([text, ..]))
        | (Field::HttpRequestUri, Request([_, text, _]))
        | (Field::HttpRequestVersion, Request([_, _, text]))
        | (Field::HttpResponseVersion, Response([text, ..]))
        | (Field::HttpResponsePhrase, Response([_, _, text])) => put_text(text, emit),
        (Field::HttpResponseCode, Response([_, code, _])) => {
            let code = core::str::from_utf8(code).ok();
            super::put(code.and_then(|it| it.parse::<u16>().ok()).map(i64::from), emit);
        }
        (Field::HttpRequestFullUri, Request([_, target, _])) => {
            if target.starts_with(b"http://") {
                put_text(target, emit);
            } else if let Some(host) = header_values(bytes, b"host").next() {
                put_text(&[&b"http://"[..], host, target].concat(), emit);
            }
        }
        _ => {}
    }
}
