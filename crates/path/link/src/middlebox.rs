//! Rewriting of SYN options by a middlebox.

use crate::WindowScale;

const FLAGS: usize = 13;
const SYN: u8 = 0x02;
const END: u8 = 0;
const NOTHING: u8 = 1;
/// Window scale (RFC 7323, section 2.2): kind, length 3, shift count.
const SCALE: u8 = 3;

/// Removes the window scale option from a TCP header (including options) or sets its
/// shift count, if the segment is a SYN; returns whether anything changed. The caller
/// updates the checksum.
///
/// A removed option is replaced with no-operation options, so that the header keeps
/// its length. Truncated headers and malformed options are left unchanged.
pub fn rewrite_window_scale(header: &mut [u8], rewrite: WindowScale) -> bool {
    let Some(offset) = header.get(12).map(|byte| usize::from(byte >> 4) * 4) else { return false };
    if header.get(FLAGS).is_none_or(|flags| flags & SYN == 0)
        || !(20..=header.len()).contains(&offset)
    {
        return false;
    }
    let mut options = &mut header[20..offset];
    while let Some((kind, rest)) = options.split_first_mut() {
        match *kind {
            END => return false,
            NOTHING => options = rest,
            kind_of_option => {
                let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                    return false;
                };
                if length < 2 || length - 1 > rest.len() {
                    return false;
                }
                if kind_of_option == SCALE && length == 3 {
                    return match rewrite {
                        WindowScale::Strip => {
                            *kind = NOTHING;
                            rest[..2].fill(NOTHING);
                            true
                        }
                        WindowScale::Set(shift) => std::mem::replace(&mut rest[1], shift) != shift,
                    };
                }
                options = &mut rest[length - 1..];
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with these flags and options.
    fn header(flags: u8, options: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 20];
        let length = u8::try_from(20 + options.len()).unwrap();
        (header[12], header[FLAGS]) = ((length / 4) << 4, flags);
        header.extend(options);
        header
    }

    /// Options as Linux sends them: MSS, SACK permitted, timestamps, NOP, window scale 7.
    const OPTIONS: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];

    #[test]
    fn strips_and_sets_on_a_syn() {
        let mut stripped = header(SYN, &OPTIONS);
        assert!(rewrite_window_scale(&mut stripped, WindowScale::Strip));
        assert_eq!(stripped[36..], [1, 1, 1, 1]);
        let mut set = header(SYN | 0x10, &OPTIONS);
        assert!(rewrite_window_scale(&mut set, WindowScale::Set(0)));
        assert_eq!(set[36..], [1, 3, 3, 0]);
        assert!(!rewrite_window_scale(&mut set, WindowScale::Set(0)), "nothing left to change");
    }

    #[test]
    fn other_packets_are_unchanged() {
        for (flags, options) in [
            (0x10, OPTIONS.as_slice()),
            (SYN, &[]),
            (SYN, &[0, 3, 3, 7]),
            (SYN, &[2, 0, 0, 0]),
            (SYN, &[1, 1, 3, 3]),
            (SYN, &[1, 1, 1, 8]),
        ] {
            let mut bytes = header(flags, options);
            let before = bytes.clone();
            assert!(!rewrite_window_scale(&mut bytes, WindowScale::Strip), "{options:?}");
            assert_eq!(bytes, before);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_accepted_without_a_panic(mut bytes in proptest::collection::vec(0u8.., 0..80)) {
            let _ = rewrite_window_scale(&mut bytes, WindowScale::Set(3));
        }
    }
}
