//! Command lines to paste into a POSIX shell.

/// A word for a POSIX shell: between single quotes unless every character is harmless
/// (POSIX.1-2024, Shell Command Language, section 2.2). Control characters, which no name has
/// that is worth pasting, are left out.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words as one command line.
#[must_use]
pub fn command_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| shell_word(word.as_ref())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, quoted) in [
            ("a.example", "a.example"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("--rate=1gbit", "--rate=1gbit"),
            ("x; rm -rf ~", "'x; rm -rf ~'"),
            ("$(id)", "'$(id)'"),
            ("it's", r"'it'\''s'"),
            ("a\u{1b}[31m\nb", "'a[31mb'"),
            ("", "''"),
            ("~", "'~'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
        assert_eq!(command_line(["ping", "a b"]), "ping 'a b'");
    }
}
