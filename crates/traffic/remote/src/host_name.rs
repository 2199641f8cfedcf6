//! The hosts that are given to ssh.
//!
//! ssh puts what it is given into the commands of the user's ssh_config (`%h`, `%n` and `%r` in
//! `ProxyCommand`, `LocalCommand`, `Match exec`), which a shell runs. So a host has the characters
//! of names and addresses, and no others.

use core::net::Ipv6Addr;

/// The reason a host is not given to ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongHost {
    /// ssh would take it for an option.
    #[error("a host cannot begin with \"-\": ssh would take it for an option")]
    Option,
    /// It is empty, or no name.
    #[error("this is not a host; use HOST or USER@HOST")]
    NoName,
    /// A character that no name of a host or user has, which a shell may interpret.
    #[error(
        "{0:?} cannot be part of a host or user name: commands in ssh_config may pass it to a shell"
    )]
    Character(char),
}

/// Checks that a host can be given to ssh: `HOST` or `USER@HOST`, where `HOST` is a name or alias
/// of letters, digits, `.`, `-` and `_`, or an address (IPv6 with or without a zone).
///
/// # Errors
/// The reason it cannot.
pub fn check_host(text: &str) -> Result<(), WrongHost> {
    let (user, host) = match text.split_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    user.into_iter().chain([host]).try_for_each(check_start)?;
    user.map_or(Ok(()), |user| check_characters(user, "+"))?;
    match host.split_once('%') {
        Some((address, zone)) if is_ipv6(address) && !zone.is_empty() => check_characters(zone, ""),
        None if is_ipv6(host) => Ok(()),
        _ => check_characters(host, ""),
    }
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn check_start(part: &str) -> Result<(), WrongHost> {
    match part.bytes().next() {
        None => Err(WrongHost::NoName),
        Some(b'-') => Err(WrongHost::Option),
        Some(_) => Ok(()),
    }
}

/// ASCII letters, digits, `.`, `-`, `_` and those of `more`.
fn check_characters(part: &str, more: &str) -> Result<(), WrongHost> {
    let is_wrong =
        |c: &char| !(c.is_ascii_alphanumeric() || ".-_".contains(*c) || more.contains(*c));
    match part.chars().find(is_wrong) {
        None => Ok(()),
        Some(c) if c.is_whitespace() || c.is_control() => Err(WrongHost::NoName),
        Some(c) => Err(WrongHost::Character(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_no_options() {
        for good in ["host", "user@host", "192.0.2.1", "2001:db8::1", "a-b"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for wrong in ["-oProxyCommand=x", "user@-oX", "-", "-oX@host"] {
            assert_eq!(check_host(wrong), Err(WrongHost::Option), "{wrong}");
        }
        for wrong in ["", "a b", "user@", "@host", "@", "a\n", "a\0", "a\u{a0}b"] {
            assert_eq!(check_host(wrong), Err(WrongHost::NoName), "{wrong}");
        }
    }

    /// Each pair differs in one character, which a shell would interpret.
    #[test]
    fn no_character_reaches_a_shell_that_names_do_not_have() {
        for (good, wrong, character) in [
            ("host.example", "host;example", ';'),
            ("host_1", "host$1", '$'),
            ("host-id", "host`id`", '`'),
            ("host", "host&", '&'),
            ("host", "host|x", '|'),
            ("host", "$(x)", '$'),
            ("host", "host<x", '<'),
            ("host", "host>x", '>'),
            ("host", "host'", '\''),
            ("host", "host\"", '"'),
            ("host", "host\\x", '\\'),
            ("host", "host*", '*'),
            ("host", "ho{s,t}", '{'),
            ("host", "host#", '#'),
            ("host", "~host", '~'),
            ("host", "host!1", '!'),
            ("host", "host/x", '/'),
            ("host", "host=x", '='),
            ("host", "höst", 'ö'),
            ("first.last+x@host", "first;last@host", ';'),
            ("user@host", "user$x@host", '$'),
            ("user@host", "user@other@host", '@'),
            ("user@host", "us%er@host", '%'),
            ("fe80::1%eth0.5", "fe80::1%eth0;x", ';'),
            ("user@fe80::1%wlan-0", "user@fe80::1%$x", '$'),
            ("fe80::1%2", "fe80::1%%h", '%'),
            ("fe80::1", "fe80::1%", ':'),
            ("::1", "host%eth0", '%'),
            ("::ffff:192.0.2.1", "host:22", ':'),
            ("2001:db8::1", "[2001:db8::1]", '['),
        ] {
            assert_eq!(check_host(good), Ok(()), "{good}");
            assert_eq!(check_host(wrong), Err(WrongHost::Character(character)), "{wrong}");
        }
    }
}
