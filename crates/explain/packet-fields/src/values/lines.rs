//! Protocols of lines: FTP (RFC 959), SMTP (RFC 5321), SIP (RFC 3261). The first line of a segment
//! or datagram counts.

use super::Emit;
use super::application::put_text;
use crate::application::Payload;
use crate::field::Field;
use crate::value::Value;

/// The first line and what is before and behind its first space.
struct Line<'a> {
    whole: &'a [u8],
    word: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// `None` where no line ends.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let whole = bytes.get(..end)?.trim_ascii_end();
        let at = whole.iter().position(|byte| *byte == b' ').unwrap_or(whole.len());
        let (word, rest) = whole.split_at_checked(at)?;
        Some(Line { whole, word, rest: rest.get(1..).unwrap_or_default() })
    }

    /// A code of three digits at the beginning.
    fn code(&self) -> Option<i64> {
        let digits = self.whole.first_chunk::<3>()?;
        let is_code = digits.iter().all(u8::is_ascii_digit);
        is_code.then(|| digits.iter().fold(0, |code, digit| code * 10 + i64::from(digit - b'0')))
    }

    /// What follows the code and its separator.
    fn behind_code(&self) -> &'a [u8] {
        self.whole.get(4..).unwrap_or_default()
    }
}

pub(super) fn values(payload: &Payload<'_>, field: Field, emit: Emit<'_>) {
    let Some(line) = Line::of(payload.bytes) else { return };
    if matches!(
        field,
        Field::SipMethod | Field::SipStatusCode | Field::SipRequestLine | Field::SipStatusLine
    ) {
        return sip(&line, field, emit);
    }
    let is_request = payload.is_to_server;
    match field {
        Field::FtpRequest => emit(Value::Integer(i64::from(is_request))),
        Field::FtpResponse => emit(Value::Integer(i64::from(!is_request))),
        Field::SmtpReq if is_request => emit(Value::Integer(1)),
        Field::SmtpRsp if !is_request => emit(Value::Integer(1)),
        Field::FtpRequestCommand | Field::SmtpReqCommand if is_request => put_text(line.word, emit),
        Field::FtpRequestArg | Field::SmtpReqParameter if is_request && !line.rest.is_empty() => {
            put_text(line.rest, emit);
        }
        Field::FtpResponseCode | Field::SmtpResponseCode if !is_request => {
            super::put(line.code(), emit);
        }
        Field::FtpResponseArg | Field::SmtpRspParameter if !is_request && line.code().is_some() => {
            put_text(line.behind_code(), emit);
        }
        _ => {}
    }
}

fn sip(line: &Line<'_>, field: Field, emit: Emit<'_>) {
    const VERSION: &[u8] = b"SIP/2.0";
    let is_status = line.word == VERSION;
    let is_request = !is_status && line.rest.ends_with(VERSION);
    match field {
        Field::SipMethod if is_request => put_text(line.word, emit),
        Field::SipRequestLine if is_request => put_text(line.whole, emit),
        Field::SipStatusLine if is_status => put_text(line.whole, emit),
        Field::SipStatusCode if is_status => {
            let code = Line { whole: line.rest, word: line.rest, rest: line.rest }.code();
            super::put(code, emit);
        }
        _ => {}
    }
}
