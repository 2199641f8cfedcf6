//! Which hosts are given to ssh.

/// Why a host is not given to ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongHost {
    /// ssh would take it for an option.
    #[error("a host cannot begin with \"-\": ssh would take it for an option")]
    Option,
    /// It is empty, or no name.
    #[error("this is not a host; write HOST or USER@HOST")]
    NoName,
}

/// Checks that a host can be given to ssh.
///
/// # Errors
/// Why not.
pub fn check_host(host: &str) -> Result<(), WrongHost> {
    if host.starts_with('-') || host.split('@').any(|part| part.starts_with('-')) {
        return Err(WrongHost::Option);
    }
    let is_wrong = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.ends_with('@') || host.contains(is_wrong) {
        return Err(WrongHost::NoName);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_no_options() {
        for good in ["host", "user@host", "192.0.2.1", "2001:db8::1", "a-b"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for wrong in ["-oProxyCommand=x", "user@-oX", "-"] {
            assert_eq!(check_host(wrong), Err(WrongHost::Option), "{wrong}");
        }
        for wrong in ["", "a b", "user@", "a\n"] {
            assert_eq!(check_host(wrong), Err(WrongHost::NoName), "{wrong}");
        }
    }
}
