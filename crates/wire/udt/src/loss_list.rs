//! Lists of missing packets, the body of a NAK: a word is one packet, or with its top bit
//! set the first of a range whose last is the next word.

use crate::packet::{Malformed, word};
use crate::sequence::Sequence;

const RANGE: u32 = 1 << 31;

/// A list as it was received or is to be sent: well-formed words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossList<'a>(&'a [u8]);

impl<'a> LossList<'a> {
    /// Parses the body of a NAK.
    ///
    /// # Errors
    /// An empty or truncated list.
    pub fn parse(body: &'a [u8]) -> Result<LossList<'a>, Malformed> {
        if body.is_empty() || !body.len().is_multiple_of(4) {
            return Err(Malformed("loss list of no whole words"));
        }
        let (mut index, words) = (0, body.len() / 4);
        while index < words {
            let first = word(body, index).unwrap_or(0);
            index += 1 + usize::from(first & RANGE != 0);
        }
        if index > words {
            return Err(Malformed("loss list ends within a range"));
        }
        Ok(LossList(body))
    }

    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The ranges, first and last.
    pub fn ranges(self) -> impl Iterator<Item = (Sequence, Sequence)> + 'a {
        let mut index = 0;
        std::iter::from_fn(move || {
            let first = word(self.0, index)?;
            let mut last = first;
            index += 1;
            if first & RANGE != 0 {
                last = word(self.0, index)?;
                index += 1;
            }
            Some((Sequence::new(first), Sequence::new(last)))
        })
    }
}

/// Appends a range to the body of a NAK.
pub(crate) fn push_range(body: &mut Vec<u8>, first: Sequence, last: Sequence) {
    if first == last {
        body.extend(first.number().to_be_bytes());
    } else {
        body.extend((first.number() | RANGE).to_be_bytes());
        body.extend(last.number().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_without_its_end_is_refused() {
        let mut body = Vec::new();
        push_range(&mut body, Sequence::new(3), Sequence::new(9));
        assert_eq!(LossList::parse(&body[..4]), Err(Malformed("loss list ends within a range")));
        assert!(LossList::parse(&body[..7]).is_err());
        assert!(LossList::parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_parsed(ranges in prop::collection::vec((0_u32.., 0_u64..3), 1..99)) {
            let ranges = ranges.into_iter().map(|(first, more)| {
                let first = Sequence::new(first);
                (first, first.after(more))
            });
            let ranges: Vec<_> = ranges.collect();
            let mut body = Vec::new();
            for (first, last) in &ranges {
                push_range(&mut body, *first, *last);
            }
            let parsed: Vec<_> = LossList::parse(&body).unwrap().ranges().collect();
            prop_assert_eq!(parsed, ranges);
        }
    }
}
