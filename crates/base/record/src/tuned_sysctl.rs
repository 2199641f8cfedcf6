//! The sysctls that Longhaul changes on a host, and the format of their values: a
//! journal or boot file with anything else was not written by it.

/// The format of a setting's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One number.
    Number,
    /// Three numbers: minimum, initial, maximum.
    Triple,
    /// A queue discipline or a congestion control.
    Name,
}

/// Longest name: the kernel's `IFNAMSIZ` and `TCP_CA_NAME_MAX` are 16,
/// including the terminating byte.
const MAX_NAME: usize = 15;

/// Longest number, in digits: that of 2^64 - 1.
const MAX_DIGITS: usize = 20;

const SETTINGS: [(&str, Form); 15] = [
    ("net.core.default_qdisc", Form::Name),
    ("net.core.optmem_max", Form::Number),
    ("net.core.rmem_max", Form::Number),
    ("net.core.wmem_max", Form::Number),
    ("net.ipv4.tcp_congestion_control", Form::Name),
    ("net.ipv4.tcp_ecn", Form::Number),
    ("net.ipv4.tcp_moderate_rcvbuf", Form::Number),
    ("net.ipv4.tcp_mtu_probing", Form::Number),
    ("net.ipv4.tcp_no_metrics_save", Form::Number),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", Form::Number),
    ("net.ipv4.tcp_rmem", Form::Triple),
    ("net.ipv4.tcp_sack", Form::Number),
    ("net.ipv4.tcp_timestamps", Form::Number),
    ("net.ipv4.tcp_window_scaling", Form::Number),
    ("net.ipv4.tcp_wmem", Form::Triple),
];

/// The number of sysctls that Longhaul changes.
pub const TUNED_SYSCTLS: usize = SETTINGS.len();

/// Whether Longhaul changes a sysctl.
#[must_use]
pub fn is_tuned_sysctl(key: &str) -> bool {
    form(key).is_some()
}

/// Whether a value has the sysctl's format. Numbers are separated by spaces or
/// tabs; nothing else is accepted.
#[must_use]
pub fn is_tuned_value(key: &str, value: &str) -> bool {
    let blank = |c: char| c == ' ' || c == '\t';
    let words: Vec<&str> = value.split(blank).filter(|word| !word.is_empty()).collect();
    match (form(key), words.as_slice()) {
        (Some(Form::Number), [one]) => is_number(one),
        (Some(Form::Triple), three @ [_, _, _]) => three.iter().all(|one| is_number(one)),
        (Some(Form::Name), [name]) => is_name(name),
        _ => false,
    }
}

/// The names, in alphabetical order.
pub fn tuned_sysctls() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name)
}

fn form(key: &str) -> Option<Form> {
    SETTINGS.iter().find(|(name, _)| *name == key).map(|(_, form)| *form)
}

fn is_number(word: &str) -> bool {
    word.len() <= MAX_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    word.len() <= MAX_NAME && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_its_format() {
        for (key, value) in [
            ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("net.core.rmem_max", "212992"),
            ("net.core.default_qdisc", "fq_codel"),
            ("net.ipv4.tcp_congestion_control", "bbr"),
        ] {
            assert!(is_tuned_sysctl(key) && is_tuned_value(key, value), "{key}");
        }
        for (key, value) in [
            ("net.ipv4.tcp_rmem", "4096 131072"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456\nkernel.core_pattern=|/x"),
            ("net.ipv4.tcp_rmem", "4096 131072 -1"),
            ("net.core.rmem_max", ""),
            ("net.core.rmem_max", "1 2"),
            ("net.core.rmem_max", "123456789012345678901"),
            ("net.core.default_qdisc", "fq\u{1b}[2J"),
            ("net.core.default_qdisc", "abcdefghijklmnop"),
            ("net.core.default_qdisc", "../../modules"),
            ("kernel.core_pattern", "|/x"),
            ("net.ipv4.ip_forward", "1"),
        ] {
            assert!(!is_tuned_value(key, value), "{key} {value:?}");
        }
    }

    #[test]
    fn only_settings_of_the_table_are_keys() {
        for key in ["kernel.core_pattern", "net.ipv4.ip_forward", "net.ipv4./tcp_rmem", ""] {
            assert!(!is_tuned_sysctl(key), "{key}");
        }
    }
}
