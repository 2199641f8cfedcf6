//! The Huffman code of QPACK and HPACK (RFC 7541, appendix B). It is canonical: the lengths of the
//! codes determine them.

use std::sync::OnceLock;

/// Bits of the longest code.
const LONGEST: usize = 30;

/// Bits of the code of each byte.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The codes of one length: the first one, and the bytes of it and of those that follow.
#[derive(Debug, Default)]
struct Codes {
    first: u32,
    bytes: Vec<u8>,
}

fn table() -> &'static [Codes] {
    static TABLE: OnceLock<Vec<Codes>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut next = 0;
        (0..=LONGEST)
            .map(|length| {
                let of_length = (0..=u8::MAX).zip(LENGTHS);
                let of_length = of_length.filter(|(_, bits)| usize::from(*bits) == length);
                let codes = Codes { first: next, bytes: of_length.map(|(byte, _)| byte).collect() };
                next = (next + codes.bytes.len() as u32) << 1;
                codes
            })
            .collect()
    })
}

/// Decodes a string; `None` if it is malformed.
pub(crate) fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    let table = table();
    let mut decoded = Vec::new();
    let (mut code, mut length) = (0u32, 0usize);
    for byte in encoded {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            let codes = table.get(length)?;
            let at = code.checked_sub(codes.first).and_then(|at| codes.bytes.get(at as usize));
            if let Some(byte) = at {
                decoded.push(*byte);
                (code, length) = (0, 0);
            }
        }
    }
    // The padding is less than a byte of ones (RFC 7541, section 5.2).
    (length < 8 && code == (1 << length) - 1).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541, sections C.4 and C.6.
        for (encoded, text) in [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], "custom-value"),
            (
                &[
                    0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae,
                    0x82, 0xae, 0x43, 0xd3,
                ],
                "https://www.example.com",
            ),
            (&[], ""),
        ] {
            assert_eq!(decode(encoded).as_deref(), Some(text.as_bytes()));
        }
        // A whole byte of padding, padding of zeros, and the end's own code.
        for encoded in
            [&[0xff][..], &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf, 0xff], &[0x00], &[0xff; 4]]
        {
            assert!(decode(encoded).is_none() || encoded == [0x00], "{encoded:?}");
        }
        assert_eq!(decode(&[0x00]), None);
    }
}
