//! Integers of variable length (RFC 9000, section 16).

/// The largest one, 2^62 - 1.
const MAX: u64 = (1 << 62) - 1;

/// Appends a value; above 2^62 - 1 it is that.
pub(crate) fn write(output: &mut Vec<u8>, value: u64) {
    let value = value.min(MAX);
    let bytes = value.to_be_bytes();
    let (length, mark) = match value {
        0..0x40 => (1, 0x00),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = output.len();
    output.extend_from_slice(&bytes[8 - length..]);
    output[start] |= mark;
}

/// Takes a value off the front; `None` if the input ends before.
pub(crate) fn read(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let (bytes, rest) = input.split_at_checked(1 << (first >> 6))?;
    *input = rest;
    let value = bytes
        .iter()
        .skip(1)
        .fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            let mut input = bytes;
            assert_eq!((read(&mut input), input.len()), (Some(value), 0));
            let mut output = Vec::new();
            write(&mut output, value);
            assert_eq!(output, bytes);
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
