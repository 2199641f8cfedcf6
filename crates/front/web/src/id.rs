//! IDs and digests as text: hexadecimal digits.

use std::fmt::Write;

/// Bytes as digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The 128 bits that 32 digits stand for.
pub(crate) fn of_text(text: &str) -> Option<[u8; 16]> {
    let is_plain = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let is_id = text.len() == 32 && text.bytes().all(is_plain);
    is_id.then(|| u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = *b"0123456789abcdef";
        assert_eq!(of_text(&hexadecimal(&id)), Some(id));
        let upper = hexadecimal(&[0xab; 16]).to_uppercase();
        for text in ["", "7", "+0000000000000000000000000000007", &"0".repeat(33), &upper] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }
}
