//! The file that sets values at each boot (sysctl.d(5)).

use crate::apply::{is_key, is_value};
use std::collections::BTreeMap;

/// Where it lies. Files whose names come later win over it.
pub const PERSISTED: &str = "/etc/sysctl.d/90-longhaul.conf";

const HEAD: &str = "# Written by `longhaul tune apply --persist`; `longhaul tune rollback` puts back \
                    what was here before.\n";

/// The file's text with `values` set, those it had before kept.
pub(crate) fn text(before: Option<&str>, values: &[(&str, &str)]) -> String {
    let mut all = parse(before.unwrap_or_default());
    all.extend(values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let lines = all.iter().map(|(key, value)| format!("{key} = {value}\n"));
    HEAD.to_owned() + &lines.collect::<String>()
}

/// The first of `values` that another file sets to something else.
pub(crate) fn contradicted<'v>(text: &str, values: &[(&'v str, &str)]) -> Option<&'v str> {
    let theirs = parse(text);
    let other = |(key, value): &&(&str, &str)| {
        theirs.get(*key).is_some_and(|their| !crate::apply::same(their, value))
    };
    values.iter().find(other).map(|(key, _)| *key)
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim().replace('/', "."), value.trim().to_owned());
        (is_key(&key) && is_value(&value)).then_some((key, value))
    };
    text.lines()
        .filter(|line| !line.trim_start().starts_with(['#', ';']))
        .filter_map(pair)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_unless_it_is_set() {
        let first = text(None, &[("net.ipv4.tcp_rmem", "1 2 3"), ("net.ipv4.tcp_sack", "1")]);
        let second = text(Some(&first), &[("net.ipv4.tcp_rmem", "1 2 4")]);
        assert_eq!(second, format!("{HEAD}net.ipv4.tcp_rmem = 1 2 4\nnet.ipv4.tcp_sack = 1\n"));
        assert_eq!(contradicted(&first, &[("net.ipv4.tcp_rmem", "1\t2 3")]), None);
        let other = [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_rmem", "1 2 4")];
        assert_eq!(contradicted(&first, &other), Some("net.ipv4.tcp_rmem"));
        assert_eq!(text(Some("; a\n#b=1\nkernel.panic=1\nx\n"), &[]), HEAD);
    }
}
