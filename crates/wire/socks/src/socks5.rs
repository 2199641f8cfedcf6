//! SOCKS version 5: method selection, username and password, request.
//!
//! ```text
//!   client   05 n methods        05 cmd 00 type address port
//!   server             05 method                              05 code 00 01 0.0.0.0 0
//!                  (02: 01 n user n password -> 01 00)
//! ```

use crate::answer::socks_reply;
use crate::handshake::{Command, Denial, Step};
use crate::token::Token;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use lane::{InvalidTarget, Target, TargetHost};

/// Version of the protocol, and of the negotiation of username and password (RFC 1929).
const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;

// Methods (RFC 1928, section 3).
const NO_AUTHENTICATION: u8 = 0x00;
const PASSWORD: u8 = 0x02;
const NO_ACCEPTABLE: u8 = 0xff;

// Address types (RFC 1928, section 5).
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

// Reply codes (RFC 1928, section 6).
const GENERAL_FAILURE: u8 = 0x01;
const COMMAND_NOT_SUPPORTED: u8 = 0x07;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 0x08;

/// The messages that are expected.
#[derive(Debug, Default)]
pub(crate) enum Socks5 {
    #[default]
    Methods,
    Password,
    Request,
}

impl Socks5 {
    pub(crate) fn step(
        &mut self,
        received: &[u8],
        token: Option<&Token>,
        answer: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        match self {
            Socks5::Methods => self.methods(received, token.is_some(), answer),
            Socks5::Password => self.password(received, token, answer),
            Socks5::Request => request(received).inspect_err(|denial| {
                answer.extend(socks_reply(reply_code(*denial)));
            }),
        }
    }

    fn methods(
        &mut self,
        received: &[u8],
        with_token: bool,
        answer: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        let [_, count, rest @ ..] = received else { return Ok(Step::Incomplete) };
        let count = usize::from(*count);
        let Some(methods) = rest.get(..count) else { return Ok(Step::Incomplete) };
        let method = match with_token {
            false if methods.contains(&NO_AUTHENTICATION) => NO_AUTHENTICATION,
            _ if methods.contains(&PASSWORD) => PASSWORD,
            _ => NO_ACCEPTABLE,
        };
        answer.extend([VERSION, method]);
        match method {
            NO_AUTHENTICATION => *self = Socks5::Request,
            PASSWORD => *self = Socks5::Password,
            _ => return Err(Denial::NoMethod),
        }
        Ok(Step::Used(2 + count))
    }

    /// RFC 1929. Without a token any password is right: a client may offer nothing else.
    fn password(
        &mut self,
        received: &[u8],
        token: Option<&Token>,
        answer: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        let [version, user_length, rest @ ..] = received else { return Ok(Step::Incomplete) };
        if *version != PASSWORD_VERSION {
            return Err(Denial::Malformed("the version of the password message is not 1"));
        }
        let user_length = usize::from(*user_length);
        let Some([length, rest @ ..]) = rest.get(user_length..) else {
            return Ok(Step::Incomplete);
        };
        let length = usize::from(*length);
        let Some(password) = rest.get(..length) else { return Ok(Step::Incomplete) };
        let is_right = token.is_none_or(|token| token.matches(password));
        answer.extend([PASSWORD_VERSION, u8::from(!is_right)]);
        if !is_right {
            return Err(Denial::Token);
        }
        *self = Socks5::Request;
        Ok(Step::Used(3 + user_length + length))
    }
}

fn reply_code(denial: Denial) -> u8 {
    match denial {
        Denial::Command(_) => COMMAND_NOT_SUPPORTED,
        Denial::AddressType(_) => ADDRESS_TYPE_NOT_SUPPORTED,
        _ => GENERAL_FAILURE,
    }
}

/// RFC 1928, sections 4 and 5. A request is read whole before it is refused: the reply would be lost
/// in the RST that unread bytes cause.
fn request(received: &[u8]) -> Result<Step, Denial> {
    let [version, command, reserved, kind, rest @ ..] = received else {
        return Ok(Step::Incomplete);
    };
    if (*version, *reserved) != (VERSION, 0) {
        return Err(Denial::Malformed("the request is not SOCKS5's"));
    }
    // The address, and where it begins and ends in `rest`.
    let (start, length) = match (*kind, rest.first()) {
        (IPV4, _) => (0, 4),
        (IPV6, _) => (0, 16),
        (NAME, Some(length)) => (1, usize::from(*length)),
        (NAME, None) => return Ok(Step::Incomplete),
        (other, _) => return Err(Denial::AddressType(other)),
    };
    let after = rest.get(start..).unwrap_or_default();
    let Some((address, [high, low, ..])) = after.split_at_checked(length) else {
        return Ok(Step::Incomplete);
    };
    match *command {
        1 => {}
        2 => return Err(Denial::Command(Command::Bind)),
        3 => return Err(Denial::Command(Command::UdpAssociate)),
        other => return Err(Denial::Command(Command::Unknown(other))),
    }
    let target = Target::new(host(*kind, address)?, u16::from_be_bytes([*high, *low]))?;
    Ok(Step::Target(target, 4 + start + length + 2))
}

/// The host of a request. As a name, clients also send addresses (curl with socks5h).
fn host(kind: u8, address: &[u8]) -> Result<TargetHost, InvalidTarget> {
    let v4 = || <[u8; 4]>::try_from(address).ok().map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
    let v6 = || <[u8; 16]>::try_from(address).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)));
    match kind {
        IPV4 => v4().map(TargetHost::Address).ok_or(InvalidTarget::Malformed),
        IPV6 => v6().map(TargetHost::Address).ok_or(InvalidTarget::Malformed),
        _ => std::str::from_utf8(address).map_err(|_| InvalidTarget::Name)?.parse(),
    }
}
