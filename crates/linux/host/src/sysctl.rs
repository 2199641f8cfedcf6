//! Kernel settings by name, in the network namespace of the calling thread.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// Path of a sysctl, such as `net.ipv4.tcp_rmem`.
///
/// # Errors
/// `InvalidInput` if the name is not valid: parts of letters, digits, `_` and
/// `-`, joined by dots.
pub fn path(key: &str) -> io::Result<PathBuf> {
    let sound = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    if !key.contains('.') || !key.split('.').all(sound) {
        let text = format!("'{key}' is not the name of a sysctl, such as net.ipv4.tcp_rmem");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(PathBuf::from("/proc/sys").join(key.replace('.', "/")))
}

/// The value, with runs of white space replaced by single spaces.
///
/// # Errors
/// The system error, or `InvalidInput` for a bad name.
pub fn read(key: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(path(key)?)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Sets the value.
///
/// # Errors
/// The system error, or `InvalidInput` for a bad name.
pub fn write(key: &str, value: &str) -> io::Result<()> {
    // Never created: a sysctl that this kernel lacks is `NotFound`.
    OpenOptions::new().write(true).open(path(key)?)?.write_all(value.as_bytes())
}

/// Checks that the value may be set, without setting it: the kernel checks
/// permissions when the file is opened.
///
/// # Errors
/// The system error, or `InvalidInput` for a bad name.
pub fn may_write(key: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path(key)?).map(drop)
}

/// A value of three numbers such as `tcp_rmem`: minimum, default, maximum.
#[must_use]
pub fn read_triple(key: &str) -> Option<[u64; 3]> {
    let text = read(key).ok()?;
    let mut numbers = text.split(' ').map(str::parse);
    let triple = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
    numbers.next().is_none().then_some(triple)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_tree() {
        for key in [
            "",
            "net",
            "net..ipv4",
            "../etc/passwd",
            "net.ipv4./etc",
            "net.ipv4.tcp rmem",
            "net.ipv4.\0",
        ] {
            assert!(path(key).is_err(), "{key}");
        }
        assert_eq!(
            path("net.ipv4.tcp_rmem").unwrap(),
            PathBuf::from("/proc/sys/net/ipv4/tcp_rmem")
        );
    }

    #[test]
    fn buffers_are_three_numbers() {
        let [least, initial, most] = read_triple("net.ipv4.tcp_rmem").unwrap();
        assert!(least <= initial && initial <= most);
    }
}
