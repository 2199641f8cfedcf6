//! The file that sets values at each boot (sysctl.d(5)).

use crate::apply::shown;
use record::{is_tuned_sysctl as is_key, is_tuned_value as is_value};
use std::collections::BTreeMap;

/// Its path. Files with later names override it.
pub const PERSISTED: &str = "/etc/sysctl.d/90-longhaul.conf";

/// Largest boot file that is preserved or restored, in bytes and lines:
/// thirteen settings with comments are far smaller.
pub(crate) const MAX_BYTES: u64 = 64 << 10;
const MAX_LINES: usize = 1000;

const HEAD: &str = "# Written by `longhaul tune apply`; `longhaul tune rollback` puts back \
                    what was here before.\n";

/// The file's text with `values` set and its other values preserved.
pub(crate) fn text(before: Option<&str>, values: &[(&str, &str)]) -> String {
    let mut all = parse(before.unwrap_or_default());
    all.extend(values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let lines = all.iter().map(|(key, value)| format!("{key} = {value}\n"));
    HEAD.to_owned() + &lines.collect::<String>()
}

/// The first of `values` that another file overrides.
pub(crate) fn contradicted<'v>(text: &str, values: &[(&'v str, &str)]) -> Option<&'v str> {
    let theirs = parse(text);
    let other = |(key, value): &&(&str, &str)| {
        theirs.get(*key).is_some_and(|their| !crate::apply::same(their, value))
    };
    values.iter().find(other).map(|(key, _)| *key)
}

/// A text that is not of a boot file of Longhaul's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum BootFileError {
    #[error("it is longer than Longhaul writes")]
    TooLong,
    #[error("line {line} has control characters")]
    Control { line: usize },
    #[error("line {line} sets '{key}', which Longhaul does not")]
    OtherSetting { line: usize, key: String },
    #[error("line {line} gives {key} a value in the wrong format")]
    Value { line: usize, key: String },
}

/// Refuses a text with a setting that Longhaul does not change: it comes from
/// another program or an attacker.
///
/// # Errors
/// The first line that Longhaul cannot have written.
pub(crate) fn check(text: &str) -> Result<(), BootFileError> {
    if text.len() as u64 > MAX_BYTES || text.lines().count() > MAX_LINES {
        return Err(BootFileError::TooLong);
    }
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_matches([' ', '\t']);
        if line.contains(|c: char| c.is_control() && c != '\t') {
            return Err(BootFileError::Control { line: number });
        }
        if line.is_empty() || is_comment(line) {
            continue;
        }
        let (key, value) = pair(line).unwrap_or((line.to_owned(), String::new()));
        if !is_key(&key) {
            return Err(BootFileError::OtherSetting { line: number, key: shown(&key) });
        }
        if !is_value(&key, &value) {
            return Err(BootFileError::Value { line: number, key });
        }
    }
    Ok(())
}

pub(crate) fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter(|line| !is_comment(line.trim_start()))
        .filter_map(pair)
        .filter(|(key, value)| is_value(key, value))
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', ';'])
}

/// The two sides of an assignment; a `-` before it ignores errors (sysctl.d(5)).
fn pair(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let key = key.strip_prefix('-').unwrap_or(key);
    Some((key.replace('/', "."), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_values_of_the_file_are_kept() {
        let first = text(None, &[("net.ipv4.tcp_rmem", "1 2 3"), ("net.ipv4.tcp_sack", "1")]);
        let second = text(Some(&first), &[("net.ipv4.tcp_rmem", "1 2 4")]);
        assert_eq!(second, format!("{HEAD}net.ipv4.tcp_rmem = 1 2 4\nnet.ipv4.tcp_sack = 1\n"));
        assert_eq!(contradicted(&first, &[("net.ipv4.tcp_rmem", "1\t2 3")]), None);
        let other = [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_rmem", "1 2 4")];
        assert_eq!(contradicted(&first, &other), Some("net.ipv4.tcp_rmem"));
        assert_eq!(text(Some("; a\n#b=1\nkernel.panic=1\nx\n"), &[]), HEAD);
    }

    #[test]
    fn a_line_with_another_setting_is_refused() {
        let own = text(None, &[("net.ipv4.tcp_rmem", "1 2 3"), ("net.core.rmem_max", "4")]);
        assert_eq!(check(&own), Ok(()));
        assert_eq!(check("# by hand: more\n\n; or less\n-net/ipv4/tcp_sack = 1"), Ok(()));
        for (text, says) in [
            ("kernel.core_pattern = |/tmp/x\n", "line 1 sets 'kernel.core_pattern'"),
            ("# x\n-kernel.core_pattern=|/tmp/x\n", "line 2"),
            ("net.ipv4.ip_forward = 1", "net.ipv4.ip_forward"),
            ("net.ipv4.tcp_rmem = 1 2 3\rkernel.panic = 1\n", "control characters"),
            ("net.ipv4.tcp_rmem = 1 2\n", "wrong format"),
            ("nonsense\n", "'nonsense'"),
            (&"#\n".repeat(1001), "longer"),
            (&"#".repeat(70_000), "longer"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
