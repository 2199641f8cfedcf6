//! `application/x-www-form-urlencoded` (WHATWG URL, section 5.1).

/// Pairs that are read; a form has fewer.
const MAX_PAIRS: usize = 64;

/// The pairs of a query or a body. Bytes that are no UTF-8 become U+FFFD.
pub(crate) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let pair = |part: &[u8]| {
        let end = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        (decoded(&part[..end]), decoded(part.get(end + 1..).unwrap_or_default()))
    };
    parts.take(MAX_PAIRS).map(pair).collect()
}

fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let coded = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (coded, first) {
            (Some((high, low)), _) => {
                bytes.push(high << 4 | low);
                rest = &tail[2..];
                continue;
            }
            (None, b'+') => bytes.push(b' '),
            (None, byte) => bytes.push(byte),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The first value of that name.
pub(crate) fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let read =
            pairs(b"rate=1+gbit&&rtt=%31%30%30ms&place=M%c3%BCnchen&%=%4&a=b=c&empty&bad=%ff%zz");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("rate", "1 gbit"),
            pair("rtt", "100ms"),
            pair("place", "München"),
            pair("%", "%4"),
            pair("a", "b=c"),
            pair("empty", ""),
            pair("bad", "\u{fffd}%zz"),
        ];
        assert_eq!(read, expected);
        assert_eq!(first(&pairs(b"a=1&a=2"), "a"), Some("1"));
        assert_eq!(pairs(&b"a=1&".repeat(100_000)).len(), MAX_PAIRS);
    }
}
