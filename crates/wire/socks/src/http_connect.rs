//! The head of an HTTP/1.1 CONNECT request, read strictly (RFC 9112).
//!
//! Whatever two parsers could read differently is refused: a CR or LF alone, folded lines, space
//! before a colon, two Host fields, a length or a transfer coding.

use crate::answer;
use crate::handshake::{Denial, MAX_HEAD, Step};
use crate::token::Token;
use base64::{Engine, prelude::BASE64_STANDARD};
use lane::{InvalidTarget, Target};

/// Most header fields.
const MAX_FIELDS: usize = 100;

/// The reading of a head.
#[derive(Debug, Default)]
pub(crate) struct HttpConnect {
    /// Bytes whose line ends have been checked.
    scanned: usize,
}

impl HttpConnect {
    pub(crate) fn step(
        &mut self,
        received: &[u8],
        token: Option<&Token>,
        answer: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        let step = self.head_length(received).and_then(|length| {
            let Some(length) = length else { return Ok(Step::Incomplete) };
            let head = received.get(..length).unwrap_or_default();
            Ok(Step::Target(target(head, token)?, length))
        });
        step.inspect_err(|denial| answer.extend(answer::denied(*denial)))
    }

    /// Length of the head with its empty line, once it is whole.
    fn head_length(&mut self, received: &[u8]) -> Result<Option<usize>, Denial> {
        let within = received.get(..MAX_HEAD).unwrap_or(received);
        while let Some(byte) = within.get(self.scanned) {
            let before = within.get(..self.scanned).unwrap_or_default();
            self.scanned += 1;
            if (*byte == b'\n') != before.ends_with(b"\r") {
                return Err(Denial::Malformed("a line does not end with CR LF"));
            }
            if *byte == b'\n' && before.ends_with(b"\r\n\r") {
                return Ok(Some(self.scanned));
            }
        }
        if within.len() == MAX_HEAD { Err(Denial::TooLong) } else { Ok(None) }
    }
}

/// Header fields that matter to CONNECT.
#[derive(Debug, Default)]
struct Fields<'a> {
    hosts: usize,
    authorization: Option<&'a [u8]>,
}

/// The target of a whole head.
fn target(head: &[u8], token: Option<&Token>) -> Result<Target, Denial> {
    // No CR or LF is left but those of line ends.
    let mut lines =
        head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (authority, needs_host) = request_line(lines.next().unwrap_or_default())?;
    let fields = fields(lines.take_while(|line| !line.is_empty()))?;
    if fields.hosts > 1 || (needs_host && fields.hosts == 0) {
        return Err(Denial::Malformed("there must be one Host field"));
    }
    if let Some(token) = token
        && !fields.authorization.is_some_and(|value| authorizes(value, token))
    {
        return Err(Denial::Token);
    }
    let text = std::str::from_utf8(authority).map_err(|_| InvalidTarget::Name)?;
    Ok(text.parse()?)
}

/// The authority of `CONNECT AUTHORITY HTTP/1.x` (RFC 9112, section 3), and whether this version
/// requires a Host field.
fn request_line(line: &[u8]) -> Result<(&[u8], bool), Denial> {
    let parts: Vec<&[u8]> = line.splitn(4, |byte| *byte == b' ').collect();
    let [method, authority, version] = parts[..] else {
        return Err(Denial::Malformed("the request line has not three parts"));
    };
    if !is_token(method) {
        return Err(Denial::Malformed("the method is not a token"));
    }
    let needs_host = match version {
        b"HTTP/1.1" => true,
        b"HTTP/1.0" => false,
        _ if version.starts_with(b"HTTP/") => return Err(Denial::HttpVersion),
        _ => return Err(Denial::Malformed("the request line has no HTTP version")),
    };
    if method != b"CONNECT" {
        return Err(Denial::Method);
    }
    Ok((authority, needs_host))
}

fn fields<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Fields<'a>, Denial> {
    let mut fields = Fields::default();
    for (count, line) in lines.enumerate() {
        if count == MAX_FIELDS {
            return Err(Denial::TooLong);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = colon.and_then(|at| line.split_at_checked(at)).unwrap_or_default();
        // A folded line (RFC 9112, section 5.2) and a space before the colon (section 5.1) are no
        // token either.
        if !is_token(name) {
            return Err(Denial::Malformed("a header field has no valid name"));
        }
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return Err(Denial::Malformed("a header field has a control character"));
        }
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is("host") {
            fields.hosts += 1;
            if !value.iter().all(|byte| is_of_host(*byte)) {
                return Err(Denial::Malformed("the Host field is invalid"));
            }
        } else if is("transfer-encoding") || (is("content-length") && value != b"0") {
            return Err(Denial::Malformed("CONNECT has no content"));
        } else if is("proxy-authorization") && fields.authorization.replace(value).is_some() {
            return Err(Denial::Malformed("there are two Proxy-Authorization fields"));
        }
    }
    Ok(fields)
}

/// True for `Basic` credentials (RFC 7617) whose password is the token.
fn authorizes(value: &[u8], token: &Token) -> bool {
    let Some((scheme, credentials)) = value.split_at_checked(6) else { return false };
    let decoded = BASE64_STANDARD.decode(credentials.trim_ascii()).unwrap_or_default();
    let colon = decoded.iter().position(|byte| *byte == b':');
    let password = colon.and_then(|at| decoded.get(at + 1..));
    scheme.eq_ignore_ascii_case(b"basic ") && password.is_some_and(|given| token.matches(given))
}

/// True for a token (RFC 9110, section 5.6.2).
fn is_token(text: &[u8]) -> bool {
    let in_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(in_token)
}

/// True for a character of `uri-host [ ":" port ]` (RFC 3986, section 3.2.2).
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=[]:".contains(&byte)
}
